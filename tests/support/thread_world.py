"""Threads with all their parts and a graph that answers by itself."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt
from sqlalchemy import insert, update

from deerflow.agents.factory import Agent
from deerflow.agents.thread_state import ThreadState
from deerflow.config import Paths
from deerflow.events.log import EventLog
from deerflow.identity import Principal
from deerflow.storage.checkpoints import checkpointer_for
from deerflow.storage.database import Database
from deerflow.storage.tables import runs, turns, utc_now
from deerflow.storage.thread_lock import FileThreadLock
from deerflow.threads.service import ThreadService

ALICE, BOB = Principal("alice"), Principal("bob")


class ThreadWorld:
    """``turn`` runs a person's message through a graph of the nodes model and tools: four messages a turn.

    Text with ``ask`` in it lets the tool wait for an answer.
    """

    def __init__(self, database: Database, directory: Path) -> None:
        self.database = database
        self.paths = Paths(directory)
        self.checkpointer = checkpointer_for(database)
        self.graph = _graph(self.checkpointer)
        self.event_log = EventLog(database)
        self.stopped: list[str] = []
        self.destroyed: list[str] = []
        self.changed: list[tuple[str, str]] = []
        lock = FileThreadLock(lambda user, thread: self.paths.ensure_thread_dirs(thread, user))
        self.lock = lock
        self.threads = ThreadService(
            database=database,
            paths=self.paths,
            checkpointer=self.checkpointer,
            event_log=self.event_log,
            lock=lock,
            graph=self._get_graph,
            stop_run=self._stop_run,
            destroy_sandbox=self._destroy,
            changed=lambda *thread: self.changed.append(thread),
        )

    async def aclose(self) -> None:
        await self.event_log.aclose()
        await self.checkpointer.aclose()

    async def thread(self, thread_id: str = "t1", *said: str, owner: Principal = ALICE) -> str:
        await self.threads.create(owner, thread_id)
        for text in said:
            await self.turn(thread_id, text, owner=owner)
        return thread_id

    async def turn(self, thread_id: str, text: str, *, owner: Principal = ALICE) -> str:
        """The id of the run, which is recorded as a run of the product is."""
        run_id, message_id = str(uuid.uuid4()), str(uuid.uuid4())
        before = (await self.threads.states.snapshot(thread_id)).config["configurable"].get("checkpoint_id")
        await self.add_run(thread_id, run_id, owner=owner)
        row = {"thread_id": thread_id, "message_id": message_id, "run_id": run_id}
        row |= {"checkpoint_before": before, "created_at": utc_now()}
        await self.database.write(lambda connection: connection.execute(insert(turns).values(row)) and None)
        config: Any = {"configurable": {"thread_id": thread_id}, "metadata": {"run_id": run_id}}
        await self.graph.ainvoke({"messages": [HumanMessage(text, id=message_id)]}, config)
        return run_id

    async def add_run(
        self, thread_id: str, run_id: str, *, status: str = "success", owner: Principal = ALICE, **columns: Any
    ) -> None:
        now = utc_now()
        row = {"run_id": run_id, "thread_id": thread_id, "user_id": owner.user_id, "status": status, "position": 1}
        row |= {"multitask_strategy": "reject", "kwargs": {}, "metadata": {}, "created_at": now, "updated_at": now}
        await self.database.write(lambda connection: connection.execute(insert(runs).values(row | columns)) and None)

    async def end_run(self, run_id: str) -> None:
        ended = update(runs).where(runs.c.run_id == run_id).values(status="interrupted")
        await self.database.write(lambda connection: connection.execute(ended) and None)

    async def _get_graph(self) -> Agent:
        return self.graph

    async def _stop_run(self, principal: Principal, run_id: str) -> None:
        self.stopped.append(run_id)
        await self.end_run(run_id)

    async def _destroy(self, sandbox_id: str) -> None:
        self.destroyed.append(sandbox_id)


def texts(messages: Sequence[dict[str, Any]]) -> list[str]:
    return [message["content"] for message in messages]


def _model(state: ThreadState) -> dict[str, Any]:
    last = state["messages"][-1]
    if isinstance(last, HumanMessage):
        call = {"name": "lookup", "args": {"q": last.text}, "id": f"call-{last.id}"}
        return {"messages": [AIMessage("", id=f"ask-{last.id}", tool_calls=[call])]}
    return {"messages": [AIMessage(f"answer to {last.text}", id=f"answer-{last.id}")]}


def _tools(state: ThreadState) -> dict[str, Any]:
    call = state["messages"][-1].tool_calls[0]  # type: ignore[union-attr]
    said = interrupt({"question": "sure?"}) if "ask" in call["args"]["q"] else call["args"]["q"]
    return {"messages": [ToolMessage(said, tool_call_id=call["id"], name="lookup", id=f"result-{call['id']}")]}


def _next(state: ThreadState) -> str:
    return "tools" if getattr(state["messages"][-1], "tool_calls", None) else END


def _graph(checkpointer: Any) -> Agent:
    graph: Any = StateGraph(ThreadState)
    graph.add_node("model", _model)
    graph.add_node("tools", _tools)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", _next, ["tools", END])
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=checkpointer)
