from __future__ import annotations

import asyncio
from typing import Any

import pytest
from bench.scripted_openai import Text, ToolCalls
from langchain_core.tools import tool

from deerflow.agents.middlewares.base import Middleware, ModelHandler, ModelResult, Request, ToolHandler, ToolResult


class Around(Middleware):
    async def awrap_model_call(self, request: Request, handler: ModelHandler) -> ModelResult:
        return await handler(request)

    async def awrap_tool_call(self, request: Any, handler: ToolHandler) -> ToolResult:
        return await handler(request)


@tool
async def look() -> str:
    """Look."""
    return "seen"


async def test_a_call_of_a_model_or_tool_takes_no_worker_thread(start, endpoint, monkeypatch: pytest.MonkeyPatch):
    """LangChain wraps each hook in LangSmith's ``traceable``, which would take two a call."""
    loop, taken = asyncio.get_running_loop(), []
    original = loop.run_in_executor

    def watched(executor: Any, function: Any, *args: Any) -> Any:
        taken.append(function)
        return original(executor, function, *args)

    endpoint.script(Text("Hello."), ToolCalls(("look", {})), Text("Done."))
    conversation = start(Around(), tools=[look])
    await conversation.say("Hello.")  # a client's first request looks at the platform, in a thread
    monkeypatch.setattr(loop, "run_in_executor", watched)
    said = await conversation.say("Look.")
    assert [message.text for message in said] == ["Look.", "", "seen", "Done."]
    assert not taken
