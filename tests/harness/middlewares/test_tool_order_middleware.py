"""Calls of one reply, with a real sandbox and real files."""

from __future__ import annotations

import asyncio
import re

from bench.scripted_openai import Text, ToolCalls
from langchain_core.messages import ToolMessage

from deerflow.agents.middlewares.thread_data_middleware import SandboxMiddleware
from deerflow.agents.middlewares.tool_calls_middleware import ToolOrderMiddleware
from deerflow.agents.middlewares.tool_error_handling_middleware import ToolErrorHandlingMiddleware
from deerflow.sandbox.interface import OUTPUTS, WORKSPACE
from deerflow.sandbox.local import LocalSandboxProvider
from deerflow.sandbox.tools import SANDBOX_TOOLS
from deerflow.tools.files import present_file_tool

TOOLS = [*SANDBOX_TOOLS, present_file_tool]


def _bash(command: str) -> tuple[str, dict[str, str]]:
    return "bash", {"description": "", "command": command}


async def _results(start, endpoint, *calls: tuple[str, dict]) -> list[str]:
    thread = start(ToolOrderMiddleware(), ToolErrorHandlingMiddleware(), tools=TOOLS)
    endpoint.script(ToolCalls(*calls), Text("done"))
    return [str(message.content) for message in await thread.say("go") if isinstance(message, ToolMessage)]


async def test_what_a_command_makes_can_be_presented_in_the_same_reply(start, endpoint) -> None:
    made, presented = await _results(
        start,
        endpoint,
        _bash(f"sleep 0.5; echo done > {OUTPUTS}/report.md"),
        ("present_files", {"filepaths": [f"{OUTPUTS}/report.md"]}),
    )
    assert "Error" not in made and presented.startswith("Successfully presented")


async def test_writes_and_commands_keep_their_order(start, endpoint) -> None:
    log = f"{WORKSPACE}/log"
    results = await _results(
        start,
        endpoint,
        _bash(f"sleep 0.4; echo 1 >> {log}"),
        ("write_file", {"description": "", "path": log, "content": "2\n", "append": True}),
        ("read_file", {"description": "", "path": log}),
        _bash(f"sleep 0.2; echo 3 >> {log}"),
        _bash(f"cat {log}"),
    )
    assert results[2] == "1: 1\n2: 2" and results[4] == "1\n2\n3"


async def test_a_failed_call_keeps_nobody_waiting(start, endpoint) -> None:
    results = await _results(start, endpoint, ("write_file", {"path": 3}), _bash("false"), _bash("echo here"))
    assert results[0].startswith("Error") and results[1:] == ["Exit Code: 1", "here"]


async def test_reads_run_side_by_side_and_a_cancelled_call_lets_the_others_go() -> None:
    from langchain_core.messages import AIMessage
    from langgraph.prebuilt.tool_node import ToolCallRequest

    order, state = ToolOrderMiddleware(), {"messages": [AIMessage("", id="m")]}
    both, running = asyncio.Barrier(2), []

    def call(name: str, handler) -> asyncio.Task:
        request = ToolCallRequest({"name": name, "args": {}, "id": name, "type": "tool_call"}, None, state, None)  # type: ignore[arg-type]
        return asyncio.ensure_future(order.awrap_tool_call(request, handler))

    async def meet(request) -> str:
        await both.wait()  # ends only if two are here at the same time
        return "met"

    async def note(request) -> str:
        running.append(request.tool_call["name"])
        return "noted"

    first, second, command, last = call("ls", meet), call("grep", meet), call("bash", note), call("read_file", note)
    await asyncio.sleep(0)
    command.cancel()
    async with asyncio.timeout(10):
        assert await asyncio.gather(first, second, last) == ["met", "met", "noted"]
    assert running == ["read_file"] and not order._replies


async def test_a_new_turn_names_what_still_runs(start, endpoint) -> None:
    thread = start(SandboxMiddleware(provider=LocalSandboxProvider()), ToolErrorHandlingMiddleware(), tools=TOOLS)
    endpoint.script(
        ToolCalls(("bash", {"command": "exec sleep 300", "run_in_background": True})),
        Text("started"),
        Text("I know"),
        ToolCalls(("kill_process", {"process_id": "nothing"})),
        Text("done"),
    )
    await thread.say("serve")
    assert "running" not in str(thread.request(1))
    await thread.say("and now?")
    process = re.search(r"- (p1-\w{4}): exec sleep 300", thread.tail())
    assert process and "still run" in thread.tail() and thread.tail().startswith("<system-")
    await (await thread.context.sandbox()).kill_process(process[1])
    await thread.say("gone?")
    assert "still run" not in str(thread.request())
    assert not any(message.name == "running_processes" for message in await thread.messages())
