"""The parts that an agent is put together from: model, tools, chain of middlewares and system prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool

from deerflow.agents.factory import (
    Agent,
    assemble,
    core_slots,
    in_order,
    insert_extras,
    sandbox_slots,
    with_replacements,
)
from deerflow.agents.features import RuntimeFeatures
from deerflow.agents.middlewares.base import AnyMiddleware
from deerflow.agents.middlewares.deferred_tool_filter_middleware import (
    DEFERRED_FROM,
    LISTED_BYTES,
    DeferredToolFilterMiddleware,
)
from deerflow.agents.middlewares.llm_error_handling_middleware import LLMErrorHandlingMiddleware
from deerflow.agents.middlewares.sandbox_audit_middleware import SandboxAuditMiddleware
from deerflow.agents.middlewares.subagent_limit_middleware import SubagentLimitMiddleware, TurnLimitMiddleware
from deerflow.agents.middlewares.summarization_middleware import SummarizationMiddleware
from deerflow.agents.middlewares.todo_middleware import TodoMiddleware
from deerflow.agents.middlewares.token_usage_middleware import TokenUsageMiddleware
from deerflow.agents.middlewares.tool_calls_middleware import ToolLedgerMiddleware
from deerflow.agents.middlewares.uploads_middleware import SteeringMiddleware
from deerflow.agents.middlewares.view_image_middleware import ViewImageMiddleware
from deerflow.agents.prompt import apply_prompt_template
from deerflow.agents.receipts import work_of_subagent
from deerflow.agents.turn import carried
from deerflow.capability import AgentSpec, Supply
from deerflow.config import AppConfig, ModelConfig
from deerflow.config.agents import NO_PERSONA, Persona
from deerflow.config.confinement import visible_mounts
from deerflow.config.schema import NOT_FOR_SUBAGENTS
from deerflow.context.run_options import RunOptions
from deerflow.harness import Harness
from deerflow.identity import check_agent_name
from deerflow.models.factory import find_model
from deerflow.subagents import INHERIT, SubagentConfig, subagents_of
from deerflow.subagents.task import Subagents
from deerflow.tools.origin import SERVER
from deerflow.tools.registry import SMALL_WINDOW, get_available_tools

SMALL_LISTING = 1_000
"""Bytes of the list of tools of servers for a model with a small window."""


@dataclass(frozen=True)
class AgentParts:
    """Of the lead agent, or of a ``subagent``. Arguments as of :func:`deerflow.agents.lead_agent.build_lead_agent`, which names the errors."""

    harness: Harness
    options: RunOptions
    supplies: Sequence[Supply]
    persona: Persona
    features: RuntimeFeatures | None
    extra_middleware: Sequence[AnyMiddleware]
    subagent: SubagentConfig | None = None

    def __post_init__(self) -> None:
        if self.options.agent_name is not None:
            check_agent_name(self.options.agent_name)

    @cached_property
    def model(self) -> BaseChatModel:
        return model_of(self.harness, self._entry, self.options)

    @cached_property
    def tools(self) -> list[BaseTool]:
        """All but those of middlewares, in the order in which models read them."""
        offered = self._offered
        if self.subagent is not None:
            allowed, forbidden = self.subagent.tools, {*NOT_FOR_SUBAGENTS, *self.subagent.disallowed_tools}
            return [one for one in offered if one.name not in forbidden and (allowed is None or one.name in allowed)]
        delegates = self.options.subagent_enabled and not self._is_small
        return [*offered, *self._delegation()] if delegates else offered

    @cached_property
    def chain(self) -> list[AnyMiddleware]:
        brought = [one for offer in self.harness.offers for one in offer.middlewares(self._spec)]
        return insert_extras(in_order(self._slots), [*self.extra_middleware, *brought])

    @cached_property
    def prompt(self) -> str:
        harness, config, names = self.harness, self.harness.config, self._names
        limiter, deferred = self._slots.get("subagent"), self._slots.get("deferred_tool_filter")
        network, programs = config.sandbox.network, harness.programs.working
        listing = SMALL_LISTING if self._is_small else LISTED_BYTES
        return apply_prompt_template(
            agent_name=self.options.agent_name,
            soul=self.persona.soul,
            profile=self.persona.profile,
            early=[offer.prompt(self._spec, names) for offer in harness.offers if offer.before_files],
            plan_mode=self.options.is_plan_mode,
            sandbox=self._has_sandbox,
            network=network.mode,
            hosts=network.allow,
            packages=config.sandbox.tool_image.enabled and harness.tool_image.status().ready,
            programs=programs,
            mounts=visible_mounts(config),
            subagents=limiter.max_concurrent if isinstance(limiter, SubagentLimitMiddleware) else 0,
            role=self.subagent.system_prompt if self.subagent is not None else "",
            kept=" ".join(filter(None, (offer.kept(self._spec, names) for offer in harness.offers))),
            brought=[offer.prompt(self._spec, names) for offer in harness.offers if not offer.before_files],
            brief=self._is_small,
            servers=deferred.listing(listing) if isinstance(deferred, DeferredToolFilterMiddleware) else "",
            tools=names,
        )

    @cached_property
    def _entry(self) -> ModelConfig:
        return find_model(self.harness.config, self.options.model_name)

    @property
    def _is_small(self) -> bool:
        return self._entry.context_window is not None and self._entry.context_window <= SMALL_WINDOW

    @property
    def _has_sandbox(self) -> bool:
        return self.features is None or self.features.sandbox is not False

    @cached_property
    def _spec(self) -> AgentSpec:
        return AgentSpec(
            self.harness.config,
            self.options,
            {type(supply): supply for supply in self.supplies},
            is_subagent=self.subagent is not None,
            is_kept=self.harness.checkpointer is not None,
            is_small=self._is_small,
            has_sandbox=self._has_sandbox,
            skills=self.subagent.skills if self.subagent is not None else None,
            programs=self.harness.programs.working,
        )

    @cached_property
    def _names(self) -> set[str]:
        return {tool.name for tool in self.tools}

    @cached_property
    def _slots(self) -> dict[str, AnyMiddleware]:
        slots = slots_of(self.harness, self._entry, self.options, self.tools, self.subagent)
        for offer in self.harness.offers:
            slots |= offer.slots(self._spec, self.tools, slots)
        return with_replacements(slots, self.features)

    @cached_property
    def _offered(self) -> list[BaseTool]:
        return get_available_tools(
            self.options.agent.tool_groups if self.options.agent is not None else None,
            app_config=self.harness.config,
            supports_vision=self._entry.supports_vision,
            sandbox=self._has_sandbox,
            small=self._is_small,
            brought=[tool for offer in self.harness.offers for tool in offer.tools(self._spec)],
            switched_off=self.options.switched_off,
        )

    def _delegation(self) -> list[BaseTool]:
        allowed = self.options.agent.subagents if self.options.agent is not None else None
        known = subagents_of(self.harness.config)
        ours = {name: one for name, one in known.items() if allowed is None or name in allowed}
        return Subagents(ours, self._build_subagent, work_of_subagent, carried).tools()

    def _build_subagent(self, asked: SubagentConfig) -> Agent:
        """Without a checkpointer: inside of a run it gets the lead's."""
        options = replace(
            self.options,
            model_name=self.options.model_name if asked.model == INHERIT else asked.model,
            thinking_enabled=False,
            is_plan_mode=False,
            subagent_enabled=False,
        )
        features = self.features and replace(self.features, subagent=False, memory=False, auto_title=False)
        agent = AgentParts(self.harness, options, self.supplies, NO_PERSONA, features, self.extra_middleware, asked)
        return assemble(agent.model, agent.tools, agent.chain, system_prompt=agent.prompt, name=asked.name)


def model_of(harness: Harness, entry: ModelConfig, options: RunOptions) -> BaseChatModel:
    thinking = options.thinking_enabled and entry.supports_thinking
    settings = options.agent.model_settings if options.agent is not None else None
    # Retries are the error handling middleware's; the provider's own would multiply them.
    return harness.models.get(
        harness.config,
        entry.name,
        thinking,
        reasoning_effort=options.reasoning_effort,
        provider_retries=False,
        settings=settings.chosen if settings is not None else (),
    )


def slots_of(
    harness: Harness,
    entry: ModelConfig | None,
    options: RunOptions,
    tools: Sequence[BaseTool] = (),
    subagent: SubagentConfig | None = None,
) -> dict[str, AnyMiddleware]:
    """Return the middlewares of an agent by slot. ``entry``: of its model; None: of an agent that only reads."""
    config = harness.config
    fallbacks = [model_of(harness, config.get_model(name), options) for name in entry.fallbacks] if entry else []
    name = config.summarization.model_name
    summarizer = harness.models.get(config, name, False, provider_retries=False) if name else None
    summarization = SummarizationMiddleware(
        config.summarization, harness.windows, model=summarizer, skills_path=config.skills.container_path
    )
    slots: dict[str, AnyMiddleware] = {
        **core_slots(config),
        **sandbox_slots(harness.paths, harness.sandbox_provider, config),
        "steering": SteeringMiddleware(),
        "llm_error_handling": LLMErrorHandlingMiddleware(
            breakers=harness.breakers, gates=harness.gates, fallbacks=fallbacks
        ),
        "sandbox_audit": SandboxAuditMiddleware(),
        "tool_ledger": ToolLedgerMiddleware(),
        "summarization": summarization,
        "token_usage": TokenUsageMiddleware(
            emits=config.token_usage.enabled, size=summarization.size, calls=harness.models.calls
        ),
        "vision": ViewImageMiddleware(),
    }
    if deferred := deferred_tools(config, tools):
        descriptions = {name: one.description for name, one in config.extensions.mcp_servers.items()}
        slots["deferred_tool_filter"] = DeferredToolFilterMiddleware(deferred, descriptions)
    if options.is_plan_mode:
        slots["todo"] = TodoMiddleware()
    if subagent is not None:
        del slots["steering"], slots["clarification"]
        slots["subagent"] = TurnLimitMiddleware()
    elif options.subagent_enabled:
        slots["subagent"] = SubagentLimitMiddleware(
            options.max_concurrent_subagents, max_delegations=config.subagents.max_delegations
        )
    return slots


def deferred_tools(config: AppConfig, tools: Sequence[BaseTool]) -> list[BaseTool]:
    """The tools that the model has to search for."""
    found = [tool for tool in tools if SERVER in (tool.metadata or {})]
    wanted = config.tool_search.enabled
    return found if wanted or (wanted is None and len(found) >= DEFERRED_FROM) else []
