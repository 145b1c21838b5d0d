from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from sqlalchemy import update
from tests.support.thread_world import ALICE, BOB, ThreadWorld

from deerflow.errors import NotFoundError
from deerflow.storage.database import Database
from deerflow.storage.tables import runs
from deerflow.threads.feedback import FeedbackRepository


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[ThreadWorld]:
    made = await asyncio.to_thread(ThreadWorld, database, tmp_path / "home")  # imports the driver
    yield made
    await made.aclose()


def _seqs(entries: list[dict[str, Any]]) -> list[int]:
    return [entry["seq"] for entry in entries]


async def test_messages_belong_to_the_run_that_took_the_persons_message(world: ThreadWorld) -> None:
    await world.thread("t1")
    runs_of = [await world.turn("t1", "one"), await world.turn("t1", "two")]

    found, more = await world.threads.transcript.messages(ALICE, "t1")

    assert [entry["run_id"] for entry in found] == [runs_of[0]] * 4 + [runs_of[1]] * 4
    assert [entry["event_type"].split(".")[1] for entry in found[:4]] == ["human", "ai", "tool", "ai"]
    assert _seqs(found) == list(range(1, 9)) and not more
    of_run, _ = await world.threads.transcript.run_messages(ALICE, runs_of[1], thread_id="t1")
    assert of_run == found[4:]


async def test_pages_lose_no_message_and_the_first_holds_the_newest(world: ThreadWorld) -> None:
    await world.thread("t1", "one", "two", "three")
    transcript = world.threads.transcript

    last, more = await transcript.messages(ALICE, "t1", limit=5)
    middle, more_before = await transcript.messages(ALICE, "t1", limit=5, before_seq=8)
    first, none_before = await transcript.messages(ALICE, "t1", limit=5, before_seq=3)
    after, more_after = await transcript.messages(ALICE, "t1", limit=5, after_seq=5)
    end, none_after = await transcript.messages(ALICE, "t1", limit=2, after_seq=10)

    assert (_seqs(last), more) == ([8, 9, 10, 11, 12], True)
    assert (_seqs(middle), more_before) == ([3, 4, 5, 6, 7], True)
    assert (_seqs(first), none_before) == ([1, 2], False)
    assert (_seqs(after), more_after) == ([6, 7, 8, 9, 10], True)
    assert (_seqs(end), none_after) == ([11, 12], False)


async def test_the_newest_page_of_a_run_holds_its_newest_message(world: ThreadWorld) -> None:
    await world.thread("t1")
    run_id = await world.turn("t1", "one")

    found, more = await world.threads.transcript.run_messages(ALICE, run_id, limit=3)

    assert _seqs(found) == [2, 3, 4] and more


async def test_runs_of_others_and_of_other_threads_are_not_found(world: ThreadWorld) -> None:
    await world.thread("t1")
    await world.thread("t2")
    run_id = await world.turn("t1", "one")
    transcript = world.threads.transcript

    for attempt in (
        transcript.run_messages(BOB, run_id),
        transcript.run_messages(ALICE, run_id, thread_id="t2"),
        transcript.run_messages(ALICE, "missing"),
        transcript.events(BOB, run_id),
        transcript.events(ALICE, run_id, thread_id="t2"),
    ):
        with pytest.raises(NotFoundError):
            await attempt


async def test_feedback_stands_with_the_answer_it_is_about(world: ThreadWorld) -> None:
    await world.thread("t1")
    first, second = await world.turn("t1", "one"), await world.turn("t1", "two")
    named = (await world.threads.transcript.run_messages(ALICE, second))[0][1]["content"]["id"]
    repository = FeedbackRepository(world.database)
    await repository.put(ALICE, "t1", first, rating=1, comment="good")
    await repository.put(ALICE, "t1", second, rating=-1, message_id=named)

    found, _ = await world.threads.transcript.messages(ALICE, "t1")

    judged = {entry["seq"]: entry["feedback"] for entry in found if entry["feedback"]}
    assert {seq: (one["rating"], one["comment"]) for seq, one in judged.items()} == {4: (1, "good"), 6: (-1, None)}


async def test_events_of_a_run_so_far_while_it_runs_and_after(world: ThreadWorld) -> None:
    await world.thread("t1")
    await world.add_run("t1", "r1", status="running")
    writer = world.event_log.writer("t1", "r1", 0)
    writer.append("metadata", {"run_id": "r1"})
    for number in range(5):
        writer.append("custom", {"n": number})

    running = await world.threads.transcript.events(ALICE, "r1")
    await writer.end({"status": "success"}, lambda _: True)
    ended = await world.threads.transcript.events(ALICE, "r1", thread_id="t1")
    some = await world.threads.transcript.events(ALICE, "r1", event_types={"custom", "end"}, limit=3)

    assert [event["event_type"] for event in running] == ["metadata", *["custom"] * 5]
    assert [event["event_type"] for event in ended] == ["metadata", *["custom"] * 5, "end"]
    assert [event["content"] for event in some] == [{"n": 0}, {"n": 1}, {"n": 2}]


async def test_a_run_that_ended_without_a_word_has_no_events(world: ThreadWorld) -> None:
    await world.thread("t1")
    run_id = await world.turn("t1", "one")

    assert await world.threads.transcript.events(ALICE, run_id) == []


async def test_token_usage_is_summed_by_model_and_caller(world: ThreadWorld) -> None:
    await world.thread("t1")
    first, second = await world.turn("t1", "one"), await world.turn("t1", "two")
    lead = {"lead_agent": {"input_tokens": 10, "output_tokens": 5, "calls": 1}}
    others = {"subagent:coder": {"input_tokens": 3, "output_tokens": 1}, "middleware:title": {"input_tokens": 2}}
    for run_id, usage, read, written in ((first, {"a": lead}, 10, 5), (second, {"a": lead, "b": others}, 15, 6)):
        counted = (
            update(runs).where(runs.c.run_id == run_id).values(usage=usage, input_tokens=read, output_tokens=written)
        )
        await world.database.write(lambda connection, counted=counted: connection.execute(counted) and None)

    assert await world.threads.transcript.token_usage(ALICE, "t1") == {
        "thread_id": "t1",
        "total_tokens": 36,
        "total_input_tokens": 25,
        "total_output_tokens": 11,
        "total_runs": 2,
        "cost": None,
        "by_model": {"a": {"tokens": 30, "runs": 2}, "b": {"tokens": 6, "runs": 1}},
        "by_caller": {"lead_agent": 30, "subagent": 4, "middleware": 2},
    }


async def test_a_conversation_is_exported_without_what_is_hidden(world: ThreadWorld) -> None:
    await world.thread("t1", "hello\n# heading")
    hidden = HumanMessage("secret", additional_kwargs={"hide_from_ui": True})
    config: Any = {"configurable": {"thread_id": "t1"}}
    await world.graph.aupdate_state(config, {"messages": [hidden, AIMessage("bye")]}, as_node="model")
    await world.threads.repository.set_title(ALICE, "t1", "a/b: ../中文?")

    name, markdown = await world.threads.transcript.export(ALICE, "t1", "md")
    json_name, exported = await world.threads.transcript.export(ALICE, "t1", "json")

    assert name == "a_b_ .._中文_.md" and json_name.endswith(".json")
    assert markdown.decode() == (
        "# a/b: ../中文?\n\n## User\n\nhello\n# heading\n\n*Tool: `lookup`*\n\n"
        "## Assistant\n\nanswer to hello\n# heading\n\n## Assistant\n\nbye\n"
    )
    assert [message["type"] for message in orjson.loads(exported)["messages"]] == ["human", "ai", "tool", "ai", "ai"]


async def test_an_export_shows_where_summaries_of_this_branch_stand_for_messages(world: ThreadWorld) -> None:
    await world.thread("t1", "one", "two")
    config: Any = {"configurable": {"thread_id": "t1"}}
    messages = (await world.graph.aget_state(config)).values["messages"]
    first_answer = next(message for message in messages if message.text == "answer to one")
    made: dict[str, Any] = {"pinned": [], "skills": {}, "shortened_upto": "", "before": 48_000, "after": 900}
    summaries = [
        {**made, "upto": first_answer.id, "text": "An older one."},
        {**made, "upto": first_answer.id, "text": "## Task\nOne.", "made_at": "2026-03-01T09:30:00+00:00"},
        {**made, "upto": "of another branch", "text": "Two."},
        {**made, "upto": "", "text": "", "shortened_upto": first_answer.id},
    ]
    await world.graph.aupdate_state(config, {"summaries": summaries}, as_node="model")

    _, markdown = await world.threads.transcript.export(ALICE, "t1", "md")
    _, exported = await world.threads.transcript.export(ALICE, "t1", "json")

    assert (
        "answer to one\n\n<details>\n<summary>Summarized for the model (48,000 → 900 tokens, 2026-03-01 09:30 UTC)</summary>\n\n"
        "## Task\nOne.\n\n</details>\n\n## User\n\ntwo" in markdown.decode()
    )
    assert markdown.count(b"<details>") == 1
    assert orjson.loads(exported)["summaries"] == [summaries[1]]
