"""`deerflow memory …`: a fact is added, told, forgotten, restored, exported and imported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench.scripted_openai import ScriptedOpenAI, Text
from tests.app.cli.conftest import Cli

pytestmark = pytest.mark.usefixtures("endpoint")


def test_what_one_adds_is_told_until_one_forgets_it(cli: Cli, folder: Path, endpoint: ScriptedOpenAI) -> None:
    assert cli("memory", "add", "Answers should be short.", "--category", "preference").code == 0
    (fact,) = json.loads(cli("memory", "list", "--json").out)["facts"]
    assert fact["content"] in cli("memory", "search", "short").out
    assert cli("memory", "search", "elephants").out == ""
    endpoint.script(Text("Yes."))
    assert cli("run", "Is it raining?").code == 0
    assert "Answers should be short." in json.dumps(endpoint.requests[-1])

    (folder / "memory.json").write_text(cli("memory", "export").out)
    assert cli("memory", "forget", fact["id"]).code == 0
    assert cli("memory", "list").out == ""
    endpoint.script(Text("Yes."))
    assert cli("run", "Is it still raining?").code == 0
    assert "Answers should be short." not in json.dumps(endpoint.requests[-1])
    assert cli("memory", "undo", fact["id"]).code == 0
    assert fact["content"] in cli("memory", "list").out
    assert "Imported 1 fact" in cli("memory", "import", "memory.json").out


def test_what_is_not_confirmed_is_listed_and_counts_after_a_confirmation(cli: Cli, folder: Path) -> None:
    fact = {"id": "fact_1", "content": "Pays to DE1.", "untrusted": "uploads"}
    (folder / "memory.json").write_text(json.dumps({"facts": [fact]}))
    assert cli("memory", "import", "memory.json").code == 0
    assert "not confirmed, from uploads" in cli("memory", "list").out
    assert cli("memory", "search", "DE1").out == ""
    assert cli("memory", "confirm", "fact_1").code == 0
    assert "not confirmed" not in cli("memory", "list").out
    assert "DE1" in cli("memory", "search", "DE1").out


def test_what_is_not_there_or_not_readable_is_said(cli: Cli, folder: Path) -> None:
    missing = cli("memory", "forget", "none")
    assert missing.code == 2 and "none" in missing.err
    (folder / "bad.json").write_text("{")
    unreadable = cli("memory", "import", "bad.json")
    assert unreadable.code == 2 and "deerflow memory export" in unreadable.err
    assert cli("memory", "add", " ").code != 0
