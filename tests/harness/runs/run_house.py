"""What tests of runs do with a runtime."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.tools import tool

from deerflow.identity import LOCAL_PRINCIPAL
from deerflow.runs.request import RunRequest
from deerflow.runtime import Runtime
from deerflow.storage.runs import Run

ME = LOCAL_PRINCIPAL


def say(text: str, **more: Any) -> RunRequest:
    return RunRequest(input={"messages": [{"role": "user", "content": text}]}, **more)


def bash(command: str) -> tuple[str, dict[str, Any]]:
    return "bash", {"description": "run", "command": command}


async def thread(runtime: Runtime) -> str:
    return (await runtime.threads.create(ME))["thread_id"]


async def ended(runtime: Runtime, run: Run) -> Run:
    return await runtime.runs.wait(ME, run.run_id)


async def until(runtime: Runtime, run: Run, method: str, text: str = "") -> None:
    """Read until the run says ``text`` in an event of this kind."""
    async for batch in runtime.runs.events(run):
        if any(event.method == method and text in json.dumps(event.data) for event in batch):
            return
    raise AssertionError(f"{text!r} was never said")


async def messages(runtime: Runtime, run: Run) -> list[tuple[str, str]]:
    values = await runtime.runs.values(await runtime.runs.get(ME, run.run_id))
    return [(message["type"], message["content"]) for message in values["messages"]]


@tool("fetch")
def fetch_tool(url: str) -> str:
    """A tool of others: what it returns is from outside."""
    return f"the page {url}"
