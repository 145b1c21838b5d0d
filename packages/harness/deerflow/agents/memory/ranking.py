"""How well facts fit a text: BM25 (Robertson and Zaragoza 2009) over those that an index found, the same for every storage."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from deerflow.storage.memory import Fact
from deerflow.storage.search import words_of

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
