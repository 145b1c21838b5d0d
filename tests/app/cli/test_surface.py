"""What a person sees beside the turns: the banner, an earlier conversation, the doctor's report, errors."""

from __future__ import annotations

import io
import os
import re
import sqlite3
import subprocess
import sys
from typing import Any

import pytest
import typer
from rich.console import Console
from rich.theme import Theme

from deerflow.config import ConfigError, ConfigProblem, ModelConfig
from deerflow.config.model_origin import ModelOrigin
from deerflow.sandbox.interface import Isolation, ProbeReport, Problem, SandboxUnavailableError
from deerflow.storage.thread_lock import ThreadBusyError
from deerflow_app.cli.chat.transcript import TerminalTranscript, banner
from deerflow_app.cli.commands.doctor import DoctorCheck, exit_code, report
from deerflow_app.cli.failures import explain, turn_failure, usage_failure
from deerflow_app.cli.terminal import THEME

ISOLATED = ProbeReport("bwrap", True, Isolation("namespaces", True, "none", True))
REAL = ModelConfig(
    name="m", use="a:b", model="gpt-x", discovered_from=ModelOrigin(kind="environment", name="OPENAI_API_KEY")
)
DEMO = ModelConfig(
    name="demo", display_name="Demo (no real model)", use="deerflow.models.demo:DemoChatModel", model="demo"
)


def shown(body: Any, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, theme=Theme(THEME), highlight=False, markup=False, record=True)
    console.print(body)
    return console.export_text()


def test_the_banner_tells_model_and_isolation() -> None:
    text = shown(banner("1.2.3", REAL, sandbox=ISOLATED))
    assert "DeerFlow 1.2.3" in text
    assert "m (gpt-x) · OPENAI_API_KEY is set" in text
    assert "isolated with Linux namespaces · network off" in text
    assert "Demo" not in text


def test_the_banner_labels_the_demo_and_names_two_ways_out() -> None:
    text = shown(banner("1", DEMO, sandbox=ISOLATED))
    assert "scripted demo" in text and "export ANTHROPIC_API_KEY" in text and "deerflow config init" in text


def test_the_banner_is_loud_about_a_missing_isolation() -> None:
    loose = Isolation("none", False, "host", False, warnings=("Commands can read all of your files.",))
    text = shown(banner("1", REAL, sandbox=ProbeReport("local", True, loose)))
    assert "NOT isolated" in text and "! Commands can read all of your files." in text


def test_the_banner_says_why_there_is_no_shell_and_what_to_do() -> None:
    refused = ProbeReport(
        "auto", False, problems=(Problem("userns", "User namespaces are off.", "Install bubblewrap."),)
    )
    text = shown(banner("1", REAL, sandbox=refused, warnings=["config.yaml is broken"]))
    assert (
        "no shell" in text
        and "User namespaces are off. Install bubblewrap." in text
        and "config.yaml is broken" in text
    )


def test_an_earlier_conversation_is_shown_as_it_happened() -> None:
    console = Console(file=io.StringIO(), width=80, theme=Theme(THEME), highlight=False, markup=False, record=True)
    calls = [
        {"id": "1", "name": "bash", "args": {"description": "Count", "command": "wc -l x"}},
        {"id": "2", "name": "present_files", "args": {"filepaths": ["/mnt/user-data/outputs/r.md"]}},
        {"id": "3", "name": "bash", "args": {"description": "Cut off", "command": "sleep 9"}},
    ]
    TerminalTranscript(console).history(
        [
            {"type": "human", "content": "count\nplease", "files": [{"filename": "x.csv"}]},
            {"type": "ai", "content": "Counting.", "reasoning_content": "hm", "tool_calls": calls},
            {"type": "tool", "tool_call_id": "1", "name": "bash", "content": "12 x", "status": "success"},
            {"type": "tool", "tool_call_id": "2", "name": "present_files", "content": "ok", "status": "success"},
            {
                "type": "ai",
                "content": "The key was refused.",
                "error": {"kind": "auth", "message": "The key was refused."},
            },
            {"type": "unknown", "content": "?"},
        ]
    )
    assert [line.rstrip() for line in console.export_text().splitlines()] == [
        *("", "› count", "  please", "  + x.csv", "", "∴ Thought", "", "  Counting.", ""),
        *("● Run Count", "  │ $ wc -l x", "  │ 12 x", "", "↓ outputs/r.md", ""),
        *("✗ The key was refused.", "  `deerflow doctor` asks every model whether it answers."),
    ]


def test_the_doctor_puts_the_remedy_below_what_is_broken() -> None:
    checks = [
        DoctorCheck("Models", "a", "ok", "reachable"),
        DoctorCheck("Sandbox", "bwrap", "bad", "not installed", "apt install bubblewrap"),
    ]
    text = shown(report(checks))
    assert text.index("✗  bwrap") < text.index("→ apt install bubblewrap")
    assert "1 to mend" in text


@pytest.mark.parametrize(("statuses", "code"), [(["ok"], 0), (["ok", "warn"], 0), (["warn", "bad"], 1)])
def test_the_doctor_fails_only_for_what_is_essential(statuses: list[Any], code: int) -> None:
    assert exit_code([DoctorCheck("a", "n", status, "f") for status in statuses]) == code


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (usage_failure("mine", "do"), 2, "mine"),
        (ConfigError(ConfigProblem("wrong.", key="models[0].use")), 2, "models[0].use: wrong."),
        (SandboxUnavailableError("No isolation here."), 1, "No isolation here."),
        (FileNotFoundError(2, "No such file or directory", "x.csv"), 2, "x.csv: No such file or directory."),
        (PermissionError(13, "Permission denied", "x.csv"), 2, "x.csv: Permission denied."),
        (FileNotFoundError("The configuration file x does not exist."), 2, "The configuration file x does not exist."),
        (OSError(28, "No space left on device"), 1, "No space left on device."),
        (ThreadBusyError("t"), 1, str(ThreadBusyError("t"))),
        (sqlite3.OperationalError("odd"), 1, "The database of the threads cannot be used: odd."),
        (ConnectionError("gone"), 1, "ConnectionError: gone"),
        (ImportError("pip install x"), 2, "pip install x"),
        (ZeroDivisionError("1/0"), 1, "Unexpected error: ZeroDivisionError: 1/0"),
    ],
)
def test_every_error_has_a_message_and_an_exit_code(error: Exception, code: int, words: str) -> None:
    failure = explain(error)
    assert (failure.exit_code, failure.message) == (code, words)


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (sqlite3.OperationalError("database is locked"), "Another program holds it"),
        (sqlite3.OperationalError("database or disk is full"), "Make room"),
        (sqlite3.OperationalError("disk I/O error"), "Make room"),
        (sqlite3.OperationalError("unable to open database file"), "DEER_FLOW_HOME"),
        (sqlite3.DatabaseError("database disk image is malformed"), "`deerflow restore ARCHIVE`"),
        (sqlite3.DatabaseError("file is not a database"), "move the file away"),
        (OSError(28, "No space left on device", "/d/x"), "Make room"),
        (OSError(30, "Read-only file system", "/d/x"), "DEER_FLOW_HOME"),
    ],
)
def test_storage_that_fails_comes_with_what_helps(error: Exception, remedy: str) -> None:
    assert remedy in explain(error).remedy


def test_an_unexpected_error_asks_for_a_report() -> None:
    assert "--debug" in explain(ZeroDivisionError()).remedy


def test_a_turn_that_failed_without_words_still_says_so() -> None:
    assert turn_failure({}).message == "The agent failed."


def test_the_shell_completes_commands() -> None:
    asked = {"_DEERFLOW_COMPLETE": "complete_bash", "COMP_WORDS": "deerflow memo", "COMP_CWORD": "1"}
    command = [sys.executable, "-c", "from deerflow_app.cli.main import main; main()"]
    done = subprocess.run(command, env={**os.environ, **asked}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["memory"]


def test_help_has_no_markup_and_no_word_twice() -> None:
    from deerflow_app.cli.main import app

    root: Any = typer.main.get_command(app)
    waiting = [root]
    while waiting:
        command = waiting.pop()
        waiting += getattr(command, "commands", {}).values()
        texts = [command.help or "", *(getattr(each, "help", "") or "" for each in command.params)]
        for text in texts:
            assert not re.search(r"`|\*\*|\[/?[a-z]+\]", text), (command.name, text)
            assert not re.search(r"\b(\w+) \1\b", text), (command.name, text)
