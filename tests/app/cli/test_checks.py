"""``deerflow run --check``: commands that must succeed when the agent is done."""

from __future__ import annotations

import json
from pathlib import Path

from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.app.cli.conftest import Cli

OUT = "/mnt/user-data/outputs"
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
    told = json.loads(ended.out)
    assert (ended.code, told["exit_code"], told["error"]["kind"]) == (3, 3, "checks_failed"), ended.err
    assert told["verification"] == "contradicted" and "contradicted" in ended.err


def test_the_word_for_the_answer_is_printed_and_what_is_not_so_exits_with_3(
    cli: Cli, endpoint: ScriptedOpenAI, folder: Path, without_tool_image: None, data_dir: Path
) -> None:
    endpoint.script(Text("Hello, Ada."))
    ended = cli("run", "hello", "--json")
    told = json.loads(ended.out)
    assert (ended.code, told["verification"], told["refused"]) == (0, None, []), ended.err
    endpoint.script(ToolCalls(("bash", {"command": f"echo y > {OUT}/y.txt"})), Text(f"It is in {OUT}/y.txt."))
    ended = cli("run", "write")
    assert ended.code == 0 and "verified" in ended.err
    endpoint.script(ToolCalls(("bash", {"command": "true"})), *[Text(f"It is in {OUT}/n.txt.")] * 2)
    ended = cli("run", "write", "--json")
    told = json.loads(ended.out)
    assert (ended.code, told["exit_code"], told["verification"], told["error"]) == (3, 3, "contradicted", None)
    assert "contradicted" in ended.err


def test_calls_that_were_refused_are_told(
    cli: Cli, endpoint: ScriptedOpenAI, folder: Path, without_tool_image: None, data_dir: Path
) -> None:
    provider = {"use": "deerflow.guardrails.builtin:AllowlistProvider", "config": {"denied_tools": ["ls"]}}
    config = {"sandbox": {"tool_image": {"enabled": False}}, "guardrails": {"enabled": True, "provider": provider}}
    (folder / "config.yaml").write_text(json.dumps(config))
    endpoint.script(ToolCalls(("ls", {"path": "."})), Text("I may not."))
    ended = cli("run", "look", "--json")
    assert [call["tool"] for call in json.loads(ended.out)["refused"]] == ["ls"], ended.err
    assert "ls was not called" in ended.err
