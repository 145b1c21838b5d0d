"""Figures of the installation: right, and read by indexes however many runs and messages there have been."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, event, text

from deerflow.features.figures import InstallationFigures, installation
from deerflow.storage.database import Database
from deerflow.storage.tables import channel_connections, channel_outbox, runs, threads, utc_now


def _fill(connection: Connection) -> None:
    now = utc_now()

    def thread(name: str) -> None:
        row = {"thread_id": name, "user_id": "u", "metadata": {}, "created_at": now, "updated_at": now}
        connection.execute(threads.insert().values(row))

    def run(thread_id: str, status: str, *, age: float = 0, due: float | None = None) -> None:
        row: dict[str, Any] = {
            "run_id": f"{thread_id}-{status}-{age}",
            "thread_id": thread_id,
            "user_id": "u",
            "status": status,
            "multitask_strategy": "enqueue",
            "kwargs": {},
            "metadata": {},
            "created_at": now - timedelta(seconds=age),
            "updated_at": now,
            "position": int(age),
            "due_at": None if due is None else now + timedelta(seconds=due),
        }
        connection.execute(runs.insert().values(row))

    for name in ("busy", "free", "old", "later"):
        thread(name)
    run("busy", "running", age=500)
    run("busy", "pending", age=400)
    run("free", "pending", age=30)
    run("old", "success", age=9000)
    run("later", "pending", age=900, due=600)
    run("later", "pending", age=800, due=-60)

    def bot(name: str, state: str, *, is_on: bool = True) -> None:
        row = {"id": name, "kind": "slack", "state": state, "is_on": is_on, "created_at": now, "updated_at": now}
        connection.execute(channel_connections.insert().values(row))

    bot("a", "connected")
    bot("b", "signed-out")
    bot("c", "connected", is_on=False)
    for part, (state, age) in enumerate([("pending", 0), ("uncertain", 9), ("sent", 0), ("dead", 60), ("dead", 7200)]):
        row = {
            "connection_id": "a",
            "chat": "c",
            "topic": "",
            "place": {},
            "turn": "t",
            "part": part,
            "kind": "text",
            "body": {},
            "is_final": True,
            "key": "k",
            "wake": {},
            "state": state,
            "due_at": now,
            "created_at": now,
            "updated_at": now - timedelta(seconds=age),
        }
        connection.execute(channel_outbox.insert().values(row))


async def test_the_figures_say_how_the_installation_is(database: Database) -> None:
    nothing = await database.browse(installation)
    states = {"running": 0, "waiting": 0, "queued": 0, "scheduled": 0}
    assert nothing == InstallationFigures(states, 0, {}, 0, 0)
    await database.write(_fill)
    found = await database.browse(installation)
    assert found.runs == {"running": 1, "waiting": 2, "queued": 1, "scheduled": 1}
    assert 60 <= found.oldest_waiting < 90, "since it was due"
    assert found.channels == {("slack", "connected"): 1, ("slack", "signed-out"): 1}
    assert (found.outbox_waiting, found.outbox_dead) == (2, 1)


async def test_no_table_that_grows_is_scanned(database: Database) -> None:
    def plan(connection: Connection) -> list[str]:
        asked: list[tuple[str, Any]] = []
        event.listen(connection, "before_cursor_execute", lambda *given: asked.append((given[2], given[3])))
        if database.is_postgres:
            connection.execute(text("SET enable_seqscan = off"))
        installation(connection)
        explain = "EXPLAIN" if database.is_postgres else "EXPLAIN QUERY PLAN"
        statements = [one for one in asked if one[0].startswith("SELECT")]
        assert len(statements) == 4
        return [row[-1] for one, given in statements for row in connection.exec_driver_sql(f"{explain} {one}", given)]

    steps = await database.browse(plan)
    wrong = [step for step in steps if "channel_connections" not in step and ("SCAN" in step or "Seq Scan" in step)]
    assert not [step for step in wrong if "USING INDEX runs_unfinished" not in step and "waiting" not in step], steps
