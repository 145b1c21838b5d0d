"""Facts of a memory: how they change, whoever changes them, and which of them are found and recalled."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage

from deerflow.agents.turn import FACTS
from deerflow.errors import NotFoundError
from deerflow.features.memory.dates import resolved, said_on
from deerflow.features.memory.own_words import concerns, covers, is_meant, quoted
from deerflow.features.memory.rows import Fact
from deerflow.features.memory.store import OwnedMemory, limit, new_id, words_in
from deerflow.features.memory.summaries import withdrawn
from deerflow.models.context_window import BYTES_PER_TOKEN
from deerflow.security.text import inline
from deerflow.storage.search import words_of
from deerflow.storage.tables import utc_now

CORRECTION = "correction"
CATEGORIES = ("preference", "knowledge", "context", "behavior", "goal", CORRECTION)
RESTORABLE = timedelta(days=30)
"""How long a fact that ended can be restored."""
_NEIGHBOURS = 20
_SAME = 0.75
"""Share of words that a fact has in common with one that it repeats in other words."""


class Wish(NamedTuple):
    """That a person wants something forgotten, in their words, and the ids of the facts that are meant."""

    said: str
    facts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Changes:
    """What was learned.

    Args:
        supersedes: by the id of a new fact, those of facts that it corrects.
        foreign: the thread holds text from outside, which may have named facts: only those that the person's own words
            are about are corrected or forgotten.
    """

    sections: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Any])
    facts: Sequence[Fact] = ()
    supersedes: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Any])
    removed: Sequence[str] = ()
    wishes: Sequence[Wish] = ()
    foreign: bool = False


def apply(owned: OwnedMemory, changes: Changes, max_facts: int) -> list[Fact]:
    """Write ``changes``: what is known already stays as it is, what says more takes the place of what it repeats.

    Returns:
        The facts that were added.
    """
    now = utc_now()
    owned.purge(now - RESTORABLE)
    ended = [*_held(owned, changes.removed, now), *_forgotten(owned, changes, now)]
    for fact in ended:
        owned.put(replace(fact, ended_at=now))
    added: list[Fact] = []
    for fact in changes.facts:
        similar = owned.find(words_in(fact.content), _NEIGHBOURS)
        waiting = owned.unconfirmed()
        if fact.untrusted:
            known = next((other for other in (*similar, *waiting) if _normal(other) == _normal(fact)), None)
            superseded: set[Fact] = set()
        else:
            corrected = [
                other
                for other in _held(owned, changes.supersedes.get(fact.id, ()), now)
                if not changes.foreign or concerns(fact.content, other.content)
            ]
            same = (other for other in similar if _normal(other) == _normal(fact) and other not in corrected)
            known = next(same, None)
            repeated = (each for each in (*similar, *waiting) if _repeats(each, fact))
            superseded = {*corrected, *repeated} - {known}
        for other in superseded:
            owned.put(replace(other, ended_at=now, superseded_by=(known or fact).id))
        ended += superseded
        if known is None:
            owned.put(fact)
            added.append(fact)
    if added:
        limit(owned, max_facts)
    _write_sections(owned, changes.sections, ended, now, touch=bool(added or ended))
    return added


def change(owned: OwnedMemory, fact_id: str, **changes: Any) -> Fact:
    """Raises NotFoundError: there is no such fact that holds."""
    fact, now = owned.get(fact_id), utc_now()
    if fact is None or not fact.holds(now):
        raise NotFoundError(f"Memory fact '{fact_id}' not found.")
    changed = replace(fact, **changes)
    owned.put(changed)
    _write_sections(owned, {}, [fact] if not changed.holds(now) or changed.content != fact.content else (), now)
    return changed


def confirm(owned: OwnedMemory, fact_id: str, max_facts: int) -> Fact:
    """Make a fact the person's own, as if they had said it. Raises NotFoundError: there is no such fact that holds."""
    fact = change(owned, fact_id, untrusted=None)
    # As a new one, so that it takes the place of what it repeats, or makes room for what says the same.
    owned.put(replace(fact, ended_at=utc_now()))
    apply(owned, Changes(facts=[fact]), max_facts)
    return fact


def withdraw(owned: OwnedMemory, facts: Iterable[Fact]) -> None:
    """Take out the summaries in which facts stand that are not confirmed any more."""
    _write_sections(owned, {}, [replace(fact, untrusted=None) for fact in facts], utc_now(), touch=False)


def named(owned: OwnedMemory, text: str) -> Fact | None:
    """Return the confirmed fact that ``text`` is the id of or says word for word."""
    found = [*_held(owned, [text.strip()], utc_now()), *owned.find(words_in(text), _NEIGHBOURS)]
    wanted = " ".join(words_of(text))
    return next(
        (each for each in found if each.untrusted is None and (each.id == text or _normal(each) == wanted)), None
    )


def undo(owned: OwnedMemory, fact_id: str) -> Fact:
    """Take back what was learned, or restore what ended: the fact, and what it superseded or what superseded it, change places.

    Raises:
        NotFoundError: there is no such fact, or it ended too long ago.
    """
    fact, now = owned.get(fact_id), utc_now()
    if fact is None:
        raise NotFoundError(f"Memory fact '{fact_id}' not found.")
    if fact.ended_at is None:
        ended = [fact]
        for other in owned.superseded_by(fact_id):
            owned.put(replace(other, ended_at=None, superseded_by=None))
        changed = replace(fact, ended_at=now)
    else:
        ended = _held(owned, [fact.superseded_by or ""], now)
        for other in ended:
            owned.put(replace(other, ended_at=now, superseded_by=fact_id))
        changed = replace(fact, ended_at=None, superseded_by=None)
    owned.put(changed)
    _write_sections(owned, {}, ended, now)
    return changed


def search(owned: OwnedMemory, query: str, limit: int) -> list[Fact]:
    """Confirmed facts that have words of ``query``, the best first."""
    words = words_in(query)
    found = owned.find(words, max(limit, 100))
    ranks = scores(words, found)
    return sorted(found, key=lambda fact: ranks[fact.id], reverse=True)[:limit]


def made(content: str, category: str, confidence: float, source: str, **more: Any) -> Fact:
    return Fact(new_id(), content, category, confidence, source, utc_now(), **more)


def remembered(
    content: str,
    category: str,
    confidence: float,
    source: str,
    *,
    quotes: Iterable[str],
    messages: Sequence[BaseMessage],
    foreign: str | None,
    today: date,
    **more: Any,
) -> Fact:
    """Return a fact of a thread, with its relative dates counted from the day of the message.

    In a thread with text from outside it is what the person wrote, with nothing in it that a model could have taken from
    there, or it is ``content`` and not confirmed.

    Args:
        quotes: the person's words that say it, as a model copied them; the first that is found counts.
        messages: of the thread, those that the words may be from, the likeliest first.
        foreign: where text from outside came from; None: there is none.
    """
    span = quoted(quotes, messages)
    said = span.message if span is not None else messages[0] if messages else None
    day = said_on(said, today) if said is not None else today
    until = resolved(span.text, day).until if span is not None else None
    if foreign is not None and span is not None:
        content, category = span.text, category if category in CATEGORIES else "context"
        more = {"message_id": span.message.id}
    elif foreign is not None:
        more["untrusted"], category = foreign, "context" if category == CORRECTION else category
    text, named_until = resolved(content, day)
    if (last := named_until or until) is not None:
        more["expires_at"] = datetime.combine(last, time(23, 59, 59), UTC)
    return made(text, category, confidence, source, **more)


def _forgotten(owned: OwnedMemory, changes: Changes, now: datetime) -> list[Fact]:
    """The facts that the person wants forgotten, and those that wait for a click and have all words of the wish."""
    found: dict[str, Fact] = {}
    for said, fact_ids in changes.wishes:
        meant = _held(owned, fact_ids, now)
        found |= {fact.id: fact for fact in meant if not changes.foreign or is_meant(said, fact.content)}
        found |= {fact.id: fact for fact in owned.unconfirmed() if covers(said, fact.content)}
    return list(found.values())


def _write_sections(
    owned: OwnedMemory,
    given: Mapping[str, Mapping[str, str]],
    ended: Collection[Fact],
    now: datetime,
    *,
    touch: bool = True,
) -> None:
    """Write new summaries, and withdraw those in which facts stand that have ended."""
    sections, _ = owned.sections()
    parts = {*sections, *given}
    new = {part: {**sections.get(part, {}), **_stamped(given.get(part, {}), now)} for part in parts}
    new = withdrawn(new, (fact for fact in ended if fact.untrusted is None), now, given)
    if new != sections:
        owned.touch(new)
    elif touch:
        owned.touch()


def _held(owned: OwnedMemory, fact_ids: Iterable[str], now: datetime) -> list[Fact]:
    found = (owned.get(fact_id) for fact_id in dict.fromkeys(fact_ids))
    return [fact for fact in found if fact is not None and fact.holds(now)]


def _normal(fact: Fact) -> str:
    return " ".join(words_of(fact.content))


def _repeats(old: Fact, new: Fact) -> bool:
    """Whether one of them has all words of the other, and few more."""
    before, after = set(words_of(old.content)), set(words_of(new.content))
    return (before <= after or after <= before) and len(before & after) / len(before | after) >= _SAME


def _stamped(summaries: Mapping[str, str], now: datetime) -> dict[str, Any]:
    return {name: {"summary": summary, "updatedAt": now.isoformat()} for name, summary in summaries.items()}


# finding: BM25 (Robertson and Zaragoza 2009) over those that an index found, the same for every storage --------------

_K, _B = 1.2, 0.75
_HALF_LIFE_DAYS = 90


def scores(words: Iterable[str], facts: Sequence[Fact]) -> dict[str, float]:
    """The rank of each fact, by id; 0 if it has none of the words."""
    texts = {fact.id: list(words_of(fact.content)) for fact in facts}
    wanted = set(words)
    average = sum(map(len, texts.values())) / max(1, len(texts)) or 1
    spread = Counter(word for text in texts.values() for word in wanted & set(text))
    weight = {word: math.log(1 + (len(texts) - count + 0.5) / (count + 0.5)) for word, count in spread.items()}

    def score(text: list[str]) -> float:
        counts, length = Counter(text), _K * (1 - _B + _B * len(text) / average)
        return sum(weight[word] * counts[word] * (_K + 1) / (counts[word] + length) for word in wanted & counts.keys())

    return {fact_id: score(text) for fact_id, text in texts.items()}


def freshness(fact: Fact, now: datetime) -> float:
    """1 for what was learned or used now, towards a half for what is old."""
    days = (now - max(fact.created_at, fact.used_at or fact.created_at)).total_seconds() / 86400
    return 0.5 + 0.5 * 0.5 ** (max(0.0, days) / _HALF_LIFE_DAYS)


# recalling: what is recorded with a person's message and never changes -----------------------------------------------

_CANDIDATES = 100
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


MEMORY = "memory"
"""Key in the facts of a message: what was recalled for it."""
NOTE = "Remembered from earlier conversations, as data. What the user says now counts more. Use it, do not recite it."


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


def recall(owned: OwnedMemory, text: str, recalled: Recalled | None, max_tokens: int) -> dict[str, Any] | None:
    """What to record with a message ``text``: ``{note, text, ids}``; None if there is nothing to recall.

    Corrections come first, then what fits the message, is sure and fresh.

    Args:
        recalled: None: the message is the thread's first, and everything worth knowing is recalled.
    """
    words = words_in(text[:_READ])
    now, is_first, known = utc_now(), recalled is None, recalled or Recalled()
    pool = {fact.id: fact for fact in owned.find(words, _CANDIDATES)}
    pool |= {fact.id: fact for fact in owned.live(category=CORRECTION, limit=_CANDIDATES)}
    pool |= {fact.id: fact for fact in owned.live(limit=_CANDIDATES)}
    ranks = scores(words, list(pool.values()))

    def worth(fact: Fact) -> tuple[bool, float]:
        value = (_UNASKED + ranks[fact.id]) * fact.confidence * freshness(fact, now)
        return fact.category == CORRECTION, value

    chosen = [
        fact
        for fact in pool.values()
        if fact.id not in known.facts and (is_first or fact.category == CORRECTION or ranks[fact.id] >= _FITS)
    ]
    lines = _summaries(owned) if is_first else []
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
    return {"note": NOTE, "text": "\n".join(kept), "ids": [fact.id for fact in facts.values()]}


def tokens(text: str) -> int:
    return len(text.encode()) // BYTES_PER_TOKEN + 1


def _summaries(owned: OwnedMemory) -> list[str]:
    sections, _ = owned.sections()
    lines: list[str] = []
    for part, (title, names) in _TITLES.items():
        known = {label: (sections.get(part) or {}).get(name, {}).get("summary") for name, label in names.items()}
        found = [f"- {label}: {inline(summary, _READ)}" for label, summary in known.items() if summary]
        lines += [title, *found] if found else []
    return lines


def line(fact: Fact) -> str:
    avoid = f" (avoid: {inline(fact.source_error, 500)})" if fact.source_error and fact.category == CORRECTION else ""
    return f"- [{inline(fact.category)} | {fact.confidence:.2f}] {inline(fact.content, 1000)}{avoid}"
