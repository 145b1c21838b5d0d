"""``memory_search``, ``memory_save``, ``memory_forget``: what the agent knows of the person. ``search_chats``: their other threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from langchain_core.tools import ToolException
from pydantic import Field

from deerflow.errors import RequestError
from deerflow.features.memory.for_run import MemoryForRun
from deerflow.tools.decorator import REACHES, Runtime, async_tool

READS_OUTSIDE = {"readOnlyHint": True}
"""What was said elsewhere may have come from a web page: such a result is text from outside."""


@async_tool("memory_search")
async def memory_search_tool(
    query: Annotated[str, Field(description="Words that the facts hold")], runtime: Runtime
) -> str:
    """Find what is remembered of the user from earlier conversations."""
    found = await _memory(runtime).search(query)
    return "\n".join(found) or "Nothing is remembered about that."


# Neither asks: memory itself takes only the person's own words from a thread with text from outside, and shows them the rest.


@async_tool("memory_save")
async def memory_save_tool(
    content: Annotated[str, Field(description="A sentence of theirs, word for word")], runtime: Runtime
) -> str:
    """Remember for other conversations what the user asks you to remember, or says about themselves."""
    try:
        return await _memory(runtime).save(content, "context", _said(runtime))
    except RequestError as error:
        raise ToolException(f"Error: {error}") from error


@async_tool("memory_forget")
async def memory_forget_tool(fact_id: Annotated[str, Field(description="Its id or text")], runtime: Runtime) -> str:
    """Forget a remembered fact. The user can restore it."""
    try:
        return await _memory(runtime).forget(fact_id, _said(runtime))
    except RequestError as error:
        raise ToolException(f"Error: {error}") from error


@async_tool("search_chats", metadata={**READS_OUTSIDE, REACHES: "chats"})
async def search_chats_tool(
    query: Annotated[str, Field(description="Words that must all be in the message")], runtime: Runtime
) -> str:
    """Find what was said in the user's other conversations, the newest first. Cite what you use by its link."""
    return "\n".join(await _memory(runtime).chats(query)) or "No other conversation has these words."


MEMORY_TOOLS = (memory_search_tool, memory_save_tool, memory_forget_tool, search_chats_tool)


def _said(runtime: Any) -> Sequence[Any]:
    """The messages in which the person may speak: a subagent has its task from a model."""
    return () if runtime.context.subagent is not None else runtime.state["messages"]


def _memory(runtime: Any) -> MemoryForRun:
    if (memory := runtime.context.of(MemoryForRun)) is None:
        raise ToolException("Error: this agent runs without a memory.")
    return memory
