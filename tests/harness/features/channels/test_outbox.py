"""A message is one row, whatever edits follow, and what became of it is known or said."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection
from tests.harness.features.channels.platform_double import CAPS
from tests.harness.features.channels.test_inbox import held

from deerflow.features.channels import limits
from deerflow.features.channels.leases import Fenced
from deerflow.features.channels.outbox import MARK, PLACEHOLDER, Outbox, OutboxRow, Target
from deerflow.features.channels.types import Button, Caps, Place
from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.tables import utc_now

EDITS, PLAIN, KEYS = CAPS["cursor"], CAPS["ack"], CAPS["keys"]


class Box:
    """An outbox whose clock stands still, and one connection."""

    def __init__(self, database: Database, epoch: int) -> None:
        self.now = utc_now()
        self.rows = Outbox(clock=lambda: self.now)
        self.database = database
        self.epoch = epoch

    async def replace(self, text: str, *, turn: str = "t", part: int = 0, chat: str = "c", **more: Any) -> int:
        target = Target("x", Place(chat))
        return await self.database.write(lambda c: self.rows.replace(c, target, turn, part, text, **more))

    async def heads(self, caps: Caps = EDITS) -> list[OutboxRow]:
        rows, _ = await self.database.read(self.rows.heads, "x", caps, 10)
        return rows

    async def due(self, caps: Caps = EDITS) -> datetime | None:
        return (await self.database.read(self.rows.heads, "x", caps, 10))[1]

    async def begin(self, caps: Caps = EDITS) -> OutboxRow:
        (row, *_) = await self.heads(caps)
        begun = await self.database.write(self.rows.begin, row, self.epoch, caps)
        assert begun is not None
        return begun

    async def settle(self, job: Any, *args: Any) -> None:
        await self.database.write(lambda c: job(c, args[0], self.epoch, *args[1:]))

    async def sent(self, row: OutboxRow, ref: str = "1") -> None:
        await self.settle(self.rows.sent, row, {"id": ref})

    async def row(self, id_: int) -> OutboxRow:
        found = await self.database.read(self.rows.get, id_)
        assert found is not None
        return found


@pytest.fixture
async def box(database: Database) -> Box:
    return Box(database, (await held(database)).lease_epoch)


async def test_edits_of_a_part_are_one_row_with_the_newest_text(box: Box) -> None:
    row = await box.begin() if await box.replace("…") else None
    assert row is not None and row.ref is None
    await box.replace("half")
    id_ = await box.replace("whole", is_final=True)
    await box.replace("late progress")
    await box.sent(row)
    edit = await box.begin()
    assert (edit.id, edit.ref, edit.content.text, edit.content.is_final) == (id_, {"id": "1"}, "whole", True)
    await box.sent(edit)
    assert await box.heads() == [] and (await box.row(id_)).state == "sent"
    await box.replace("whole", is_final=True)
    assert await box.heads() == []


async def test_where_nothing_can_be_edited_only_what_must_arrive_is_sent(box: Box) -> None:
    await box.replace("…")
    assert await box.heads(PLAIN) == []
    await box.replace("…", buttons=[Button("s", "Stop")])
    assert await box.heads(PLAIN) == []
    await box.replace("May I?", buttons=[Button("k", "yes")], is_final=True)
    assert [row.content.text for row in await box.heads(PLAIN)] == ["May I?"]


async def test_a_place_sends_in_order_and_what_must_arrive_before_progress(box: Box) -> None:
    await box.replace("…", turn="a")
    first = await box.begin()
    await box.sent(first)
    await box.replace("progress of a", turn="a")
    await box.replace("b", turn="b", is_final=True)
    await box.replace("c", turn="c", is_final=True)
    await box.replace("d", turn="d", chat="other", is_final=True)
    assert [row.content.text for row in await box.heads()] == ["b", "d"]


async def test_progress_that_a_platform_does_not_want_now_is_dropped_and_an_answer_waits(box: Box) -> None:
    id_ = await box.replace("…")
    await box.sent(await box.begin())
    await box.replace("progress")
    row = await box.begin()
    await box.settle(box.rows.later, row, box.now + timedelta(seconds=9), "429")
    assert (await box.row(id_)).state == "sent"
    await box.replace("answer", is_final=True)
    answer = await box.begin()
    later = box.now + timedelta(seconds=9)
    await box.settle(box.rows.later, answer, later, "429")
    assert await box.heads() == [] and await box.due() == later
    box.now = later
    again = await box.begin()
    assert again.content.text == "answer" and again.seq > answer.seq


@pytest.mark.parametrize(("caps", "mark"), [(EDITS, MARK), (PLAIN, MARK), (KEYS, "")], ids=["edits", "plain", "keys"])
async def test_a_new_message_that_may_have_arrived_is_sent_again_and_says_so(box: Box, caps: Caps, mark: str) -> None:
    await box.replace("answer", is_final=True)
    row = await box.begin(caps)
    await box.settle(box.rows.uncertain, row, box.now, "cut")
    again = await box.begin(caps)
    assert (again.content.text, again.key) == (f"answer{mark}", row.key)
    await box.settle(box.rows.later, again, box.now, "429")  # nothing was sent now, but before
    assert (await box.begin(caps)).content.text == f"answer{mark}"


async def test_after_the_window_of_a_key_a_message_is_marked(box: Box) -> None:
    await box.replace("answer", is_final=True)
    await box.settle(box.rows.uncertain, await box.begin(KEYS), box.now, "cut")
    box.now += timedelta(seconds=KEYS.key_window + 1)
    assert (await box.begin(KEYS)).content.text == f"answer{MARK}"


async def test_what_a_dead_process_was_sending_is_uncertain(box: Box) -> None:
    await box.replace("answer", is_final=True)
    await box.begin()
    assert (await box.begin()).content.text == f"answer{MARK}"


async def test_a_placeholder_that_may_have_arrived_makes_no_answer_a_duplicate(box: Box) -> None:
    await box.replace("…")
    await box.begin()
    await box.replace("answer", is_final=True)
    again = await box.begin()
    assert again.content.text == "…"
    await box.sent(again)
    assert (await box.begin()).content.text == "answer"


async def test_an_edit_that_may_have_arrived_is_repeated(box: Box) -> None:
    await box.replace("…")
    await box.sent(await box.begin())
    await box.replace("answer", is_final=True)
    await box.settle(box.rows.uncertain, await box.begin(), box.now, "cut")
    again = await box.begin()
    assert (again.ref, again.content.text) == ({"id": "1"}, "answer")


async def test_an_edit_that_may_have_arrived_and_cannot_be_repeated_is_sent_anew_and_says_so(box: Box) -> None:
    await box.replace("…")
    await box.sent(await box.begin())
    await box.replace("answer", is_final=True)
    await box.settle(box.rows.uncertain, await box.begin(), box.now, "no acknowledgement")
    await box.settle(box.rows.repost, await box.begin(), "the stream is over")
    again = await box.begin()
    assert (again.ref, again.is_marked) == (None, True)


async def test_a_process_that_lost_its_lease_sends_and_records_nothing(box: Box, database: Database) -> None:
    id_ = await box.replace("answer", is_final=True)
    row = await box.begin()
    await held(database, "me")  # the same process may take it again, with a new epoch
    await box.sent(row)
    assert (await box.row(id_)).state == "sending"
    with pytest.raises(Fenced):
        await box.begin()


async def test_a_pause_of_a_chat_or_of_all_holds_and_outlives_the_process(box: Box, database: Database) -> None:
    await box.replace("a", turn="a", is_final=True)
    await box.replace("b", turn="b", chat="other", is_final=True)
    until = box.now + timedelta(seconds=5)
    await database.write(limits.block, "x", "c", until)
    (held_up, _) = await box.heads()
    assert await database.write(box.rows.begin, held_up, box.epoch, EDITS) is None
    assert [row.chat for row in await box.heads()] == ["other"] and await box.due() == until
    await database.write(limits.block, "x", limits.EVERYWHERE, until + timedelta(seconds=5))
    box.now = until
    assert await box.heads() == [] and await box.due() == until + timedelta(seconds=5)
    box.now += timedelta(seconds=6)
    assert "a" in [row.content.text for row in await box.heads()]


async def test_new_messages_of_a_chat_keep_their_distance_and_unprompted_ones_their_number(box: Box) -> None:
    caps = Caps("plain", post_every=2.0, unprompted=2, unprompted_seconds=100.0)

    def take(connection: Connection) -> datetime | None:
        return limits.take_post(connection, "x", "c", caps, box.now)

    began = box.now
    assert await box.database.write(take) is None
    assert await box.database.write(take) == began + timedelta(seconds=2)
    box.now += timedelta(seconds=3)
    assert await box.database.write(take) is None
    box.now += timedelta(seconds=3)
    assert await box.database.write(take) == began + timedelta(seconds=100)
    box.now = began + timedelta(seconds=101)
    assert await box.database.write(take) is None


async def test_a_second_file_notice_or_placeholder_of_a_turn_changes_nothing(box: Box) -> None:
    target = Target("x", Place("c"))

    def job(connection: Connection) -> list[int]:
        more = {"thread_id": "t", "user_id": "u"}
        ids = [box.rows.file(connection, target, "t", 0, "/mnt/user-data/outputs/a.txt", **more) for _ in range(2)]
        ids += [box.rows.deliver(connection, target, "hi", key="k") for _ in range(2)]
        return ids + [box.rows.replace(connection, target, "t", 0, PLACEHOLDER) for _ in range(2)]

    ids = await box.database.write(job)
    assert len(set(ids)) == 3 and ids[::2] == ids[1::2]
    assert await box.database.read(box.rows.unfinished, "x") == ["t"]
    count = "SELECT count(*) FROM channel_outbox"
    assert await box.database.read(lambda c: sql.execute(c, count).fetchone()[0]) == 3
