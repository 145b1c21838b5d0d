"""``deerflow trace``: when a run did what."""

from __future__ import annotations

import json
from pathlib import Path

from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.app.cli.conftest import Cli
from tests.support.collector import spans_of_json


def test_a_run_is_traced_by_its_thread(cli: Cli, endpoint: ScriptedOpenAI, data_dir: Path) -> None:
    endpoint.script(ToolCalls(("ls", {"path": "/mnt/user-data/workspace"})), Text("Empty."))
    thread = json.loads(cli("run", "look", "--json").out)["thread_id"]
    traced = cli("trace", thread, "--json")
    assert traced.code == 0, traced.err
    timeline = json.loads(traced.out)
    assert [span["kind"] for span in timeline["spans"]] == ["queue", "model", "tool", "model"]
    shown = cli("trace", timeline["run_id"])
    assert shown.code == 0 and "tool ls" in shown.out and "end_turn" in shown.out and thread in shown.out
    exported = json.loads(cli("trace", thread, "--otlp").out)
    assert [span.name for span in spans_of_json(exported)] == [
        "invoke_agent lead_agent",
        f"chat {timeline['spans'][1]['name']}",
        "execute_tool ls",
        f"chat {timeline['spans'][1]['name']}",
    ]
    missing = cli("trace", "nothing")
    assert missing.code == 2 and "There is no run nothing" in missing.err
