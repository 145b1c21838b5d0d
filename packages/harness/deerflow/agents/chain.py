"""The order of the chain, told once for every assembly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain.agents.middleware import AgentMiddleware

from deerflow.agents.features import RuntimeFeatures

AnyMiddleware = AgentMiddleware[Any, Any, Any]

SLOTS = (
    "thread_data",
    "uploads",
    "sandbox",
    "steering",
    "dangling_tool_call",
    "llm_error_handling",
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
    "deferred_tool_filter",
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
