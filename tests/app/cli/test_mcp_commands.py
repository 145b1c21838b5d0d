"""`deerflow mcp …`: a server is added, tested and removed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.app.cli.conftest import Cli
from tests.harness.mcp.conftest import on_host

pytestmark = pytest.mark.usefixtures("endpoint")


def test_a_server_is_added_tested_and_removed(cli: Cli, folder: Path) -> None:
    file = folder / "extensions_config.json"
    file.write_text(json.dumps({"mcpServers": {"s": on_host()}}))
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
