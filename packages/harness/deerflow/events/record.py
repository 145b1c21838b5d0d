"""An event of a run."""

from __future__ import annotations

from typing import Any

import orjson

from deerflow.events.encoding import encode

EPOCH = 100_000_000
"""How many events the log of a thread has room for in each epoch; ``seq // EPOCH`` is the epoch of an event."""


class RunEvent:
    """Something that happened in a run. Not to be changed; its data is encoded once, for the log and all who read it.

    Args:
        seq: position in the thread's log; strictly grows, with gaps.
        run_id: the run.
        method: metadata, messages, updates, values, custom, tasks, checkpoints, debug, events, error or end.
        data: anything; see :func:`encode` for what becomes of what JSON does not know.
        namespace: of the subgraph; () is the root.
    """

    __slots__ = ("json", "method", "namespace", "run_id", "seq")

    json: bytes
    """The data, as one line of UTF-8 JSON."""

    def __init__(self, seq: int, run_id: str, method: str, data: Any, namespace: tuple[str, ...] = ()) -> None:
        self.seq = seq
        self.run_id = run_id
        self.method = method
        self.namespace = namespace
        self.json = b"null" if data is None else encode(data)

    @classmethod
    def encoded(cls, seq: int, run_id: str, method: str, json: bytes, namespace: tuple[str, ...] = ()) -> RunEvent:
        """An event whose data is JSON already."""
        event = cls(seq, run_id, method, None, namespace)
        event.json = json
        return event

    @property
    def data(self) -> Any:
        """Decoded anew at each call, so that a reader may do with it what it likes."""
        return orjson.loads(self.json)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunEvent) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((self.run_id, self.seq))

    def __repr__(self) -> str:
        return f"RunEvent({self.seq}, {self.run_id!r}, {self.method!r}, {self.json[:80]!r}, {self.namespace!r})"

    def _fields(self) -> tuple[Any, ...]:
        return self.seq, self.run_id, self.method, self.namespace, self.json
