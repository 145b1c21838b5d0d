"""Against a platform over HTTP: nothing is lost or doubled, and a channel in trouble says so and keeps no other from working."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import orjson
import pytest
from tests.harness.features.channels.platform_double import (
    CAPS,
    FAST,
    DoubleAdapter,
    Echo,
    Platform,
    inbox_rows,
    judged,
    until,
)

from deerflow.errors import NotFoundError
from deerflow.features.channels import leases
from deerflow.features.channels.engine import Engine, Wanted
from deerflow.features.channels.handler import NotYet
from deerflow.features.channels.inbox import InboxRow
from deerflow.features.channels.leases import ConnectionRow
from deerflow.features.channels.outbox import MARK, PLACEHOLDER, Outbox, OutboxRow, Target
from deerflow.features.channels.types import Caps, Misconfigured, OutFile, Place
from deerflow.storage.database import Database
from deerflow.storage.tables import utc_now


@asynccontextmanager
async def running(
    database: Database,
    platform: Platform,
    kind: str = "cursor",
    *,
    echo: Mapping[str, Any] = MappingProxyType({}),
    caps: Caps | None = None,
    **more: Any,
) -> AsyncIterator[Echo]:
    async def wanted() -> Mapping[str, Wanted]:
        return {"x": Wanted("double", "1", lambda: DoubleAdapter(platform.url, kind, caps), is_http=kind == "http")}

    more = {"timing": FAST, "wanted": wanted, **more}
    engine = Engine(database, **more)
    made = Echo(engine, database, **echo)
    engine.start(made)
    try:
        yield made
    finally:
        await engine.aclose()
        for task in made.tasks:
            task.cancel()


async def connection(database: Database, id_: str = "x") -> ConnectionRow:
    row = await database.read(leases.get, id_)
    assert row is not None
    return row


async def state(database: Database, wanted: str) -> ConnectionRow:
    async with asyncio.timeout(20):
        while True:
            row = await database.read(leases.get, "x")
            if row is not None and row.state == wanted:
                return row
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("kind", ["cursor", "ack", "keys"])
async def test_each_message_is_answered_once_and_in_order(database: Database, platform: Platform, kind: str) -> None:
    async with running(database, platform, kind):
        said = [f"{n}" for n in range(30)]
        for n, text in enumerate(said):
            platform.say(text, f"c{n % 3}")
        await until(lambda: judged(platform, said)[0] == 30)
    for chat in range(3):
        assert platform.texts(f"c{chat}") == [f"re:{n}" for n in range(30) if n % 3 == chat]
    assert judged(platform, said) == (30, 0, [])
    row = await connection(database)
    assert (row.state, row.leased_until, row.me and row.me["name"]) == ("connected", None, "Deer")
    if kind == "cursor":
        assert all(one["first"] == "…" for one in platform.messages.values())


async def test_a_platform_gets_its_acknowledgement_after_the_commit(database: Database, platform: Platform) -> None:
    stored_at: list[bool] = []
    ack = platform._ack

    async def checked(body: dict[str, Any]) -> Any:
        known = {row.message_id for row in await inbox_rows(database)}
        stored_at.append(known.issuperset(body["ids"]))
        return await ack(body)

    platform._ack = checked  # type: ignore[method-assign]
    async with running(database, platform, "ack"):
        for n in range(20):
            platform.say(str(n), id_=f"m{n // 2}")
        await until(lambda: len(platform.acknowledged) == 10 and len(platform.messages) == 10)
    assert stored_at and all(stored_at)


async def test_a_platform_that_could_not_acknowledge_in_time_is_not_answered_twice(
    database: Database, platform: Platform
) -> None:
    platform.redeliver_after = 0.0
    platform.faults["ack"].extend(["cut before"] * 3)
    async with running(database, platform, "ack"):
        platform.say("a")
        await until(lambda: platform.acknowledged)
    assert platform.texts() == ["re:a"]


async def test_a_first_cursor_is_stored_before_the_first_message(database: Database, platform: Platform) -> None:
    async with running(database, platform):
        await state(database, "connected")
        assert (await connection(database)).cursor == "0"


async def test_a_pause_that_a_platform_asks_for_is_kept(database: Database, platform: Platform) -> None:
    platform.faults["post"].append((429, {"retry-after": "1"}, {}))
    async with running(database, platform):
        platform.say("a")
        await until(lambda: platform.texts() == ["re:a"])
    first, second = [at for method, at, _ in platform.calls if method == "post"]
    assert second - first >= 1.0


async def test_a_pause_of_all_outlives_the_process(database: Database, platform: Platform) -> None:
    platform.faults["post"].append((420, {}, {}))
    async with running(database, platform):
        platform.say("a")
        await until(lambda: [method for method, _, _ in platform.calls if method == "post"])
        first = asyncio.get_running_loop().time()
    async with running(database, platform):
        platform.say("b", "other")
        await until(lambda: sorted(platform.texts()) == ["re:a", "re:b"])
    assert min(at for method, at, _ in platform.calls[1:] if method == "post" and at > first) - first >= 0.25


@pytest.mark.parametrize(("kind", "fault", "texts"), [
    ("cursor", "cut after", ["re:a"]),
    ("cursor", "cut before", ["re:a"]),
    ("keys", "cut after", ["re:a"]),
    ("ack", "cut after", ["re:a", f"re:a{MARK}"]),
    ("ack", "cut before", [f"re:a{MARK}"]),
    ("ack", (503, {}, {}), [f"re:a{MARK}"]),
])  # fmt: skip
async def test_a_cut_never_doubles_silently(
    database: Database, platform: Platform, kind: str, fault: Any, texts: list[str]
) -> None:
    platform.faults["post"].append(fault)
    async with running(database, platform, kind):
        platform.say("a")
        await until(lambda: platform.texts() == texts)


@pytest.mark.parametrize("fault", ["cut after", "cut before", (500, {}, {})])
async def test_an_edit_is_repeated_until_it_arrived(database: Database, platform: Platform, fault: Any) -> None:
    platform.faults["edit"].append(fault)
    async with running(database, platform):
        platform.say("a")
        await until(lambda: platform.texts() == ["re:a"])


async def test_an_answer_whose_message_cannot_be_edited_comes_as_a_new_one(
    database: Database, platform: Platform
) -> None:
    platform.faults["edit"].append((403, {}, {}))
    async with running(database, platform):
        platform.say("a")
        await until(lambda: platform.texts() == ["…", "re:a"])


async def test_what_is_refused_is_given_up_told_once_and_holds_up_nothing(
    database: Database, platform: Platform
) -> None:
    platform.faults["post"].append((403, {}, {}))
    async with running(database, platform, "ack") as echo:
        platform.say("a")
        platform.say("b")
        await until(lambda: platform.texts() == ["re:b"] and echo.undelivered_rows)
    (row,) = echo.undelivered_rows
    found = await database.read(Outbox().get, row.id)
    assert found is not None and (found.state, found.error) == ("dead", "The bot was removed from the chat.")


async def test_placeholders_of_a_process_that_ended_are_brought_up_to_date(
    database: Database, platform: Platform
) -> None:
    async with running(database, platform, echo={"holds": True}):
        platform.say("a")
        await until(lambda: platform.texts() == ["…"])
    async with running(database, platform):
        await until(lambda: platform.texts() == ["re:a"])


async def test_messages_and_edits_of_files_and_notices_go_through_rows(database: Database, platform: Platform) -> None:
    async def open_file(row: OutboxRow) -> OutFile:
        async def data() -> AsyncIterator[bytes]:
            yield b"abc"

        if row.body["path"].endswith("gone.txt"):
            raise FileNotFoundError(2, "No such file")
        return OutFile("a.txt", 3, "text/plain", data)

    async with running(database, platform, open_file=open_file) as echo:
        platform.faults["upload"].append("cut after")
        target = Target("x", Place("c"))

        def job(connection: Any) -> None:
            for part, name in enumerate(("gone.txt", "a.txt")):
                echo.engine.outbox.file(connection, target, "t", part, f"/mnt/{name}", thread_id="t", user_id="u")

        await state(database, "connected")
        await database.write(job)
        await echo.engine.deliver(target, "hello", key="k")
        await echo.engine.deliver(target, "hello", key="k")
        await until(lambda: platform.texts() == ["hello"])
    assert [(one["size"], one["caption"]) for one in platform.files] == [(3, ""), (3, MARK)]
    assert [row.error for row in echo.undelivered_rows] == ["/mnt/gone.txt cannot be read: No such file"]


# states -----------------------------------------------------------------------------------------------------------------


async def test_a_platform_that_is_away_is_tried_again_and_one_line_says_so(
    database: Database, platform: Platform, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "deerflow.features.channels")
    platform.is_dead = True
    async with running(database, platform):
        await until(lambda: len(platform.calls) >= 4)
        row = await connection(database)
        assert row.state == "retrying" and row.error and row.state_since
        platform.is_dead = False
        platform.say("a")
        await until(lambda: platform.texts() == ["re:a"])
        await state(database, "connected")
        platform.is_dead = True
        platform.cut()
        await state(database, "retrying")
    lines = [line for line in caplog.messages if line.startswith("The channel x is")]
    assert [line.split()[4].rstrip(".:") for line in lines] == ["retrying", "connected", "retrying"]


async def test_a_channel_that_is_signed_out_waits_for_a_person(database: Database, platform: Platform) -> None:
    platform.faults["me"].append((401, {}, {}))
    version = "1"

    async def wanted() -> Mapping[str, Wanted]:
        return {"x": Wanted("double", version, lambda: DoubleAdapter(platform.url, "cursor"))}

    async with running(database, platform, wanted=wanted) as echo:
        row = await state(database, "signed-out")
        assert row.error == "The token is no longer valid. Paste a new one."
        calls = len(platform.calls)
        await asyncio.sleep(0.3)
        assert len(platform.calls) == calls and (await connection(database)).leased_until is None
        version = "2"
        echo.engine.refresh()
        await state(database, "connected")


async def test_a_bot_that_another_program_uses_is_given_up_after_the_third_time(
    database: Database, platform: Platform
) -> None:
    platform.faults["updates"].extend([(409, {}, {})] * 3)
    async with running(database, platform):
        row = await state(database, "displaced")
        assert row.error == "Another program uses this bot. Another program asks for updates."
    assert [method for method, _, _ in platform.calls].count("updates") == 3


async def test_a_channel_that_cannot_be_opened_stops_no_other(database: Database, platform: Platform) -> None:
    def broken() -> Any:
        raise Misconfigured("Set `channels.x.bot_token`.")

    async def wanted() -> Mapping[str, Wanted]:
        return {
            "x": Wanted("double", "1", broken),
            "y": Wanted("double", "1", lambda: DoubleAdapter(platform.url, "cursor")),
        }

    async with running(database, platform, wanted=wanted):
        platform.say("a")
        await until(lambda: platform.texts() == ["re:a"])
        assert (await state(database, "misconfigured")).error == "Set `channels.x.bot_token`."


async def test_new_settings_close_the_link_and_open_it_again(database: Database, platform: Platform) -> None:
    opened: list[str] = []
    version = "1"

    async def wanted() -> Mapping[str, Wanted]:
        def adapter(made: str = version) -> Any:
            opened.append(made)
            return DoubleAdapter(platform.url, "cursor")

        return {"x": Wanted("double", version, adapter)} if version else {}

    async with running(database, platform, wanted=wanted) as echo:
        await state(database, "connected")
        version = "2"
        echo.engine.refresh()
        await until(lambda: opened == ["1", "2"])
        version = ""
        echo.engine.refresh()
        await until(lambda: not echo.engine._links)
    assert (await connection(database)).leased_until is None


# gaps -------------------------------------------------------------------------------------------------------------------


async def test_what_came_while_there_was_no_link_is_read_from_the_history(
    database: Database, platform: Platform
) -> None:
    async with running(database, platform, "ack"):
        platform.say("a")
        await until(lambda: platform.texts() == ["re:a"])
    lost = platform.say("b")
    platform.acknowledged[lost] = 0.0  # the platform had no link to deliver it to, and forgets it
    async with running(database, platform, "ack"):
        await until(lambda: platform.texts() == ["re:a", "re:b"])


async def test_what_is_too_old_is_summarised_in_its_place(database: Database, platform: Platform) -> None:
    old = utc_now() - timedelta(hours=2)
    for n in range(3):
        platform.say(str(n), at=old)
    platform.say("new", "other")
    async with running(database, platform) as echo:
        await until(lambda: len(platform.messages) == 2 and "re:new" in platform.texts())
        assert platform.texts("c") == ["Missed while away: 3. Send what is still wanted again."]
        assert echo.handled == ["new"]


# handling ---------------------------------------------------------------------------------------------------------------


async def test_a_message_that_cannot_be_handled_comes_again_and_holds_up_no_other_place(
    database: Database, platform: Platform
) -> None:
    class Poisoned(Echo):
        async def handle(self, row: InboxRow) -> None:
            event: Any = row.event
            if event.text == "poison":
                raise RuntimeError("broken")
            if event.text == "wait" and not row.due_at:
                raise NotYet(0.1)
            await super().handle(row)

    async def wanted() -> Mapping[str, Wanted]:
        return {"x": Wanted("double", "1", lambda: DoubleAdapter(platform.url, "cursor"))}

    engine = Engine(database, wanted, timing=replace(FAST, first_pause=0.002))
    engine.start(Poisoned(engine, database))
    for text in ("poison", "wait", "c"):
        platform.say(text)
    platform.say("d", "other")
    await until(lambda: platform.texts("other") == ["re:d"])
    await until(lambda: platform.texts("c") == ["re:wait", "re:c"])
    await engine.aclose()
    poison, *_ = await inbox_rows(database)
    assert (poison.state, poison.why, poison.tries) == ("ignored", "failed: broken", 4)


async def test_more_than_the_queue_is_for_is_kept_and_said(database: Database, platform: Platform) -> None:
    class Slow(Echo):
        async def handle(self, row: InboxRow) -> None:
            if not self.may_end.is_set():
                raise NotYet(0.05)
            await super().handle(row)

    async def wanted() -> Mapping[str, Wanted]:
        return {
            "x": Wanted("double", "1", lambda: DoubleAdapter(platform.url, "ack", replace(CAPS["ack"], replays=True)))
        }

    engine = Engine(database, wanted, timing=FAST, max_waiting=2)
    slow = Slow(engine, database, holds=True)
    engine.start(slow)
    for n in range(5):
        platform.say(str(n))
    await until(lambda: platform.texts())
    said = platform.texts()[0]
    assert re.fullmatch("This takes longer than usual: [345] messages wait. Yours is kept.", said)
    slow.may_end.set()
    await until(lambda: platform.texts() == [said, *(f"re:{n}" for n in range(5))])
    await engine.aclose()


@pytest.mark.parametrize("kind", ["ack", "keys"])
async def test_turns_that_a_process_left_are_answered_in_their_order_and_before_new_ones(
    database: Database, platform: Platform, kind: str
) -> None:
    said = [f"{n}" for n in range(12)]
    async with running(database, platform, kind, echo={"holds": True}) as left:
        for text in said:
            platform.say(text)
        await until(lambda: left.handled == said)
    platform.say("new")
    async with running(database, platform, kind, echo={"step": 0.05}) as echo:
        await until(lambda: "re:new" in platform.texts())
    assert echo.handled == ["new"]
    assert [text for text in platform.texts() if text != PLACEHOLDER] == [f"re:{text}" for text in (*said, "new")]


async def test_a_click_is_handled_once(database: Database, platform: Platform) -> None:
    async with running(database, platform) as echo:
        platform.say("", id_="k1", click="yes")
        platform.say("", id_="k1", click="yes")
        platform.say("a")
        await until(lambda: platform.texts() == ["re:a"])
    assert echo.clicks == ["yes"]


async def test_a_platform_that_calls_us_may_call_any_process(database: Database, platform: Platform) -> None:
    body = orjson.dumps([{"id": "m1", "chat": "c", "text": "a", "click": "", "at": utc_now().timestamp()}])
    async with (
        running(database, platform, "http", caps=CAPS["ack"]) as one,
        running(database, platform, "http", caps=CAPS["ack"]) as two,
    ):
        await state(database, "connected")
        await until(lambda: len(one.engine._receivers) + len(two.engine._receivers) == 2)
        assert (await one.engine.receive("x", {}, body))[0] == 401
        answers = await asyncio.gather(*(e.engine.receive("x", {"signature": "right"}, body) for e in (one, two, one)))
        assert [status for status, _ in answers] == [200] * 3
        await until(lambda: platform.texts() == ["re:a"])
        with pytest.raises(NotFoundError):
            await one.engine.receive("y", {}, body)
    assert platform.texts() == ["re:a"]


async def test_one_process_holds_a_channel_and_another_takes_it_over(database: Database, platform: Platform) -> None:
    async with running(database, platform) as first:
        await state(database, "connected")
        async with running(database, platform) as second:
            platform.say("a")
            await until(lambda: platform.texts() == ["re:a"])
            assert second.engine.adapter("x") is None and first.engine.adapter("x") is not None
            await first.engine.aclose()
            platform.say("b")
            await until(lambda: platform.texts() == ["re:a", "re:b"])
            assert second.handled == ["b"]
