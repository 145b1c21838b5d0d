"""``deerflow run --check``: commands that must succeed when the agent is done."""

from __future__ import annotations

import json
from pathlib import Path

from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.app.cli.conftest import Cli

CHECK = ("--check", "grep -q total report.md")


def _written(content: str) -> ToolCalls:
    return ToolCalls(("write_file", {"path": "report.md", "content": content}))


def test_the_agent_goes_on_until_the_check_passes(cli: Cli, endpoint: ScriptedOpenAI, data_dir: Path) -> None:
    endpoint.script(_written("empty"), Text("Done."), _written("total: 3"), Text("Now it has a total."))
    ended = cli("run", "report", *CHECK, "--json")
    assert (ended.code, json.loads(ended.out)["text"]) == (0, "Now it has a total."), ended.err
    assert "Check grep -q total report.md failed" in ended.err and "Check grep -q total report.md passed" in ended.err


def test_a_check_that_fails_to_the_last_is_a_failure(cli: Cli, endpoint: ScriptedOpenAI, data_dir: Path) -> None:
    endpoint.script(_written("empty"), Text("Done."), Text("Done."), Text("I cannot."))
    ended = cli("run", "report", *CHECK, "--json")
    assert (ended.code, json.loads(ended.out)["error"]["kind"]) == (1, "checks_failed"), ended.err
