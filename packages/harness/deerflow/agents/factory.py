"""``create_deerflow_agent``: an agent from arguments alone; and what every assembly shares.

That is the order of the chain, where a person's own middlewares go in it, and the last step to the graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph

from deerflow.agents.features import RuntimeFeatures
from deerflow.agents.middlewares.base import AFTER_MODEL, AnyMiddleware, EndsAtOnce, FusedMiddleware, fuse, overrides
from deerflow.agents.middlewares.clarification_middleware import ClarificationMiddleware
from deerflow.agents.middlewares.dangling_tool_call_middleware import DanglingToolCallMiddleware
from deerflow.agents.middlewares.loop_detection_middleware import LoopDetectionMiddleware
from deerflow.agents.middlewares.provenance_middleware import ProvenanceMiddleware
from deerflow.agents.middlewares.thread_data_middleware import SandboxMiddleware, ThreadDataMiddleware
from deerflow.agents.middlewares.todo_middleware import TodoMiddleware
from deerflow.agents.middlewares.tool_calls_middleware import ToolOrderMiddleware
from deerflow.agents.middlewares.tool_error_handling_middleware import ToolErrorHandlingMiddleware
from deerflow.agents.middlewares.uploads_middleware import UploadsMiddleware
from deerflow.agents.middlewares.view_image_middleware import ViewImageMiddleware
from deerflow.agents.thread_state import ThreadState
from deerflow.config import AppConfig, Paths
from deerflow.config.schema import LoopDetectionConfig
from deerflow.context.given_context import GivenContext
from deerflow.sandbox.interface import SandboxProvider
from deerflow.tools.clarification import ask_clarification_tool
from deerflow.tools.images import view_image_tool

SLOTS = (
    "tool_order",
    "thread_data",
    "uploads",
    "sandbox",
    "steering",
    "dangling_tool_call",
    "llm_error_handling",
    "deferred_tool_filter",
    "skills",
    "guardrail",
    "sandbox_audit",
    "tool_ledger",
    "provenance",
    "tool_error_handling",
    "summarization",
    "todo",
    "token_usage",
    "auto_title",
    "memory",
    "vision",
    "subagent",
    "loop_detection",
    "clarification",
)
"""Outermost first. A slot may be empty: its system is off, or not part of this agent."""

SANDBOX_TRIO = ("thread_data", "uploads", "sandbox")


def in_order(slots: Mapping[str, AnyMiddleware]) -> list[AnyMiddleware]:
    """The middlewares of the filled slots in the chain's order. Raises ValueError for a slot that does not exist."""
    if unknown := slots.keys() - set(SLOTS):
        raise ValueError(f"No such slot in the chain: {', '.join(sorted(unknown))}.")
    return [slots[name] for name in SLOTS if name in slots]


def with_replacements(slots: Mapping[str, AnyMiddleware], features: RuntimeFeatures | None) -> dict[str, AnyMiddleware]:
    """``slots`` with the middlewares that ``features`` gives in place of built-in ones, and without what it turns off.

    A sandbox replacement stands for thread data, uploads and sandbox together. A feature that is True needs a built-in.
    """
    result = dict(slots)
    for name, feature in vars(features).items() if features else ():
        if name == "sandbox" and feature is not True:
            result = {slot: middleware for slot, middleware in result.items() if slot not in SANDBOX_TRIO}
        if isinstance(feature, AgentMiddleware):
            result[name] = feature
        elif feature is True and name not in result:
            raise ValueError(
                f"RuntimeFeatures({name}=True) has no built-in middleware here: pass an AgentMiddleware instance."
            )
    return result


def insert_extras(chain: Sequence[AnyMiddleware], extras: Sequence[AnyMiddleware]) -> list[AnyMiddleware]:
    """``chain`` with ``extras`` in it: unanchored ones right before Clarification, in order; anchored ones at their anchor.

    An anchor may be another extra. Clarification stays last whatever is anchored to it.

    Raises:
        TypeError: an extra is not an AgentMiddleware.
        ValueError: anchors conflict, form a circle or name something that is not there.
    """
    for extra in extras:
        if not isinstance(extra, AgentMiddleware):
            raise TypeError(f"extra_middleware takes AgentMiddleware instances, not {type(extra).__name__}.")
    own_places = [_Placed(extra) for extra in extras]
    _check_conflicts(own_places)
    result = list(chain)
    last = [middleware for middleware in result[-1:] if isinstance(middleware, ClarificationMiddleware)]
    result[len(result) - len(last) :] = [*(each.extra for each in own_places if each.anchor is None), *last]
    _insert_anchored(result, [each for each in own_places if each.anchor is not None])
    return sorted(result, key=lambda middleware: isinstance(middleware, ClarificationMiddleware))


class _Placed:
    """A middleware of a person's own, and which class it stands behind or before, if it says so."""

    def __init__(self, extra: AnyMiddleware) -> None:
        self.extra, self.name = extra, type(extra).__name__
        after, before = getattr(type(extra), "_next_anchor", None), getattr(type(extra), "_prev_anchor", None)
        if after and before:
            raise ValueError(f"{self.name} has both @Next and @Prev: choose one.")
        self.anchor: type | None = after or before
        self.is_next = after is not None

    def stands_by(self, other: AnyMiddleware) -> bool:
        return self.anchor is not None and isinstance(other, self.anchor)


def _check_conflicts(extras: Sequence[_Placed]) -> None:
    taken: dict[type, _Placed] = {}
    for extra in extras:
        if extra.anchor is None:
            continue
        other, anchor = taken.setdefault(extra.anchor, extra), extra.anchor.__name__
        if other is not extra and other.is_next == extra.is_next:
            raise ValueError(
                f"Conflict: {other.name} and {extra.name} are both {'@Next' if extra.is_next else '@Prev'} of {anchor}. Anchor one to the other."
            )
        if other is not extra:
            raise ValueError(
                f"Conflict: {other.name} and {extra.name} use @Next and @Prev of {anchor}; cross-anchoring on one anchor is not supported."
            )


def _insert_anchored(result: list[AnyMiddleware], waiting: Sequence[_Placed]) -> None:
    while waiting:
        placed = [each for each in waiting if _insert(result, each)]
        if not placed:
            names = ", ".join(each.name for each in waiting)
            circular = any(each.stands_by(other.extra) for each in waiting for other in waiting)
            raise ValueError(f"{'Circular dependency among' if circular else 'Cannot resolve the anchors of'} {names}.")
        waiting = [each for each in waiting if each not in placed]


def _insert(result: list[AnyMiddleware], placed: _Placed) -> bool:
    index = next((i for i, middleware in enumerate(result) if placed.stands_by(middleware)), None)
    if index is not None:
        result.insert(index + placed.is_next, placed.extra)
    return index is not None


# agents --------------------------------------------------------------------------------------------------------------

Agent = CompiledStateGraph[Any, Any, Any, Any]


def create_deerflow_agent(
    model: BaseChatModel,
    tools: Sequence[BaseTool] | None = None,
    *,
    system_prompt: str | None = None,
    middleware: Sequence[AnyMiddleware] | None = None,
    features: RuntimeFeatures | None = None,
    extra_middleware: Sequence[AnyMiddleware] | None = None,
    plan_mode: bool = False,
    state_schema: type | None = None,
    checkpointer: bool | BaseCheckpointSaver[Any] | None = None,
    name: str = "default",
) -> Agent:
    """An agent from arguments alone: no configuration file, environment variable or global is read.

    One exception: the built-in sandbox keeps threads in the usual data directory (``DEER_FLOW_HOME``, else
    ``.deer-flow``). Pass ``features=RuntimeFeatures(sandbox=False)``, or a middleware of yours, where that must not be.

    Args:
        model: the chat model.
        tools: your tools; on a name clash they win over built-in ones.
        system_prompt: used as it is.
        middleware: the whole chain, verbatim; nothing is added.
        features: which built-in middlewares to use.
        extra_middleware: yours, placed by ``@Next``/``@Prev`` or before Clarification.
        plan_mode: adds ``write_todos``.
        state_schema: default ThreadState.
        checkpointer: makes threads persistent.
        name: stands on the agent's messages.

    Raises:
        ValueError: ``middleware`` together with ``features`` or ``extra_middleware``, or anchors that cannot be met.
        TypeError: an extra is not an AgentMiddleware.
    """
    if middleware is not None:
        if features is not None:
            raise ValueError("Cannot specify both 'middleware' and 'features': 'middleware' is the whole chain.")
        if extra_middleware:
            raise ValueError(
                "Cannot specify both 'middleware' and 'extra_middleware': 'middleware' is the whole chain."
            )
        chain, built_in = middleware, []
    else:
        features = features or RuntimeFeatures()
        chain = insert_extras(_feature_chain(features, plan_mode), extra_middleware or ())
        built_in = _feature_tools(features)
    return assemble(
        model,
        [*(tools or ()), *built_in],
        chain,
        system_prompt=system_prompt,
        state_schema=state_schema,
        checkpointer=checkpointer,
        name=name,
    )


def assemble(
    model: BaseChatModel,
    tools: Sequence[BaseTool],
    chain: Sequence[AnyMiddleware],
    *,
    system_prompt: str | None,
    state_schema: type | None = None,
    checkpointer: bool | BaseCheckpointSaver[Any] | None = None,
    name: str | None = None,
) -> Agent:
    """The last step of every assembly: duplicates dropped, adjacent middlewares fused, the graph compiled."""
    own: dict[str, BaseTool] = {}
    for tool in tools:
        own.setdefault(tool.name, tool)
    middlewares = fuse(chain)
    if any(overrides(middleware, *AFTER_MODEL) for middleware in middlewares):
        middlewares.append(EndsAtOnce())
    for middleware in middlewares:
        if isinstance(middleware, FusedMiddleware):
            middleware.tools = [tool for tool in middleware.tools if tool.name not in own]
    return create_agent(
        model,
        list(own.values()) or None,
        system_prompt=system_prompt,
        middleware=middlewares,
        state_schema=state_schema or ThreadState,
        context_schema=GivenContext,
        checkpointer=checkpointer,
        name=name,
    )


def core_slots(config: AppConfig | None = None) -> dict[str, AnyMiddleware]:
    """What every agent has that DeerFlow puts together."""
    loops = config.loop_detection if config is not None else LoopDetectionConfig()
    return {
        "dangling_tool_call": DanglingToolCallMiddleware(),
        "provenance": ProvenanceMiddleware(),
        "tool_error_handling": ToolErrorHandlingMiddleware(),
        **({"loop_detection": LoopDetectionMiddleware(loops)} if loops.enabled else {}),
        "clarification": ClarificationMiddleware(),
    }


def sandbox_slots(
    paths: Paths | None = None, provider: SandboxProvider | None = None, config: AppConfig | None = None
) -> dict[str, AnyMiddleware]:
    """What an agent with a sandbox has besides."""
    return {
        "tool_order": ToolOrderMiddleware(),
        "thread_data": ThreadDataMiddleware(paths),
        "uploads": UploadsMiddleware(),
        "sandbox": SandboxMiddleware(provider, paths, config),
    }


def _feature_chain(features: RuntimeFeatures, plan_mode: bool) -> list[AnyMiddleware]:
    slots = core_slots()
    if features.sandbox is True:
        slots |= sandbox_slots()
    if features.vision is True:
        slots["vision"] = ViewImageMiddleware()
    if plan_mode:
        slots["todo"] = TodoMiddleware()
    return in_order(with_replacements(slots, features))


def _feature_tools(features: RuntimeFeatures) -> list[BaseTool]:
    vision = [view_image_tool] if features.vision and features.sandbox else []
    return [*vision, ask_clarification_tool]
