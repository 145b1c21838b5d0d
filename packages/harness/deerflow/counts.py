"""Counts of what a process has done since it began, for programs that show them. Each belongs to one event loop."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

RUN_SECONDS = (1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600)


class Distribution:
    """Durations by size.

    Args:
        bounds: seconds, in ascending order; ``counts`` has one place for each, and one for what is above all.
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total += seconds


@dataclass(frozen=True, slots=True)
class ModelCalls:
    """Calls of models, by the provider's name of the model. ``errors`` by model and kind: each attempt that failed."""

    answers: Counter[str] = field(default_factory=Counter[str])
    errors: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    tokens: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """By model and kind: ``input``, ``cached`` (a part of it) and ``output``."""

    def answered(self, model: str, usage: Mapping[str, Any] | None) -> None:
        """Count an answer with its usage, in LangChain's shape."""
        self.answers[model] += 1
        known = usage or {}
        details = known.get("input_token_details") or {}
        self.tokens[model, "input"] += int(known.get("input_tokens") or 0)
        self.tokens[model, "cached"] += int(details.get("cache_read") or 0)
        self.tokens[model, "output"] += int(known.get("output_tokens") or 0)


@dataclass(frozen=True, slots=True)
class RunEnds:
    """Durations of runs from their first claim to their end, by the status they ended with."""

    seconds: defaultdict[str, Distribution] = field(
        default_factory=partial(defaultdict[str, Distribution], partial(Distribution, RUN_SECONDS))
    )
