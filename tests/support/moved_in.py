"""Views of what an import has left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage

from deerflow.config import ConfigSource, Paths
from deerflow.identity import LOCAL_PRINCIPAL, Principal
from deerflow.runtime import Runtime
from deerflow.storage.list_page import ListPage

Import = Callable[..., dict[str, Any]]


def look(work: Callable[[Runtime], Any], *, base: Path | None = None) -> Any:
    """Return what ``work`` finds here afterwards."""

    runtime = Runtime(ConfigSource(), Paths(base), executes=False)

    async def run() -> Any:
        try:
            return await work(runtime)
        finally:
            await runtime.aclose()

    return asyncio.run(run())


def threads_of(principal: Principal = LOCAL_PRINCIPAL) -> dict[str, tuple[Any, list[BaseMessage]]]:
    """The person's threads by title, each with its row and messages."""

    async def work(runtime: Runtime) -> Any:
        found, _ = await runtime.threads.repository.search(principal, page=ListPage(1000))
        states = [await runtime.threads.states.snapshot(each.thread_id) for each in found]
        assert not any(state.next or state.tasks for state in states), "no thread waits for a step"
        return {each.title: (each, state.values["messages"]) for each, state in zip(found, states, strict=True)}

    return look(work)


def hits(query: str, principal: Principal = LOCAL_PRINCIPAL) -> set[str | None]:
    """Titles of threads that the search finds."""
    found = look(lambda runtime: runtime.threads.messages.search(principal, query))
    return {hit.title for hit in found}
