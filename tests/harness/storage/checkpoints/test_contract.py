"""Every checkpointer keeps the same promises on whole threads, whatever LangGraph stores where."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Overwrite, interrupt
from sqlalchemy import text

from deerflow.agents.thread_state import SNAPSHOT_FREQUENCY, ThreadState
from deerflow.storage.checkpoints import Checkpointer, checkpointer_for
from deerflow.storage.database import Database


@pytest.fixture
async def checkpointer(database: Database) -> AsyncIterator[Checkpointer]:
    made = await asyncio.to_thread(checkpointer_for, database)
    yield made
    await made.aclose()


def _graph(checkpointer: Checkpointer) -> Any:
    """Says what it was asked; asks back before that if told to, also twice."""

    def think(state: ThreadState) -> dict[str, Any]:
        asked = str(state["messages"][-1].text)
        return {"artifacts": [f"/{asked}"]}

    def answer(state: ThreadState) -> dict[str, Any]:
        messages: list[AnyMessage] = state["messages"]
        said = messages[-1].text
        if said.startswith("ask"):
            said += " " + str(interrupt("sure?"))
        return {"messages": [AIMessage(f"{said}!", id=f"a-{messages[-1].id}")], "title": said}

    graph = StateGraph(ThreadState)
    graph.add_sequence([("think", think), ("answer", answer)])
    graph.add_edge(START, "think")
    return graph.compile(checkpointer=checkpointer)


def _at(thread_id: str, checkpoint_id: str | None = None) -> Any:
    return {"configurable": {"thread_id": thread_id} | ({"checkpoint_id": checkpoint_id} if checkpoint_id else {})}


def _say(said: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(said, id=said)]}


async def _head(graph: Any, thread_id: str) -> str:
    return (await graph.aget_state(_at(thread_id))).config["configurable"]["checkpoint_id"]


async def _texts(graph: Any, thread_id: str, checkpoint_id: str | None = None) -> list[str]:
    state = await graph.aget_state(_at(thread_id, checkpoint_id))
    return [message.text for message in state.values.get("messages", [])]


async def _everything(graph: Any, thread_id: str) -> list[Any]:
    history = [state async for state in graph.aget_state_history(_at(thread_id))]
    return [(s.config["configurable"]["checkpoint_id"], s.values, s.next, s.metadata) for s in history]


async def _rows(database: Database, thread_id: str) -> dict[str, int]:
    tables = (
        ("checkpoints", "checkpoint_blobs", "checkpoint_writes") if database.is_postgres else ("checkpoints", "writes")
    )
    count = "SELECT count(*) FROM {} WHERE thread_id = :thread"
    return await database.read(
        lambda connection: {
            table: connection.execute(text(count.format(table)), {"thread": thread_id}).scalar_one() for table in tables
        }
    )


async def test_a_thread_longer_than_the_interval_of_snapshots_is_read_back_whole(checkpointer: Checkpointer):
    graph = _graph(checkpointer)
    for turn in range(SNAPSHOT_FREQUENCY // 2 + 5):
        await graph.ainvoke(_say(f"q{turn}"), _at("t"))
    expected = [said for turn in range(SNAPSHOT_FREQUENCY // 2 + 5) for said in (f"q{turn}", f"q{turn}!")]
    assert await _texts(graph, "t") == expected
    assert await _texts(_graph(checkpointer.per_run()), "t") == expected


async def test_a_copy_has_the_whole_history_and_goes_its_own_way(checkpointer: Checkpointer):
    graph = _graph(checkpointer)
    for said in ("one", "two", "three"):
        await graph.ainvoke(_say(said), _at("source"))
    before = await _everything(graph, "source")
    await checkpointer.acopy_thread("source", "target")
    assert await _everything(graph, "target") == before

    await graph.ainvoke(_say("four"), _at("target"))
    assert await _texts(graph, "target") == ["one", "one!", "two", "two!", "three", "three!", "four", "four!"]
    assert await _everything(graph, "source") == before
    await checkpointer.adelete_thread("source")
    assert await _texts(graph, "source") == []
    assert len(await _texts(graph, "target")) == 8


async def test_a_copy_of_a_thread_that_waits_for_an_answer_waits_as_well(checkpointer: Checkpointer):
    graph = _graph(checkpointer)
    await graph.ainvoke(_say("ask"), _at("source"))
    await checkpointer.acopy_thread("source", "target")
    result = await graph.ainvoke(Command(resume="yes"), _at("target"))
    assert result["title"] == "ask yes"
    assert (await graph.aget_state(_at("source"))).interrupts


async def test_nothing_is_copied_over_a_thread_that_has_checkpoints(checkpointer: Checkpointer):
    graph = _graph(checkpointer)
    for thread in ("source", "target"):
        await graph.ainvoke(_say(thread), _at(thread))
    with pytest.raises(ValueError, match="target has checkpoints already"):
        await checkpointer.acopy_thread("source", "target")
    assert await _texts(graph, "target") == ["target", "target!"]


@pytest.mark.parametrize("durability", ["async", "exit"])
async def test_after_a_rollback_nothing_is_left_of_the_turn(
    checkpointer: Checkpointer, database: Database, durability: str
):
    graph = _graph(checkpointer)
    for said in ("one", "two"):
        await graph.ainvoke(_say(said), _at("t"), durability=durability)
    head, before, rows = await _head(graph, "t"), await _everything(graph, "t"), await _rows(database, "t")
    await graph.ainvoke(_say("oops"), _at("t"), durability=durability)
    await checkpointer.adelete_after("t", head)
    assert await _everything(graph, "t") == before
    assert await _rows(database, "t") == rows

    await graph.ainvoke(_say("three"), _at("t"), durability=durability)
    assert await _texts(graph, "t") == ["one", "one!", "two", "two!", "three", "three!"]
    assert (await graph.aget_state(_at("t"))).values["artifacts"] == ["/one", "/two", "/three"]
    assert await _texts(graph, "t", head) == ["one", "one!", "two", "two!"]


async def test_turns_can_be_taken_back_again_and_again(checkpointer: Checkpointer):
    graph = _graph(checkpointer)
    await graph.ainvoke(_say("one"), _at("t"))
    for attempt in range(3):
        head = await _head(graph, "t")
        await graph.ainvoke(_say(f"oops{attempt}"), _at("t"))
        await checkpointer.adelete_after("t", head)
    await graph.ainvoke(_say("two"), _at("t"))
    assert await _texts(graph, "t") == ["one", "one!", "two", "two!"]


async def test_a_rollback_of_the_first_turn_leaves_an_empty_thread(checkpointer: Checkpointer, database: Database):
    graph = _graph(checkpointer)
    await graph.ainvoke(_say("other"), _at("other"))
    await graph.ainvoke(_say("oops"), _at("t"))
    await checkpointer.adelete_after("t", None)
    assert set((await _rows(database, "t")).values()) == {0}
    await graph.ainvoke(_say("one"), _at("t"))
    assert await _texts(graph, "t") == ["one", "one!"]
    assert await _texts(graph, "other") == ["other", "other!"]


async def test_a_rollback_of_an_answer_makes_the_thread_ask_again(checkpointer: Checkpointer, database: Database):
    graph = _graph(checkpointer)
    await graph.ainvoke(_say("one"), _at("t"))
    await graph.ainvoke(_say("ask"), _at("t"))
    head, before, rows = await _head(graph, "t"), await _everything(graph, "t"), await _rows(database, "t")
    await graph.ainvoke(Command(resume="no"), _at("t"))
    await checkpointer.adelete_after("t", head)
    assert (await _everything(graph, "t"), await _rows(database, "t")) == (before, rows)
    assert len((await graph.aget_state(_at("t"))).interrupts) == 1
    await graph.ainvoke(Command(resume="yes"), _at("t"))
    assert await _texts(graph, "t") == ["one", "one!", "ask", "ask yes!"]


async def test_a_rollback_of_an_edited_state_keeps_the_state_before(checkpointer: Checkpointer):
    graph = _graph(checkpointer)
    await graph.ainvoke(_say("one"), _at("t"))
    head, before = await _head(graph, "t"), await _everything(graph, "t")
    await graph.aupdate_state(_at("t"), {"messages": [HumanMessage("edited", id="one")]})
    assert (await _texts(graph, "t"))[0] == "edited"
    await checkpointer.adelete_after("t", head)
    assert await _everything(graph, "t") == before
    await graph.ainvoke(_say("two"), _at("t"))
    assert await _texts(graph, "t") == ["one", "one!", "two", "two!"]


async def test_a_rollback_of_a_fork_returns_to_the_branch_it_left(checkpointer: Checkpointer):
    graph = _graph(checkpointer)
    await graph.ainvoke(_say("one"), _at("t"))
    early = await _head(graph, "t")
    await graph.ainvoke(_say("two"), _at("t"))
    head, before = await _head(graph, "t"), await _everything(graph, "t")
    await graph.ainvoke(_say("instead"), _at("t", early))
    assert await _texts(graph, "t") == ["one", "one!", "instead", "instead!"]
    await checkpointer.adelete_after("t", head)
    assert await _everything(graph, "t") == before
    await graph.ainvoke(_say("three"), _at("t"))
    assert await _texts(graph, "t") == ["one", "one!", "two", "two!", "three", "three!"]


async def test_a_compacted_thread_is_one_checkpoint_and_goes_on(checkpointer: Checkpointer, database: Database):
    graph = _graph(checkpointer)
    for turn in range(10):
        await graph.ainvoke(_say(f"q{turn}"), _at("t"))
    await graph.ainvoke(_say("other"), _at("other"))
    other = await _everything(graph, "other")
    before = (await graph.aget_state(_at("t"))).values
    await checkpointer.adelete_before(await graph.aupdate_state(_at("t"), {"messages": Overwrite(before["messages"])}))
    state = await graph.aget_state(_at("t"))
    assert (state.values, state.next, state.parent_config) == (before, (), None)
    rows = await _rows(database, "t")
    assert rows.pop("checkpoints") == 1
    assert all(count < 20 for count in rows.values())
    assert await _everything(graph, "other") == other

    head = await _head(graph, "t")
    await graph.ainvoke(_say("oops"), _at("t"))
    await checkpointer.adelete_after("t", head)
    await graph.ainvoke(_say("again"), _at("t"))
    assert (await _texts(graph, "t"))[-4:] == ["q9", "q9!", "again", "again!"]
    assert len(await _texts(graph, "t")) == 22


async def test_what_finished_calls_of_subgraphs_left_goes_with_a_compaction(
    checkpointer: Checkpointer, database: Database
):
    inner = StateGraph(ThreadState)
    inner.add_node("say", lambda state: {"messages": [AIMessage("from inside", id="inside")]})
    inner.add_edge(START, "say")
    outer = StateGraph(ThreadState)
    outer.add_node("inner", inner.compile())
    outer.add_edge(START, "inner")
    graph: Any = outer.compile(checkpointer=checkpointer)
    await graph.ainvoke(_say("one"), _at("t"))
    namespaces = "SELECT count(DISTINCT checkpoint_ns) FROM checkpoints"
    assert await database.read(lambda connection: connection.execute(text(namespaces)).scalar()) == 2
    state = await graph.aget_state(_at("t"))
    newest = await graph.aupdate_state(_at("t"), {"messages": Overwrite(state.values["messages"])}, as_node="inner")
    await checkpointer.adelete_before(newest)
    assert await database.read(lambda connection: connection.execute(text(namespaces)).scalar()) == 1
    assert await _texts(graph, "t") == ["one", "from inside"]


async def test_a_thread_can_be_continued_from_any_of_its_turns(checkpointer: Checkpointer):
    graph = _graph(checkpointer)
    heads = []
    for turn in range(4):
        await graph.ainvoke(_say(f"q{turn}"), _at("t"))
        heads.append(await _head(graph, "t"))
    for turn in (2, 0):
        await graph.ainvoke(_say(f"new{turn}"), _at("t", heads[turn]))
        expected = [said for n in range(turn + 1) for said in (f"q{n}", f"q{n}!")]
        assert await _texts(graph, "t") == [*expected, f"new{turn}", f"new{turn}!"]
    assert [await _texts(graph, "t", head) for head in heads] == [
        [said for n in range(turn + 1) for said in (f"q{n}", f"q{n}!")] for turn in range(4)
    ]


async def test_many_threads_run_at_the_same_time(checkpointer: Checkpointer):
    async def converse(thread_id: str) -> list[str]:
        graph = _graph(checkpointer.per_run())
        for turn in range(3):
            await graph.ainvoke(_say(f"{thread_id}-{turn}"), _at(thread_id))
        return await _texts(graph, thread_id)

    found = await asyncio.gather(*(converse(f"t{n}") for n in range(20)))
    assert [texts[-1] for texts in found] == [f"t{n}-2!" for n in range(20)]
    assert {len(texts) for texts in found} == {6}


async def test_closing_is_idempotent(database: Database):
    made = await asyncio.to_thread(checkpointer_for, database)
    assert await made.aget_tuple(_at("t")) is None
    for _ in range(2):
        await made.aclose()


async def test_a_restarted_server_is_found_again(postgres_url: str):
    database = Database(postgres_url)
    checkpointer = await asyncio.to_thread(checkpointer_for, database)
    graph = _graph(checkpointer)
    await graph.ainvoke(_say("one"), _at("t"))
    others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> {}"
    await database.read(lambda connection: connection.execute(text(others.format("pg_backend_pid()"))) and None)
    await graph.ainvoke(_say("two"), _at("t"))
    with psycopg.connect(postgres_url) as connection:
        connection.execute(others.format("pg_backend_pid()"))
    assert await database.read(lambda connection: connection.execute(text("SELECT 1")).scalar()) == 1
    assert await _texts(graph, "t") == ["one", "one!", "two", "two!"]
    await checkpointer.aclose()
    await database.aclose()


_FIRST_USE = """
import asyncio, sys
from deerflow.storage.checkpoints.postgres import PostgresCheckpointer
from deerflow.storage.database import Database

async def main():
    database = Database(sys.argv[1])
    checkpointer = PostgresCheckpointer(database)
    sys.stdin.readline()
    await checkpointer.aget_tuple({"configurable": {"thread_id": "t"}})
    await checkpointer.aclose()
    await database.aclose()

print("ready", flush=True)
asyncio.run(main())
"""


def test_processes_that_use_postgres_first_at_the_same_time_all_succeed(postgres_url: str):
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    processes = [
        subprocess.Popen([sys.executable, "-c", _FIRST_USE, postgres_url], text=True, **pipes) for _ in range(2)
    ]
    for process in processes:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    errors = [process.communicate(timeout=120)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], errors
