"""The lead agent: the one a person talks to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.language_models import GenericFakeChatModel
from langgraph.types import Checkpointer

from deerflow.agents.agent_parts import AgentParts, slots_of
from deerflow.agents.factory import Agent, assemble, in_order, insert_extras, with_replacements
from deerflow.agents.features import RuntimeFeatures
from deerflow.agents.middlewares.base import AnyMiddleware, Middleware
from deerflow.agents.middlewares.deferred_tool_filter_middleware import DeferredToolFilterMiddleware
from deerflow.agents.middlewares.summarization_middleware import ContextTable, context_table
from deerflow.agents.transcript import Transcript
from deerflow.capability import AgentSpec, Supply
from deerflow.config.agents import NO_PERSONA, Persona
from deerflow.context.run_options import RunOptions
from deerflow.harness import Harness
from deerflow.tools.clarification import ask_clarification_tool


def build_lead_agent(
    harness: Harness,
    options: RunOptions,
    *,
    supplies: Sequence[Supply] = (),
    persona: Persona = NO_PERSONA,
    features: RuntimeFeatures | None = None,
    extra_middleware: Sequence[AnyMiddleware] = (),
    checkpointer: Checkpointer = None,
) -> Agent:
    """The lead agent's graph for these options. Costs tens of milliseconds: callers keep it per (configuration, options, supplies).

    Args:
        harness: what runs share; its configuration names models and tools.
        options: what the caller chose.
        supplies: what nouns have for the person, see :meth:`Harness.supplies`.
        persona: what the person has written for the agent.
        features: replaces built-in middlewares by yours; ``sandbox=False`` also leaves out what works in a sandbox.
        extra_middleware: yours, placed by ``@Next``/``@Prev`` or before Clarification.
        checkpointer: makes threads persistent.

    Raises:
        ValueError: no model is configured, or an agent name is not one.
        ImportError: a model's or tool's package is not installed; the message says how to install it.
    """
    agent = AgentParts(harness, options, supplies, persona, features, extra_middleware)
    return assemble(agent.model, agent.tools, agent.chain, system_prompt=agent.prompt, checkpointer=checkpointer)


def lead_context(
    harness: Harness,
    options: RunOptions,
    values: Mapping[str, Any],
    *,
    supplies: Sequence[Supply] = (),
    persona: Persona = NO_PERSONA,
    features: RuntimeFeatures | None = None,
    extra_middleware: Sequence[AnyMiddleware] = (),
) -> ContextTable:
    """What the lead agent's next request would hold, for a thread with these values. Raises like :func:`build_lead_agent`."""
    agent = AgentParts(harness, options, supplies, persona, features, extra_middleware)
    brought = [tool for middleware in agent.chain for tool in getattr(middleware, "tools", ())]
    transcript = Transcript(tuple(values.get("messages") or ()), state=values)
    offered = [*agent.tools, *brought]
    for middleware in agent.chain:
        if isinstance(middleware, Middleware):
            transcript = middleware.compile(transcript, None)
        if isinstance(middleware, DeferredToolFilterMiddleware):
            offered = middleware.offered(offered)
    return context_table(harness.windows, harness.config, agent.model, agent.prompt, offered, transcript.messages)


def build_reader(
    harness: Harness,
    *,
    features: RuntimeFeatures | None = None,
    extra_middleware: Sequence[AnyMiddleware] = (),
    checkpointer: Checkpointer = None,
) -> Agent:
    """The lead agent's graph without its model and tools: threads can be read and changed with it, whatever they lack."""
    built_in = [name for name, one in vars(features).items() if one is True and name != "sandbox"] if features else []
    replaced = features and replace(features, **dict.fromkeys(built_in, False))
    spec, slots = AgentSpec(harness.config), slots_of(harness, None, RunOptions())
    for offer in harness.offers:
        slots |= offer.slots(spec, (), slots)
    chain = in_order(with_replacements(slots, replaced))
    brought = [one for offer in harness.offers for one in offer.middlewares(spec)]
    return assemble(
        GenericFakeChatModel(messages=iter(())),
        [ask_clarification_tool],
        insert_extras(chain, [*extra_middleware, *brought]),
        system_prompt=None,
        checkpointer=checkpointer,
    )
