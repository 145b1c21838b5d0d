"""``client.threads``, but for its streams."""

from __future__ import annotations

from uuid import uuid4

import pytest
from bench.scripted_openai import Text, ToolCalls
from langgraph_sdk.errors import ConflictError, NotFoundError
from tests.sdk_python.conftest import ASSISTANT, Sdk, covers


def said(state: dict) -> list[str]:
    return [message["content"] for message in state["values"]["messages"]]


@covers("threads.create", "threads.get", "threads.delete")
async def test_a_thread_is_made_found_and_deleted(sdk: Sdk):
    chosen = str(uuid4())
    made = await sdk.threads.create(thread_id=chosen, metadata={"a": 1}, graph_id=ASSISTANT, ttl=60)
    assert made["thread_id"] == chosen and made["status"] == "idle"
    assert made["metadata"].items() >= {"a": 1, "graph_id": ASSISTANT}.items()
    with pytest.raises(ConflictError):
        await sdk.threads.create(thread_id=chosen, if_exists="raise")
    assert (await sdk.threads.create(thread_id=chosen, if_exists="do_nothing"))["metadata"]["a"] == 1
    assert (await sdk.threads.get(chosen))["interrupts"] == {}
    await sdk.threads.delete(chosen)
    for gone in (sdk.threads.get(chosen), sdk.threads.delete(chosen), sdk.threads.get_state(chosen)):
        with pytest.raises(NotFoundError):
            await gone


@covers("threads.create")
async def test_a_thread_can_be_imported_step_by_step(sdk: Sdk):
    def step(node: str, message: dict) -> dict:
        return {"updates": [{"values": {"messages": [message]}, "as_node": node}]}

    steps = [
        step("__input__", {"type": "human", "content": "Hello"}),
        step("__start__", {"type": "human", "content": "Hello"}),
        step("model", {"type": "ai", "content": "Hi."}),
    ]
    made = await sdk.threads.create(supersteps=steps)
    assert said(await sdk.threads.get_state(made["thread_id"])) == ["Hello", "Hi."]


@covers("threads.update")
async def test_notes_on_a_thread_are_merged(sdk: Sdk):
    thread_id = (await sdk.threads.create(metadata={"a": 1, "b": 1}))["thread_id"]
    changed = await sdk.threads.update(
        thread_id, metadata={"b": 2, "c": {"d": []}}, ttl={"ttl": 5, "strategy": "delete"}
    )
    assert changed["metadata"] == {"a": 1, "b": 2, "c": {"d": []}}
    assert not await sdk.threads.update(thread_id, metadata={"e": 1}, return_minimal=True)
    assert (await sdk.threads.get(thread_id))["metadata"]["e"] == 1


@covers("threads.search", "threads.count")
async def test_threads_are_found_by_what_they_are(sdk: Sdk):
    mark = uuid4().hex
    ids = [(await sdk.threads.create(metadata={"mark": mark, "n": n}))["thread_id"] for n in range(3)]
    found = await sdk.threads.search(metadata={"mark": mark}, sort_by="created_at", sort_order="asc", limit=2, offset=1)
    assert [one["thread_id"] for one in found] == ids[1:]
    assert await sdk.threads.search(ids=ids, metadata={"n": 2}, select=["thread_id"]) == [{"thread_id": ids[2]}]
    assert await sdk.threads.search(metadata={"mark": mark}, status="busy") == []
    assert await sdk.threads.count(metadata={"mark": mark}, status="idle") == 3
    assert await sdk.threads.count(metadata={"mark": mark}, values={"title": "none"}) == 0
    extracting = await sdk.threads.search(ids=ids, extract={"x": "values.messages"})
    assert {one["thread_id"] for one in extracting} == {*ids}


@covers("threads.get_state", "threads.get_history", "threads.update_state")
async def test_the_state_is_read_as_it_is_and_was_and_changed_by_hand(sdk: Sdk):
    thread_id = await sdk.thread("One.", "Two.")
    now = await sdk.threads.get_state(thread_id)
    assert said(now)[1::2] == ["One.", "Two."] and now["next"] == [] and now["tasks"] == []
    history = await sdk.threads.get_history(thread_id, limit=50)
    assert history[0]["checkpoint"]["checkpoint_id"] == now["checkpoint"]["checkpoint_id"]
    assert [one["parent_checkpoint"] for one in history][-1] is None
    older = await sdk.threads.get_history(thread_id, limit=1, before=history[0]["checkpoint"])
    assert older[0]["checkpoint"] == history[1]["checkpoint"]
    inputs = await sdk.threads.get_history(thread_id, metadata={"source": "input"})
    assert {one["metadata"]["source"] for one in inputs} == {"input"} and len(inputs) == 2
    after_one = next(one for one in history if one["next"] == [] and len(one["values"]["messages"]) == 2)
    where = after_one["checkpoint"]
    assert said(await sdk.threads.get_state(thread_id, checkpoint_id=where["checkpoint_id"]))[1] == "One."
    assert said(await sdk.threads.get_state(thread_id, checkpoint=where)) == said(after_one)
    only = await sdk.threads.get_state(thread_id, checkpoint=where, select=["next"])
    assert only == {"next": []}
    assert await sdk.threads.get_history(thread_id, limit=1, checkpoint=where, select=["next"]) == [{"next": []}]

    edit = {"messages": [{"role": "user", "content": "By hand"}]}
    forked = await sdk.threads.update_state(thread_id, edit, checkpoint=where, as_node="model")
    assert forked["checkpoint"]["checkpoint_id"] > now["checkpoint"]["checkpoint_id"]
    assert said(await sdk.threads.get_state(thread_id, subgraphs=True))[1:] == ["One.", "By hand"]
    with pytest.raises(NotFoundError):
        await sdk.threads.get_state(thread_id, checkpoint_id=str(uuid4()))


@covers("threads.get_state", "threads.get")
async def test_a_thread_that_was_stopped_before_a_node_says_so_and_goes_on_from_there(sdk: Sdk):
    thread_id = await sdk.thread()
    look = ToolCalls(("ls", {"description": "look", "path": "/mnt/user-data"}))
    values = await sdk.runs.wait(
        thread_id, ASSISTANT, input=sdk.script(look, Text("Seen.")), interrupt_before=["tools"]
    )
    assert values["messages"][-1]["tool_calls"]
    assert (await sdk.threads.get_state(thread_id))["next"] == ["tools"]
    assert (await sdk.threads.get(thread_id))["status"] == "interrupted"
    values = await sdk.runs.wait(thread_id, ASSISTANT)
    assert values["messages"][-1]["content"] == "Seen."
    assert (await sdk.threads.get(thread_id))["status"] == "idle"


@covers("threads.copy")
async def test_a_copy_lives_on_without_its_original(sdk: Sdk):
    thread_id = await sdk.thread("One.", "Two.")
    copied = await sdk.threads.copy(thread_id)
    before = await sdk.threads.get_history(thread_id, limit=50)
    await sdk.threads.delete(thread_id)
    assert copied["thread_id"] != thread_id
    history = await sdk.threads.get_history(copied["thread_id"], limit=50)
    for one, other in zip(history, before, strict=True):  # each thread has a sandbox of its own
        assert {**one["values"], "sandbox": None} == {**other["values"], "sandbox": None}
    values = await sdk.runs.wait(copied["thread_id"], ASSISTANT, input=sdk.script(Text("Three.")))
    assert [message["content"] for message in values["messages"][1::2]] == ["One.", "Two.", "Three."]
    with pytest.raises(NotFoundError):
        await sdk.threads.copy(thread_id)


@covers("threads.prune")
async def test_pruning_keeps_the_newest_state_or_nothing(sdk: Sdk):
    kept, gone = await sdk.thread("One."), await sdk.thread()
    assert await sdk.threads.prune([kept], strategy="keep_latest") == {"pruned_count": 1}
    history = await sdk.threads.get_history(kept)
    assert len(history) == 1 and said(history[0])[1] == "One."
    assert await sdk.threads.prune([gone, str(uuid4())]) == {"pruned_count": 1}
    with pytest.raises(NotFoundError):
        await sdk.threads.get(gone)
