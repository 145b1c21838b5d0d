"""The rounds in which events are written: only for runs that have something to write."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from deerflow.events import writer as event_writer
from deerflow.events.log import EventLog
from deerflow.storage.database import Database
from deerflow.storage.tables import threads, utc_now


async def test_a_run_that_has_ended_takes_no_part_in_later_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(tmp_path / "deerflow.db")

    def make(connection: Any) -> None:
        now = utc_now()
        rows = [
            {"thread_id": name, "user_id": "u", "metadata": {}, "created_at": now, "updated_at": now} for name in "ab"
        ]
        connection.execute(threads.insert().values(rows))

    await database.write(make)
    log = EventLog(database)
    rounds: list[list[str]] = []
    written = asyncio.Event()
    loop = asyncio.get_running_loop()
    write = event_writer.write_batches

    def watched(connection: Any, batches: Any, *, skip_locked: bool) -> Any:
        if skip_locked:
            rounds.append([batch.thread_id for batch in batches])
            loop.call_soon_threadsafe(written.set)
        return write(connection, batches, skip_locked=skip_locked)

    monkeypatch.setattr(event_writer, "write_batches", watched)
    ended = log.writer("a", "first", 0)
    ended.append("custom", "short")
    assert await ended.end({"status": "success"}, lambda connection: True)
    await ended.aclose()

    running = log.writer("b", "second", 0)
    running.append("custom", "x" * event_writer.FLUSH_BYTES)
    async with asyncio.timeout(60):
        await written.wait()

    assert rounds == [["b"]]
    await running.aclose()
    await log.aclose()
    await database.aclose()
