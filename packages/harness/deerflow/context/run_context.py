"""The facts of one run, passed explicitly to middlewares and tools as LangGraph's runtime context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from deerflow.config import AppConfig
from deerflow.context.delegation import Delegation
from deerflow.context.machine import Machine
from deerflow.context.run_options import RunOptions
from deerflow.context.spending import Spending
from deerflow.context.subagent import Subagent
from deerflow.context.tool_ledger import ToolLedger
from deerflow.context.trust import Trust
from deerflow.identity import LOCAL_PRINCIPAL, Principal
from deerflow.sandbox.converters import Converters
from deerflow.sandbox.interface import Sandbox

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunContext:
    """The facts of a run.

    Args:
        config: the configuration snapshot that the run began with.
        subagent: the one that works; None: the lead agent does.
        things: of nouns, for middlewares and tools, by type: see :meth:`of`.
    """

    thread_id: str
    run_id: str = ""
    principal: Principal = LOCAL_PRINCIPAL
    options: RunOptions = field(default_factory=RunOptions)
    config: AppConfig | None = None
    ledger: ToolLedger | None = None
    machine: Machine = field(default_factory=Machine)
    subagent: Subagent | None = None
    delegation: Delegation = field(default_factory=Delegation)
    trust: Trust = field(default_factory=Trust)
    spending: Spending = field(default_factory=Spending)
    things: Mapping[type, object] = field(default_factory=dict[type, object])

    @property
    def agent(self) -> str:
        """Return the name of the custom agent; empty: the lead agent."""
        return self.options.agent_name or ""

    @property
    def namespace(self) -> str:
        """Return the checkpoint namespace of the subagent; empty for the lead agent."""
        return self.subagent.namespace if self.subagent is not None else ""

    def of(self, kind: type[T]) -> T | None:
        """Return the thing of this type that a noun gives the run, or None if it has no part in it."""
        found = self.things.get(kind)
        return found if isinstance(found, kind) else None

    async def sandbox(self) -> Sandbox:
        """Return the thread's sandbox.

        Raises:
            SandboxRuntimeError: the run has none (the ``sandbox`` feature is off).
        """
        return await self.machine.sandbox(self.thread_id, self.principal.user_id, self._reachable)

    async def _reachable(self) -> frozenset[str]:
        approvals = self.trust.approvals
        return await approvals.reachable(self.agent) if approvals is not None else frozenset()

    def reader(self) -> Converters:
        """Return the converters, which read the files of strangers.

        Raises:
            SandboxRuntimeError: the run has none.
        """
        return self.machine.reader()

    async def release_sandbox(self) -> None:
        """Release the thread's sandbox, which the run needs no longer. Files and background processes stay."""
        await self.machine.release_sandbox(self.thread_id, self.principal.user_id)
