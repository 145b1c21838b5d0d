"""What runs are made of: the harness of the configuration as it is now, and the agents built with it."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from deerflow.capability import Supply
from deerflow.config import AppConfig, ConfigSource
from deerflow.config.agents import NO_PERSONA, Persona
from deerflow.context import RunContext
from deerflow.context.run_options import RunOptions
from deerflow.harness import Harness, of_run
from deerflow.identity import LOCAL_PRINCIPAL, Principal
from deerflow.models import ModelCache
from deerflow.models.endpoint import endpoint_of
from deerflow.models.resilience import Rest, rest_of, wake
from deerflow.storage.checkpoints.base import Checkpointer, Fence

if TYPE_CHECKING:
    from langchain.agents.middleware import AgentMiddleware

    from deerflow.agents.factory import Agent
    from deerflow.agents.features import RuntimeFeatures
    from deerflow.agents.middlewares.summarization_middleware import ContextTable
    from deerflow.sandbox.converters import Converters
    from deerflow.sandbox.interface import SandboxProvider
    from deerflow.sandbox.programs import Programs

logger = logging.getLogger(__name__)


MOST_AGENTS = 32
"""Kept per event loop; the least recently used go first."""


@dataclass
class _OfLoop:
    """Building a graph costs more than a short run; a model's connections belong to one event loop."""

    models: ModelCache
    agents: OrderedDict[tuple[Hashable, ...], Agent] = field(default_factory=OrderedDict)
    """By what they are made with: the id of the configuration, the options, then what there was."""


@dataclass(frozen=True, slots=True)
class AgentInputs:
    """What the agent of one run is made from, as it was when it was read.

    Args:
        supplies: what nouns have for it.
        thread: the context of runs in the thread.
    """

    harness: Harness
    supplies: tuple[Supply, ...]
    persona: Persona
    thread: RunContext


class AgentProvider:
    """Args:
    config_source: watched; a run keeps the snapshot that it began with.
    harness: of the snapshot that is current now.
    features: replaces built-in parts of the agent by your own middlewares.
    extra_middleware: yours, placed by ``@Next``/``@Prev`` or before Clarification.
    """

    def __init__(
        self,
        config_source: ConfigSource,
        harness: Harness,
        *,
        features: RuntimeFeatures | None = None,
        extra_middleware: Sequence[AgentMiddleware[Any, Any, Any]] = (),
    ) -> None:
        self.config_source = config_source
        self.harness = harness
        self._features = features
        self._extra = tuple(extra_middleware)
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _OfLoop] = WeakKeyDictionary()
        self._has_packages = False
        """Whether sandboxes had their Python packages when the last run began: the prompt says so."""
        self._retired: list[SandboxProvider | Converters | Programs] = []
        """Of former configurations: runs that began with them may still be on their way."""

    async def fresh(self) -> Harness:
        """The harness for the next run."""
        snapshot = await self.config_source.acurrent()
        if snapshot.id != self.harness.config.id:
            before, self.harness = self.harness, self.harness.with_config(snapshot)
            if before.sandbox_provider is not self.harness.sandbox_provider:
                self._retired += [before.sandbox_provider, before.converters, before.programs]
        return self.harness

    async def warm_up(self) -> None:
        """Start the servers that agents use."""
        await (await self.fresh()).supplies(LOCAL_PRINCIPAL, RunOptions())

    async def agent(self, options: RunOptions | None = None, principal: Principal = LOCAL_PRINCIPAL) -> Agent:
        """The lead agent for these options and this person, with the checkpointer; ready to read and change threads with.

        Raises:
            ValueError: no model is configured.
        """
        harness, options = await self.fresh(), options or RunOptions()
        return await self._agent(harness, options, *await _known(harness, principal, options))

    async def check(self, options: RunOptions) -> None:
        """Make an agent with these options, unless there is one already. Raises as :meth:`agent`."""
        harness = await self.fresh()
        if not any(key[:2] == (harness.config.id, options) for key in self._kept().agents):
            await self.agent(options)

    async def reader(self) -> Agent:
        """A graph to read and change threads with. It needs nothing that an agent needs to act: no model, no key, no tool."""
        harness = await self.fresh()
        try:
            return await self._agent(harness, None, (), NO_PERSONA)
        except Exception as error:
            logger.info("Threads are read without the middlewares of nouns: %s", error)
            return await self._agent(replace(harness, offers=()), None, (), NO_PERSONA)

    async def read(self, principal: Principal, thread_id: str, options: RunOptions) -> AgentInputs:
        """Read what the agent of a run needs. Makes the thread's directories, and waits for MCP servers that are starting."""
        harness = await self.fresh()
        (supplies, persona), thread = await asyncio.gather(
            _known(harness, principal, options, waits=True), harness.thread_context(thread_id, principal)
        )
        return AgentInputs(harness, supplies, persona, thread)

    async def prepare(
        self, given: AgentInputs, run_id: str, options: RunOptions, *, fencing_token: int
    ) -> tuple[Agent, RunContext]:
        """Agent and context of one run."""
        context = of_run(given.thread, given.supplies, options, run_id)
        self._has_packages = context.machine.policy.tools_dir is not None
        fence = (run_id, fencing_token)
        return await self._agent(given.harness, options, given.supplies, given.persona, fence), context

    def rest_of(self, config: AppConfig, model_name: str) -> Rest | None:
        """Return the reason for which runs do not call a model for now; None if they do."""
        model = self._kept().models.kept(config, model_name)
        return rest_of(endpoint_of(model), self.harness.breakers, self.harness.gates) if model is not None else None

    def let_call(self, config: AppConfig, model_name: str) -> None:
        """Let runs call a model again that they left alone for a while."""
        if (model := self._kept().models.kept(config, model_name)) is not None:
            wake(endpoint_of(model), self.harness.breakers, self.harness.gates)

    async def called(self, principal: Principal, options: RunOptions, text: str) -> Mapping[str, Any]:
        """See :meth:`Harness.called`."""
        return await (await self.fresh()).called(principal, options, text)

    async def context_table(self, principal: Principal, values: Mapping[str, Any], options: RunOptions) -> ContextTable:
        """What the next request would hold for a thread with these values. Raises ValueError: no model is configured."""
        harness = await self.fresh()
        supplies, persona = await _known(harness, principal, options)
        given: Any = {"supplies": supplies, "persona": persona, "features": self._features}

        def table() -> ContextTable:
            from deerflow.agents.lead_agent import lead_context

            own = replace(harness, models=ModelCache())
            return lead_context(own, options, values, extra_middleware=self._extra, **given)

        return await asyncio.to_thread(table)

    def forget_agents(self) -> None:
        """Build agents anew for the next run."""
        self._loops.clear()

    async def aclose(self) -> None:
        """End the sandboxes, and the connections of this loop to models."""
        if (kept := self._loops.pop(asyncio.get_running_loop(), None)) is not None:
            await kept.models.aclose()
        await self.harness.models.aclose()
        for offer in self.harness.offers:
            await offer.aclose()
        harness = self.harness
        for used in (*self._retired, harness.converters, harness.sandbox_provider, harness.programs):
            await used.shutdown()

    def _kept(self) -> _OfLoop:
        return self._loops.setdefault(asyncio.get_running_loop(), _OfLoop(ModelCache(calls=self.harness.models.calls)))

    async def _agent(
        self,
        harness: Harness,
        options: RunOptions | None,
        supplies: Sequence[Supply],
        persona: Persona,
        fence: Fence | None = None,
    ) -> Agent:
        def build(models: ModelCache) -> Agent:
            # Takes seconds, and this is a worker thread.
            from deerflow.agents.lead_agent import build_lead_agent, build_reader

            own, given = replace(harness, models=models), {"features": self._features, "extra_middleware": self._extra}
            if options is None:
                return build_reader(own, checkpointer=harness.checkpointer, **given)
            given |= {"supplies": supplies, "persona": persona}
            return build_lead_agent(own, options, checkpointer=harness.checkpointer, **given)

        programs = harness.programs.known
        if programs is None:
            programs = await asyncio.to_thread(lambda: harness.programs.working)
        key = (harness.config.id, options, self._has_packages, programs, persona, *(supply.id for supply in supplies))
        kept = self._kept()
        if key not in kept.agents:
            kept.agents[key] = await asyncio.to_thread(build, kept.models)
        kept.agents.move_to_end(key)
        while len(kept.agents) > MOST_AGENTS:
            kept.agents.popitem(last=False)
        agent, saver = kept.agents[key], harness.checkpointer
        if isinstance(
            saver, Checkpointer
        ):  # the run's own where one saver would make runs wait for each other (PostgreSQL)
            saver = saver.per_run(fence)
        return agent if saver is harness.checkpointer else agent.copy(update={"checkpointer": saver})


async def _known(
    harness: Harness, principal: Principal, options: RunOptions, *, waits: bool = False
) -> tuple[tuple[Supply, ...], Persona]:
    """Return what nouns have for an agent of the person, and what the person has written for it; both are read at once."""
    return await asyncio.gather(harness.supplies(principal, options, waits=waits), harness.persona(principal, options))
