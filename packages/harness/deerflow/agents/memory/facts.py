"""What changes in a memory, whether a person, an agent or the extraction changes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from deerflow.agents.memory.documents import new_id
from deerflow.agents.memory.ranking import scores
from deerflow.agents.memory.store import Shelf
from deerflow.errors import NotFoundError
from deerflow.storage.memory import Fact
from deerflow.storage.search import words_of
from deerflow.storage.tables import utc_now

CORRECTION = "correction"
RESTORABLE = timedelta(days=30)
"""How long a fact that ended can be restored."""
_NEIGHBOURS = 20
_SAME = 0.75
"""Share of words that a fact has in common with one that it repeats in other words."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What was learned. ``supersedes``: by the id of a new fact, those of facts that it corrects."""

    sections: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Any])
    facts: Sequence[Fact] = ()
    supersedes: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Any])
    removed: Sequence[str] = ()


def apply(shelf: Shelf, changes: Changes, max_facts: int) -> list[Fact]:
    """Write ``changes``: what is known already stays as it is, what says more takes the place of what it repeats.

    Returns:
        The facts that were added.
    """
    now = utc_now()
    shelf.purge(now - RESTORABLE)
    for fact in _held(shelf, changes.removed, now):
        shelf.put(replace(fact, ended_at=now))
    added: list[Fact] = []
    for fact in changes.facts:
        similar = shelf.find(list(dict.fromkeys(words_of(fact.content)))[:64], _NEIGHBOURS)
        corrected = _held(shelf, changes.supersedes.get(fact.id, ()), now)
        known = next((other for other in similar if _normal(other) == _normal(fact)), None)
        if known is not None and known not in corrected:
            if known.untrusted and not fact.untrusted:
                shelf.put(replace(known, untrusted=None, source=fact.source, message_id=fact.message_id))
            continue
        # What a page or a tool says never takes the place of what the person said.
        old = [other for other in {*corrected, *(each for each in similar if _repeats(each, fact))}]
        old = [other for other in old if other.untrusted or not fact.untrusted]
        for other in old:
            shelf.put(replace(other, ended_at=now, superseded_by=fact.id))
        shelf.put(fact)
        added.append(fact)
    for fact in shelf.live()[max_facts:] if added else ():
        shelf.put(replace(fact, ended_at=now))
    if changes.sections:
        sections, _ = shelf.sections()
        parts = {*sections, *changes.sections}
        merged = {part: {**sections.get(part, {}), **_stamped(changes.sections.get(part, {}), now)} for part in parts}
        shelf.touch(merged)
    elif added or changes.removed:
        shelf.touch()
    return added


def change(shelf: Shelf, fact_id: str, **changes: Any) -> Fact:
    """Raises NotFoundError: there is no such fact that holds."""
    fact = shelf.get(fact_id)
    if fact is None or not fact.holds(utc_now()):
        raise NotFoundError(f"Memory fact '{fact_id}' not found.")
    changed = replace(fact, **changes)
    shelf.put(changed)
    shelf.touch()
    return changed


def undo(shelf: Shelf, fact_id: str) -> Fact:
    """Take back what was learned, or restore what ended: the fact, and what it superseded or what superseded it, change places.

    Raises:
        NotFoundError: there is no such fact, or it ended too long ago.
    """
    fact, now = shelf.get(fact_id), utc_now()
    if fact is None:
        raise NotFoundError(f"Memory fact '{fact_id}' not found.")
    if fact.ended_at is None:
        for other in shelf.superseded_by(fact_id):
            shelf.put(replace(other, ended_at=None, superseded_by=None))
        changed = replace(fact, ended_at=now)
    else:
        for other in _held(shelf, [fact.superseded_by or ""], now):
            shelf.put(replace(other, ended_at=now, superseded_by=fact_id))
        changed = replace(fact, ended_at=None, superseded_by=None)
    shelf.put(changed)
    shelf.touch()
    return changed


def search(shelf: Shelf, query: str, limit: int) -> list[Fact]:
    """Facts that have words of ``query``, the best first."""
    words = list(dict.fromkeys(words_of(query)))[:64]
    found = shelf.find(words, max(limit, 100))
    ranks = scores(words, found)
    return sorted(found, key=lambda fact: ranks[fact.id], reverse=True)[:limit]


def made(content: str, category: str, confidence: float, source: str, **more: Any) -> Fact:
    return Fact(new_id(), content, category, confidence, source, utc_now(), **more)


def _held(shelf: Shelf, fact_ids: Iterable[str], now: datetime) -> list[Fact]:
    found = (shelf.get(fact_id) for fact_id in dict.fromkeys(fact_ids))
    return [fact for fact in found if fact is not None and fact.holds(now)]


def _normal(fact: Fact) -> str:
    return " ".join(words_of(fact.content))


def _repeats(old: Fact, new: Fact) -> bool:
    """Whether one of them has all words of the other, and few more."""
    before, after = set(words_of(old.content)), set(words_of(new.content))
    return (before <= after or after <= before) and len(before & after) / len(before | after) >= _SAME


def _stamped(summaries: Mapping[str, str], now: datetime) -> dict[str, Any]:
    return {name: {"summary": summary, "updatedAt": now.isoformat()} for name, summary in summaries.items()}
