"""The facts of one run, passed explicitly to middlewares and tools as LangGraph's runtime context."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from deerflow.config import AppConfig
from deerflow.config.agents import NO_PERSONA, Persona
from deerflow.identity import LOCAL_PRINCIPAL, Principal
from deerflow.sandbox.converters import Converters
from deerflow.sandbox.interface import Gate, Policy, Sandbox, SandboxProvider, SandboxRuntimeError, sandbox_id
from deerflow.sandbox.package_hosts import PackageHosts
from deerflow.skills.catalog import NO_SKILLS, SkillSet
from deerflow.skills.parser import Skill
from deerflow.storage.budgets import Budget
from deerflow.storage.pages import ThreadPages
from deerflow.storage.provenance import ThreadProvenance

T = TypeVar("T")

LIMITED = ("none", "allowlist")
"""Networks in which the hosts of packages are closed."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """A thread's directories on the host."""

    root: Path
    workspace: Path
    uploads: Path
    outputs: Path


@runtime_checkable
class ToolLedger(Protocol):
    """Which tool calls of the run were begun, so that a run that goes on after a crash repeats none of them."""

    async def begin(self, tool_call_id: str) -> bool:
        """Record that a call begins, durably. False: it began before, and nothing in the thread tells how it ended."""
        ...

    async def forget(self, tool_call_id: str) -> None:
        """The call did nothing: it may begin again."""
        ...


@runtime_checkable
class Approvals(Protocol):
    """What the person has granted, and the record of what was decided. ``agent`` is empty for the lead agent."""

    async def patterns(self, agent: str, tool: str, digest: str) -> Sequence[Mapping[str, str | None] | None]:
        """Return the person's grants for a tool, as it is defined now, in this thread; None: every call."""
        ...

    async def grant(
        self, agent: str, tool: str, digest: str, pattern: Mapping[str, str | None] | None, *, everywhere: bool
    ) -> None:
        """Keep a grant, for this thread or for all."""
        ...

    async def may_reach(self, agent: str, destination: str) -> bool:
        """Return whether the person lets this chat send to a host or server."""
        ...

    async def let_reach(self, agent: str, destination: str) -> None:
        """Let this chat send to a host or server."""
        ...

    async def reachable(self, agent: str) -> frozenset[str]:
        """Return all that the person lets this chat send to, as far as this run knows."""
        ...

    async def asked(self, call: str) -> Mapping[str, Any] | None:
        """Return what :meth:`ask` kept about a call."""
        ...

    async def ask(self, call: str, shown: Mapping[str, Any]) -> None:
        """Keep what the person is shown of a call that waits."""
        ...

    async def record(
        self, call_id: str, decision: str, *, asked_by: str, agent: str, tool: str, code: str, policy_id: str | None
    ) -> None:
        """Keep what was decided about a call of the message ``asked_by``."""
        ...


@dataclass(frozen=True, slots=True)
class SubagentStops:
    """Which subagents of a run are to stop, named by the calls that began them. Whoever was to stop before it began, or in
    an attempt before this one, stops at its first step."""

    _asked: set[str] = field(default_factory=set[str])
    _limits: dict[str, asyncio.Timeout] = field(default_factory=dict[str, asyncio.Timeout])

    def ask(self, task_id: str) -> None:
        self._asked.add(task_id)
        if (limit := self._limits.get(task_id)) is not None:
            limit.reschedule(asyncio.get_running_loop().time())

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._asked

    @contextmanager
    def ending(self, task_id: str, limit: asyncio.Timeout) -> Generator[None]:
        """The time of a subagent, entered already, is over when it is to stop."""
        self._limits[task_id] = limit
        try:
            yield
        finally:
            del self._limits[task_id]


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a run knows. ``context_schema`` of every agent graph."""

    thread_id: str
    run_id: str = ""
    principal: Principal = LOCAL_PRINCIPAL
    agent_name: str | None = None
    model_name: str | None = None
    thinking_enabled: bool = True
    reasoning_effort: str | None = None
    is_plan_mode: bool = False
    subagent_enabled: bool = False
    max_concurrent_subagents: int = 3
    is_subagent: bool = False
    subagent_name: str = ""
    task_namespace: str = ""
    """The checkpoint namespace of the subagent, which is that of its events."""
    max_turns: int | None = None
    """Answers that the subagent's model may give."""
    start_subagent: Callable[[Any, RunContext], None] | None = None
    """Lets a subagent work in the background, for this context. None: nothing can."""
    cancel_subagent: Callable[[str], Awaitable[bool]] | None = None
    """Stops the one that a call of this id began."""
    subagent_ended: Callable[[str], Awaitable[None]] | None = None
    """Awaited with the id of its call before a subagent's result counts: what it emitted outlives the process then."""
    background_subagents: Callable[[], int] | None = None
    """How many there are."""
    stops: SubagentStops = field(default_factory=SubagentStops)
    config: AppConfig | None = None
    """The configuration snapshot that the run began with."""
    workspace: Workspace | None = None
    sandbox_provider: SandboxProvider | None = None
    sandbox_policy: Policy = Policy()
    settle_in: Callable[[], Awaitable[None]] | None = None
    """Awaited before a sandbox is had: puts into the thread's home what programs know of the person. Most turns need none."""
    package_hosts: PackageHosts | None = None
    """Hosts that the person may let the chat install packages from."""
    converters: Converters | None = None
    skills: SkillSet = NO_SKILLS
    """Those that the agent may use."""
    skill_secrets: Callable[[Skill], Awaitable[Mapping[str, str]]] | None = None
    """What a skill's scripts get in their environment; no model, log or shell sees it."""
    suggest_skill: Callable[[Mapping[str, str | None]], Awaitable[None]] | None = None
    """Puts a change of the person's skills before the person."""
    persona: Persona = NO_PERSONA
    save_agent: Callable[[str | None, Mapping[str, Any]], Awaitable[str]] | None = None
    """Makes or changes a custom agent of the person, and says what became of it; None: the default agent."""
    ledger: ToolLedger | None = None
    approvals: Approvals | None = None
    provenance: ThreadProvenance | None = None
    """Where foreign text in the thread came from, live."""
    gate: Gate | None = None
    """Judges the hosts that commands reach. None: the sandbox keeps the gate that it has."""
    pages: ThreadPages | None = None
    """The record of what is read of the web."""
    things: Mapping[type, object] = field(default_factory=dict[type, object])
    """Of capabilities, for their tools: see :meth:`of`."""
    count_usage: Callable[[Any, str], None] | None = None
    """Called with each answer of a model, and with whose it is."""
    budget: Budget | None = None
    """None: nothing limits what the run spends."""
    unattended: bool = False
    """There is no person who could decide about a call."""
    can_wait: bool = False
    """Its owner can be reached later: a schedule of a thread that stays."""
    trace_command: Callable[[str, str | None, float, int | None], None] | None = None
    """Called with a command that has ended: itself, its call, when it began, and its exit code."""
    arrivals: Callable[[], Awaitable[list[Any]]] | None = None
    """The person's messages that came since the last model call, for the run to go on with."""

    def of(self, kind: type[T]) -> T | None:
        """Return what the capability gives its tools in this run; None: it has no part in it."""
        found = self.things.get(kind)
        return found if isinstance(found, kind) else None

    async def sandbox(self) -> Sandbox:
        """The thread's sandbox.

        Raises:
            SandboxRuntimeError: the run has none (the ``sandbox`` feature is off).
        """
        if self.sandbox_provider is None:
            raise SandboxRuntimeError("This agent runs without a sandbox: files and commands are not available.")
        if self.settle_in is not None:
            await self.settle_in()
        sandbox = await self.sandbox_provider.acquire(
            self.thread_id, user_id=self.principal.user_id, policy=await self._policy()
        )
        if self.gate is not None:
            sandbox.gate = self.gate
        return sandbox

    async def _policy(self) -> Policy:
        """Return the thread's policy, with the hosts of packages if the person has opened them to this chat."""
        policy = self.sandbox_policy
        if self.package_hosts is None or self.approvals is None or policy.network.mode not in LIMITED:
            return policy
        open_hosts = await self.approvals.reachable(self.agent_name or "")
        if not open_hosts or not (hosts := await self.package_hosts.of(policy)) or not open_hosts.issuperset(hosts):
            return policy
        network = replace(policy.network, mode="allowlist", allow=(*policy.network.allow, *hosts))
        return replace(policy, network=network)

    def reader(self) -> Converters:
        """Return what reads the files of strangers.

        Raises:
            SandboxRuntimeError: the run has none.
        """
        if self.converters is None:
            raise SandboxRuntimeError(
                "This agent runs without converters: pages, pictures and documents cannot be read."
            )
        return self.converters

    async def release_sandbox(self) -> None:
        """Say that the run needs the thread's sandbox no longer. Files and background processes stay."""
        if self.sandbox_provider is not None:
            await self.sandbox_provider.release(sandbox_id(self.thread_id, self.principal.user_id))
