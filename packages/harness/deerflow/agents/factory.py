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
from deerflow.agents.middlewares.base import EndsAtOnce, FusedMiddleware, fuse, has_nodes_after_model
from deerflow.agents.middlewares.clarification_middleware import ClarificationMiddleware
from deerflow.agents.middlewares.dangling_tool_call_middleware import DanglingToolCallMiddleware
from deerflow.agents.middlewares.loop_detection_middleware import LoopDetectionMiddleware
from deerflow.agents.middlewares.thread_data_middleware import SandboxMiddleware, ThreadDataMiddleware
from deerflow.agents.middlewares.todo_middleware import TodoMiddleware
from deerflow.agents.middlewares.tool_calls_middleware import ToolOrderMiddleware
from deerflow.agents.middlewares.tool_error_handling_middleware import ToolErrorHandlingMiddleware
from deerflow.agents.middlewares.uploads_middleware import UploadsMiddleware
from deerflow.agents.middlewares.view_image_middleware import ViewImageMiddleware
from deerflow.agents.thread_state import ThreadState
from deerflow.context import RunContext
from deerflow.tools.clarification import ask_clarification_tool
from deerflow.tools.images import view_image_tool

AnyMiddleware = AgentMiddleware[Any, Any, Any]

SLOTS = (
    "tool_order",
    "thread_data",
    "uploads",
    "sandbox",
    "steering",
    "dangling_tool_call",
    "llm_error_handling",
    "skills",
    "deferred_tool_filter",
    "guardrail",
    "sandbox_audit",
    "tool_ledger",
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
        if isinstance(feature, AgentMiddleware):
            for slot in SANDBOX_TRIO if name == "sandbox" else ():
                result.pop(slot, None)
            result[name] = feature
        elif feature is True and name not in result:
            raise ValueError(
                f"RuntimeFeatures({name}=True) has no built-in middleware here: pass an AgentMiddleware instance."
            )
        elif feature is False and name == "sandbox":
            for slot in SANDBOX_TRIO:
                result.pop(slot, None)
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
    anchored = [extra for extra in extras if _anchors(extra)]
    _check_conflicts(anchored)
    result = list(chain)
    before_clarification = (
        len(result) - 1 if result and isinstance(result[-1], ClarificationMiddleware) else len(result)
    )
    result[before_clarification:before_clarification] = [extra for extra in extras if not _anchors(extra)]
    _insert_anchored(result, anchored)
    return [m for m in result if not isinstance(m, ClarificationMiddleware)] + [
        m for m in result if isinstance(m, ClarificationMiddleware)
    ]


def _anchors(extra: AnyMiddleware) -> tuple[type | None, type | None] | None:
    after, before = getattr(type(extra), "_next_anchor", None), getattr(type(extra), "_prev_anchor", None)
    if after and before:
        raise ValueError(f"{type(extra).__name__} has both @Next and @Prev: choose one.")
    return (after, before) if after or before else None


def _check_conflicts(anchored: Sequence[AnyMiddleware]) -> None:
    taken: dict[type, tuple[bool, str]] = {}
    for extra in anchored:
        after, before = _anchors(extra) or (None, None)
        anchor, is_next, name = after or before, after is not None, type(extra).__name__
        assert anchor is not None
        if anchor in taken:
            other_next, other = taken[anchor]
            if other_next == is_next:
                raise ValueError(
                    f"Conflict: {other} and {name} are both {'@Next' if is_next else '@Prev'} of {anchor.__name__}. Anchor one to the other."
                )
            raise ValueError(
                f"Conflict: {other} and {name} use @Next and @Prev of {anchor.__name__}; cross-anchoring on one anchor is not supported."
            )
        taken[anchor] = (is_next, name)


def _insert_anchored(result: list[AnyMiddleware], anchored: Sequence[AnyMiddleware]) -> None:
    waiting = list(anchored)
    while waiting:
        placed = [extra for extra in waiting if _place(result, extra)]
        if not placed:
            names = ", ".join(type(extra).__name__ for extra in waiting)
            circular = any(isinstance(other, _anchor_of(extra)) for extra in waiting for other in waiting)
            raise ValueError(f"{'Circular dependency among' if circular else 'Cannot resolve the anchors of'} {names}.")
        waiting = [extra for extra in waiting if extra not in placed]


def _place(result: list[AnyMiddleware], extra: AnyMiddleware) -> bool:
    index = next((i for i, middleware in enumerate(result) if isinstance(middleware, _anchor_of(extra))), None)
    if index is None:
        return False
    result.insert(index + 1 if getattr(type(extra), "_next_anchor", None) else index, extra)
    return True


def _anchor_of(extra: AnyMiddleware) -> type:
    after, before = _anchors(extra) or (None, None)
    anchor = after or before
    assert anchor is not None
    return anchor


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
        return assemble(
            model,
            tools or (),
            middleware,
            system_prompt=system_prompt,
            state_schema=state_schema,
            checkpointer=checkpointer,
            name=name,
        )
    features = features or RuntimeFeatures()
    chain = insert_extras(_feature_chain(features, plan_mode), extra_middleware or ())
    return assemble(
        model,
        [*(tools or ()), *_feature_tools(features)],
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
    own = {tool.name for tool in tools}
    first = {tool.name: tool for tool in reversed(tools)}
    middlewares = fuse(chain)
    if has_nodes_after_model(middlewares):
        middlewares.append(EndsAtOnce())
    for middleware in middlewares:
        if isinstance(middleware, FusedMiddleware):
            middleware.tools = [tool for tool in middleware.tools if tool.name not in own]
    return create_agent(
        model,
        list(first[tool_name] for tool_name in dict.fromkeys(tool.name for tool in tools)) or None,
        system_prompt=system_prompt,
        middleware=middlewares,
        state_schema=state_schema or ThreadState,
        context_schema=RunContext,
        checkpointer=checkpointer,
        name=name,
    )


def _feature_chain(features: RuntimeFeatures, plan_mode: bool) -> list[AnyMiddleware]:
    slots: dict[str, AnyMiddleware] = {
        "dangling_tool_call": DanglingToolCallMiddleware(),
        "tool_error_handling": ToolErrorHandlingMiddleware(),
        "loop_detection": LoopDetectionMiddleware(),
        "clarification": ClarificationMiddleware(),
    }
    if features.sandbox is True:
        slots |= {
            "tool_order": ToolOrderMiddleware(),
            "thread_data": ThreadDataMiddleware(),
            "uploads": UploadsMiddleware(),
            "sandbox": SandboxMiddleware(),
        }
    if features.vision is True:
        slots["vision"] = ViewImageMiddleware()
    if plan_mode:
        slots["todo"] = TodoMiddleware()
    return in_order(with_replacements(slots, features))


def _feature_tools(features: RuntimeFeatures) -> list[BaseTool]:
    vision = [view_image_tool] if features.vision and features.sandbox else []
    return [*vision, ask_clarification_tool]
