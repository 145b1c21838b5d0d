"""The checkpointer against LangGraph itself: real graphs, real files."""

from __future__ import annotations

import asyncio
import operator
import secrets
import sqlite3
import threading
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, Overwrite, interrupt

from deerflow.agents.thread_state import merge_messages
from deerflow.storage.checkpoints.sqlite import SqliteCheckpointer
from deerflow.storage.sqlite_thread import SqliteThread
from deerflow.storage.tables import CHECKPOINTS


class State(TypedDict):
    messages: Annotated[list[AnyMessage], DeltaChannel(merge_messages, snapshot_frequency=5)]
    total: Annotated[int, operator.add]


def _graph(saver: BaseCheckpointSaver[Any], *, ask: bool = False):
    def answer(state: State) -> dict[str, Any]:
        if ask:
            interrupt("sure?")
        return {
            "messages": [AIMessage(f"answer {len(state['messages'])}", id=f"a{len(state['messages'])}")],
            "total": 1,
        }

    graph = StateGraph(State)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    return graph.compile(checkpointer=saver)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "threads.db"


@pytest.fixture
async def saver(path: Path):
    made = SqliteCheckpointer(SqliteThread(path, CHECKPOINTS))
    yield made
    await made.aclose()


CONFIG: Any = {"configurable": {"thread_id": "t"}}


def _stored(path: Path) -> int:
    """Bytes of the database and its log."""
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))


def _say(n: int) -> dict[str, Any]:
    return {"messages": [HumanMessage(f"question {n}", id=f"h{n}")]}


async def test_a_thread_survives_reopening_with_every_message_in_order(path: Path):
    for turn in range(13):
        saver = SqliteCheckpointer(SqliteThread(path, CHECKPOINTS))
        await _graph(saver).ainvoke(_say(turn), CONFIG)
        await saver.aclose()
    saver = SqliteCheckpointer(SqliteThread(path, CHECKPOINTS))
    state = await _graph(saver).aget_state(CONFIG)
    await saver.aclose()
    assert [m.text for m in state.values["messages"] if m.type == "human"] == [f"question {n}" for n in range(13)]
    assert len(state.values["messages"]) == 26
    assert state.values["total"] == 13


async def test_history_and_state_equal_those_of_the_memory_saver(saver: SqliteCheckpointer):
    memory = InMemorySaver()
    for turn in range(8):
        for each in (saver, memory):
            await _graph(each).ainvoke(_say(turn), CONFIG)
    ours = [(s.values, s.next) async for s in _graph(saver).aget_state_history(CONFIG)]
    theirs = [(s.values, s.next) async for s in _graph(memory).aget_state_history(CONFIG)]
    assert ours == theirs


async def test_a_thread_can_be_forked_from_an_earlier_checkpoint(saver: SqliteCheckpointer):
    graph = _graph(saver)
    for turn in range(7):
        await graph.ainvoke(_say(turn), CONFIG)
    early = [s async for s in graph.aget_state_history(CONFIG) if len(s.values["messages"]) == 4 and not s.next].pop()
    result = await graph.ainvoke(_say(99), early.config)
    assert [m.id for m in result["messages"]] == ["h0", "a1", "h1", "a3", "h99", "a5"]


async def test_an_interrupt_is_resumed_in_another_process(path: Path):
    first = SqliteCheckpointer(SqliteThread(path, CHECKPOINTS))
    await _graph(first, ask=True).ainvoke(_say(0), CONFIG)
    await first.aclose()
    second = SqliteCheckpointer(SqliteThread(path, CHECKPOINTS))
    result = await _graph(second, ask=True).ainvoke(Command(resume="yes"), CONFIG)
    await second.aclose()
    assert result["messages"][-1].text == "answer 1"


async def test_removals_and_replacements_hold_after_replay(saver: SqliteCheckpointer):
    graph = _graph(saver)
    for turn in range(3):
        await graph.ainvoke(_say(turn), CONFIG)
    await graph.aupdate_state(CONFIG, {"messages": [RemoveMessage("h0"), AIMessage("better", id="a1")]})
    state = await graph.aget_state(CONFIG)
    assert [m.id for m in state.values["messages"]] == ["a1", "h1", "a3", "h2", "a5"]
    assert state.values["messages"][0].text == "better"
    await graph.aupdate_state(CONFIG, {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), HumanMessage("new", id="n")]})
    assert [m.id for m in (await graph.aget_state(CONFIG)).values["messages"]] == ["n"]


async def test_after_forgetting_older_checkpoints_the_state_is_the_same_and_the_file_is_smaller(
    path: Path, saver: SqliteCheckpointer
):
    graph = _graph(saver)
    for turn in range(60):
        await graph.ainvoke({"messages": [HumanMessage(secrets.token_hex(2000), id=f"h{turn}")]}, CONFIG)
    before = (await graph.aget_state(CONFIG)).values
    size = _stored(path)
    newest = await graph.aupdate_state(CONFIG, {"messages": Overwrite(before["messages"])})
    await saver.adelete_before(newest)
    assert (await graph.aget_state(CONFIG)).values == before
    assert _stored(path) < size / 3
    assert len([c async for c in saver.alist(CONFIG)]) == 1
    result = await graph.ainvoke(_say(100), CONFIG)
    assert len(result["messages"]) == 122


async def test_a_superstep_is_one_commit_and_shares_the_first_with_the_input(path: Path):
    database = SqliteThread(path, CHECKPOINTS)
    saver = SqliteCheckpointer(database)
    await _graph(saver).ainvoke(_say(0), CONFIG)
    statements: list[str] = []
    await asyncio.wrap_future(database.submit(lambda db: db.set_trace_callback(statements.append), alone=True))
    await _graph(saver).ainvoke(_say(1), CONFIG, durability="sync")
    assert statements.count("BEGIN IMMEDIATE") == statements.count("COMMIT") - statements.count("BEGIN") == 2
    await saver.aclose()


@pytest.mark.parametrize("durability", ["sync", "async"])
async def test_what_one_task_wrote_is_stored_while_another_still_runs(path: Path, durability: Any):
    began = asyncio.Event()
    calls: list[str] = []

    async def quick(state: State) -> dict[str, Any]:
        calls.append("quick")
        return {"messages": [AIMessage("quick", id="q")], "total": 1}

    async def slow(state: State) -> dict[str, Any]:
        if not began.is_set():
            began.set()
            await asyncio.Event().wait()
        return {"messages": [AIMessage("slow", id="s")], "total": 10}

    def graph(saver: BaseCheckpointSaver[Any]):
        made = StateGraph(State)
        for name, node in (("quick", quick), ("slow", slow)):
            made.add_node(name, node)
            made.add_edge(START, name)
        return made.compile(checkpointer=saver)

    saver, other = (
        SqliteCheckpointer(SqliteThread(path, CHECKPOINTS)),
        SqliteCheckpointer(SqliteThread(path, CHECKPOINTS)),
    )
    run = asyncio.create_task(graph(saver).ainvoke(_say(0), CONFIG, durability=durability))
    await began.wait()
    async with asyncio.timeout(60):  # `other` stands for the process that goes on after a crash
        while not (found := await other.aget_tuple(CONFIG)) or len(found.pending_writes or ()) < 2:
            await asyncio.sleep(0.005)
    resumed = await graph(other).ainvoke(None, CONFIG)
    assert calls == ["quick"]
    assert ([m.id for m in resumed["messages"]], resumed["total"]) == (["h0", "q", "s"], 11)
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)
    await saver.aclose()
    await other.aclose()


async def test_who_reads_at_once_finds_what_a_task_just_wrote(saver: SqliteCheckpointer):
    await _graph(saver).ainvoke(_say(0), CONFIG)
    head = await saver.aget_tuple(CONFIG)
    assert head is not None
    await saver.aput_writes(head.config, [("total", 5)], "task")
    found = await saver.aget_tuple(CONFIG)
    assert found is not None and found.pending_writes == [("task", "total", 5)]


@pytest.mark.parametrize("wait", ["for the checkpoint", "for the write alone"])
async def test_what_a_task_wrote_is_kept_when_its_run_is_stopped_while_it_is_stored(path: Path, wait: str):
    database = SqliteThread(path, CHECKPOINTS)
    saver = SqliteCheckpointer(database)
    await _graph(saver).ainvoke(_say(0), CONFIG)
    head = await saver.aget_tuple(CONFIG)
    assert head is not None
    free = threading.Event()
    database.submit(lambda db: free.wait(60), alone=True)
    await saver.aput_writes(head.config, [("total", 5)], "task")
    if wait == "for the checkpoint":
        after: Any = {**head.checkpoint, "id": "ffffffff-7fb6-6cf5-bfff-0495eb0d6a2d"}
        storing: Any = saver.aput(head.config, after, {}, {})
    else:
        storing = saver.aget_tuple(CONFIG)
    stopped = asyncio.ensure_future(storing)
    await asyncio.sleep(0)
    stopped.cancel()
    await asyncio.gather(stopped, return_exceptions=True)
    free.set()
    found = await saver.aget_tuple(head.config)
    assert found is not None and found.pending_writes == [("task", "total", 5)]
    await saver.aclose()


async def test_no_checkpoint_is_stored_without_the_writes_that_led_to_it(path: Path):
    database = SqliteThread(path, CHECKPOINTS)
    saver = SqliteCheckpointer(database)
    await _graph(saver).ainvoke(_say(0), CONFIG)
    head = await saver.aget_tuple(CONFIG)
    assert head is not None
    refuse = "CREATE TEMP TRIGGER refuse BEFORE INSERT ON main.checkpoint_writes BEGIN SELECT RAISE(ABORT, 'full'); END"
    await asyncio.wrap_future(database.submit(lambda db: db.execute(refuse) and None, alone=True))
    await saver.aput_writes(head.config, [("total", 5)], "task")
    assert (await saver.aget_tuple(CONFIG)) == head  # reading had them stored, which failed
    after = {**head.checkpoint, "id": "ffffffff-7fb6-6cf5-bfff-0495eb0d6a2d"}
    with pytest.raises(sqlite3.IntegrityError, match="full"):
        await saver.aput(head.config, after, {}, {})
    assert (await saver.aget_tuple(CONFIG)) == head
    await saver.aclose()


@pytest.mark.parametrize("then", ["read", "wait", "close", "go on"])
async def test_what_a_run_begins_with_is_kept_whatever_comes_next(path: Path, then: str):
    saver = SqliteCheckpointer(SqliteThread(path, CHECKPOINTS))
    await _graph(saver).ainvoke(_say(0), CONFIG)
    head = await saver.aget_tuple(CONFIG)
    assert head is not None
    begun = {**head.checkpoint, "id": "ffffffff-7fb6-6cf5-bfff-0495eb0d6a2d"}
    where = await saver.aput(head.config, begun, {"source": "input"}, {})
    await saver.aput_writes(where, [("total", 5)], "task")
    if then == "read":
        found = await saver.aget_tuple(CONFIG)
        assert found is not None and (found.config, found.parent_config) == (where, head.config)
    if then == "wait":
        while saver._begun:
            await asyncio.sleep(0.01)
    if then == "go on":
        await saver.aput(where, {**begun, "id": "ffffffff-7fb6-6cf5-bfff-0495eb0d6a2e"}, {"source": "loop"}, {})
    await saver.aclose()
    again = SqliteCheckpointer(SqliteThread(path, CHECKPOINTS))
    kept = await again.aget_tuple(where)
    assert kept is not None and kept.parent_config == head.config and kept.pending_writes == [("task", "total", 5)]
    await again.aclose()


async def test_a_step_put_again_keeps_what_led_to_it(saver: SqliteCheckpointer):
    graph = _graph(saver)
    for turn in range(2):
        await graph.ainvoke(_say(turn), CONFIG)
    head = await saver.aget_tuple(CONFIG)
    assert head is not None and head.parent_config is not None
    before = await saver.aget_tuple(head.parent_config)
    await saver.aput(head.parent_config, head.checkpoint, head.metadata, {})
    assert await saver.aget_tuple(head.parent_config) == before and before is not None and before.pending_writes
    assert len((await graph.aget_state(CONFIG)).values["messages"]) == 4


async def test_deleting_a_thread_leaves_the_others(saver: SqliteCheckpointer):
    other: Any = {"configurable": {"thread_id": "other"}}
    for config in (CONFIG, other):
        await _graph(saver).ainvoke(_say(0), config)
    await saver.adelete_thread("t")
    assert await saver.aget_tuple(CONFIG) is None
    assert await saver.aget_tuple(other) is not None


async def test_listing_filters_by_metadata_and_position(saver: SqliteCheckpointer):
    for turn in range(3):
        await _graph(saver).ainvoke(_say(turn), {**CONFIG, "metadata": {"run": turn}})
    assert {c.metadata["run"] async for c in saver.alist(CONFIG, filter={"run": 1})} == {1}
    newest = await saver.aget_tuple(CONFIG)
    assert newest is not None
    before = [c async for c in saver.alist(CONFIG, before=newest.config, limit=2)]
    assert len(before) == 2 and newest.config not in [c.config for c in before]


async def test_changing_a_returned_list_does_not_change_what_is_remembered(saver: SqliteCheckpointer):
    graph = _graph(saver)
    for turn in range(12):
        await graph.ainvoke(_say(turn), CONFIG)
    (await graph.aget_state(CONFIG)).values["messages"].clear()
    assert len((await graph.aget_state(CONFIG)).values["messages"]) == 24
