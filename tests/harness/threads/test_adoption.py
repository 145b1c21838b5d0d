"""Conversations of other programs become threads, once, on both databases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from tests.support.thread_world import ALICE, BOB, ThreadWorld

from deerflow.errors import ConflictError, InvalidRequestError
from deerflow.storage import search
from deerflow.storage.database import Database
from deerflow.storage.provenance import has_rows
from deerflow.threads.adoption import AdoptedConversation, adopt

CALL = {"name": "lookup", "args": {}, "id": "c1"}
OLD = AdoptedConversation(
    "old",
    "elsewhere",
    "Owls",
    [HumanMessage("How do owls hunt?", id="m1"), AIMessage("Let me see.", id="m2", tool_calls=[CALL])],
    datetime(2025, 1, 2, tzinfo=UTC),
    datetime(2025, 1, 3, tzinfo=UTC),
    {"project": "birds"},
)


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[ThreadWorld]:
    made = await asyncio.to_thread(ThreadWorld, database, tmp_path / "home")  # imports the driver
    yield made
    await made.aclose()


async def test_it_can_be_read_found_and_continued_but_does_nothing_by_itself(world: ThreadWorld) -> None:
    assert await adopt(world.threads, ALICE, OLD)
    found = await world.threads.get(ALICE, "old")
    assert (found["status"], found["interrupts"], found["values"]["title"]) == ("idle", {}, "Owls")
    assert found["metadata"] == {"project": "birds", "imported_from": "elsewhere"}
    assert found["created_at"].startswith("2025-01-02") and found["updated_at"].startswith("2025-01-03")
    state = await world.threads.states.snapshot("old")
    assert not state.next and not state.tasks, "the call is not made"
    assert {hit.message_id for hit in await world.threads.messages.search(ALICE, "owls")} == {None, "m1"}
    assert await world.database.read(has_rows, "old"), "its text is from outside"
    page, _ = await world.threads.transcript.messages(ALICE, "old")
    assert [entry["run_id"] for entry in page] == [None, None]
    assert b"How do owls hunt?" in (await world.threads.transcript.export(ALICE, "old", "md"))[1]
    await world.turn("old", "and mice")
    assert not await adopt(world.threads, ALICE, OLD)
    assert len((await world.threads.get(ALICE, "old"))["values"]["messages"]) == 6


async def test_what_was_cut_off_is_done_again_and_a_foreign_thread_is_left_alone(
    world: ThreadWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.txt").write_text("a")
    given = replace(OLD, files={"user-data/workspace": source})
    with monkeypatch.context() as patch:
        patch.setattr(search, "index", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await adopt(world.threads, ALICE, given)
    assert await adopt(world.threads, ALICE, given)
    assert len((await world.threads.get(ALICE, "old"))["values"]["messages"]) == 2
    assert (world.paths.workspace("old", "alice") / "a.txt").read_text() == "a"
    with pytest.raises(ConflictError, match="the id is taken"):
        await adopt(world.threads, BOB, given)
    with pytest.raises(InvalidRequestError, match="metadata"):
        await adopt(world.threads, ALICE, replace(OLD, thread_id="new", metadata={"x": "\0"}))
