"""Transcripts of subagents: kept as rows for as long as their thread, whereas the events that they come from are dropped earlier."""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import zstandard
from sqlalchemy import Connection

from deerflow.events.store import RunEvent
from deerflow.events.streams.client_events import messages_in
from deerflow.storage import sql

_STARTED = b'"task_started"'


@dataclass
class TaskTranscripts:
    """Messages of subagents, read from the events of runs, by namespace."""

    task_ids: dict[str, str] = field(default_factory=dict[str, str])
    _messages: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict[str, dict[str, dict[str, Any]]])

    async def read(self, batches: AsyncIterable[Sequence[RunEvent]]) -> None:
        """Take up the events of a run, so far or to its end."""
        async for batch in batches:
            for event in batch:
                if event.method == "custom" and not event.namespace and _STARTED in event.json:
                    self._begin(event.data)
                elif event.method in ("input", "updates") and len(event.namespace) == 1:
                    self._add(event.namespace[0], event.method, event.data)

    def messages(self, namespace: str) -> list[dict[str, Any]]:
        return list(self._messages.get(namespace, {}).values())

    def _begin(self, data: Any) -> None:
        if isinstance(data, Mapping) and data.get("type") == "task_started":
            self.task_ids |= dict.fromkeys(data.get("namespace") or (), str(data.get("task_id")))

    def _add(self, namespace: str, method: str, data: Any) -> None:
        if namespace not in self.task_ids:
            return
        if method == "input":  # all that counts so far: a step that is repeated after a crash stands once
            self._messages[namespace] = {message["id"]: dict(message) for message in data["values"]["messages"]}
        else:
            known = self._messages.setdefault(namespace, {})
            known |= {message["id"]: dict(message) for message in messages_in(data)}

    def rows(self, thread_id: str) -> list[dict[str, Any]]:
        """Return what :func:`keep` stores. May take a while for long ones."""
        return [
            {
                "thread_id": thread_id,
                "namespace": namespace,
                "task_id": task_id,
                "data": zstandard.ZstdCompressor(level=3).compress(orjson.dumps(self.messages(namespace))),
            }
            for namespace, task_id in self.task_ids.items()
            if namespace in self._messages
        ]


def keep(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Store transcripts; a later one of the same subagent takes the place of the former."""
    for row in rows:
        sql.execute(connection, _KEEP, *(row[name] for name in ("thread_id", "namespace", "task_id", "data")))


def kept(connection: Connection, thread_id: str, task_id: str, namespace: str) -> list[dict[str, Any]] | None:
    """Return the transcript of a subagent, or None if it is not stored.

    Args:
        namespace: "" if it is not known; the id of the call tells it then, which some providers use again.
    """
    wanted, value = ("namespace = ?", namespace) if namespace else ("task_id = ?", task_id)
    query = f"SELECT data FROM task_transcripts WHERE thread_id = ? AND {wanted}"
    found = sql.execute(connection, query, thread_id, value).fetchall()
    return orjson.loads(zstandard.ZstdDecompressor().decompress(bytes(found[-1][0]))) if found else None


def copy_transcripts(connection: Connection, source: str, target: str) -> None:
    """Give another thread the same."""
    sql.execute(connection, _COPY, target, source)


_KEEP = """INSERT INTO task_transcripts (thread_id, namespace, task_id, data) VALUES (?, ?, ?, ?)
    ON CONFLICT (thread_id, namespace) DO UPDATE SET data = excluded.data"""
_COPY = """INSERT INTO task_transcripts (thread_id, namespace, task_id, data)
    SELECT ?, namespace, task_id, data FROM task_transcripts WHERE thread_id = ?"""
