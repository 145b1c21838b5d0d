"""What is over its time goes, everything else stays, and the space comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, StateGraph
from sqlalchemy import Connection, Table, func, insert, select, update

from deerflow.agents.thread_state import ThreadState
from deerflow.config import Paths
from deerflow.features.retention import Removed, Retention, RetentionPolicy
from deerflow.identity import Principal
from deerflow.storage.checkpoints import Checkpointer, checkpointer_for
from deerflow.storage.database import Database
from deerflow.storage.tables import (
    api_tokens,
    budgets,
    channel_codes,
    channel_connections,
    channel_inbox,
    channel_outbox,
    jobs,
    run_events,
    runs,
    sessions,
    store_items,
    threads,
    tool_executions,
    users,
    utc_now,
)
from deerflow.storage.threads import begin_deletion, end_deletion
from deerflow.threads.checkpoint import compact

DAY = timedelta(days=1)
NOTHING = RetentionPolicy(events=None, checkpoints=None)


class Threads:
    """Threads deleted with all that belongs to them, or compacted."""

    def __init__(self, database: Database, checkpointer: Checkpointer, paths: Paths) -> None:
        self._database, self._checkpointer, self._paths = database, checkpointer, paths
        graph = StateGraph(ThreadState)
        graph.add_node("answer", lambda state: {"messages": [AIMessage("a" * 20_000)]})
        graph.add_edge(START, "answer")
        self.graph: Any = graph.compile(checkpointer=checkpointer)

    async def prune(
        self, principal: Principal, thread_ids: Sequence[str], strategy: Literal["delete", "keep_latest"]
    ) -> int:
        (thread_id,) = thread_ids
        if strategy == "keep_latest":
            return await compact(self.graph, self._checkpointer, thread_id)
        await self._database.write(lambda connection: begin_deletion(connection, principal.user_id, thread_id))
        await self._checkpointer.adelete_thread(thread_id)
        await asyncio.to_thread(self._paths.remove, self._paths.thread_dir(thread_id, principal.user_id))
        await self._database.write(lambda connection: end_deletion(connection, thread_id))
        return 1


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path / "home", environ={})


@pytest.fixture
async def pruning(database: Database, paths: Paths) -> AsyncIterator[Threads]:
    checkpointer = await asyncio.to_thread(checkpointer_for, database)
    yield Threads(database, checkpointer, paths)
    await checkpointer.aclose()


@pytest.fixture
def retention(database: Database, pruning: Threads, paths: Paths) -> Retention:
    return Retention(database, pruning, paths)


async def _insert(database: Database, table: Table, **values: Any) -> None:
    await database.write(lambda connection: connection.execute(insert(table).values(values)) and None)


async def _count(database: Database, table: Table) -> int:
    return await database.read(
        lambda connection: connection.execute(select(func.count()).select_from(table)).scalar_one()
    )


async def _thread(database: Database, thread_id: str, used: datetime, **values: Any) -> None:
    row = {"thread_id": thread_id, "user_id": "alice", "metadata": {}, "created_at": used, "updated_at": used}
    await _insert(database, threads, **row | {"status": "idle"} | values)


async def _run(database: Database, run_id: str, thread_id: str, ended: datetime | None, **values: Any) -> None:
    now = utc_now()
    row = {"run_id": run_id, "thread_id": thread_id, "user_id": "alice", "multitask_strategy": "reject", "kwargs": {}}
    row |= {"metadata": {}, "position": 1, "created_at": now, "updated_at": now, "ended_at": ended}
    await _insert(database, runs, **row | {"status": "success" if ended else "running"} | values)


async def _event(database: Database, run_id: str, thread_id: str, seq: int, size: int = 100) -> None:
    row = {"thread_id": thread_id, "first_seq": seq, "last_seq": seq, "run_id": run_id, "data": b"x" * size}
    await _insert(database, run_events, **row)


async def test_events_of_runs_that_ended_long_ago_go_and_the_rest_stays(database: Database, retention: Retention):
    now = utc_now()
    for number, ended in enumerate((now - 40 * DAY, now - 5 * DAY, None)):
        await _thread(database, f"t{number}", now)
        await _run(database, f"r{number}", f"t{number}", ended)
        await _event(database, f"r{number}", f"t{number}", 1)
        await _insert(database, tool_executions, run_id=f"r{number}", call="y" * 10)
    policy = RetentionPolicy(events=30 * DAY, checkpoints=None)
    would = await retention.apply(policy, dry_run=True)
    assert (would["events"], would["tool_executions"]) == (Removed(1, 100), Removed(1, 10))
    assert await _count(database, run_events) == 3
    assert await retention.apply(policy) == would
    left = await database.read(lambda connection: sorted(connection.scalars(select(run_events.c.run_id))))
    assert left == ["r1", "r2"]
    assert (await retention.apply(policy))["events"] == Removed()


async def test_many_rows_go_in_steps(database: Database, retention: Retention):
    now = utc_now()
    await _thread(database, "t", now)
    await _run(database, "r", "t", now - 40 * DAY)
    rows = [{"thread_id": "t", "first_seq": n, "last_seq": n, "run_id": "r", "data": b"x"} for n in range(1200)]
    await database.write(lambda connection: connection.execute(insert(run_events), rows) and None)
    assert (await retention.apply(RetentionPolicy(checkpoints=None)))["events"] == Removed(1200, 1200)
    assert await _count(database, run_events) == 0


async def test_threads_that_nobody_used_go_with_their_files(
    database: Database, pruning: Threads, retention: Retention, paths: Paths
):
    now = utc_now()
    for name, used in (("old", now - 100 * DAY), ("new", now - DAY)):
        await _thread(database, name, used)
        await asyncio.to_thread(paths.ensure_thread_dirs, name, "alice")
        (paths.outputs(name, "alice") / "file").write_bytes(b"x" * 5000)
    await pruning.graph.ainvoke({"messages": [HumanMessage("hi")]}, {"configurable": {"thread_id": "old"}})
    policy = RetentionPolicy(threads=90 * DAY, events=None, checkpoints=None)
    would = (await retention.apply(policy, dry_run=True))["threads"]
    assert would.count == 1 and would.bytes > 5_500
    assert await _count(database, threads) == 2
    assert (await retention.apply(policy))["threads"] == would
    assert await database.read(lambda connection: list(connection.scalars(select(threads.c.thread_id)))) == ["new"]
    assert not paths.thread_dir("old", "alice").exists() and paths.thread_dir("new", "alice").exists()
    assert not (await pruning.graph.aget_state({"configurable": {"thread_id": "old"}})).values


async def test_a_thread_goes_when_its_own_time_is_over_and_stays_while_a_run_is_active(
    database: Database, retention: Retention
):
    now = utc_now()
    for name, over in (("over", now - DAY), ("later", now + DAY), ("active", now - DAY), ("waiting", now - DAY)):
        await _thread(database, name, now, expires_at=over)
    await _run(database, "r", "active", None)
    await _run(database, "p", "waiting", None, status="pending")
    assert (await retention.apply(NOTHING))["threads"].count == 1
    left = await database.read(lambda connection: sorted(connection.scalars(select(threads.c.thread_id))))
    assert left == ["active", "later", "waiting"]


async def test_idle_threads_lose_the_way_back_and_nothing_that_was_said(
    database: Database, pruning: Threads, retention: Retention, tmp_path: Path
):
    now = utc_now()
    for name, used in (("old", now - 40 * DAY), ("new", now)):
        await _thread(database, name, used)
        for turn in range(6):
            await pruning.graph.ainvoke({"messages": [HumanMessage(f"q{turn}")]}, {"configurable": {"thread_id": name}})
    config: Any = {"configurable": {"thread_id": "old"}}
    before = (await pruning.graph.aget_state(config)).values
    policy = RetentionPolicy(events=None, checkpoints=30 * DAY)
    assert (await retention.apply(policy, dry_run=True))["checkpoints"].count == 1
    assert (await retention.apply(policy))["checkpoints"].count == 1
    assert (await pruning.graph.aget_state(config)).values == before
    assert len([state async for state in pruning.graph.aget_state_history(config)]) == 1
    assert len([s async for s in pruning.graph.aget_state_history({"configurable": {"thread_id": "new"}})]) > 6
    assert (await retention.apply(policy))["checkpoints"] == Removed()


async def test_leftovers_go_when_they_are_over(database: Database, retention: Retention):
    now = utc_now()
    await _insert(database, users, id="alice", email="a@x", created_at=now)
    for name, moment in (("over", now - 31 * DAY), ("recent", now - DAY), ("later", now + DAY)):
        times = {"created_at": now, "updated_at": now, "expires_at": moment}
        await _insert(database, store_items, user_id="alice", namespace="n", key=name, value={"k": 1}, **times)
        await _insert(database, sessions, id=name, user_id="alice", created_at=now, expires_at=moment)
        token = {"id": name, "user_id": "alice", "name": name, "hash": name, "hint": "h", "scopes": []}
        await _insert(database, api_tokens, **token, created_at=now, expires_at=moment)
    spent = {"scope": "person", "tokens": 1, "cost": 0, "currency": "USD", "extensions": 0}
    for day in ("", *((now - days * DAY).date().isoformat() for days in (0, 3))):
        await _insert(database, budgets, key="alice", day=day, **spent)
    report = await retention.apply(NOTHING)
    assert {name: amount.count for name, amount in report.items() if amount.count} == {
        "store_items": 2,
        "sessions": 2,
        "api_tokens": 1,
        "budgets": 1,
    }


async def _message(database: Database, name: str, at: datetime, came: str, went: str) -> None:
    place = {"connection_id": "x", "chat": "c", "topic": "", "body": {"text": "hi"}}
    event = {"message_id": name, "kind": "message", "workspace": "", "author": "ann", "sent_at": at, "accepted_at": at}
    await _insert(database, channel_inbox, **place, **event, state=came, user_id="alice")
    part = {"turn": name, "part": 0, "kind": "text", "is_final": True, "key": name, "wake": {}, "place": {}}
    await _insert(database, channel_outbox, **place, **part, due_at=at, created_at=at, updated_at=at, state=went)


async def test_messages_of_channels_go_after_a_month_unless_they_wait(database: Database, retention: Retention):
    now = utc_now()
    await _insert(database, channel_connections, id="x", kind="double", created_at=now, updated_at=now)
    await _message(database, "over", now - 31 * DAY, "answered", "sent")
    await _message(database, "waits", now - 31 * DAY, "accepted", "pending")
    await _message(database, "recent", now - 29 * DAY, "answered", "sent")
    await _insert(database, channel_codes, hash="h", user_id="alice", kind="double", until=now - 31 * DAY)
    report = await retention.apply(RetentionPolicy(events=None, checkpoints=None, leftovers=DAY))
    counts = {name: amount.count for name, amount in report.items() if amount.count}
    assert counts == {"channel_inbox": 1, "channel_outbox": 1, "channel_codes": 1}


async def test_what_is_still_to_be_done_is_not_removed_however_long_everybody_was_away(
    database: Database, retention: Retention
):
    overdue = utc_now() - 400 * DAY
    await _insert(database, jobs, kind="memory", key="waiting", payload={}, due_at=overdue)
    await _insert(
        database, jobs, kind="memory", key="of one that died", payload={}, due_at=overdue, leased_until=overdue
    )
    assert set((await retention.apply(NOTHING)).values()) == {Removed()}
    assert await _count(database, jobs) == 2


async def test_without_end_of_time_everything_stays(database: Database, retention: Retention):
    await _thread(database, "t", utc_now() - 1000 * DAY)
    await _run(database, "r", "t", utc_now() - 1000 * DAY)
    await _event(database, "r", "t", 1)
    assert set((await retention.apply(NOTHING)).values()) == {Removed()}
    assert (await _count(database, threads), await _count(database, run_events)) == (1, 1)


async def test_two_who_tidy_up_at_the_same_time_do_not_disturb_each_other(database: Database, retention: Retention):
    now = utc_now()
    await _thread(database, "t", now)
    await _run(database, "r", "t", now - 40 * DAY)
    rows = [{"thread_id": "t", "first_seq": n, "last_seq": n, "run_id": "r", "data": b"x"} for n in range(1200)]
    await database.write(lambda connection: connection.execute(insert(run_events), rows) and None)
    reports = await asyncio.gather(*(retention.apply(RetentionPolicy(checkpoints=None)) for _ in range(2)))
    assert sum(report["events"].count for report in reports) == 1200


async def test_a_sqlite_file_shrinks_by_what_was_removed(tmp_path: Path, paths: Paths, sqlite_template: Path):
    database = Database(tmp_path / "deerflow.db")
    retention = Retention(database, Threads(database, checkpointer_for(database), paths), paths)
    now = utc_now()
    await _thread(database, "t", now)
    await _run(database, "r", "t", now - 40 * DAY)
    for seq in range(100):
        await _event(database, "r", "t", seq, 50_000)
    await database.write(lambda connection: _touch(connection))
    size = _on_disk(tmp_path)
    await retention.apply(RetentionPolicy(checkpoints=None))
    assert size > 5_000_000 and _on_disk(tmp_path) < 500_000
    await database.aclose()


def _touch(connection: Connection) -> None:
    connection.execute(update(threads).values(title="t"))


def _on_disk(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.glob("deerflow.db*"))
