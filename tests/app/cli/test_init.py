"""The wizard on a real terminal: a key is tried before it is kept, and what it writes is a configuration."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from bench.scripted_openai import ScriptedOpenAI, Text
from tests.app.cli.terminal_session import ENTER, TerminalSession
from tests.support import warm_python
from tests.support.gateway_process import COMMAND, GUARD

from deerflow.config import ConfigSource, Paths, example_file
from deerflow_app.cli.commands.init import CHANNELS, NETWORKS, config_text


def test_a_key_is_tried_and_kept_encrypted_and_the_file_is_commented(
    tmp_path: Path, clean_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ScriptedOpenAI(api_key="sk-right", models=("big", "small")) as model:
        model.script(Text("ok"))
        with TerminalSession("init", cwd=folder) as session:

            def answer(question: str, text: str = "") -> str:
                # The last space of a prompt for a secret comes when the terminal shows no keys any more.
                shown = session.wait_for(question)
                session.type(text + ENTER)
                return shown

            listed = answer("Which provider?", "")
            number = next(line.split()[0] for line in listed.splitlines() if "OpenAI-compatible" in line)
            assert number != "1"
            answer("Key: ", "")  # of the first one: none is given
            answer("Key: ", "two words")
            answer("Try again?", "n")
            session.kill()
        with TerminalSession("init", cwd=folder) as session:
            answer("Which provider?", number)
            answer("Address", model.base_url)
            answer("none): ", "sk-wrong")
            assert "refused" in answer("Try again?", "y")
            answer("Address", model.base_url)
            answer("none): ", "sk-right")
            answer("Which model?", "2")
            session.wait_for("works.")
            answer("Who searches the web?")
            answer("What may commands reach?", "7")
            session.wait_for("A number from 1 to 3")
            answer("What may commands reach?", "2")
            answer("Where do you want to chat", "2")
            answer("telegram: bot_token: ", "123:secret")
            session.wait_for("Next:")
            assert session.ended() == 0
            assert "sk-right" not in session.text and "123:secret" not in session.text
    text = (folder / "config.yaml").read_text()
    assert "\n  network: internet\n" in text and "# DeerFlow configuration." in text and "123:secret" not in text
    source = ConfigSource(folder / "config.yaml")
    config = source.current()
    assert config.models[0].model == "small" and config.sandbox.network.mode == "internet"
    assert source.variables.merged()["TELEGRAM_BOT_TOKEN"] == "123:secret"
    kept = b"".join(one.read_bytes() for one in Paths().base_dir.rglob("*") if one.is_file())
    assert b"sk-right" not in kept and b"123:secret" not in kept


@pytest.mark.parametrize("channel", [None, *CHANNELS])
def test_every_answer_makes_a_valid_configuration(tmp_path: Path, clean_environment: Path, channel: str | None) -> None:
    for network, _ in NETWORKS:
        (file := tmp_path / f"{network}.yaml").write_text(config_text(network, channel))
        config = ConfigSource(file).current()
        assert config.sandbox.network.mode == network and not config.origin.warnings
    assert config_text("none", None) == example_file().read_text()


def test_without_a_terminal_or_beside_a_file_it_says_what_to_do(tmp_path: Path) -> None:
    done = warm_python.run([*COMMAND, "init"], cwd=tmp_path, stdin=subprocess.DEVNULL, timeout=GUARD)
    assert done.returncode == 2 and "deerflow config init" in done.stderr
    (tmp_path / "config.yaml").write_text("models: []\n")
    with TerminalSession("init", cwd=tmp_path) as session:
        session.wait_for("exists already")
        assert session.ended() == 2
