"""A database moves to the other kind with everything in it, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph.types import Command
from sqlalchemy import delete, insert
from tests.support.thread_world import ALICE, ThreadWorld

from deerflow.errors import RequestError
from deerflow.features.memory.facts import made
from deerflow.features.memory.rows import OwnedRows, Owner, put_row
from deerflow.storage import transfer as module
from deerflow.storage.checkpoints.transfer import write_thread
from deerflow.storage.database import Database
from deerflow.storage.errors import DatabaseError
from deerflow.storage.migrate import check_usable
from deerflow.storage.search import index
from deerflow.storage.tables import memory_facts, store_items, users, utc_now
from deerflow.storage.transfer import TABLES, begin, finish, transfer
from deerflow.threads.checkpoint import config_of


@pytest.fixture(params=["to postgres", "to sqlite"])
def places(request: pytest.FixtureRequest, tmp_path: Path, postgres_url: str) -> tuple[str, str]:
    """The places of the source and of the target to be."""
    file = str(tmp_path / "deerflow.db")
    return (file, postgres_url) if request.param == "to postgres" else (postgres_url, file)


@asynccontextmanager
async def world(location: str, tmp_path: Path) -> AsyncIterator[ThreadWorld]:
    made = await asyncio.to_thread(ThreadWorld, Database(location), tmp_path / "home")  # imports the driver
    yield made
    await made.aclose()
    await made.database.aclose()


async def fill(source: ThreadWorld, turns: int = 20) -> None:
    """Threads with a fork and a question, and rows of all kinds of columns."""
    await source.thread("long", *(f"number {count}" for count in range(turns)))
    messages = (await source.threads.states.snapshot("long")).values["messages"]
    turn = (await source.threads.transcript.turns(ALICE, "long"))[1]
    where = config_of("long", turn["checkpoint_id"])
    await source.graph.ainvoke({"messages": [("human", "another way")]}, where)
    await source.thread("asks", "ask me")
    now = utc_now()

    def rows(connection: Any) -> None:
        index(connection, "long", "alice", messages)
        owned = OwnedRows(connection, Owner("alice"))
        for content, more in (("Alice likes owls.", {}), ("Not sure.", {"untrusted": "page"})):
            owned.put(made(content, "context", 1.0, "manual", **more))
        owned.touch({"user": {"workContext": {"summary": "Owls.", "updatedAt": ""}}})
        connection.execute(insert(users).values(id="alice", email="a@b.example", password_hash=None, created_at=now))
        value = {"n": 1.0, "big": 2**53 + 1, "e": 1e300, "s": "\u2028 \U0001f41d", "null": None, "list": [[], {}]}
        for key in map(str, range(250)):
            item = {"user_id": "alice", "namespace": "x", "key": key, "value": value}
            connection.execute(insert(store_items).values(**item, created_at=now, updated_at=now))

    await source.database.write(rows)


async def move(source: Database, target: str) -> Any:
    database = Database(target, filling=True)
    try:
        return await transfer(source, database, lambda _: None, {memory_facts: put_row})
    finally:
        await database.aclose()


async def test_everything_is_there_afterwards_and_goes_on(places: tuple[str, str], tmp_path: Path) -> None:
    filled = await asyncio.to_thread(begin, *places)
    async with world(places[0], tmp_path) as source:
        await fill(source)
        before = [await source.threads.get(ALICE, name) for name in ("long", "asks")]
        history = await source.threads.states.history(ALICE, "long", limit=500)
        copied = await move(source.database, filled)
    await asyncio.to_thread(finish, places[1], filled)
    assert copied.threads == 2 and copied.rows["store_items"] == 250 and copied.rows.keys() == {t.name for t in TABLES}
    async with world(places[1], tmp_path) as target:
        assert [await target.threads.get(ALICE, name) for name in ("long", "asks")] == before
        assert await target.threads.states.history(ALICE, "long", limit=500) == history
        assert {hit.thread_id for hit in await target.threads.messages.search(ALICE, "number 19")} == {"long"}
        found = await target.database.read(lambda c: OwnedRows(c, Owner("alice")).find(["owls", "sure"], 5))
        assert [fact.content for fact in found] == ["Alice likes owls."]
        await target.turn("long", "and on")
        await target.graph.ainvoke(Command(resume="yes"), config_of("asks"))
        long, asks = [(await target.threads.states.snapshot(name)) for name in ("long", "asks")]
        said = [message.text for message in long.values["messages"]]
        assert said.count("and on") == 2 and len(said) == len(before[0]["values"]["messages"]) + 4
        assert not long.next and not asks.next and len(asks.values["messages"]) == 4

        def more(connection: Any) -> None:
            index(connection, "long", "alice", long.values["messages"])
            OwnedRows(connection, Owner("alice")).put(made("New.", "context", 1.0, "manual"))

        await target.database.write(more)


async def test_a_transfer_that_was_cut_off_goes_on(
    places: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled = await asyncio.to_thread(begin, *places)
    async with world(places[0], tmp_path) as source:
        await fill(source, turns=2)
        put, calls = module._put, iter(range(100))

        def cut(*arguments: Any) -> None:
            put(*arguments)
            if next(calls) == 3:
                raise RequestError("cut")

        async def lost(*arguments: Any) -> None:
            if next(calls) < 60:
                raise RequestError("lost")
            await write_thread(*arguments)

        monkeypatch.setattr(module, "_put", cut)
        with pytest.raises(RequestError, match="cut"):
            await move(source.database, filled)
        if "://" in filled:
            half = Database(filled)
            with pytest.raises(DatabaseError, match="unfinished copy of another one"):
                await half.migrate()
            await half.aclose()
            with pytest.raises(
                DatabaseError, match="unfinished copy of another one"
            ):  # doctor says what a server would
                await asyncio.to_thread(check_usable, filled, Path(places[0]).parent)
        else:
            assert not await asyncio.to_thread(Path(places[1]).exists)
        monkeypatch.setattr(module, "write_thread", lost)
        with pytest.raises(RequestError, match="lost"):
            await move(source.database, filled)
        monkeypatch.undo()
        assert (await move(source.database, filled)).threads == 2
        await source.turn("long", "meanwhile")
        assert (await move(source.database, filled)).rows["runs"] == 4
        await source.database.write(lambda c: c.execute(delete(store_items).where(store_items.c.key == "7")) and None)
        with pytest.raises(DatabaseError, match="differs after it was copied"):
            await move(source.database, filled)


def test_a_target_that_is_used_or_not_empty_is_left_alone(tmp_path: Path, postgres_url: str) -> None:
    file = str(tmp_path / "deerflow.db")
    assert begin(file, postgres_url) == begin(file, postgres_url) == postgres_url
    with pytest.raises(DatabaseError, match="is not empty"):
        begin(str(tmp_path / "other.db"), postgres_url)
    with psycopg.connect(postgres_url), pytest.raises(DatabaseError, match="in use, by 1 other"):
        begin(file, postgres_url)
    finish(postgres_url, postgres_url)
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE mine (a int)")
    with pytest.raises(DatabaseError, match="is not empty"):
        begin(file, postgres_url)
    Path(file).write_bytes(b"something")
    with pytest.raises(DatabaseError, match="is not empty"):
        begin(postgres_url, file)
    assert Path(file).read_bytes() == b"something" and [*tmp_path.iterdir()] == [Path(file)]
    with pytest.raises(DatabaseError, match="of one kind"):
        begin(file, str(tmp_path / "other.db"))
