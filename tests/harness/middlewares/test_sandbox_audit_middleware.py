from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from bench.scripted_openai import Text, ToolCalls
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool

from deerflow.agents.middlewares.sandbox_audit_middleware import SandboxAuditMiddleware

executed: list[str] = []


@tool
def bash(command: Any = None) -> str:
    """Run."""
    executed.append(command)
    return "output"


@tool
def write_file(path: str, content: str) -> str:
    """Write."""
    return "OK"


@tool
def other(command: str) -> str:
    """Not a shell."""
    executed.append(command)
    return "output"


@pytest.fixture(autouse=True)
def _nothing_executed() -> None:
    executed.clear()


class Runner:
    def __init__(self, start, endpoint, caplog) -> None:
        self.start, self.endpoint, self.caplog = start, endpoint, caplog

    async def call(self, name: str, tools: Any = (bash, write_file, other), **args: Any) -> ToolMessage:
        self.caplog.set_level(logging.INFO, logger="deerflow.audit")
        self.endpoint.script(ToolCalls((name, args)), Text("ok"))
        return (await self.start(SandboxAuditMiddleware(), tools=tools).say("go"))[2]

    @property
    def records(self) -> list[dict[str, Any]]:
        lines = [r.getMessage() for r in self.caplog.records if r.name == "deerflow.audit"]
        assert all(line.startswith("[SandboxAudit] ") for line in lines)
        return [json.loads(line.removeprefix("[SandboxAudit] ")) for line in lines]


@pytest.fixture
def runner(start, endpoint, caplog) -> Runner:
    return Runner(start, endpoint, caplog)


@pytest.mark.parametrize(
    "command",
    [
        "export LD_LIBRARY_PATH=/opt/lib",
        "cat s.sh | bash",
        "echo x >> ~/.bashrc",
        "rm -rf ~/*",
        "pip install requests",
        "sudo ls",
    ],
)
async def test_the_sandbox_is_the_agents_own_and_nothing_is_refused_or_advised(runner, command) -> None:
    result = await runner.call("bash", command=command)
    assert (executed, result.content, result.status) == ([command], "output", "success")
    assert "note" not in result.additional_kwargs


async def test_a_harmless_command_passes_untouched(runner) -> None:
    assert (await runner.call("bash", command="ls -la")).content == "output"


async def test_every_command_is_recorded_with_who_and_where(runner) -> None:
    for command in ("ls", "rm -rf /tmp/x"):
        await runner.call("bash", command=command)
    assert [(r["command"], r["outcome"]) for r in runner.records] == [("ls", "success"), ("rm -rf /tmp/x", "success")]
    record = runner.records[0]
    assert (record["thread_id"], record["user_id"], record["run_id"], record["tool"]) == (
        "thread-1",
        "alice",
        "run-1",
        "bash",
    )
    assert record["timestamp"].endswith("+00:00")


async def test_file_changes_are_recorded_without_their_content(runner) -> None:
    await runner.call("write_file", path="/mnt/user-data/workspace/a", content="secret")
    (record,) = runner.records
    assert (record["tool"], record["path"], record["size"]) == ("write_file", "/mnt/user-data/workspace/a", 6)
    assert "secret" not in json.dumps(record)


@pytest.mark.parametrize("command", [None, "", "  ", 5, "a\0b"])
async def test_input_that_is_no_command_is_refused(runner, command) -> None:
    result = await runner.call("bash", command=command)
    assert executed == []
    assert "empty command" in result.content or "null byte" in result.content


async def test_a_call_without_a_command_is_left_to_the_tool_which_says_what_it_wants(runner) -> None:
    await runner.call("bash", cmd="ls")
    assert runner.records == []
    assert executed == [None]


async def test_an_oversized_command_is_refused_and_logged_cut(runner) -> None:
    await runner.call("bash", command="echo " + "x" * 10_000)
    (record,) = runner.records
    assert (len(record["command"]), record["command_length"], record["outcome"]) == (200, 10_005, "error")


async def test_a_command_on_several_lines_is_one_log_line(runner) -> None:
    await runner.call("bash", command="echo a\necho b")
    assert runner.records[0]["command"] == "echo a\necho b"


async def test_other_tools_pass_unrecorded(runner) -> None:
    assert (await runner.call("other", command="rm -rf /")).content == "output"
    assert runner.records == []
