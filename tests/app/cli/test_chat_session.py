"""The chat as a person uses it: a real terminal, a real process, a real sandbox, a scripted model."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from pathlib import Path

import pytest
from bench.scripted_openai import Delay, HttpError, ScriptedOpenAI, Text, ToolCalls
from tests.app.cli.terminal_session import ALT_ENTER, CTRL_D, ENTER, TAB, TerminalSession

pytestmark = pytest.mark.usefixtures("without_tool_image")


def last_words(endpoint: ScriptedOpenAI) -> str:
    """What the person said in the latest request."""
    return str([m["content"] for m in endpoint.requests[-1]["messages"] if m["role"] == "user"][-1])


def test_a_turn_shows_steps_answer_and_delivered_files(endpoint: ScriptedOpenAI, folder: Path, data_dir: Path) -> None:
    path = "/mnt/user-data/outputs/hello.md"
    endpoint.script(
        ToolCalls(("bash", {"description": "Say hello", "command": "echo from the sandbox"})),
        ToolCalls(("write_file", {"description": "Write", "path": path, "content": "# Hello\n"})),
        ToolCalls(("present_files", {"filepaths": [path]})),
        Text("# All done\n\nSee **hello.md**."),
    )
    with TerminalSession(cwd=folder) as session:
        session.wait_for("isolated with Linux namespaces")
        session.say("do it")
        session.wait_for("● Run Say hello")
        session.wait_for("from the sandbox")
        session.wait_for("● Write outputs/hello.md  1 line")
        session.wait_for("See hello.md.")
        session.wait_for("↓ outputs/hello.md")
        session.wait_for("tokens in")
        session.say("/files")
        session.wait_for("hello.md  8 B")
        session.say("/exit")
        assert session.ended() == 0
    assert [p.read_text() for p in data_dir.rglob("outputs/hello.md")] == ["# Hello\n"]


def test_what_is_entered_while_it_starts_is_a_message_of_its_own(endpoint: ScriptedOpenAI, folder: Path) -> None:
    endpoint.script(Text("One."), Text("Two."))
    with TerminalSession(cwd=folder) as session:
        session.type(f"first{ENTER}")
        session.wait_for("One.")
        assert last_words(endpoint).endswith("\n\nfirst")
        session.say("second")
        session.wait_for("Two.")
        assert last_words(endpoint).endswith("\n\nsecond")
        session.say("/exit")
        assert session.ended() == 0


def test_ctrl_c_stops_the_turn_and_keeps_the_thread(endpoint: ScriptedOpenAI, folder: Path) -> None:
    endpoint.script(
        ToolCalls(("bash", {"description": "First step", "command": "echo one"})),
        ToolCalls(("bash", {"description": "Endless step", "command": "echo begun; sleep 1000"})),
    )
    with TerminalSession(cwd=folder) as session:
        session.say("work")
        session.wait_for("● Run First step")
        session.wait_for("│ begun")
        session.interrupt()
        session.wait_for("✗ Run Endless step")
        session.wait_for("Stopped after")
        endpoint.script(Text("I remember."))
        session.say("what did you do?")
        session.wait_for("I remember.")
        messages = json.dumps(endpoint.requests[-1]["messages"])
        assert "echo one" in messages and "what did you do?" in messages
        session.say("/exit")
        assert session.ended() == 0


def test_ctrl_c_at_the_prompt_clears_then_hints_and_ctrl_d_leaves(endpoint: ScriptedOpenAI, folder: Path) -> None:
    with TerminalSession(cwd=folder) as session:
        session.wait_for("› ")
        session.type("half a thou")
        session.wait_for("thou")
        session.interrupt()
        session.interrupt()
        session.wait_for("Ctrl-D or /exit leaves")
        session.type(CTRL_D)
        assert session.ended() == 0
    assert endpoint.requests == []


def test_after_a_crash_resume_shows_the_finished_steps_and_goes_on(endpoint: ScriptedOpenAI, folder: Path) -> None:
    asked_again = threading.Event()
    endpoint.script(
        ToolCalls(
            (
                "bash",
                {
                    "description": "Count files",
                    "command": "echo counted >> /mnt/user-data/workspace/log; echo 42 files",
                },
            )
        ),
        lambda _request: (asked_again.set(), Delay(1000, Text("never")))[1],
    )
    with TerminalSession(cwd=folder) as session:
        session.say("count the files")
        session.wait_for("● Run Count files")
        assert asked_again.wait(60)
        session.kill()
    endpoint.reset()
    endpoint.script(Text("There are 42 of them."))
    with TerminalSession(cwd=folder) as session:
        session.say("/resume")
        shown = session.wait_for("cut off")
        assert "› count the files" in shown and "● Run Count files" in shown and "42 files" in shown
        session.wait_for("There are 42 of them.")
        session.say("/exit")
        assert session.ended() == 0
    assert len(endpoint.requests) == 1, "finished steps are not run again"
    assert "42 files" in json.dumps(endpoint.requests[0]["messages"])


def test_a_step_that_was_cut_off_is_named_and_not_done_again(endpoint: ScriptedOpenAI, folder: Path) -> None:
    command = "echo 1''st time; sleep 1000"
    endpoint.script(ToolCalls(("bash", {"description": "Wait long", "command": command})))
    with TerminalSession(cwd=folder) as session:
        session.say("wait")
        session.wait_for("◌ Run Wait long")
        session.wait_for("1st time")
        session.kill()
    endpoint.script(Text("Waited."))
    with TerminalSession(cwd=folder) as session:
        session.say("/resume")
        shown = session.wait_for("Waited.")
        assert "Run Wait long" in shown and "1st time" not in shown and "Interrupted" in shown
    asked = json.dumps(endpoint.requests[-1]["messages"])
    assert "may or may not have taken effect" in asked


def test_cjk_and_several_lines_reach_the_model_as_typed(endpoint: ScriptedOpenAI, folder: Path) -> None:
    endpoint.script(Text("好的，**完成**。"))
    with TerminalSession(cwd=folder) as session:
        session.wait_for("› ")
        session.type(f"你好，世界{ALT_ENTER}第二行 📄{ENTER}")
        session.wait_for("好的，完成。")
        assert "你好，世界\n第二行 📄" in last_words(endpoint)


def test_pasted_lines_are_one_message(endpoint: ScriptedOpenAI, folder: Path) -> None:
    endpoint.script(Text("Got it all."))
    with TerminalSession(cwd=folder) as session:
        session.wait_for("› ")
        session.type("\x1b[200~one\ntwo\r\nthree\x1b[201~" + ENTER)
        session.wait_for("Got it all.")
        assert "one\ntwo\nthree" in last_words(endpoint)
        assert len(endpoint.requests) == 1


def test_an_attached_file_goes_with_the_next_message(endpoint: ScriptedOpenAI, folder: Path) -> None:
    (folder / "my data.csv").write_text("a,b\n")
    endpoint.script(Text("Thanks for the file."))
    with TerminalSession(cwd=folder) as session:
        session.say("/files 'my data.csv'")
        session.wait_for("my data.csv goes with your next message")
        session.say("look at this")
        session.wait_for("Thanks for the file.")
        assert "my data.csv" in last_words(endpoint)
        session.say("/files missing.csv")
        session.wait_for("Cannot read missing.csv")


def test_an_error_of_the_model_is_told_and_the_chat_goes_on(endpoint: ScriptedOpenAI, folder: Path) -> None:
    endpoint.script(HttpError(401), Text("Back again."))
    with TerminalSession(cwd=folder) as session:
        session.say("hello")
        session.wait_for("OPENAI_API_KEY")
        session.say("hello again")
        session.wait_for("Back again.")
        assert "Traceback" not in session.text


def test_commands_are_completed_and_unknown_ones_are_not_sent(endpoint: ScriptedOpenAI, folder: Path) -> None:
    with TerminalSession(cwd=folder) as session:
        session.wait_for("› ")
        session.type("/cha" + TAB + ENTER)
        session.wait_for("No chats yet")
        session.say("/nonsense")
        session.wait_for("There is no command /nonsense")
        session.say("/model nope")
        session.wait_for("no model 'nope'")
        session.say("/exit")
        assert session.ended() == 0
    assert endpoint.requests == []


def test_threads_are_listed_and_opened_by_number(endpoint: ScriptedOpenAI, folder: Path) -> None:
    endpoint.script(Text("First answer."), Text("Second answer."))
    with TerminalSession(cwd=folder) as session:
        session.say("first question")
        session.wait_for("First answer.")
        session.say("/new")
        session.say("second question")
        session.wait_for("Second answer.")
        session.say("/chats")
        listed = session.wait_for("/resume NUMBER")
        assert listed.index("second question") < listed.index("first question")
        session.say("/resume 2")
        session.wait_for("First answer.")
        endpoint.script(Text("Third answer."))
        session.say("third question")
        session.wait_for("Third answer.")
        assert "first question" in json.dumps(endpoint.requests[-1]["messages"])


def test_escape_sequences_of_a_command_never_reach_the_terminal(endpoint: ScriptedOpenAI, folder: Path) -> None:
    evil = "printf '\\033]0;owned\\007\\033]52;c;ZXZpbA==\\007visible\\n'"
    endpoint.script(
        ToolCalls(("bash", {"description": "Evil", "command": evil})), Text("\x1b]0;owned\x07 said the model.")
    )
    with TerminalSession(cwd=folder) as session:
        session.say("go")
        session.wait_for("│ visible")
        session.wait_for("said the model.")
        assert "\x1b]0;owned" not in session.written and "\x1b]52" not in session.written


def test_a_terminal_without_colours_gets_none(
    endpoint: ScriptedOpenAI, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    endpoint.script(Text("**bold** and `code`"))
    with TerminalSession(cwd=folder) as session:
        session.say("go")
        session.wait_for("bold and code")
        session.say("/exit")
        session.ended()
    assert re.search(r"\x1b\[[0-9;]*\b(3[1-7]|9[0-7]|38)\b[0-9;]*m", session.written) is None


def test_a_line_entered_while_the_agent_answers_is_the_next_message(endpoint: ScriptedOpenAI, folder: Path) -> None:
    endpoint.script(Text("First answer."), Text("Second answer."))
    with TerminalSession(cwd=folder) as session:
        session.say("first question")
        while not endpoint.requests:  # the turn has begun, so no prompt is open
            time.sleep(0.01)
        session.type("second question" + ENTER)
        session.wait_for("Second answer.")


def test_the_window_is_shown_and_emptied_on_demand(endpoint: ScriptedOpenAI, folder: Path) -> None:
    endpoint.script(Text("Well. " * 500), Text("## Task and constraints\nOne question."), Text("Still here."))
    with TerminalSession(cwd=folder) as session:
        session.wait_for("isolated with Linux namespaces")
        session.say("/context")
        session.wait_for("This chat is still empty.")
        session.say("a question")
        session.wait_for("tokens in")
        session.say("/context")
        session.wait_for("Tool results")
        session.wait_for("a window whose size is not known")
        session.say("/compact the figures")
        session.wait_for("Summarized 2 messages")
        session.say("and now?")
        session.wait_for("Still here.")
        said = json.dumps(endpoint.requests[-1]["messages"])
        assert "One question." in said and "Well." not in said and "/compact" not in said


def test_what_is_typed_while_the_agent_works_is_shown_queued_and_sent_by_a_second_enter(
    endpoint: ScriptedOpenAI, folder: Path
) -> None:
    wait = ToolCalls(("bash", {"command": "while [ ! -e go ]; do sleep 0.05; done", "description": "wait"}))
    endpoint.script(wait, Text("Both heard."), Text("Third answer."))
    with TerminalSession(cwd=folder) as session:
        session.say("first question")
        session.wait_for("wait")
        session.type("use the metric sy")
        session.wait_for("use the metric sy")
        session.type("stemm\x7f" + ENTER)
        session.wait_for("queued")
        session.type(ENTER)
        session.wait_for("sent – read at the next step")
        session.type("third question" + ENTER)
        session.wait_for("third question")
        session.type("and a half-typed one")
        session.wait_for("and a half-typed one")
        [go] = [path for path in Path(os.environ["DEER_FLOW_HOME"]).rglob("workspace")]
        (go / "go").touch()
        session.wait_for("Both heard.")
        assert "use the metric system" in json.dumps(endpoint.requests[-1]["messages"])
        session.wait_for("Third answer.")
        session.wait_for("and a half-typed one")
    assert "third question" in json.dumps(endpoint.requests[-1]["messages"])


def test_a_slash_lists_the_commands_and_former_names_work(endpoint: ScriptedOpenAI, folder: Path) -> None:
    with TerminalSession(cwd=folder) as session:
        session.wait_for("› ")
        session.type("/")
        session.wait_for("/")
        session.type("threads" + ENTER)
        session.wait_for("No chats yet.")
        assert "/compact [what to keep]" in session.written


def test_a_key_is_entered_tried_and_used_from_the_next_message_on(folder: Path, data_dir: Path) -> None:
    with ScriptedOpenAI(models=["terra-1"]) as own, TerminalSession(cwd=folder) as session:
        session.say("/connect")
        number = re.search(r"(\d+)  OpenAI-compatible", session.wait_for("Provider, 1 to"))
        assert number
        session.type(number[1] + ENTER)
        session.wait_for("Base URL")
        session.type(own.base_url + ENTER)
        session.wait_for("Key (Enter: none)")
        session.type("sk-typed-in-the-terminal" + ENTER)
        session.wait_for("is connected")
        own.script(Text("Hello from the new model."))
        session.say("hello")
        session.wait_for("Hello from the new model.")
        assert "sk-typed" not in session.text
