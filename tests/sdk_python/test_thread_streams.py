"""``client.threads.stream`` and ``client.threads.join_stream``: all runs of a thread, one after the other."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from bench.scripted_openai import Text, ToolCalls
from langgraph_sdk.errors import NotFoundError
from tests.sdk_python.conftest import ASSISTANT, Sdk, covers

LOOK = ToolCalls(("ls", {"description": "look", "path": "/mnt/user-data"}))


@covers("threads.join_stream")
async def test_a_thread_is_followed_over_several_runs(sdk: Sdk):
    thread_id = await sdk.thread("Before.")
    answers: list[str] = []
    runs: list[str] = []

    async def follow() -> None:
        stream = sdk.threads.join_stream(thread_id, last_event_id="-1", stream_mode=["run_modes", "lifecycle"])
        async for part in stream:
            if part.event == "metadata":
                runs.append(part.data["run_id"])
            if part.event == "values":  # a reader that lags behind sees the newest state only
                messages = part.data.get("messages", ())
                answers[:] = [message["content"] for message in messages if message["type"] == "ai"]
            if answers[-1:] == ["Two."]:
                break
        await stream.aclose()

    following = asyncio.create_task(follow())
    for text in ("One.", "Two."):
        await sdk.runs.wait(thread_id, ASSISTANT, input=sdk.script(Text(text)))
    await following
    assert answers == ["Before.", "One.", "Two."]
    assert len(set(runs)) == 3
    with pytest.raises(NotFoundError):
        await anext(sdk.threads.join_stream("5bd4a1f0-6c0e-4b57-9f0e-2f6c1f8b8f0a"))


@covers("threads.stream")
@pytest.mark.parametrize("transport", ["sse", "websocket"])
async def test_a_thread_is_driven_by_the_streaming_protocol(sdk: Sdk, transport: str):
    given = sdk.script(LOOK, Text("Hello there."))
    drive = _drive if sdk.kind == "async" else _drive_blocking
    tokens, tools, final = await drive(sdk.threads.stream(assistant_id=ASSISTANT, transport=transport), given)
    assert "Hello there." in tokens
    assert tools == ["ls"]
    assert final["messages"][-1]["content"] == "Hello there."


@pytest.mark.parametrize("transport", ["sse", "websocket"])
async def test_a_client_that_comes_later_waits_for_its_own_run(sdk: Sdk, transport: str):
    drive = _drive if sdk.kind == "async" else _drive_blocking
    first = sdk.threads.stream(assistant_id=ASSISTANT, transport=transport)
    await drive(first, sdk.script(Text("One.")))
    again = sdk.threads.stream(first.thread_id, assistant_id=ASSISTANT, transport=transport)
    tokens, _, final = await drive(again, sdk.script(Text("Two.")), watch=0.5)
    assert "Two." in tokens
    assert final["messages"][-1]["content"] == "Two."


async def _drive(stream: Any, given: dict[str, Any], watch: float = 0) -> tuple[list[str], list[str], dict[str, Any]]:
    messages: list[Any] = []
    tools: list[str] = []
    async with stream as thread:
        await asyncio.sleep(watch)  # a thread that is there is watched before anything starts
        await thread.run.start(input=given)
        # In one subscription: two projections that open side by side hang inside the SDK, see docs/sdk.md.
        async for channel, item in thread.interleave_projections(["messages", "tool_calls"]):
            if channel == "messages":
                messages.append(item)
            else:
                tools.append(item.name)
        return [str(await message.text) for message in messages], tools, await thread.output


async def _drive_blocking(
    stream: Any, given: dict[str, Any], watch: float = 0
) -> tuple[list[str], list[str], dict[str, Any]]:
    def drive() -> tuple[list[str], list[str], dict[str, Any]]:
        messages: list[Any] = []
        tools: list[str] = []
        with stream as thread:
            time.sleep(watch)
            thread.run.start(input=given)
            for channel, item in thread.interleave_projections(["messages", "tool_calls"]):
                if channel == "messages":
                    messages.append(item)
                else:
                    tools.append(item.name)
            return [str(message.text) for message in messages], tools, thread.output

    return await asyncio.to_thread(drive)
