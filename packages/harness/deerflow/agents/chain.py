"""The order of the chain for every assembly, and where a person's own middlewares go in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware

from deerflow.agents.features import RuntimeFeatures
from deerflow.agents.middlewares.clarification_middleware import ClarificationMiddleware

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
