"""Inserting a person's middlewares into the chain, where ``@Next`` and ``@Prev`` say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware

from deerflow.agents.middlewares.clarification_middleware import ClarificationMiddleware

AnyMiddleware = AgentMiddleware[Any, Any, Any]


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
