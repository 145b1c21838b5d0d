"""The interface by which the core knows a noun of DeerFlow: memory, and whatever else moves into a folder of ``features``."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from deerflow.config import AppConfig
from deerflow.context.run_options import RunOptions
from deerflow.identity import Principal

if TYPE_CHECKING:
    from collections.abc import Hashable
    from datetime import datetime
    from pathlib import Path

    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig
    from langchain_core.tools import BaseTool
    from sqlalchemy import Connection

    from deerflow.sandbox.interface import SandboxProvider
    from deerflow.storage.database import Database
    from deerflow.storage.runs import Run

logger = logging.getLogger(__name__)


SupplyT = TypeVar("SupplyT", bound="Supply")


class Supply(Protocol):
    """The part of an :class:`Offer` that depends on the person, or on what is up now. Tools find it by its type: ``context.of``."""

    @property
    def id(self) -> Hashable:
        """Equal for supplies that make equal agents."""
        ...

    @property
    def mounts(self) -> Mapping[str, Path]:
        """Folders of the host by where the agent's sandbox has them, read-only."""
        ...


@dataclass(frozen=True, slots=True)
class AskedAgent:
    """An agent that a person is about to use.

    Args:
        sandbox_provider: for programs that the host must not run itself.
        acts: it does more than read a thread.
        waits: it waits for servers that are just starting.
    """

    config: AppConfig
    sandbox_provider: SandboxProvider
    principal: Principal
    options: RunOptions
    acts: bool = True
    waits: bool = False


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """An agent that is put together.

    Args:
        options: the choices of the run's caller; a subagent has those of its lead.
        supplies: by their types.
        is_subagent: it works for another agent, and talks to no person.
        is_kept: its threads are kept: what it learns can outlive them.
        is_small: its model has a small window, and reads of no tool that it can do without.
        has_sandbox: it has files and commands.
        skills: names of the only skills that a subagent gets; None: those of its lead.
        programs: names of programs that work in its sandbox.
    """

    config: AppConfig
    options: RunOptions = field(default_factory=RunOptions)
    supplies: Mapping[type, Supply] = field(default_factory=dict[type, "Supply"])
    is_subagent: bool = False
    is_kept: bool = False
    is_small: bool = False
    has_sandbox: bool = True
    skills: Collection[str] | None = None
    programs: Collection[str] = ()

    def of(self, kind: type[SupplyT]) -> SupplyT | None:
        """Return what the offer of that supply has for this agent."""
        found = self.supplies.get(kind)
        return found if isinstance(found, kind) else None

    @property
    def switched_off(self) -> Collection[str]:
        """Names of what the person has switched off in the chat."""
        return self.options.switched_off


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A message of a person that begins a turn.

    Args:
        agent: name of the custom agent, lower case; empty: the lead agent.
        text: of the message.
        config: the snapshot that the run began with.
        earlier: reads the messages of the thread before it; None: there are none.
    """

    principal: Principal
    agent: str
    thread_id: str
    text: str
    config: AppConfig
    earlier: Callable[[], Awaitable[Sequence[BaseMessage]]] | None


@dataclass(frozen=True, slots=True)
class AskedRun:
    """A run, or a schedule of runs, that a client asks for.

    Args:
        webhook: address to call when the run has ended; None: none.
    """

    principal: Principal
    webhook: str | None = None


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that was executed, in the transaction that ends it.

    Args:
        config: the snapshot now in force.
        agent: as in NewTurn.
        joined: the messages that the run added to its thread.
        answer: text of the last one of the model.
        ends_turn: its turn came to a good end.
        switched_off: what the person had switched off for it.
    """

    config: AppConfig
    agent: str
    run: Run
    joined: Sequence[BaseMessage]
    answer: str
    ends_turn: bool
    switched_off: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The facts of a run that an observer gets at its beginning. ``traceparent``: the caller's span, in W3C's form."""

    trace_id: str
    run_id: str
    thread_id: str
    user_id: str
    agent: str
    started_at: datetime
    first_attempt: bool
    traceparent: str | None = None


class Observer(Protocol):
    """Follows one attempt at a run, e.g. to send its trace to a service."""

    def configured(self, config: RunnableConfig) -> RunnableConfig:
        """Return ``config`` with the callbacks that the attempt's graph is to have."""
        ...

    def command(self, command: str, call_id: str | None, started: float, exit_code: int | None) -> None:
        """Note a command of the sandbox that has ended and began at ``started``, seconds since the epoch."""
        ...

    def close(self, error: str | None = None, stop_reason: str | None = None, *, ended: bool = True) -> None:
        """End what is open. Not ``ended``: another attempt goes on with the run."""
        ...


class Offer:
    """The part of a noun that agents get. But for its supply it depends on the agent's specification only, so that system prompt and
    tools stay the same. No message waits for a method that it does not override."""

    before_files: ClassVar[bool] = False
    """Its section of the system prompt stands before the one about files and commands."""

    async def supply(self, asked: AskedAgent) -> Supply | None:
        """Return what agents of this person get now; None: nothing."""
        return None

    async def called(self, asked: AskedAgent, text: str) -> Mapping[str, Any]:
        """Return the facts to record with a person's message that calls something of this noun, e.g. by ``/name``; empty: it calls none."""
        return {}

    def tools(self, agent: AgentSpec) -> Sequence[BaseTool]:
        return ()

    def slots(
        self, agent: AgentSpec, tools: Sequence[BaseTool], filled: Mapping[str, AgentMiddleware[Any, Any, Any]]
    ) -> Mapping[str, AgentMiddleware[Any, Any, Any]]:
        """Return middlewares for slots of the core's chain, by their names.

        Args:
            tools: all that the agent has.
            filled: the slots that others have filled.
        """
        return {}

    def middlewares(self, agent: AgentSpec) -> Sequence[AgentMiddleware[Any, Any, Any]]:
        """Return middlewares for the agent, placed by ``@Next``/``@Prev`` or before Clarification."""
        return ()

    def prompt(self, agent: AgentSpec, tools: Collection[str]) -> str:
        """Return a section for the system prompt; empty: none. ``tools``: names of the agent's."""
        return ""

    def kept(self, agent: AgentSpec, tools: Collection[str]) -> str:
        """Return a sentence for the system prompt about what outlives a thread; empty: nothing does. ``tools``: names of the agent's."""
        return ""

    async def aclose(self) -> None:
        """Let go of what is open, as the process or its event loop ends."""


class Capability:
    """The part that a noun takes in runs and threads. A method that it does not override is never called."""

    name: ClassVar[str]
    """Key of what :meth:`facts` records."""
    jobs: Mapping[str, Callable[[Any], Awaitable[None]]] = MappingProxyType({})
    """Handlers of its background tasks, by kind."""
    needs_server: ClassVar[bool] = False
    """Its background tasks are left to servers: a program that embeds DeerFlow does not do them."""

    async def admit(self, asked: AskedRun) -> None:
        """Raise RequestError if the run may not be, before anything is recorded."""
        raise NotImplementedError

    async def facts(self, turn: NewTurn) -> Mapping[str, Any] | None:
        """Return what to record with the person's message. A text under ``text`` stands before it in requests, in a tag of this
        capability's name, after the sentence under ``note``."""
        raise NotImplementedError

    def for_run(self, principal: Principal, thread_id: str, agent: str) -> object:
        """Return what this capability's tools find in a run by ``context.of``."""
        raise NotImplementedError

    async def observer(self, facts: RunFacts) -> Observer | None:
        """Return what follows an attempt at a run; None: nothing does."""
        raise NotImplementedError

    async def turn_left(self, thread_id: str) -> None:
        """Take note that the thread's last turn, which stayed open, has ended, since another begins."""
        raise NotImplementedError

    def run_ended(self, connection: Connection, ended: EndedRun) -> datetime | None:
        """Write what follows from a run, in the transaction that ends it, and return when the first task that it asks for is due."""
        raise NotImplementedError

    def run_closed(self, connection: Connection, run: Run, *, is_undone: bool) -> datetime | None:
        """Write what follows from the end of any run, also of one that was never executed. Returns as :meth:`run_ended`.

        Args:
            is_undone: the run is rolled back: its row goes.
        """
        raise NotImplementedError

    async def aclose(self) -> None:
        """Let go of what is open, as the process or its event loop ends."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Package:
    """A noun that another package brings. An entry point of the group ``deerflow.capabilities`` names a function that makes one of
    the settings that ``config.yaml`` gives it; settings that cannot be are a pydantic ``ValidationError`` or a ``ValueError``.

    Args:
        capability: makes its part in runs and threads.
        router: path ``package.module:attribute`` of a FastAPI router, served under ``/api/capabilities/<name>``.
    """

    offer: Offer | None = None
    capability: Callable[[Database], Capability] | None = None
    router: str = ""


PartT = TypeVar("PartT", Offer, Capability)


def overriding(given: Sequence[PartT], method: Callable[..., Any]) -> tuple[PartT, ...]:
    """Return those with a ``method`` of their own: one that a noun does not override is never called."""
    return tuple(each for each in given if getattr(type(each), method.__name__) is not method)


class Capabilities:
    """All capabilities, in the order in which they are asked; those without a method are left out of its calls.

    Args:
        packaged: those of other packages, asked last. If one fails as a run ends, what it wrote is undone and the run ends.
    """

    def __init__(self, *given: Capability, packaged: Collection[Capability] = ()) -> None:
        self._given = (*given, *packaged)
        self._packaged = frozenset(packaged)
        self._admit = self._with(Capability.admit)
        self._facts = self._with(Capability.facts)
        self._for_run = self._with(Capability.for_run)
        self._observer = self._with(Capability.observer)
        self._left = self._with(Capability.turn_left)
        self._ended = self._with(Capability.run_ended)
        self._closed = self._with(Capability.run_closed)
        self._aclose = self._with(Capability.aclose)

    def _with(self, method: Callable[..., Any]) -> tuple[Capability, ...]:
        return overriding(self._given, method)

    def jobs(self, *, on_server: bool = True) -> dict[str, Callable[[Any], Awaitable[None]]]:
        """Return the handlers of all background tasks, by kind."""
        meant = (each for each in self._given if on_server or not each.needs_server)
        return {kind: handler for each in meant for kind, handler in each.jobs.items()}

    async def admit(self, asked: AskedRun) -> None:
        for each in self._admit:
            await each.admit(asked)

    async def facts(self, turn: NewTurn, switched_off: Collection[str] = ()) -> dict[str, Any]:
        """Return what capabilities record with a message, by their names. Those that are switched off record nothing."""
        asked = [each for each in self._facts if each.name not in switched_off]
        found = [(each.name, await each.facts(turn)) for each in asked]
        return {name: facts for name, facts in found if facts is not None}

    def for_run(
        self, principal: Principal, thread_id: str, agent: str, switched_off: Collection[str] = ()
    ) -> dict[type, object]:
        """Return what tools find in a run, by its type. Those that are switched off have no part in it."""
        asked = [each for each in self._for_run if each.name not in switched_off]
        made = [each.for_run(principal, thread_id, agent) for each in asked]
        return {type(one): one for one in made}

    async def observers(self, facts: RunFacts) -> list[Observer]:
        found = [await each.observer(facts) for each in self._observer]
        return [observer for observer in found if observer is not None]

    async def turn_left(self, thread_id: str) -> None:
        for each in self._left:
            await each.turn_left(thread_id)

    def run_ended(self, connection: Connection, ended: EndedRun) -> list[datetime | None]:
        return [self._written(each, connection, partial(each.run_ended, connection, ended)) for each in self._ended]

    def run_closed(self, connection: Connection, run: Run, *, is_undone: bool = False) -> list[datetime | None]:
        return [
            self._written(each, connection, partial(each.run_closed, connection, run, is_undone=is_undone))
            for each in self._closed
        ]

    def _written(
        self, each: Capability, connection: Connection, write: Callable[[], datetime | None]
    ) -> datetime | None:
        if each not in self._packaged:
            return write()
        connection.exec_driver_sql("SAVEPOINT capability")
        try:
            due = write()
        except Exception:
            connection.exec_driver_sql("ROLLBACK TO SAVEPOINT capability")
            logger.exception("The capability %r failed as a run ended; what it wrote is undone.", each.name)
            due = None
        connection.exec_driver_sql("RELEASE SAVEPOINT capability")
        return due

    async def aclose(self) -> None:
        for each in self._aclose:
            await each.aclose()
