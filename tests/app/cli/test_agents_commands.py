"""`deerflow agents …`: an agent is made, talked to, changed, undone and deleted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench.scripted_openai import ScriptedOpenAI, Text
from tests.app.cli.conftest import Cli

pytestmark = pytest.mark.usefixtures("endpoint")


def test_an_agent_is_made_talked_to_changed_undone_and_deleted(
    cli: Cli, folder: Path, endpoint: ScriptedOpenAI
) -> None:
    (folder / "SOUL.md").write_text("You never use adverbs.")
    made = cli("agents", "set", "Editor", "--description", "Shortens.", "--soul", "SOUL.md", "--skill", "pdf")
    assert made.code == 0 and "deerflow --agent Editor" in made.out
    assert cli("agents", "list").out == "editor\tShortens.\n"
    endpoint.script(Text("Short."))
    assert cli("run", "--agent", "editor", "Shorten this").code == 0
    assert "You never use adverbs." in json.dumps(endpoint.requests[-1])

    assert cli("agents", "set", "editor", "--description", "Gently.").code == 0
    shown = cli("agents", "show", "editor").out
    assert "description: Gently." in shown and "skills: pdf" in shown and "never use adverbs" in shown
    assert "+description: Gently." in cli("agents", "versions", "editor").out
    assert cli("agents", "undo", "editor").out == "editor is version 1 again.\n"
    assert json.loads(cli("agents", "show", "editor", "--json").out)["description"] == "Shortens."
    assert cli("agents", "delete", "editor").code == 0
    assert cli("agents", "list").out == ""


def test_what_is_not_there_or_cannot_be_is_said(cli: Cli) -> None:
    missing = cli("agents", "show", "nobody")
    assert missing.code == 2 and "'nobody' not found" in missing.err
    wrong = cli("agents", "set", "a", "--model", "none")
    assert wrong.code != 0 and "there is no 'none'" in wrong.err
    unreadable = cli("agents", "set", "a", "--soul", "none.md")
    assert unreadable.code == 2 and "none.md" in unreadable.err
    unknown = cli("run", "--agent", "nobody", "Hi")
    assert unknown.code != 0 and "no agent 'nobody'" in unknown.err and "Unexpected" not in unknown.err
    assert cli("agents", "set", "a", "--description", "First.").code == 0
    first = cli("agents", "undo", "a")
    assert first.code == 2 and "no former version" in first.err
