"""What arrives is stored once, before it is acknowledged, and comes out in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection
from tests.harness.features.channels.platform_double import inbox_rows, message

from deerflow.features.channels import leases, limits
from deerflow.features.channels.inbox import Inbox, InboxRow, InboxState
from deerflow.features.channels.leases import ConnectionRow, Fenced
from deerflow.features.channels.types import Author, Caps, Click, FileRef, Place
from deerflow.storage.database import Database
from deerflow.storage.tables import utc_now

LEASE = timedelta(seconds=15)


async def held(database: Database, owner: str = "me", id_: str = "x", lease: timedelta = LEASE) -> ConnectionRow:
    await database.write(lambda c: leases.ensure(c, id_, "double"))
    row = await database.write(leases.acquire, id_, owner, lease)
    assert row is not None
    return row


async def heads(database: Database, inbox: Inbox, *but: tuple[str, str]) -> list[str]:
    rows, _ = await database.read(inbox.heads, "x", 10, but)
    return [row.message_id for row in rows]


async def cursor(database: Database) -> str:
    row = await database.read(leases.get, "x")
    assert row is not None
    return row.cursor


async def test_a_message_comes_out_as_it_came_in(database: Database) -> None:
    inbox, lease = Inbox(database), await held(database)
    files = [FileRef("a\0.pdf", {"id": 1}, 3, "application/pdf")]
    said = message("hi \ud800 ☃", "1", files=files, wake={"req": "r"}, quoted="q", reply_to="0")
    press = Click("k1", Place("c", "t"), Author("bob", "team"), "key", {"ts": 1})
    await inbox.accept("x", [said, press], "7", epoch=lease.lease_epoch)
    first, second = await inbox_rows(database)
    event: Any = first.event
    assert (event.text, event.files[0].name, event.wake, event.sent_at) == (
        "hi ? ☃",
        "a.pdf",
        {"req": "r"},
        said.sent_at,
    )
    assert second.event == press and (second.kind, second.workspace) == ("click", "team")
    assert await cursor(database) == "7"


async def test_a_message_that_comes_again_is_stored_once_and_one_of_another_connection_beside_it(
    database: Database,
) -> None:
    woken: list[str] = []
    inbox, one, two = Inbox(database, woken.append), await held(database), await held(database, id_="y")
    assert (
        await inbox.accept("x", [message("a", "1"), message("a", "1"), message("b", "2")], epoch=one.lease_epoch) == 2
    )
    assert await inbox.accept("x", [message("a", "1")], epoch=one.lease_epoch) == 0
    assert await inbox.accept("y", [message("a", "1")], epoch=two.lease_epoch) == 1
    assert woken == ["x", "y"]
    assert len(await inbox_rows(database)) == 3


async def test_ids_longer_than_a_column_are_told_apart(database: Database) -> None:
    inbox = Inbox(database)
    await held(database)
    long = "m" * 900
    assert await inbox.accept("x", [message("a", long), message("b", long + "2"), message("a", long)]) == 2
    assert [row.event.message_id for row in await inbox_rows(database)] == [long, long + "2"]  # type: ignore[union-attr]


async def test_a_process_that_lost_its_lease_stores_nothing_and_moves_no_cursor(database: Database) -> None:
    inbox = Inbox(database)
    paused = await held(database, "paused", lease=timedelta(0))
    heir = await held(database, "heir")
    await inbox.accept("x", [message("a", "1")], "1", epoch=heir.lease_epoch)
    for at in ("9", None):
        with pytest.raises(Fenced):
            await inbox.accept("x", [message("b", "2")], at, epoch=paused.lease_epoch)
    assert await cursor(database) == "1" and len(await inbox_rows(database)) == 1


async def test_many_at_once_share_transactions_and_one_that_is_fenced_takes_no_other_with_it(
    database: Database,
) -> None:
    inbox, lease = Inbox(database), await held(database)
    await held(database, id_="y")
    writes = 0
    write = database.write

    async def counted(*args: Any, **more: Any) -> Any:
        nonlocal writes
        writes += 1
        return await write(*args, **more)

    database.write = counted  # type: ignore[method-assign]
    ours = [inbox.accept("x", [message("a", str(n))], str(n), epoch=lease.lease_epoch) for n in range(300)]
    results = await asyncio.gather(*ours, inbox.accept("y", [message("a", "1")], epoch=99), return_exceptions=True)
    assert results[:300] == [1] * 300 and isinstance(results[300], Fenced)
    assert writes <= 5
    assert [row.message_id for row in await inbox_rows(database)] == [str(n) for n in range(300)]
    assert await cursor(database) == "299"


async def test_what_comes_twice_in_one_transaction_is_new_once(database: Database) -> None:
    inbox = Inbox(database)
    await held(database)
    first = inbox.accept("x", [message("a", "1")])
    more = [inbox.accept("x", [message("a", "2"), message("b", id_)]) for id_ in ("1", "3", "3")]
    assert await asyncio.gather(first, *more) == [1, 1, 1, 0]
    assert [row.message_id for row in await inbox_rows(database)] == ["1", "2", "3"]


async def test_many_chats_take_as_many_statements_as_one(sqlite_location: str) -> None:
    database, statements = Database(sqlite_location), list[str]()
    await held(database)
    await database.write(lambda c: sql_trace(c, statements.append))
    counts = list[int]()
    for size in (1, 200):
        statements.clear()
        said = [message("a", f"{size}-{n}", f"c{n}") for n in range(size)]
        assert await Inbox(database).accept("x", said, f"{size}", epoch=1) == size
        counts.append(len(statements))
    await database.aclose()
    assert counts[0] == counts[1] > 2


async def test_a_person_who_writes_may_be_sent_unprompted_messages_again(database: Database) -> None:
    inbox, caps = Inbox(database), Caps("plain", post_every=0.0, unprompted=1)
    await held(database)
    await held(database, id_="y")

    async def may_send(connection_id: str, chat: str) -> bool:
        return await database.write(limits.take_post, connection_id, chat, caps, utc_now()) is None

    chats = [("x", "a"), ("x", "b"), ("y", "a")]
    assert [await may_send(*chat) for chat in chats * 2] == [True] * 3 + [False] * 3
    await inbox.accept("x", [message("hi", "1", "a")])
    assert [await may_send(*chat) for chat in chats] == [True, False, False]
    await inbox.accept("x", [message("hi", "1", "b")])
    assert not await may_send("x", "b")  # it had come before


def sql_trace(connection: Connection, note: Callable[[str], object]) -> None:
    raw: Any = connection.connection.driver_connection
    raw.set_trace_callback(note)


async def test_a_place_gives_its_oldest_row_and_commands_and_clicks_pass_one_that_waits(database: Database) -> None:
    inbox = Inbox(database)
    await held(database)
    place = Place("c", is_private=True)
    click = Click("k", place, Author("ann"), "key", {})
    await inbox.accept(
        "x", [message("a", "1"), message("b", "2"), message("/stop", "3"), click, message("c", "4", "d")]
    )
    assert await heads(database, inbox) == ["1", "4"]
    assert await heads(database, inbox, ("c", "")) == ["4"]
    first = (await inbox_rows(database))[0]
    await database.write(inbox.put_off, first, 60.0)
    assert await heads(database, inbox) == ["3", "4"]
    await database.write(inbox.bring_forward, "x", place)
    assert await heads(database, inbox) == ["1", "4"]


async def test_of_two_processes_that_handle_a_row_one_moves_it(database: Database) -> None:
    inbox = Inbox(database)
    await held(database)
    await inbox.accept("x", [message("a", "1")])
    (row,) = await inbox_rows(database)

    async def move(run: str) -> bool:
        return await database.write(lambda c: inbox.move(c, row, InboxState.RUNNING, run_id=run, user_id="u"))

    assert sorted(await asyncio.gather(move("r1"), move("r2"))) == [False, True]
    (moved,) = await inbox_rows(database)
    await database.write(inbox.answered, moved.run_id or "")
    assert [row.state for row in await inbox_rows(database)] == ["answered"]


async def test_what_comes_too_late_is_summarised_once_and_can_be_asked_for(database: Database) -> None:
    inbox = Inbox(database)
    await held(database)
    old = utc_now() - timedelta(hours=1)
    group = Place("g")
    overheard = message("x", "9", at=old)
    overheard = type(overheard)("9", group, overheard.author, old, "x")
    await inbox.accept("x", [message("a", "1", at=old), message("b", "2", at=old), overheard, message("c", "3")])
    assert await heads(database, inbox) == ["3"]

    async def missed() -> list[tuple[InboxRow, int]]:
        return await database.write(inbox.take_missed, "x")

    assert [(row.message_id, count) for row, count in await missed()] == [("2", 2)]
    assert await missed() == []
    assert await database.write(inbox.accept_missed, "x", Place("c")) == 2
    assert await heads(database, inbox) == ["1"]
