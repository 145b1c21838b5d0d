"""What the scripted endpoint remembers of the requests it saw, and what it can tell about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import orjson

from bench import prefix
from bench.scenarios import Place


@dataclass
class Record:
    """One chat completion request. Times are monotonic seconds."""

    number: int
    raw: bytes
    headers: Mapping[str, str]
    place: Place
    started: float
    ended: float | None = None
    disconnected: bool = False
    """The client closed the connection before the response was complete."""
    status: int = 200

    @cached_property
    def body(self) -> dict[str, Any]:
        return orjson.loads(self.raw)

    @cached_property
    def parts(self) -> prefix.RawRequest:
        return prefix.parse(self.raw)

    def summary(self) -> dict[str, Any]:
        place = self.place
        return {
            "n": self.number,
            "kind": place.kind,
            "scenario": place.scenario,
            "key": place.key,
            "step": place.step,
            "status": self.status,
            "bytes": len(self.raw),
            "messages": len(self.parts.messages),
            "t": self.started,
            "t1": self.ended,
            "disconnected": self.disconnected,
            **{f"{name}_bytes": size for name, size in self.parts.sizes().items()},
        }


@dataclass
class Aggregate:
    """Sums over the requests of one kind."""

    requests: int = 0
    bytes: int = 0
    first_bytes: int = 0
    first_fixed_bytes: int = 0
    """System prompt and tools of the first request."""
    pairs: int = 0
    stable_pairs: int = 0
    previous_bytes: int = 0
    common_bytes: int = 0
    diverging: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        stability = self.common_bytes / self.previous_bytes if self.previous_bytes else None
        stable_share = self.stable_pairs / self.pairs if self.pairs else None
        return {**self.__dict__, "prefix_stability": stability, "stable_share": stable_share}


def statistics(records: Sequence[Record]) -> dict[str, Any]:
    """Bytes and prefix stability by kind (``main``) and by kind and scenario (``main:tools-20``).

    Neighbours in one conversation (same kind and same ``key:``) are compared.
    """
    aggregates: dict[str, Aggregate] = {}
    previous: dict[tuple[str, str | None], Record] = {}
    for record in records:
        place = record.place
        earlier = previous.get((place.kind, place.key)) if place.key else None
        previous[place.kind, place.key] = record
        for name in (place.kind, f"{place.kind}:{place.scenario}"):
            _add(aggregates.setdefault(name, Aggregate()), record, earlier)
    return {name: aggregate.to_json() for name, aggregate in aggregates.items()}


def _add(aggregate: Aggregate, record: Record, earlier: Record | None) -> None:
    aggregate.requests += 1
    aggregate.bytes += len(record.raw)
    if aggregate.requests == 1:
        sizes = record.parts.sizes()
        aggregate.first_bytes, aggregate.first_fixed_bytes = len(record.raw), sizes["system"] + sizes["tools"]
    if earlier is None:
        return
    comparison = prefix.compare(earlier.parts, record.parts)
    aggregate.pairs += 1
    aggregate.stable_pairs += comparison.stable
    aggregate.previous_bytes += comparison.previous_bytes
    aggregate.common_bytes += comparison.common_bytes
    if not comparison.stable:
        index = comparison.diverges_at
        where = "tools" if index is None else f"{index}:{earlier.body['messages'][index].get('role')}"
        aggregate.diverging[where] = aggregate.diverging.get(where, 0) + 1
