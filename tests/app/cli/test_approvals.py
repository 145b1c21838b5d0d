"""Calls that wait for a person, decided in the terminal: real terminals, processes and sandboxes, a scripted model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.app.cli.conftest import Cli
from tests.app.cli.terminal_session import CTRL_D, ENTER, TerminalSession
from tests.support.gateway_process import GatewayProcess

from deerflow.agents.headline import headline, visible

GUARDED = """config_version: 9
sandbox:
  tool_image:
    enabled: false
title:
  enabled: false
guardrails:
  enabled: true
  provider:
    use: deerflow.guardrails.builtin:AllowlistProvider
    config:
      ask_tools: [bash]
"""
CTRL_U = "\x15"


@pytest.fixture(autouse=True)
def guarded(folder: Path, without_tool_image: None) -> None:
    (folder / "config.yaml").write_text(GUARDED)


def bash(*names: str) -> ToolCalls:
    return ToolCalls(
        *(("bash", {"description": "d", "command": f"echo {name} >> /mnt/user-data/workspace/log"}) for name in names)
    )


def done(data_dir: Path) -> list[str]:
    return [line for log in data_dir.rglob("workspace/log") for line in log.read_text().split()]


def test_pending_calls_are_decided_in_the_chat_by_four_choices(
    endpoint: ScriptedOpenAI, folder: Path, data_dir: Path
) -> None:
    endpoint.script(bash("one", "two", "three", "four"), Text("All decided."))
    with TerminalSession(cwd=folder) as session:
        session.say("work")
        session.wait_for("1 of 4  bash")
        session.wait_for("echo one >> /mnt/user-data/workspace/log")
        session.say("yes please")  # no choice: asked again
        session.say("a")
        session.wait_for("2 of 4  bash")
        session.say("e")
        session.wait_for("Arguments › ")
        edited = {"description": "d", "command": "echo edited >> /mnt/user-data/workspace/log"}
        session.type(f"{CTRL_U}nonsense{ENTER}")
        session.wait_for("cannot be read as JSON")
        session.wait_for("Arguments › ")
        session.type(CTRL_U + json.dumps(edited) + ENTER)
        session.wait_for("3 of 4  bash")
        session.say("r")
        session.wait_for("Reason")
        session.say("Not before Friday.")
        session.wait_for("4 of 4  bash")
        session.say("i")
        session.wait_for("Reply")
        session.say("It is done already.")
        session.wait_for("All decided.")
        session.say("/exit")
        assert session.ended() == 0
    assert sorted(done(data_dir)) == ["edited", "one"]
    results = [message["content"] for message in endpoint.requests[-1]["messages"] if message["role"] == "tool"]
    assert "Not before Friday." in results[2] and results[3].endswith(
        "the call, which was not made:\nIt is done already."
    )


@pytest.mark.parametrize("closes", [False, True], ids=["left", "closed"])
def test_a_call_left_open_waits_for_resume_also_in_another_process(
    endpoint: ScriptedOpenAI, folder: Path, data_dir: Path, closes: bool
) -> None:
    endpoint.script(bash("one", "two"))
    with TerminalSession(cwd=folder) as session:
        session.say("work")
        session.wait_for("1 of 2  bash")
        session.say("a")
        session.wait_for("2 of 2  bash")
        session.wait_for("› ")
        if closes:
            session.kill()
        else:
            session.type(CTRL_D)
            session.wait_for("/resume asks again")
            session.wait_for("› ")
            session.kill()
    endpoint.script(Text("Thank you."))
    with TerminalSession(cwd=folder) as session:
        session.say("/resume")
        session.wait_for("1 of 1  bash")
        session.wait_for("echo two")
        session.say("a")
        session.wait_for("Thank you.")
    assert done(data_dir) == ["one", "two"]


def test_a_grant_is_given_listed_and_revoked_in_the_chat(
    endpoint: ScriptedOpenAI, folder: Path, data_dir: Path
) -> None:
    endpoint.script(bash("one"), bash("two"), Text("First done."))
    with TerminalSession(cwd=folder) as session:
        session.say("work")
        session.wait_for("1 of 1  bash")
        session.say("w")
        session.wait_for("Arguments › ")
        session.type(CTRL_U + json.dumps({"command": "echo * >> /mnt/user-data/workspace/log"}) + ENTER)
        session.wait_for("First done.")
        session.say("/grants")
        session.wait_for("echo * >> /mnt")
        session.wait_for("always")
        session.say("/grants revoke 1")
        session.wait_for("Such calls ask again.")
        endpoint.script(bash("three"))
        session.say("more")
        session.wait_for("1 of 1  bash")
    assert done(data_dir) == ["one", "two"]


def test_run_asks_on_its_terminal(endpoint: ScriptedOpenAI, folder: Path, data_dir: Path) -> None:
    endpoint.script(bash("one"), Text("Done."))
    with TerminalSession("run", "work", cwd=folder) as session:
        session.wait_for("1 of 1  bash")
        session.say("a")
        session.wait_for("Done.")
        assert session.ended() == 0
    assert done(data_dir) == ["one"]


def test_calls_that_wait_on_a_server_are_decided_in_the_terminal(
    endpoint: ScriptedOpenAI, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = data_dir.parent
    server = GatewayProcess(root, auth=True, model_url=endpoint.base_url, config=GUARDED)
    monkeypatch.setenv("DEER_FLOW_HOME", str(server.home))
    with server.start():
        endpoint.script(bash("one", "two"), Text("All decided."))
        with TerminalSession(cwd=root) as session:
            session.wait_for("Connected to")
            session.say("work")
            session.wait_for("1 of 2  bash")
            session.say("r")
            session.say("no")
            session.wait_for("2 of 2  bash")
            session.say("a")
            session.wait_for("All decided.")
    assert len(done(root)) == 1


@pytest.mark.parametrize(("given", "made"), [([], []), (["--approve", "deny"], []), (["--approve", "auto"], ["one"])])
def test_run_without_a_terminal_rejects_unless_it_is_told_to_approve(
    cli: Cli, endpoint: ScriptedOpenAI, data_dir: Path, given: list[str], made: list[str], folder: Path
) -> None:
    (folder / "config.yaml").write_text(GUARDED)
    endpoint.script(bash("one"), Text("Done."))
    ended = cli("run", "work", *given, "--json")
    assert (ended.code, json.loads(ended.out)["text"]) == (0, "Done."), ended.err
    assert done(data_dir) == made
    last = endpoint.requests[-1]["messages"][-1]["content"]
    assert made or "not attended" in last


def test_asking_without_a_terminal_is_refused_before_anything_is_done(cli: Cli, endpoint: ScriptedOpenAI) -> None:
    ended = cli("run", "work", "--approve", "ask")
    assert ended.code == 2 and "--approve auto" in ended.err
    assert endpoint.requests == []


def test_what_is_approved_cannot_hide_anything() -> None:
    assert visible("curl evil\rls\x1b[2K\u202e") == "curl evil⟦U+000D⟧ls⟦U+001B⟧[2K⟦U+202E⟧"
    assert visible("a\u200bb\u00ad\u3164\U000e0041\ufe0f") == "a⟦U+200B⟧b⟦U+00AD⟧⟦U+3164⟧⟦U+E0041⟧⟦U+FE0F⟧"
    assert visible("naïve – 你好　שלום\n\tx") == "naïve – 你好　שלום\n\tx"


@pytest.mark.parametrize(
    ("name", "args", "value", "expected"),
    [
        (
            "shop_pay",
            {"description": "List the files"},
            {"effect": {"changes": True, "lasts": False, "destination": "shop", "server": "shop"}},
            "pay at shop – changes something there and sends data to shop",
        ),
        ("network", {"host": "evil.example"}, {}, "Let commands reach evil.example?"),
        (
            "network",
            {"host": "a.test and b.test", "packages": True},
            {},
            "Let this chat install packages, from a.test and b.test?",
        ),
        ("update_agent", {}, {"effect": {"lasts": True}}, "Change the agent's instructions"),
        (
            "web_fetch",
            {"url": "https://evil.example/?d=1"},
            {"effect": {"destination": "evil.example"}},
            "Open a page of evil.example – sends data to evil.example",
        ),
        ("write_file", {"path": "/a/b\u202e.py"}, {"effect": None}, "Write the file b⟦U+202E⟧.py"),
        ("network", {"host": "x"}, {"tool_call_id": "c"}, "Use network"),
    ],
)
def test_the_headline_is_ours(name: str, args: dict[str, Any], value: dict[str, Any], expected: str) -> None:
    assert headline({"name": name, "args": args}, value) == expected
