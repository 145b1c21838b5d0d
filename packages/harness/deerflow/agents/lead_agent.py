"""The lead agent: the one a person talks to."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.types import Checkpointer

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
from deerflow.agents.middlewares.base import AnyMiddleware, Middleware
from deerflow.agents.middlewares.deferred_tool_filter_middleware import (
    DEFERRED_FROM,
    LISTED_BYTES,
    DeferredToolFilterMiddleware,
)
from deerflow.agents.middlewares.guardrail_middleware import guardrail_of
from deerflow.agents.middlewares.llm_error_handling_middleware import LLMErrorHandlingMiddleware
from deerflow.agents.middlewares.sandbox_audit_middleware import SandboxAuditMiddleware
from deerflow.agents.middlewares.skills_middleware import SkillsMiddleware
from deerflow.agents.middlewares.subagent_limit_middleware import SubagentLimitMiddleware, TurnLimitMiddleware
from deerflow.agents.middlewares.summarization_middleware import ContextTable, SummarizationMiddleware, context_table
from deerflow.agents.middlewares.todo_middleware import TodoMiddleware
from deerflow.agents.middlewares.token_usage_middleware import TokenUsageMiddleware
from deerflow.agents.middlewares.tool_calls_middleware import ToolLedgerMiddleware, ToolOrderMiddleware
from deerflow.agents.middlewares.uploads_middleware import SteeringMiddleware
from deerflow.agents.middlewares.view_image_middleware import ViewImageMiddleware
from deerflow.agents.prompt import apply_prompt_template
from deerflow.agents.receipts import work_of_subagent
from deerflow.agents.run_options import run_options
from deerflow.agents.transcript import Transcript
from deerflow.agents.turn import carried
from deerflow.capability import AgentSpec
from deerflow.config import AppConfig, ConfigSource, ModelConfig, Paths, switches
from deerflow.config.agents import NO_PERSONA, Persona
from deerflow.config.confinement import visible_mounts
from deerflow.config.schema import NOT_FOR_SUBAGENTS
from deerflow.harness import Harness, RunOptions
from deerflow.identity import check_agent_name
from deerflow.mcp import POLICY, SERVER
from deerflow.models.factory import find_model
from deerflow.skills.catalog import NO_SKILLS, SkillSet
from deerflow.subagents import INHERIT, SubagentConfig, subagents_of
from deerflow.subagents.task import Subagents
from deerflow.tools.agents import agent_tools
from deerflow.tools.clarification import ask_clarification_tool
from deerflow.tools.registry import SMALL_WINDOW, get_available_tools
from deerflow.tools.skills import skill_tools

SMALL_LISTING = 1_000
"""Bytes of the list of tools of servers for a model with a small window."""

logger = logging.getLogger(__name__)


def build_lead_agent(
    harness: Harness,
    options: RunOptions,
    *,
    skills: SkillSet = NO_SKILLS,
    persona: Persona = NO_PERSONA,
    features: RuntimeFeatures | None = None,
    extra_middleware: Sequence[AnyMiddleware] = (),
    checkpointer: Checkpointer = None,
) -> Agent:
    """The lead agent's graph for these options. Costs tens of milliseconds: callers keep it per (configuration, options, list of skills).

    Args:
        harness: what runs share; its configuration names models and tools.
        options: what the caller chose.
        skills: those that the prompt lists.
        persona: what the person has written for the agent.
        features: replaces built-in middlewares by yours; ``sandbox=False`` also leaves out what works in a sandbox.
        extra_middleware: yours, placed by ``@Next``/``@Prev`` or before Clarification.
        checkpointer: makes threads persistent.

    Raises:
        ValueError: no model is configured, or an agent name is not one.
        ImportError: a model's or tool's package is not installed; the message says how to install it.
    """
    model, tools, chain, prompt = _parts(harness, options, skills, persona, features, extra_middleware)
    return assemble(model, tools, chain, system_prompt=prompt, checkpointer=checkpointer)


def lead_context(
    harness: Harness,
    options: RunOptions,
    values: Mapping[str, Any],
    *,
    skills: SkillSet = NO_SKILLS,
    persona: Persona = NO_PERSONA,
    features: RuntimeFeatures | None = None,
    extra_middleware: Sequence[AnyMiddleware] = (),
) -> ContextTable:
    """What the lead agent's next request would hold, for a thread with these values. Raises like :func:`build_lead_agent`."""
    model, tools, chain, prompt = _parts(harness, options, skills, persona, features, extra_middleware)
    brought = [tool for middleware in chain for tool in getattr(middleware, "tools", ())]
    transcript = Transcript(tuple(values.get("messages") or ()), state=values)
    offered = [*tools, *brought]
    for middleware in chain:
        if isinstance(middleware, Middleware):
            transcript = middleware.compile(transcript, None)
        if isinstance(middleware, DeferredToolFilterMiddleware):
            offered = middleware.offered(offered)
    return context_table(harness.windows, harness.config, model, prompt, offered, transcript.messages)


def _parts(
    harness: Harness,
    options: RunOptions,
    skills: SkillSet,
    persona: Persona,
    features: RuntimeFeatures | None,
    extra_middleware: Sequence[AnyMiddleware],
    subagent: SubagentConfig | None = None,
) -> tuple[BaseChatModel, list[BaseTool], list[AnyMiddleware], str]:
    """Model, tools, chain and system prompt, of the lead agent or of a subagent."""
    if options.agent_name is not None:
        check_agent_name(options.agent_name)
    config = harness.config
    entry = find_model(config, options.model_name)
    model = _model(harness, entry, options)
    sandbox = features is None or features.sandbox is not False
    groups = options.agent.tool_groups if options.agent is not None else None
    small = entry.context_window is not None and entry.context_window <= SMALL_WINDOW
    skills = replace(skills, brief=small)
    off = options.switched_off
    spec = AgentSpec(
        config,
        is_subagent=subagent is not None,
        is_kept=harness.checkpointer is not None,
        is_small=small,
        switched_off=off,
    )
    tools = get_available_tools(
        groups,
        app_config=config,
        supports_vision=entry.supports_vision,
        sandbox=sandbox,
        small=small,
        brought=[tool for offer in harness.offers for tool in offer.tools(spec)],
        switched_off=off,
    )

    def serves(server: str) -> bool:
        """Return whether the agent gets the offers of this MCP server."""
        return f"{switches.SERVER}{server}" not in off and (groups is None or bool({"mcp", server} & {*groups}))

    tools += [one for one in harness.mcp_tools if serves((one.metadata or {})[SERVER])]
    unconnected = [one for one in harness.mcp_unconnected if serves(one[0])]
    if sandbox and switches.SKILLS not in off:
        tools += skill_tools(skills, evolution=config.skill_evolution.enabled and subagent is None)
    if subagent is None:
        tools += agent_tools(is_bootstrap=options.is_bootstrap, is_custom=options.agent is not None)
    if subagent is not None:
        allowed, forbidden = subagent.tools, {*NOT_FOR_SUBAGENTS, *subagent.disallowed_tools}
        tools = [tool for tool in tools if tool.name not in forbidden and (allowed is None or tool.name in allowed)]
    elif options.subagent_enabled and not small:

        def build(asked: SubagentConfig) -> Agent:
            """Without a checkpointer: inside of a run it gets the lead's."""
            own = replace(
                options,
                model_name=options.model_name if asked.model == INHERIT else asked.model,
                thinking_enabled=False,
                is_plan_mode=False,
                subagent_enabled=False,
            )
            ours = features and replace(features, subagent=False, memory=False, auto_title=False)
            known = skills.only(asked.skills)
            model, tools, chain, prompt = _parts(harness, own, known, NO_PERSONA, ours, extra_middleware, asked)
            return assemble(model, tools, chain, system_prompt=prompt, name=asked.name)

        allowed = options.agent.subagents if options.agent is not None else None
        allowed_ones = {name: one for name, one in subagents_of(config).items() if allowed is None or name in allowed}
        tools += Subagents(allowed_ones, build, work_of_subagent, carried).tools()
    names = {tool.name for tool in tools}
    slots = with_replacements(_slots(harness, entry, options, tools, subagent), features)
    limiter, deferred = slots.get("subagent"), slots.get("deferred_tool_filter")
    prompt = apply_prompt_template(
        agent_name=options.agent_name,
        soul=persona.soul,
        profile=persona.profile,
        skills=skills.working(_offers(names, harness.programs.working, config.sandbox.network.mode)).prompt
        if sandbox
        else "",
        plan_mode=options.is_plan_mode,
        sandbox=sandbox,
        network=config.sandbox.network.mode,
        hosts=config.sandbox.network.allow,
        packages=config.sandbox.tool_image.enabled and harness.tool_image.status().ready,
        programs=harness.programs.working,
        mounts=visible_mounts(config),
        subagents=limiter.max_concurrent if isinstance(limiter, SubagentLimitMiddleware) else 0,
        role=subagent.system_prompt if subagent is not None else "",
        kept=" ".join(filter(None, (offer.kept(spec, names) for offer in harness.offers))),
        unconnected=unconnected,
        brief=small,
        servers=deferred.listing(SMALL_LISTING if small else LISTED_BYTES)
        if isinstance(deferred, DeferredToolFilterMiddleware)
        else "",
        tools=names,
    )
    return model, tools, insert_extras(in_order(slots), extra_middleware), prompt


def _offers(tools: Collection[str], programs: Collection[str], network: str) -> frozenset[str]:
    """Return the things that a skill may need: tools, ``network``, and programs of the sandbox."""
    named = (name.partition(" ")[0] for name in programs)
    return frozenset([*tools, *named, *(["network"] if network != "none" else [])])


def build_reader(
    harness: Harness,
    *,
    features: RuntimeFeatures | None = None,
    extra_middleware: Sequence[AnyMiddleware] = (),
    checkpointer: Checkpointer = None,
) -> Agent:
    """The lead agent's graph without its model and tools: threads can be read and changed with it, whatever they lack."""
    chain = in_order(with_replacements(_slots(harness, None, RunOptions()), features))
    return assemble(
        GenericFakeChatModel(messages=iter(())),
        [ask_clarification_tool],
        insert_extras(chain, extra_middleware),
        system_prompt=None,
        checkpointer=checkpointer,
    )


def make_lead_agent(config: RunnableConfig, app_config: AppConfig | None = None) -> Agent:
    """Graph factory for LangGraph's own tools (``langgraph.json``). Reads options from ``configurable``, overlaid by ``context``."""
    context = config.get("context")  # type: ignore[typeddict-item]
    given = {**(config.get("configurable") or {}), **(context if isinstance(context, Mapping) else {})}
    snapshot = app_config or ConfigSource().current()
    return build_lead_agent(Harness.build(snapshot, Paths()), run_options(given))


def _model(harness: Harness, entry: ModelConfig, options: RunOptions) -> BaseChatModel:
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


def _slots(
    harness: Harness,
    entry: ModelConfig | None,
    options: RunOptions,
    tools: Sequence[BaseTool] = (),
    subagent: SubagentConfig | None = None,
) -> dict[str, AnyMiddleware]:
    config = harness.config
    fallbacks = [_model(harness, config.get_model(name), options) for name in entry.fallbacks] if entry else []
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
        "skills": SkillsMiddleware(harness.paths),
        "sandbox_audit": SandboxAuditMiddleware(),
        "tool_ledger": ToolLedgerMiddleware(),
        "summarization": summarization,
        "token_usage": TokenUsageMiddleware(
            emits=config.token_usage.enabled, size=summarization.size, calls=harness.models.calls
        ),
        "vision": ViewImageMiddleware(),
    }
    if deferred := _deferred(config, tools):
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
    guardrails = options.agent.guardrails(config.guardrails) if options.agent is not None else config.guardrails
    has_policies = any(POLICY in (tool.metadata or {}) for tool in tools)
    if (guardrails.enabled or has_policies) and entry is not None:
        order = slots.get("tool_order")
        slots["guardrail"] = guardrail_of(guardrails, order if isinstance(order, ToolOrderMiddleware) else None)
    return slots


def _deferred(config: AppConfig, tools: Sequence[BaseTool]) -> list[BaseTool]:
    """The tools that the model has to search for."""
    found = [tool for tool in tools if SERVER in (tool.metadata or {})]
    wanted = config.tool_search.enabled
    return found if wanted or (wanted is None and len(found) >= DEFERRED_FROM) else []
