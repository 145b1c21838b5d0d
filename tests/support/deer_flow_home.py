"""A data directory as deer-flow leaves it, small, with real checkpoints of LangGraph's own saver."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import yaml
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

ADA, BOB = "11111111-aaaa-4aaa-8aaa-111111111111", "22222222-bbbb-4bbb-8bbb-222222222222"
TABLES = """
CREATE TABLE threads_meta (thread_id VARCHAR(64) PRIMARY KEY, assistant_id VARCHAR(128), user_id VARCHAR(64),
    display_name VARCHAR(256), status VARCHAR(20), metadata_json JSON, created_at DATETIME, updated_at DATETIME);
CREATE TABLE runs (run_id VARCHAR(64) PRIMARY KEY, thread_id VARCHAR(64), status VARCHAR(20));
CREATE TABLE feedback (feedback_id VARCHAR(64) PRIMARY KEY, run_id VARCHAR(64), rating INTEGER);
CREATE TABLE users (id VARCHAR(36) PRIMARY KEY, email VARCHAR(320) UNIQUE, password_hash VARCHAR(128),
    system_role VARCHAR(16), created_at DATETIME);
"""
AUGUST_TABLES = """
CREATE TABLE agents (id VARCHAR(64) PRIMARY KEY, user_id VARCHAR(64), name VARCHAR(128), config JSON, soul TEXT);
CREATE TABLE scheduled_tasks (id VARCHAR(64) PRIMARY KEY, title TEXT);
CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL);
INSERT INTO alembic_version VALUES ('7f3c2a1b9d10');
"""


class Full(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    title: str
    todos: list[dict[str, Any]]
    artifacts: list[str]


def _merged(state: list[AnyMessage], writes: Sequence[Any]) -> list[AnyMessage]:
    for write in writes:
        state = add_messages(state, write)  # type: ignore[assignment,arg-type]
    return state


class Delta(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], DeltaChannel(_merged, snapshot_frequency=3)]
    title: str


def _nothing(state: Any) -> dict[str, Any]:
    return {}


class DeerFlowHome:
    """Args:
    root: the checkout; the data directory is ``backend/.deer-flow`` in it.
    version: of its ``config.yaml``, 34 for August's layout and 8 for April's.
    """

    def __init__(self, root: Path, *, version: int = 34) -> None:
        self.root = root
        self.home = root / "backend" / ".deer-flow"
        self.database = self.home / "data" / "deerflow.db"
        self.database.parent.mkdir(parents=True)
        self.write("config.yaml", yaml.safe_dump({"config_version": version, "run_ownership": {}}), at=root)
        with closing(sqlite3.connect(self.database)) as connection:
            connection.executescript("PRAGMA journal_mode = WAL;" + TABLES + AUGUST_TABLES * (version > 8))
            SqliteSaver(connection).setup()

    def rows(self, table: str, *rows: Mapping[str, Any]) -> None:
        with closing(sqlite3.connect(self.database)) as connection, connection:
            for row in rows:
                names = ", ".join(row)
                marks = ", ".join("?" * len(row))
                connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", [*row.values()])

    def user(self, user_id: str, email: str, role: str = "user") -> None:
        self.rows("users", {"id": user_id, "email": email, "system_role": role, "created_at": "2026-03-01 10:00:00"})

    def thread(
        self,
        thread_id: str,
        turns: Iterable[Sequence[AnyMessage]],
        *,
        user: str | None = "default",
        name: str | None = "A plan",
        metadata: Mapping[str, Any] = {},
        state: type[Any] = Full,
        **values: Any,
    ) -> None:
        """A thread whose state was written turn by turn, as runs do."""
        self.rows(
            "threads_meta",
            {
                "thread_id": thread_id,
                "assistant_id": "lead_agent",
                "user_id": user,
                "display_name": name,
                "status": "idle",
                "metadata_json": json.dumps(metadata),
                "created_at": "2026-03-01 10:00:00.000000",
                "updated_at": "2026-03-02 11:30:00.000000",
            },
        )
        with closing(sqlite3.connect(self.database, check_same_thread=False)) as connection:
            graph = StateGraph(state).add_node("agent", _nothing).set_entry_point("agent")
            compiled = graph.compile(checkpointer=SqliteSaver(connection))
            for turn in turns:
                compiled.invoke({"messages": list(turn), **values}, {"configurable": {"thread_id": thread_id}})

    def write(self, path: str, content: str | bytes, *, at: Path | None = None) -> Path:
        file = (at or self.home) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def fact(self, user: str, fact_id: str, content: str, *, agent: str = "__default__", **more: Any) -> None:
        """A fact of August's memory, a Markdown file with a head."""
        head = {"id": fact_id, "category": "preference", "confidence": 0.9, "createdAt": "2026-02-03T04:05:06Z", **more}
        text = f"---\n{yaml.safe_dump(head)}---\n\n{content}\n"
        self.write(f"users/{user}/agents/{agent}/facts/{fact_id}.md", text)

    def tree(self) -> dict[str, bytes | None]:
        """All that is there, byte for byte."""
        return {
            str(path.relative_to(self.root)): path.read_bytes() if path.is_file() else None
            for path in sorted(self.root.rglob("*"))
        }


def talk(number: int = 0) -> list[AnyMessage]:
    """One turn with a call of a tool."""
    call = {"name": "web_search", "args": {"query": "owls"}, "id": f"call{number}"}
    return [
        HumanMessage(f"How do owls hunt? ({number})", id=f"h{number}"),
        AIMessage("", id=f"c{number}", tool_calls=[call]),
        ToolMessage("They listen.", id=f"t{number}", tool_call_id=f"call{number}", name="web_search"),
        AIMessage(f"By ear, mostly. ({number})", id=f"a{number}"),
    ]
