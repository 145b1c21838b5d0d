"""`deerflow mcp …`: a server is added, tested and removed."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from mcp import Client, StdioServerParameters
from tests.app.cli.conftest import Cli
from tests.harness.mcp.conftest import on_host
from tests.harness.mcp.test_definitions import LISTING, tool

pytestmark = pytest.mark.usefixtures("endpoint", "warm_programs")


def test_a_server_is_added_tested_and_removed(cli: Cli, folder: Path) -> None:
    file = folder / "extensions_config.json"
    foreign = {"serverUrl": "http://127.0.0.1:9/mcp", "transport": "sse"}
    file.write_text(json.dumps({"mcpServers": {"s": on_host(), "foreign": foreign}}))
    assert "foreign\tfailed\tsse\t" in cli("mcp", "list").out
    assert cli("mcp", "remove", "foreign").code == 0
    tested = cli("mcp", "test", "s")
    assert tested.code == 0, tested.err
    assert "s\tready\tstdio\t" in tested.out and "echo\tSays it again." in tested.out
    added = cli("mcp", "add", "gone", "--url", "http://127.0.0.1:9/mcp", "--header", "X-Key=abc")
    assert added.code == 0, added.err
    assert added.out.startswith("gone\tfailed\thttp\t")
    assert json.loads(file.read_text())["mcpServers"]["gone"]["headers"] == {"X-Key": "abc"}
    assert [line.split("\t")[:2] for line in cli("mcp", "list").out.splitlines()] == [
        ["s", "ready"],
        ["gone", "failed"],
    ]
    assert cli("mcp", "test", "gone").code == 1
    assert cli("mcp", "remove", "gone").code == 0
    assert list(json.loads(file.read_text())["mcpServers"]) == ["s"]
    assert "gone" in cli("mcp", "remove", "gone").err


def test_what_cannot_be_added_is_said(cli: Cli) -> None:
    assert "--url" in cli("mcp", "add", "x").err
    assert "NAME=VALUE" in cli("mcp", "add", "x", "--url", "https://example.org", "--header", "oops").err


def test_a_server_is_trusted_and_its_changed_tools_are_shown_and_accepted(cli: Cli, folder: Path) -> None:
    file, listed = folder / "extensions_config.json", folder / "tools.json"
    entry = {"command": sys.executable, "args": [str(LISTING), str(listed)], "isolation": "host"}
    file.write_text(json.dumps({"mcpServers": {"s": entry}}))
    listed.write_text(json.dumps([tool("pay", "Pays.")]))
    trusted = cli("mcp", "trust", "s")
    assert trusted.code == 0 and "Trust only a server whose author" in trusted.out, trusted.err
    assert json.loads(file.read_text())["mcpServers"]["s"]["trusted"] is True
    assert "Nothing has changed" in cli("mcp", "changes", "s").out
    listed.write_text(json.dumps([tool("pay", "Pays twice.", readOnlyHint=True)]))
    assert "1 changed" in cli("mcp", "list").out
    shown = cli("mcp", "changes", "s", "--accept").out
    assert '-   "description": "Pays."' in shown and '+   "description": "Pays twice."' in shown and "Accepted" in shown
    assert "Nothing has changed" in cli("mcp", "changes", "s").out
    assert cli("mcp", "trust", "gone").code == 1
    cli("mcp", "trust", "s", "--off")
    assert json.loads(file.read_text())["mcpServers"]["s"]["trusted"] is False


@pytest.mark.usefixtures("without_tool_image")
async def test_deerflow_is_a_server_itself(folder: Path, endpoint: ScriptedOpenAI) -> None:
    endpoint.script(
        ToolCalls(("write_file", {"path": "/mnt/user-data/outputs/poem.md", "content": "Roses."})), Text("Written.")
    )
    environment = {
        name: value for name, value in os.environ.items() if name.startswith(("OPENAI_", "DEER_FLOW_", "PATH"))
    }
    program = StdioServerParameters(
        command=str(Path(sys.executable).with_name("deerflow")), args=["mcp", "serve"], env=environment, cwd=folder
    )
    async with Client(program) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names == {"run_task", "get_run", "list_files", "get_file", "search_chats"}
        done = (await client.call_tool("run_task", {"task": "A poem about roses, please."})).structured_content
        assert (done["status"], done["answer"]) == ("done", "Written.")
        thread = {"thread_id": done["thread_id"]}
        assert (await client.call_tool("get_run", thread)).structured_content["answer"] == "Written."
        assert "/mnt/user-data/outputs/poem.md" in str(
            (await client.call_tool("list_files", thread)).structured_content
        )
        file = await client.call_tool("get_file", {**thread, "path": "/mnt/user-data/outputs/poem.md"})
        assert file.content[0].text == "Roses."
        found = await client.call_tool("search_chats", {"query": "roses"})
        assert done["thread_id"] in str(found.structured_content)
        assert (await client.call_tool("get_file", {**thread, "path": "/etc/passwd"})).is_error
