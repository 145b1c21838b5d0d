"""What a model is reminded of with a person's message. It is recorded with the message and never changes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage

from deerflow.agents.memory.facts import CORRECTION
from deerflow.agents.memory.ranking import freshness, scores
from deerflow.agents.memory.store import Shelf
from deerflow.agents.turn import FACTS, MEMORY
from deerflow.models.context_window import BYTES_PER_TOKEN
from deerflow.security.text import inline
from deerflow.storage.memory import Fact
from deerflow.storage.search import words_of
from deerflow.storage.tables import utc_now

_CANDIDATES = 100
_WORDS = 64
_READ = 4000
"""Characters of a message that facts are looked up by."""
_UNASKED = 0.3
"""Rank of a fact that has nothing to do with the message."""
_SHORTEST = 8
"""Tokens that a fact takes at least."""
_FITS = 0.5
"""Rank from which a fact is recalled later in a thread."""
_TITLES = {
    "user": ("User Context:", {"workContext": "Work", "personalContext": "Personal", "topOfMind": "Current Focus"}),
    "history": (
        "History:",
        {"recentMonths": "Recent", "earlierContext": "Earlier", "longTermBackground": "Background"},
    ),
}


class Recalled(NamedTuple):
    """What earlier messages of a thread recalled: ids of facts, and how many tokens that takes."""

    facts: Collection[str] = ()
    tokens: int = 0

    @classmethod
    def by(cls, messages: Sequence[BaseMessage]) -> Recalled:
        recorded = [message.additional_kwargs.get(FACTS, {}).get(MEMORY) for message in messages]
        recalled = [memory for memory in recorded if memory]
        return cls(
            {each for memory in recalled for each in memory["ids"]}, sum(tokens(memory["text"]) for memory in recalled)
        )


def recall(shelf: Shelf, text: str, recalled: Recalled | None, max_tokens: int) -> dict[str, Any] | None:
    """What to record with a message ``text``: ``{text, ids, untrusted}``; None if there is nothing to recall.

    Corrections come first, then what fits the message, is sure and fresh.

    Args:
        recalled: None: the message is the thread's first, and everything worth knowing is recalled.
    """
    words = list(dict.fromkeys(words_of(text[:_READ])))[:_WORDS]
    now, is_first, known = utc_now(), recalled is None, recalled or Recalled()
    pool = {fact.id: fact for fact in shelf.find(words, _CANDIDATES)}
    pool |= {fact.id: fact for fact in shelf.live(category=CORRECTION, limit=_CANDIDATES)}
    pool |= {fact.id: fact for fact in shelf.live(limit=_CANDIDATES)}
    ranks = scores(words, list(pool.values()))

    def is_correction(fact: Fact) -> bool:
        return fact.category == CORRECTION and not fact.untrusted

    def worth(fact: Fact) -> tuple[bool, float]:
        value = (_UNASKED + ranks[fact.id]) * fact.confidence * freshness(fact, now)
        return is_correction(fact), value / 2 if fact.untrusted else value

    chosen = [
        fact
        for fact in pool.values()
        if fact.id not in known.facts and (is_first or is_correction(fact) or ranks[fact.id] >= _FITS)
    ]
    lines = _summaries(shelf) if is_first else []
    left = max_tokens - known.tokens
    kept: list[str] = []
    for summary in lines:
        if tokens(summary) <= left:
            kept.append(summary)
            left -= tokens(summary)
    facts: dict[str, Fact] = {}
    for fact in sorted(chosen, key=worth, reverse=True):
        if left < _SHORTEST:
            break
        if (size := tokens(shown := line(fact))) <= left:
            facts[shown] = fact
            left -= size
    if facts:
        kept += ["Facts:", *facts]
    if not any(each.startswith("-") for each in kept):
        return None
    untrusted = any(fact.untrusted for fact in facts.values())
    return {"text": "\n".join(kept), "ids": [fact.id for fact in facts.values()], "untrusted": untrusted}


def tokens(text: str) -> int:
    return len(text.encode()) // BYTES_PER_TOKEN + 1


def _summaries(shelf: Shelf) -> list[str]:
    sections, _ = shelf.sections()
    lines: list[str] = []
    for part, (title, names) in _TITLES.items():
        known = {label: (sections.get(part) or {}).get(name, {}).get("summary") for name, label in names.items()}
        found = [f"- {label}: {inline(summary, _READ)}" for label, summary in known.items() if summary]
        lines += [title, *found] if found else []
    return lines


def line(fact: Fact) -> str:
    avoid = f" (avoid: {inline(fact.source_error, 500)})" if fact.source_error and fact.category == CORRECTION else ""
    doubt = f" (unverified, from {inline(fact.untrusted)})" if fact.untrusted else ""
    return f"- [{inline(fact.category)} | {fact.confidence:.2f}] {inline(fact.content, 1000)}{avoid}{doubt}"
