"""What is measured: DeerFlow, and the floor it is measured against. Both stream their answers, as users see them."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bench import floor

KINDS = ("floor", "floor-1-tool", "ours")


@dataclass(frozen=True, slots=True)
class Turn:
    """One answered message. ``first_token``: seconds from asking to the first piece of text."""

    text: str
    first_token: float


class Subject(Protocol):
    """An agent with durable threads."""

    data: Path
    """Directory of everything it stores."""

    async def turn(self, thread_id: str, text: str) -> Turn: ...

    async def compact(self, thread_id: str) -> bool:
        """Shrink an idle thread. False when the subject does not know how."""
        ...


@asynccontextmanager
async def open_subject(kind: str, base_url: str, data: Path) -> AsyncIterator[Subject]:
    """A warm-able subject of one of :data:`KINDS` that stores below ``data``."""
    data.mkdir(parents=True, exist_ok=True)
    if kind == "ours":
        async with _ours(base_url, data) as subject:
            yield subject
        return
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    async with AsyncSqliteSaver.from_conn_string(str(data / "checkpoints.db")) as saver:
        yield Floor(base_url, data, saver, floor.tools()[:1] if kind == "floor-1-tool" else floor.tools())


class Floor:
    """Bare ``create_agent`` with the stock SQLite saver."""

    def __init__(self, base_url: str, data: Path, saver: Any, tools: list[Any]) -> None:
        from langchain.agents import create_agent

        self.data = data
        self._agent = create_agent(floor.model(base_url), tools, checkpointer=saver)

    async def turn(self, thread_id: str, text: str) -> Turn:
        watch = _Watch()
        config: Any = {"configurable": {"thread_id": thread_id}, "recursion_limit": 200}
        message: Any = {"messages": [{"role": "user", "content": text}]}
        stream: AsyncIterator[Any] = self._agent.astream(message, config, stream_mode="messages")
        async for chunk, _ in stream:
            if chunk.type == "AIMessageChunk":
                watch.hear(chunk.text)
        return watch.turn()

    async def compact(self, thread_id: str) -> bool:
        return False


class Ours:
    """DeerFlow as the client hands it out, with the whole default chain."""

    def __init__(self, client: Any, data: Path) -> None:
        self.data = data
        self.client = client

    async def turn(self, thread_id: str, text: str) -> Turn:
        watch = _Watch()
        async for event in self.client.astream(text, thread_id=thread_id):
            if event.type == "messages-tuple" and event.data.get("type") == "ai":
                watch.hear(event.data.get("content") or "")
        return watch.turn()

    async def compact(self, thread_id: str) -> bool:
        return await self.client.acompact_thread(thread_id)


@asynccontextmanager
async def _ours(base_url: str, data: Path) -> AsyncIterator[Ours]:
    """The client as a newcomer has it: no config file, the endpoint named by the environment alone."""
    os.environ.update(OPENAI_API_KEY="bench", OPENAI_BASE_URL=base_url, HOME=str(data))
    os.chdir(data)
    from deerflow.client import DeerFlowClient

    client = DeerFlowClient(base_dir=data)
    try:
        yield Ours(client, data)
    finally:
        await client.aclose()


class _Watch:
    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._first: float | None = None
        self._parts: list[str] = []

    def hear(self, text: str) -> None:
        if text and self._first is None:
            self._first = time.perf_counter() - self._start
        self._parts.append(text)

    def turn(self) -> Turn:
        if self._first is None:
            raise RuntimeError(
                "The agent ended its turn without a word; the endpoint answers every scenario with text."
            )
        return Turn("".join(self._parts), self._first)
