"""``client.runs``."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx
import pytest
from bench.scripted_openai import Delay, HttpError, Text, ToolCalls
from langgraph_sdk.errors import BadRequestError, ConflictError, NotFoundError, UnprocessableEntityError
from tests.sdk_python.conftest import ASSISTANT, LONG, Sdk, covers

LOOK = ToolCalls(("ls", {"description": "look", "path": "/mnt/user-data"}))


async def parts_of(stream: Any) -> list[Any]:
    return [part async for part in stream]


def text_of(parts: list[Any]) -> str:
    """What the model said, as its tokens came."""
    chunks = [part.data[0] for part in parts if part.event == "messages"]
    return "".join(chunk["content"] for chunk in chunks if chunk["type"] == "AIMessageChunk")


def last_values(parts: list[Any]) -> dict[str, Any]:
    return [part.data for part in parts if part.event == "values"][-1]


@covers("runs.stream")
async def test_a_run_is_streamed_from_its_start_to_its_end(sdk: Sdk):
    thread_id = await sdk.thread()
    made: list[Any] = []
    parts = await parts_of(
        sdk.runs.stream(
            thread_id,
            ASSISTANT,
            input=sdk.script(LOOK, Text("Hello there.")),
            stream_mode=["values", "messages-tuple", "updates", "custom", "tasks", "checkpoints", "debug", "events"],
            stream_subgraphs=True,
            metadata={"a": 1},
            on_run_created=made.append,
        )
    )
    assert parts[0].event == "metadata" and parts[-1].event == "end"
    assert parts[0].data["run_id"] == made[0]["run_id"] and made[0]["thread_id"] == thread_id
    ids = [int(part.id) for part in parts if part.id]
    assert ids == sorted(set(ids))
    assert text_of(parts) == "Hello there."
    assert [message["type"] for message in last_values(parts)["messages"]] == ["human", "ai", "tool", "ai"]
    assert [list(part.data) for part in parts if part.event == "updates"] == [["model"], ["tools"], ["model"]]
    assert {"tasks", "checkpoints", "debug", "events"} <= {part.event for part in parts}
    run = await sdk.runs.get(thread_id, made[0]["run_id"])
    assert run["status"] == "success" and run["metadata"]["a"] == 1


@covers("runs.stream")
async def test_a_stream_can_be_read_in_the_second_version_of_its_parts(sdk: Sdk):
    stream = sdk.runs.stream(None, ASSISTANT, input=sdk.script(Text("Hi.")), stream_mode="values", version="v2")
    parts = [part async for part in stream if part["type"] == "values"]
    assert parts[-1]["data"]["messages"][-1]["content"] == "Hi." and parts[-1]["ns"] == []


@covers("runs.stream")
async def test_a_failed_run_says_why_in_its_stream(sdk: Sdk):
    thread_id = await sdk.thread()
    parts = await parts_of(sdk.runs.stream(thread_id, ASSISTANT, input=sdk.script(HttpError(401, "bad key"))))
    errors = [part.data for part in parts if part.event == "error"]
    shown = errors[0]["message"] if errors else last_values(parts)["messages"][-1]["content"]
    assert shown and "Traceback" not in shown and "site-packages" not in shown
    assert (await sdk.threads.get(thread_id))["status"] in ("error", "idle")


@covers("runs.create", "runs.get", "runs.join", "runs.list", "runs.delete")
async def test_a_run_in_the_background_is_joined_listed_and_deleted(sdk: Sdk):
    thread_id = str(uuid4())
    with pytest.raises(NotFoundError):
        await sdk.runs.create(thread_id, ASSISTANT, input=sdk.script())
    run = await sdk.runs.create(
        thread_id,
        ASSISTANT,
        input=sdk.script(Text("Done.")),
        if_not_exists="create",
        metadata={"a": 1},
        context={"is_plan_mode": False},
        config={"recursion_limit": 40, "tags": ["t"]},
        durability="sync",
    )
    assert run["status"] in ("pending", "running", "success") and run["multitask_strategy"] == "enqueue"
    assert (await sdk.runs.join(thread_id, run["run_id"]))["messages"][-1]["content"] == "Done."
    assert (await sdk.runs.get(thread_id, run["run_id"]))["status"] == "success"
    second = await sdk.runs.create(thread_id, ASSISTANT, input=sdk.script(Text("Two.")))
    await sdk.runs.join(thread_id, second["run_id"])
    listed = await sdk.runs.list(thread_id, status="success")
    assert [one["run_id"] for one in listed] == [second["run_id"], run["run_id"]]
    assert await sdk.runs.list(thread_id, limit=1, offset=1, select=["run_id"]) == [{"run_id": run["run_id"]}]
    await sdk.runs.delete(thread_id, run["run_id"])
    for gone in (sdk.runs.get, sdk.runs.delete):
        with pytest.raises(NotFoundError):
            await gone(thread_id, run["run_id"])
    with pytest.raises(httpx.HTTPStatusError, match="404"):
        await sdk.runs.join(thread_id, run["run_id"])


@covers("runs.wait")
async def test_waiting_gives_the_values_or_raises(sdk: Sdk):
    values = await sdk.runs.wait(None, ASSISTANT, input=sdk.script(Text("Alone.")), on_completion="keep")
    assert values["messages"][-1]["content"] == "Alone."
    with pytest.raises(UnprocessableEntityError) as refused:
        await sdk.runs.create(None, "nobody", input=sdk.script())
    assert "nobody" in str(refused.value)
    with pytest.raises((UnprocessableEntityError, BadRequestError)):
        await sdk.runs.create(None, ASSISTANT, input=sdk.script(), stream_mode=["nonsense"])


@covers("runs.wait")
async def test_a_run_forks_from_a_checkpoint_and_updates_the_state_by_command(sdk: Sdk):
    thread_id = await sdk.thread("One.")
    first = await sdk.threads.get_state(thread_id)
    await sdk.runs.wait(thread_id, ASSISTANT, input=sdk.script(Text("Two.")))
    forked = await sdk.runs.wait(
        thread_id, ASSISTANT, input=sdk.script(Text("Other.")), checkpoint_id=first["checkpoint"]["checkpoint_id"]
    )
    assert [message["content"] for message in forked["messages"][1::2]] == ["One.", "Other."]
    note = sdk.script(Text("Three."))["messages"]
    values = await sdk.runs.wait(thread_id, ASSISTANT, command={"update": {"messages": note}, "goto": "model"})
    assert values["messages"][-1]["content"] == "Three."


@covers("runs.join_stream")
async def test_a_stream_is_joined_at_any_event_and_nothing_is_told_twice(sdk: Sdk):
    thread_id = await sdk.thread()
    run = await sdk.runs.create(thread_id, ASSISTANT, input=sdk.script(Delay(0, Text("a b c d e f"), between=0.02)))
    parts = await parts_of(sdk.runs.join_stream(thread_id, run["run_id"], stream_mode=["messages-tuple"]))
    assert text_of(parts) == "a b c d e f"
    middle = parts[len(parts) // 2].id
    rest = await parts_of(
        sdk.runs.join_stream(thread_id, run["run_id"], stream_mode=["messages-tuple"], last_event_id=middle)
    )
    assert [part.id for part in rest] == [part.id for part in parts if int(part.id) > int(middle)]
    whole = await parts_of(sdk.runs.join_stream(thread_id, run["run_id"]))
    assert last_values(whole)["messages"][-1]["content"] == "a b c d e f"


@covers("runs.join_stream")
async def test_a_run_ends_with_its_reader_if_that_was_asked_for(sdk: Sdk):
    thread_id = await sdk.thread()
    run = await sdk.runs.create(thread_id, ASSISTANT, input=sdk.script(Delay(0, Text(LONG), between=0.08)))
    async for part in (stream := sdk.runs.join_stream(thread_id, run["run_id"], cancel_on_disconnect=True)):
        if part.event == "values":
            break
    await stream.aclose()
    await sdk.runs.join(thread_id, run["run_id"])
    assert (await sdk.runs.get(thread_id, run["run_id"]))["status"] == "interrupted"


@covers("runs.cancel")
async def test_a_run_is_stopped_and_its_half_answer_stays_or_goes(sdk: Sdk):
    thread_id = await sdk.thread()
    run = await sdk.running(thread_id)
    await sdk.runs.cancel(thread_id, run["run_id"], wait=True)
    assert (await sdk.runs.get(thread_id, run["run_id"]))["status"] == "interrupted"
    kept = (await sdk.threads.get_state(thread_id))["values"]["messages"]
    assert kept[-1]["content"].startswith("word0")
    with pytest.raises(NotFoundError):
        await sdk.runs.cancel(thread_id, run["run_id"])
    undone = await sdk.running(thread_id)
    await sdk.runs.cancel(thread_id, undone["run_id"], wait=True, action="rollback")
    with pytest.raises(NotFoundError):
        await sdk.runs.get(thread_id, undone["run_id"])
    now = (await sdk.threads.get_state(thread_id))["values"]["messages"]
    assert [message["id"] for message in now] == [message["id"] for message in kept]


@covers("runs.cancel_many")
async def test_many_runs_are_stopped_at_once(sdk: Sdk):
    thread_id = await sdk.thread()
    first = await sdk.running(thread_id)
    second = await sdk.runs.create(thread_id, ASSISTANT, input=sdk.script())
    await sdk.runs.cancel_many(thread_id=thread_id, run_ids=[second["run_id"]])
    await sdk.runs.join(thread_id, second["run_id"])
    assert (await sdk.runs.get(thread_id, first["run_id"]))["status"] == "running"
    await sdk.runs.cancel_many(thread_id=thread_id, status="all")
    await sdk.runs.join(thread_id, first["run_id"])
    for run in (first, second):
        assert (await sdk.runs.get(thread_id, run["run_id"]))["status"] == "interrupted"


@covers("runs.create_batch")
async def test_a_batch_starts_each_run_on_a_thread_of_its_own(sdk: Sdk):
    payloads = [{"assistant_id": ASSISTANT, "input": sdk.script(Text(text)), "on_completion": "keep"} for text in "AB"]
    runs = await sdk.runs.create_batch(payloads)
    said = [(await sdk.runs.join(run["thread_id"], run["run_id"]))["messages"][-1]["content"] for run in runs]
    assert said == ["A", "B"] and runs[0]["thread_id"] != runs[1]["thread_id"]


@covers("runs.create")
async def test_what_a_second_run_does_is_as_it_was_told(sdk: Sdk):
    thread_id = await sdk.thread()
    first = await sdk.running(thread_id)
    with pytest.raises(ConflictError):
        await sdk.runs.create(thread_id, ASSISTANT, input=sdk.script(), multitask_strategy="reject")
    queued = await sdk.runs.create(thread_id, ASSISTANT, input=sdk.script())
    assert queued["status"] == "pending"
    taking = await sdk.runs.create(thread_id, ASSISTANT, input=sdk.script(Text("Now.")), multitask_strategy="interrupt")
    values = await sdk.runs.join(thread_id, taking["run_id"])
    assert values["messages"][-1]["content"] == "Now."
    assert (await sdk.runs.get(thread_id, first["run_id"]))["status"] == "interrupted"
    later = await sdk.runs.create(thread_id, ASSISTANT, input=sdk.script(), after_seconds=3600)
    assert later["status"] == "pending" and (await sdk.threads.get(thread_id))["status"] == "idle"
    await sdk.runs.cancel(thread_id, later["run_id"])
    assert (await sdk.runs.get(thread_id, later["run_id"]))["status"] == "interrupted"


@covers("runs.cancel")
async def test_what_was_said_to_a_run_that_never_began_stands_in_the_thread(sdk: Sdk):
    thread_id = await sdk.thread()
    first = await sdk.running(thread_id)
    said = {"messages": [{"role": "user", "content": "never answered"}]}
    queued = await sdk.runs.create(thread_id, ASSISTANT, input=said)
    await sdk.runs.cancel(thread_id, queued["run_id"], wait=True)
    assert (await sdk.runs.get(thread_id, queued["run_id"]))["status"] == "interrupted"
    await sdk.runs.cancel(thread_id, first["run_id"], wait=True)
    after = await sdk.runs.wait(thread_id, ASSISTANT, input=sdk.script(Text("Here I am.")))
    state = await sdk.threads.get_state(thread_id)
    assert [message["type"] for message in state["values"]["messages"]] == ["human", "ai", "human", "human", "ai"]
    assert state["values"]["messages"][2]["content"] == "never answered" and after["messages"][-1]["type"] == "ai"


@covers("runs.create")
async def test_a_webhook_at_a_private_address_is_refused_before_anything_begins(sdk: Sdk):
    thread_id = await sdk.thread()
    for address in ("http://169.254.169.254/latest", "http://2130706433/", "http://[::1]:80/"):
        with pytest.raises(UnprocessableEntityError, match="webhook"):
            await sdk.runs.create(thread_id, ASSISTANT, input=sdk.script(Text("never")), webhook=address)
    assert await sdk.runs.list(thread_id) == []


async def test_metadata_of_a_run_reach_the_thread_that_it_makes(sdk: Sdk):
    mark, script = {"mark": uuid4().hex}, sdk.script(Text("One."), Text("Two."))
    await sdk.runs.wait(None, ASSISTANT, input=script, metadata=mark, on_completion="keep")
    thread_id = str(uuid4())
    await sdk.runs.wait(thread_id, ASSISTANT, input=script, metadata=mark, if_not_exists="create")
    found = {thread["thread_id"] for thread in await sdk.threads.search(metadata=mark)}
    assert len(found) == 2 and thread_id in found
