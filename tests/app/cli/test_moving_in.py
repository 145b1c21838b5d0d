"""`deerflow import …` as a person sees it, and what can be done with what came."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.scripted_openai import ScriptedOpenAI, Text
from tests.support.deer_flow_home import DeerFlowHome, talk

Cli = Callable[..., Any]


def test_an_imported_thread_goes_on(cli: Cli, endpoint: ScriptedOpenAI, tmp_path: Path) -> None:
    theirs = DeerFlowHome(tmp_path / "theirs")
    theirs.thread("owls", [talk()])
    ended = cli("import", "deer-flow", str(theirs.home))
    assert ended.code == 0 and ended.out.splitlines()[1].split() == ["threads", "1", "0", "0"]
    endpoint.script(Text("They prefer rats."), Text("Owls"))
    ended = cli("run", "And mice?", "--thread", "owls", "--local")
    assert (ended.code, ended.out.strip()) == (0, "They prefer rats.")
    asked = json.dumps(endpoint.requests[0]["messages"])
    assert "How do owls hunt?" in asked and "They listen." in asked and "And mice?" in asked


def test_a_dry_run_says_so_and_what_is_broken_is_named(cli: Cli, folder: Path, data_dir: Path) -> None:
    chat = {"uuid": "1", "name": "\x1b[31mRed", "chat_messages": [{"sender": "human", "text": "Hi"}, {"text": "x"}]}
    file = folder / "conversations.json"
    file.write_text(json.dumps([chat]))
    ended = cli("import", "chats", str(file), "--dry-run")
    assert ended.code == 0 and "would come" in ended.out and "this was a dry run" in ended.out
    assert "Red': it cannot be read: sender is missing." in ended.out and "\x1b" not in ended.out
    assert not data_dir.exists()


def test_a_file_that_is_not_there_is_a_wrong_call(cli: Cli, folder: Path) -> None:
    for command in ("chats", "deer-flow"):
        ended = cli("import", command, str(folder / "none"))
        assert ended.code == 2 and "none" in ended.err
