from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from rich.console import Console
from rich.theme import Theme

from deerflow.events.streams.client_events import StreamEvent
from deerflow_app.cli.chat.turn import TerminalTurn, TurnOutcome
from deerflow_app.cli.chat.view import STOPPED, LiveView, PlainView
from deerflow_app.cli.terminal import THEME


def ai(content: str = "", *, id: str = "m1", **more: Any) -> StreamEvent:
    return StreamEvent("messages-tuple", {"type": "ai", "content": content, "id": id, **more})


def call(name: str, *, id: str, message: str = "m1", **args: Any) -> StreamEvent:
    return ai(id=message, tool_calls=[{"name": name, "args": args, "id": id}])


def result(content: str, *, id: str, name: str = "bash", status: str = "success") -> StreamEvent:
    data = {"type": "tool", "content": content, "name": name, "tool_call_id": id, "id": f"r-{id}", "status": status}
    return StreamEvent("messages-tuple", data)


def values(**state: Any) -> StreamEvent:
    return StreamEvent("values", {"title": "t", "messages": [], "artifacts": [], "todos": [], **state})


END = StreamEvent("end", {"usage": {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}, "error": None})


async def stream(*events: StreamEvent) -> AsyncIterator[StreamEvent]:
    for event in events:
        yield event
        await asyncio.sleep(0)


def terminal(height: int = 40) -> Console:
    return Console(
        file=io.StringIO(),
        width=80,
        height=height,
        theme=Theme(THEME),
        highlight=False,
        record=True,
        force_terminal=True,
    )


async def live(*events: StreamEvent, console: Console | None = None) -> tuple[TurnOutcome, str]:
    console = console or terminal()
    async with LiveView(console) as view:
        outcome = await TerminalTurn(view).play(stream(*events))
    return outcome, console.export_text()


async def plain(*events: StreamEvent, known: Sequence[str] = ()) -> tuple[TurnOutcome, str, str]:
    progress, answer = Console(file=io.StringIO(), width=80, theme=Theme(THEME)), io.StringIO()
    outcome = await TerminalTurn(PlainView(progress, answer), known_artifacts=known).play(stream(*events))
    return outcome, answer.getvalue(), progress.file.getvalue()  # type: ignore[attr-defined]


async def test_the_answer_is_the_text_of_the_last_message() -> None:
    outcome, answer, _ = await plain(
        ai("Let me look."),
        call("bash", id="c1", command="ls"),
        result("a", id="c1"),
        ai("It is", id="m2"),
        ai(" **a**.", id="m2"),
        END,
    )
    assert outcome.text == "It is **a**."
    assert answer == "Let me look.\nIt is **a**.\n"
    assert outcome.usage["total_tokens"] == 12


async def test_a_usage_event_that_repeats_an_id_does_not_start_a_new_message() -> None:
    outcome, _, _ = await plain(ai("Hel"), ai("lo"), ai(usage_metadata={"input_tokens": 1}), END)
    assert outcome.text == "Hello"


async def test_a_question_that_ends_the_turn_is_the_answer() -> None:
    outcome, answer, _ = await plain(
        call("ask_clarification", id="c1", question="Which?"),
        result("❓ Which file?", id="c1", name="ask_clarification"),
        END,
    )
    assert outcome.text == "❓ Which file?"
    assert answer == "❓ Which file?\n"


async def test_progress_never_mixes_with_the_answer() -> None:
    _, answer, progress = await plain(
        call("bash", id="c1", description="Count", command="wc"), result("3", id="c1"), ai("Three.", id="m2"), END
    )
    assert answer == "Three.\n"
    assert "● Run Count" in progress and "Three" not in progress


async def test_a_failed_step_is_told_with_its_reason() -> None:
    _, _, progress = await plain(
        call("read_file", id="c1", path="/x"),
        result("Error: File not found: /x", id="c1", name="read_file", status="error"),
        END,
    )
    assert "✗ Read /x: File not found: /x" in progress


async def test_only_files_delivered_in_this_turn_are_handed_over() -> None:
    old, again, new = (f"/mnt/user-data/outputs/{name}.md" for name in ("old", "again", "new"))
    outcome, _, _ = await plain(
        call("present_files", id="c1", filepaths=[again.lstrip("/"), new]),
        result("Successfully presented files", id="c1", name="present_files"),
        values(artifacts=[old, again, new]),
        END,
        known=[old, again],
    )
    assert outcome.artifacts == [again, new]


async def test_a_retry_is_told_with_its_wait() -> None:
    event = StreamEvent(
        "custom",
        {
            "type": "llm_retry",
            "attempt": 2,
            "max_attempts": 3,
            "wait_ms": 4000,
            "message": "m did not answer. Trying again.",
        },
    )
    _, _, progress = await plain(event, END)
    assert "! m did not answer. Trying again in 4 s (attempt 2 of 3)." in progress


async def test_costs_add_up_by_currency() -> None:
    event = StreamEvent("custom", {"type": "token_usage", "usage": {}, "cost": {"amount": 0.25, "currency": "EUR"}})
    outcome, _, _ = await plain(event, event, END)
    assert outcome.cost == {"EUR": 0.5}


async def test_an_error_that_was_told_as_text_is_no_answer() -> None:
    error = {"kind": "auth", "message": "The provider rejected the API key."}
    outcome, _, _ = await plain(
        ai("The provider rejected the API key."), StreamEvent("end", {"usage": {}, "error": error})
    )
    assert (outcome.text, outcome.error, outcome.error_told) == ("", error, True)


async def test_unknown_events_are_ignored() -> None:
    outcome, answer, progress = await plain(
        StreamEvent("custom", {"type": "token_usage", "message": "x", "cost": None}),
        StreamEvent("custom", {"novel": 1}),
        StreamEvent("messages-tuple", {"type": "unknown", "content": "?", "id": "u"}),
        result("orphan", id="never-called", name="bash"),
        END,
    )
    assert (outcome.text, answer) == ("", "")
    assert "orphan" not in progress


async def test_a_turn_on_the_terminal_prints_every_finished_part_once() -> None:
    console = terminal()
    await live(
        ai(reasoning_content="hmm"),
        ai("I look at it."),
        call("bash", id="c1", description="Count", command="wc -l x"),
        StreamEvent("custom", {"type": "tool_output", "tool_call_id": "c1", "text": "12 x\n"}),
        result("12 x", id="c1"),
        ai("# Result\n\nTwelve ", id="m2"),
        ai("lines.", id="m2"),
        END,
        console=console,
    )
    screen = Screen(console.file.getvalue())  # type: ignore[attr-defined]
    assert screen.lines == [
        *("", "∴ Thought for 0.0 s", "", "  I look at it.", "", "● Run Count", "  │ $ wc -l x", "  │ 12 x"),
        *("", "  Result", "", "  Twelve lines."),
    ]


async def test_steps_of_the_plan_are_ticked_off_and_an_unfinished_plan_is_kept() -> None:
    todos = [{"content": "read", "status": "completed"}, {"content": "write", "status": "in_progress"}]
    _, text = await live(values(todos=todos), ai("Stopping here."), END)
    final = text[text.rindex("Stopping here.") :]
    assert "✓ read" in text
    assert "Plan 1 of 2 done" in final and "▸ write" in final


async def test_a_finished_plan_does_not_stand_below_the_answer() -> None:
    console = terminal()
    todos = [{"content": "read", "status": "completed"}]
    await live(values(todos=todos), ai("Done."), END, console=console)
    assert Screen(console.file.getvalue()).lines == ["", "✓ read", "", "  Done."]  # type: ignore[attr-defined]


async def test_stopping_keeps_what_was_said_and_marks_the_running_command() -> None:
    console, begun = terminal(), asyncio.Event()

    async def endless() -> AsyncIterator[StreamEvent]:
        yield ai("Half a sent")
        yield call("bash", id="c1", description="Sleep", command="sleep 9")
        begun.set()
        await asyncio.Event().wait()

    async def turn() -> None:
        async with LiveView(console) as view:
            await TerminalTurn(view).play(endless())

    task = asyncio.create_task(turn())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    screen = Screen(console.file.getvalue())  # type: ignore[attr-defined]
    assert screen.lines[:4] == ["", "  Half a sent", "", "✗ Run Sleep"]
    assert STOPPED in screen.lines[-1]


@pytest.mark.parametrize("height", [5, 12, 40])
async def test_the_moving_part_never_outgrows_the_screen(height: int) -> None:
    console = terminal(height)
    todos = [{"content": f"step {i}", "status": "pending"} for i in range(8)]
    async with LiveView(console) as view:
        turn = TerminalTurn(view)
        calls = [{"name": "bash", "args": {"command": "x\n" * 9}, "id": f"c{i}"} for i in range(6)]
        await turn.play(
            stream(
                values(todos=todos),
                ai("- item\n" * 100, id="m0"),
                ai(tool_calls=calls),
                *(
                    StreamEvent("custom", {"type": "tool_output", "tool_call_id": f"c{i}", "text": "y\n" * 99})
                    for i in range(6)
                ),
            )
        )
        assert len(console.render_lines(view._moving_part(), pad=False)) <= height - 2


class Screen:
    """What is left on a screen after the cursor movements that rich makes: up, erase line, carriage return."""

    def __init__(self, written: str) -> None:
        self._lines: list[str] = [""]
        self._row = 0
        i = 0
        while i < len(written):
            if written[i] == "\x1b":
                i = self._obey(written, i)
                continue
            self._put(written[i])
            i += 1

    @property
    def lines(self) -> list[str]:
        """Without trailing blanks; the blank lines at the end are dropped."""
        return "\n".join(line.rstrip() for line in self._lines).rstrip("\n").split("\n")

    def _put(self, char: str) -> None:
        if char == "\n":
            self._row += 1
            if self._row == len(self._lines):
                self._lines.append("")
            self._column = 0
        elif char == "\r":
            self._column = 0
        else:
            line = self._lines[self._row].ljust(self._column)
            self._lines[self._row] = line[: self._column] + char + line[self._column + 1 :]
            self._column += 1

    def _obey(self, written: str, at: int) -> int:
        end = at + 2
        while not written[end].isalpha():
            end += 1
        number = written[at + 2 : end]
        if written[end] == "A":
            self._row -= int(number or 1)
        elif written[end] == "K":
            self._lines[self._row] = ""
        return end + 1

    _column = 0


async def test_a_silent_model_is_waited_for_in_words_until_it_answers() -> None:
    console = terminal()
    async with LiveView(console) as view:
        turn = TerminalTurn(view)
        await turn.play(stream(StreamEvent("custom", {"type": "llm_waiting", "seconds": 30})))
        assert "Waiting for the model, 30 s" in view._status().plain
        await turn.play(stream(ai("Here.")))
        assert "Waiting for the model" not in view._status().plain
    _, _, progress = await plain(StreamEvent("custom", {"type": "llm_waiting", "seconds": 15}), ai("Here."), END)
    assert "Waiting for the model, 15 s" in progress


@pytest.mark.parametrize(("reason", "words"), [("length", "output limit"), ("content_filter", "content policy")])
async def test_an_answer_that_was_cut_off_says_so(reason: str, words: str) -> None:
    end = StreamEvent("end", {**END.data, "stop_reason": reason})
    _, shown = await live(ai("Half of"), end)
    assert "cut off" in " ".join(shown.split())
    assert words in " ".join(shown.split())
    _, _, progress = await plain(ai("Half of"), StreamEvent("end", {**END.data, "stop_reason": "end_turn"}))
    assert "cut off" not in progress
