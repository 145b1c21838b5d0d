from __future__ import annotations

import json

from bench.scripted_openai import HttpError, ScriptedOpenAI, Text, ToolCalls
from tests.app.cli.conftest import Cli


def test_every_line_is_a_message_and_answers_go_to_stdout(cli: Cli, endpoint: ScriptedOpenAI) -> None:
    endpoint.script(ToolCalls(("bash", {"description": "Look", "command": "true"})), Text("One."), Text("Two."))
    ended = cli(stdin="first\n\nsecond\n")
    assert (ended.code, ended.out) == (0, "One.\nTwo.\n")
    assert "● Run Look" in ended.err
    assert "first" in json.dumps(endpoint.requests[-1]["messages"])


def test_slash_commands_work_in_a_pipe(cli: Cli, endpoint: ScriptedOpenAI) -> None:
    ended = cli(stdin="/threads\n/exit\nnever said\n")
    assert (ended.code, ended.out) == (0, "")
    assert "No chats yet" in ended.err
    assert endpoint.requests == []


def test_a_failed_turn_sets_the_exit_code_and_the_next_line_is_still_said(cli: Cli, endpoint: ScriptedOpenAI) -> None:
    endpoint.script(HttpError(401), Text("Fine."))
    ended = cli(stdin="one\ntwo\n")
    assert ended.code == 1
    assert "Fine.\n" in ended.out and "OPENAI_API_KEY" in ended.err + ended.out
    assert "Traceback" not in ended.err
