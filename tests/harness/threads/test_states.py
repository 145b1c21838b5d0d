from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command, Overwrite
from tests.support.thread_world import ALICE, ThreadWorld, texts

from deerflow.errors import ConflictError, InvalidRequestError, NotFoundError
from deerflow.storage.database import Database
from deerflow.threads.checkpoint import read_history


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[ThreadWorld]:
    made = await asyncio.to_thread(ThreadWorld, database, tmp_path / "home")  # imports the driver
    yield made
    await made.aclose()


async def _messages(world: ThreadWorld, thread_id: str = "t1", **options: Any) -> list[str]:
    return texts((await world.threads.states.get(ALICE, thread_id, **options))["values"]["messages"])


async def test_a_state_has_the_shape_that_sdks_read(world: ThreadWorld) -> None:
    await world.thread("t1", "please ask")

    state = await world.threads.states.get(ALICE, "t1")

    [task] = state["tasks"]
    assert state["next"] == ["tools"] and task["name"] == "tools"
    assert task["interrupts"] == state["interrupts"]
    assert state["interrupts"][0]["value"] == {"question": "sure?"}
    assert state["checkpoint"] == {"thread_id": "t1", "checkpoint_ns": "", "checkpoint_id": state["checkpoint_id"]}
    assert state["parent_checkpoint"]["checkpoint_id"] == state["parent_checkpoint_id"]
    assert state["metadata"]["source"] == "loop" and state["created_at"]
    json.dumps(state)


async def test_an_empty_thread_has_an_empty_state(world: ThreadWorld) -> None:
    await world.thread("t1")

    state = await world.threads.states.get(ALICE, "t1")

    assert (state["values"], state["next"], state["tasks"], state["checkpoint_id"]) == ({}, [], [], None)
    assert await world.threads.states.history(ALICE, "t1") == []


async def test_a_checkpoint_that_is_not_there_is_not_found(world: ThreadWorld) -> None:
    await world.thread("t1", "hello")

    for where in ({"checkpoint_id": "1ef"}, {"checkpoint_id": "'; DROP"}, {"checkpoint_ns": "sub:graph"}):
        with pytest.raises(NotFoundError):
            await world.threads.states.get(ALICE, "t1", checkpoint=where)


async def _expected(world: ThreadWorld, **options: Any) -> list[Any]:
    config: Any = {"configurable": {"thread_id": "t1"}}
    return [snapshot async for snapshot in world.graph.aget_state_history(config, **options)]


def _comparable(snapshots: list[Any]) -> list[Any]:
    return [snapshot._replace(config=snapshot.config["configurable"]) for snapshot in snapshots]


async def test_history_is_what_langgraph_says_it_is(world: ThreadWorld) -> None:
    """Over snapshots, forks, replaced and removed messages, a question and its answer."""
    await world.thread("t1", *(f"turn {number}" for number in range(14)))
    config: Any = {"configurable": {"thread_id": "t1"}}
    middle = (await _expected(world))[20].config
    await world.graph.aupdate_state(middle, {"messages": [{"role": "user", "content": "fork"}]}, as_node="__start__")
    await world.graph.ainvoke(None, config)
    head = await world.graph.aget_state(config)
    removed = [{"type": "remove", "id": head.values["messages"][0].id, "content": ""}]
    await world.graph.aupdate_state(config, {"messages": removed}, as_node="model")
    await world.turn("t1", "please ask")
    await world.graph.ainvoke(Command(resume="yes"), config)
    await world.graph.aupdate_state(config, {"messages": Overwrite(head.values["messages"][:6])}, as_node="model")
    await world.turn("t1", "last")

    whole = _comparable(await _expected(world))
    assert len(whole) > 60
    for limit in (1, 2, 7, 50, 500):
        assert _comparable(await read_history(world.graph, config, limit=limit)) == whole[:limit]
    for start in (3, 30, 55):
        before = {"configurable": whole[start].config}
        page = await read_history(world.graph, config, limit=10, before=before)
        assert _comparable(page) == whole[start + 1 : start + 11]


async def test_pages_of_history_follow_each_other(world: ThreadWorld) -> None:
    await world.thread("t1", "one", "two", "three")
    whole = await world.threads.states.history(ALICE, "t1", limit=100)

    seen: list[Any] = []
    while page := await world.threads.states.history(
        ALICE, "t1", limit=4, before=seen[-1]["checkpoint_id"] if seen else None
    ):
        seen += page

    assert seen == whole and len(whole) == 15
    assert all(newer["parent_checkpoint"] == older["checkpoint"] for newer, older in itertools.pairwise(whole))


async def test_history_can_begin_at_a_checkpoint(world: ThreadWorld) -> None:
    await world.thread("t1", "one", "two")
    whole = await world.threads.states.history(ALICE, "t1", limit=100)

    page = await world.threads.states.history(
        ALICE, "t1", limit=3, checkpoint={"checkpoint_id": whole[4]["checkpoint_id"], "checkpoint_ns": ""}
    )

    assert page == whole[4:7]


async def test_history_can_be_searched_by_metadata(world: ThreadWorld) -> None:
    await world.thread("t1", "one")
    run_id = await world.turn("t1", "two")

    page = await world.threads.states.history(ALICE, "t1", limit=100, metadata={"run_id": run_id, "source": "input"})

    assert len(page) == 1 and page[0]["metadata"]["run_id"] == run_id


async def test_messages_are_shared_between_the_states_of_a_page(world: ThreadWorld) -> None:
    await world.thread("t1", *(f"turn {number}" for number in range(20)))

    page = await world.threads.states.history(ALICE, "t1", limit=100)

    firsts = [state["values"]["messages"][0] for state in page if state["values"].get("messages")]
    assert len(firsts) > 90 and all(first is firsts[0] for first in firsts)


async def test_an_update_follows_the_newest_state(world: ThreadWorld) -> None:
    await world.thread("t1", "hello")
    before = await world.threads.states.get(ALICE, "t1")

    made = await world.threads.states.update(
        ALICE, "t1", {"messages": [{"role": "assistant", "content": "by hand"}]}, as_node="model"
    )

    after = await world.threads.states.get(ALICE, "t1")
    assert after["checkpoint"] == made and after["parent_checkpoint"] == before["checkpoint"]
    assert texts(after["values"]["messages"])[-1] == "by hand"
    assert after["metadata"]["source"] == "update"
    assert await _messages(world, checkpoint=before["checkpoint"]) == texts(before["values"]["messages"])


async def test_an_update_of_a_former_state_is_a_fork(world: ThreadWorld) -> None:
    await world.thread("t1", "one", "two")
    turns = await world.threads.transcript.turns(ALICE, "t1")
    where = {"checkpoint_id": turns[1]["checkpoint_id"]}

    made = await world.threads.states.update(
        ALICE, "t1", {"messages": [{"role": "user", "content": "two, edited"}]}, as_node="__start__", checkpoint=where
    )

    state = await world.threads.states.get(ALICE, "t1")
    assert state["checkpoint"] == made and state["parent_checkpoint_id"] == where["checkpoint_id"]
    assert texts(state["values"]["messages"]) == ["one", "", "one", "answer to one", "two, edited"]
    assert state["next"] == ["model"]
    assert (await world.threads.get(ALICE, "t1"))["status"] == "interrupted"


async def test_a_message_that_comes_back_keeps_what_we_noted_with_it(world: ThreadWorld) -> None:
    await world.thread("t1", "hello")
    config: Any = {"configurable": {"thread_id": "t1"}}
    noted = (await world.graph.aget_state(config)).values["messages"][0]
    noted = noted.model_copy(update={"additional_kwargs": {"facts": {"date": "2026-01-01"}, "run_id": "r"}})
    await world.graph.aupdate_state(config, {"messages": [noted]}, as_node="model")

    forged = {
        "id": noted.id,
        "type": "human",
        "content": "hello!",
        "additional_kwargs": {"facts": {"date": "x"}, "a": 1},
    }
    await world.threads.states.update(ALICE, "t1", {"messages": [forged]}, as_node="model")

    [first, *others] = (await world.threads.states.get(ALICE, "t1"))["values"]["messages"]
    assert first["content"] == "hello!" and len(others) == 3
    assert first["additional_kwargs"] == {"facts": {"date": "2026-01-01"}, "run_id": "r", "a": 1}


async def test_a_title_is_written_through(world: ThreadWorld) -> None:
    await world.thread("t1", "hello")

    await world.threads.states.update(ALICE, "t1", {"title": " My\ntitle "})

    assert (await world.threads.search(ALICE))[0][0]["values"] == {"title": "My title"}
    state = await world.threads.states.get(ALICE, "t1")
    assert state["values"]["title"] == "My title" and state["next"] == []
    assert (await world.graph.aget_state({"configurable": {"thread_id": "t1"}})).values["title"] == "My title"


async def test_a_rename_is_no_news_of_the_conversation(world: ThreadWorld) -> None:
    await world.thread("t1", "hello")
    before = await world.threads.get(ALICE, "t1")

    await world.threads.states.update(ALICE, "t1", {"title": "Renamed"})

    after = await world.threads.get(ALICE, "t1")
    assert (after["updated_at"], after["status"]) == (before["updated_at"], before["status"])


async def test_a_thread_without_messages_can_be_renamed(world: ThreadWorld) -> None:
    await world.thread("t1")

    await world.threads.states.update(ALICE, "t1", {"title": "Empty"})

    assert (await world.threads.states.get(ALICE, "t1"))["values"] == {"title": "Empty"}


async def test_a_rename_during_a_run_disturbs_nothing(world: ThreadWorld) -> None:
    await world.thread("t1", "hello")
    await world.add_run("t1", "active", status="running")
    before = await world.threads.states.get(ALICE, "t1")

    await world.threads.states.update(ALICE, "t1", {"title": "Renamed"})

    after = await world.threads.states.get(ALICE, "t1")
    assert after["checkpoint"] == before["checkpoint"]
    assert after["values"] == before["values"] | {"title": "Renamed"}


async def test_a_rename_leaves_a_question_that_waits(world: ThreadWorld) -> None:
    await world.thread("t1", "please ask")

    await world.threads.states.update(ALICE, "t1", {"title": "Question"})
    await world.graph.ainvoke(Command(resume="yes"), {"configurable": {"thread_id": "t1"}})

    assert (await _messages(world))[-1] == "answer to yes"


async def test_the_state_cannot_be_changed_during_a_run(world: ThreadWorld) -> None:
    await world.thread("t1", "hello")
    await world.add_run("t1", "active", status="running")

    with pytest.raises(ConflictError):
        await world.threads.states.update(ALICE, "t1", {"todos": []})


async def test_nor_while_something_else_holds_the_thread(world: ThreadWorld) -> None:
    await world.thread("t1", "hello")

    async with world.lock.hold("alice", "t1"):
        with pytest.raises(ConflictError):
            async with world.threads.states.alone(await world.threads.repository.get(ALICE, "t1"), wait=0):
                pass


MISFITS: list[tuple[dict[str, Any], str | None, str]] = [
    ({"thread_data": {"workspace_path": "/etc"}}, None, "thread_data"),
    ({"sandbox": {"sandbox_id": "bob:t"}}, None, "sandbox"),
    ({"nonsense": 1}, None, "nonsense"),
    ({"__start__": {}}, None, "__start__"),
    ({"messages": 7}, "model", "messages"),
    ({"messages": [{"nonsense": 1}]}, "model", "messages"),
    ({"todos": []}, "nowhere", "nowhere"),
]


async def test_what_does_not_fit_is_refused_by_name(world: ThreadWorld) -> None:
    await world.thread("t1", "hello")
    before = await world.threads.states.get(ALICE, "t1")

    for values, as_node, named in MISFITS:
        with pytest.raises(InvalidRequestError, match=named):
            await world.threads.states.update(ALICE, "t1", values, as_node=as_node)

    assert await world.threads.states.get(ALICE, "t1") == before


async def test_notes_on_a_checkpoint_are_found_in_history(world: ThreadWorld) -> None:
    await world.thread("t1", "one", "two")
    old = (await world.threads.states.history(ALICE, "t1", limit=100))[6]

    await world.threads.states.annotate(ALICE, "t1", {"label": "good"}, checkpoint=old["checkpoint"])

    page = await world.threads.states.history(ALICE, "t1", metadata={"label": "good"})
    assert page == [old | {"metadata": old["metadata"] | {"label": "good"}}]
    assert len(await _messages(world)) == 8
    with pytest.raises(InvalidRequestError, match="source"):
        await world.threads.states.annotate(ALICE, "t1", {"source": "x"})
