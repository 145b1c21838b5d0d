"""The view for pipes and scripts: the answer on one stream, a line per step on the other."""

from __future__ import annotations

from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from deerflow_app.cli.cards import HIDDEN, command_note, is_unwell, newly_done, summary
from deerflow_app.cli.terminal import clean, one_line
from deerflow_app.cli.turn import ToolRun


class PlainView:
    """Args:
    progress: gets one line per finished step, notice and plan item.
    answer: gets the model's text as it comes; None keeps it back (the caller prints the final answer).
    """

    def __init__(self, progress: Console, answer: TextIO | None = None) -> None:
        self._progress = progress
        self._answer = answer
        self._in_line = False
        self._todos: list[dict[str, Any]] = []

    def text(self, delta: str) -> None:
        if self._answer is not None and (shown := clean(delta)):
            self._answer.write(shown)
            self._answer.flush()
            self._in_line = not shown.endswith("\n")

    def thinking(self, delta: str) -> None:
        """Reasoning is not part of a script's output."""

    def message_ended(self) -> None:
        if self._answer is not None and self._in_line:
            self._answer.write("\n")
            self._answer.flush()
            self._in_line = False

    def tool_started(self, tool: ToolRun) -> None:
        """A step is told when it is done, with its result."""

    def tool_output(self, tool: ToolRun) -> None:
        """Only the result is told."""

    def tool_finished(self, tool: ToolRun) -> None:
        if tool.name == "ask_clarification" and self._answer is not None:
            self.text(f"{tool.result}\n")
        elif tool.failed:
            self._line("✗", "bad", f"{summary(tool)}: {one_line((tool.result or '').removeprefix('Error: '), 200)}")
        elif tool.name not in HIDDEN:
            note = command_note(tool)
            glyph, style = ("✗", "bad") if is_unwell(tool) else ("●", "ok")
            self._line(glyph, style, summary(tool), f"  {note}" if note else "")

    def todos(self, todos: list[dict[str, Any]]) -> None:
        for step in newly_done(self._todos, todos):
            self._line("✓", "ok", one_line(step, 200))
        self._todos = todos

    def notice(self, text: str) -> None:
        self._line("!", "warn", clean(text))

    def _line(self, glyph: str, style: str, text: str, note: str = "") -> None:
        line = Text(f"{glyph} ", style=style).append(text, style="none").append(note, style="faint")
        self._progress.print(line, soft_wrap=True)
