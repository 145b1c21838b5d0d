from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from bench.scripted_openai import Delay, Empty, HttpError, RawToolCall, ScriptedOpenAI, Text, ToolCalls
from tests.app.cli.conftest import Cli
from tests.support.warm_python import WarmPython

OUT = "/mnt/user-data/outputs"


def deliver(name: str = "report.md", content: str = "# Report\n") -> tuple[ToolCalls, ToolCalls]:
    return (
        ToolCalls(("write_file", {"description": "Write", "path": f"{OUT}/{name}", "content": content})),
        ToolCalls(("present_files", {"filepaths": [f"{OUT}/{name}"]})),
    )


def test_the_answer_is_on_stdout_and_the_steps_are_on_stderr(cli: Cli, endpoint: ScriptedOpenAI) -> None:
    endpoint.script(ToolCalls(("bash", {"description": "Say hi", "command": "echo hi"})), Text("It said **hi**."))
    ended = cli("run", "say hi")
    assert ended.code == 0, ended.err
    assert ended.out == "It said **hi**.\n"
    assert "● Run Say hi" in ended.err


def test_the_log_does_not_have_a_line_for_every_call_of_a_model(
    cli_process: Cli, endpoint: ScriptedOpenAI, data_dir: Path
) -> None:
    endpoint.script(Text("hello"))
    assert cli_process("run", "say hello").code == 0
    assert "HTTP" not in (data_dir / "deerflow.log").read_text()


def test_delivered_files_are_copied_out_and_never_overwrite(
    cli_process: Cli, endpoint: ScriptedOpenAI, folder: Path
) -> None:
    for content in ("one", "two"):
        endpoint.script(*deliver(content=content), Text("done"))
        ended = cli_process("run", "write", "--out", "here")
        assert ended.code == 0, ended.err
    assert (folder / "here/report.md").read_text() == "one"
    assert (folder / "here/report-1.md").read_text() == "two"
    assert str(folder / "here/report-1.md") in ended.err


def test_without_artifacts_no_folder_is_made(cli: Cli, endpoint: ScriptedOpenAI, folder: Path) -> None:
    endpoint.script(Text("nothing to hand over"))
    assert cli("run", "hello").code == 0
    assert not (folder / "deerflow-out").exists()


def test_json_is_exactly_one_object_on_stdout(cli: Cli, endpoint: ScriptedOpenAI, folder: Path) -> None:
    endpoint.script(*deliver(), Text("done"))
    ended = cli("run", "write", "--json")
    told = json.loads(ended.out)
    assert (told["text"], told["error"], told["exit_code"]) == ("done", None, 0)
    assert told["artifacts"] == [{"path": f"{OUT}/report.md", "file": str(folder / "deerflow-out/report.md")}]
    assert told["usage"]["total_tokens"] > 0


def test_a_file_reaches_the_agent(cli: Cli, endpoint: ScriptedOpenAI, folder: Path) -> None:
    (folder / "sales 数据.csv").write_text("a,b\n1,2\n")
    endpoint.script(
        ToolCalls(("bash", {"description": "Read", "command": "cat /mnt/user-data/uploads/*.csv"})), Text("read")
    )
    assert cli("run", "read it", "--file", "sales 数据.csv").code == 0
    assert "1,2" in json.dumps(endpoint.requests[-1]["messages"][-1])


def test_a_thread_is_continued(cli_process: Cli, endpoint: ScriptedOpenAI) -> None:
    endpoint.script(*deliver(), Text("first"))
    thread = json.loads(cli_process("run", "remember 42", "--json").out)["thread_id"]
    endpoint.script(Text("second"))
    told = json.loads(cli_process("run", "and now?", "--thread", thread, "--json").out)
    assert (told["thread_id"], told["text"], told["artifacts"]) == (thread, "second", [])
    assert "remember 42" in json.dumps(endpoint.requests[-1]["messages"])


def test_the_task_is_read_from_stdin(cli: Cli, endpoint: ScriptedOpenAI) -> None:
    endpoint.script(Text("ok"))
    assert cli("run", "-", stdin="line one\nline two\n").code == 0
    assert "line one\\nline two" in json.dumps(endpoint.requests[0]["messages"])


def test_a_wrong_key_is_one_message_with_its_remedy(cli: Cli, endpoint: ScriptedOpenAI) -> None:
    endpoint.script(HttpError(401))
    ended = cli("run", "hello")
    assert (ended.code, ended.out) == (1, "")
    assert "OPENAI_API_KEY" in ended.err and "Traceback" not in ended.err


def test_no_network_is_one_message(cli: Cli, endpoint: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setattr("asyncio.sleep", _no_wait)
    ended = cli("run", "hello", "--json")
    told = json.loads(ended.out)
    assert (ended.code, told["exit_code"], told["error"]["kind"]) == (1, 1, "network")
    assert "Traceback" not in ended.err


def test_an_empty_answer_is_a_failure_in_words(cli: Cli, endpoint: ScriptedOpenAI) -> None:
    endpoint.script(*[Empty()] * 6)
    ended = cli("run", "hello", "--json")
    assert ended.code == 1
    assert json.loads(ended.out)["error"]["kind"] == "empty_answer"


@pytest.mark.parametrize(
    "call",
    [RawToolCall("bash", '{"command": "echo'), ToolCalls(("no_such_tool", {"x": 1}))],
    ids=["broken JSON", "unknown tool"],
)
def test_a_bad_tool_call_is_told_to_the_model_and_the_run_goes_on(
    cli: Cli, endpoint: ScriptedOpenAI, call: RawToolCall | ToolCalls
) -> None:
    endpoint.script(call, Text("recovered"))
    ended = cli("run", "hello")
    assert (ended.code, ended.out) == (0, "recovered\n")
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["run", "x", "--file", "missing.csv"], "Cannot read missing.csv"),
        (["run", "x", "--file", "."], "is a directory"),
        (["run", "x", "--file", "/dev/zero"], "not a regular file"),
        (["run", "x", "--model", "nope"], "no model 'nope'"),
        (["run", "x", "--thread", "../../etc"], "Invalid thread id"),
        (["run", "x", "--thread", "nope"], "There is no chat nope."),
        (["run", "x", "--config", "missing.yaml"], "missing.yaml"),
        (["run", "x", "--config", "."], "is a directory"),
        (["run", "x", "--config", "broken.yaml"], "broken.yaml"),
        (["run", "   "], "task is empty"),
        (["run"], "Missing argument"),
        (["run", "x", "--bogus"], "No such option"),
    ],
)
def test_bad_input_is_one_clear_message_and_exit_code_2(
    cli: Cli, endpoint: ScriptedOpenAI, folder: Path, argv: list[str], message: str
) -> None:
    (folder / "broken.yaml").write_text("models: [\n  a: b: c\n")
    ended = cli(*argv)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err and "Traceback" not in ended.err
    assert endpoint.requests == []


@pytest.mark.parametrize(
    ("argv", "words"),
    [(["x", "--model", "nope"], "nope"), (["-"], "task is empty"), (["x", "--file", "no"], "Cannot read no")],
)
def test_bad_input_with_json_is_still_one_object(
    cli: Cli, endpoint: ScriptedOpenAI, argv: list[str], words: str
) -> None:
    ended = cli("run", *argv, "--json")
    told = json.loads(ended.out)
    assert (ended.code, told["exit_code"], told["thread_id"]) == (2, 2, None)
    assert words in told["error"]["message"]


def test_an_unreadable_config_shows_its_traceback_only_with_debug(cli: Cli, folder: Path) -> None:
    from deerflow_app.cli.main import main

    (folder / "broken.yaml").write_text("[")
    with pytest.raises(Exception, match="not valid YAML"):
        main(["run", "x", "--config", "broken.yaml", "--debug"])


def test_a_folder_that_cannot_be_written_is_told_and_the_answer_is_kept(
    cli: Cli, endpoint: ScriptedOpenAI, folder: Path
) -> None:
    (folder / "file").write_text("in the way")
    endpoint.script(*deliver(), Text("done"))
    ended = cli("run", "write", "--out", "file", "--json")
    told = json.loads(ended.out)
    assert (ended.code, told["text"]) == (1, "done")
    assert "--out" in told["error"]["remedy"]


def test_the_demo_says_what_it_is(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = cli("run", "show me", "--json")
    told = json.loads(ended.out)
    assert "Demo model" in ended.err
    assert (ended.code, told["error"]) == (0, None)
    assert told["artifacts"] and Path(told["artifacts"][0]["file"]).stat().st_size > 0


async def _no_wait(_seconds: float, result: object = None) -> object:
    return result


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_the_run_and_its_object_tells_how_to_go_on(
    endpoint: ScriptedOpenAI, folder: Path, without_tool_image: None, number: signal.Signals
) -> None:
    endpoint.script(ToolCalls(("bash", {"description": "First", "command": "echo one"})), Delay(1000, Text("never")))
    command = [sys.executable, "-c", "from deerflow_app.cli.main import main; main()", "run", "work", "--json"]
    process = WarmPython(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while "● Run First" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    told = json.loads(out)
    assert (process.returncode, told["exit_code"], told["error"]["kind"]) == (1, 1, "stopped")
    assert f"deerflow --thread {told['thread_id']}" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_the_task_has_begun_leaves_one_object_too(
    endpoint: ScriptedOpenAI, folder: Path, number: signal.Signals
) -> None:
    program = """
import os, signal
from deerflow_app.cli.commands import run
def stopped(settings):
    os.kill(os.getpid(), signal.Signals(%d))
    signal.pause()
run.open_backend = stopped
from deerflow_app.cli.main import main; main()
"""
    command = [sys.executable, "-c", program % number, "run", "work", "--json", "--thread", "t"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    told = json.loads(done.stdout)
    assert (done.returncode, told["thread_id"], told["error"]["kind"]) == (1, "t", "stopped")


@pytest.mark.parametrize(("words", "source"), [("caf\udce9", "The task"), ("-", "Standard input")])
def test_a_task_that_is_not_utf8_is_refused_in_one_sentence(
    cli: Cli, endpoint: ScriptedOpenAI, words: str, source: str
) -> None:
    ended = cli("run", words, stdin="caf\udce9")
    assert ended.code == 2
    assert ended.err.startswith(f"deerflow: {source} is not valid UTF-8.\n")
    assert endpoint.requests == []
