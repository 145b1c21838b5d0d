"""How a turn is shown while it runs: live on a terminal, line by line through a pipe."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any, Self, TextIO

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.text import Text

from deerflow_app.cli.chat.cards import HIDDEN, card, command_note, is_unwell, newly_done, summary, todo_panel
from deerflow_app.cli.chat.markdown import MarkdownStream, Prose, newest_part
from deerflow_app.cli.chat.transcript import TerminalTranscript
from deerflow_app.cli.chat.turn import ToolRun, TurnView
from deerflow_app.cli.chat.typed_ahead import TypedAhead
from deerflow_app.cli.terminal import clean, one_line

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
REDRAW_EVERY = 1 / 12
"""Seconds. Redraws run on the event loop, as the events do, so that no redraw sees half of a change."""

STOPPED = "Stopped before it was finished."


class LiveView(TurnView):
    """A turn on a terminal. An async context manager: the moving part is there from entering to leaving."""

    def __init__(self, console: Console, typed: TypedAhead | None = None) -> None:
        """``typed``: what the person types meanwhile."""
        self._console = console
        self._typed = typed
        self._transcript = TerminalTranscript(console)
        self._markdown = MarkdownStream()
        self._thinking = ""
        self._thinking_since: float | None = None
        self._running: dict[str, ToolRun] = {}
        self._todos: list[dict[str, Any]] = []
        self._silent_since: float | None = None
        self._started = time.monotonic()
        self._live = Live(
            console=console,
            get_renderable=self._moving_part,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    async def __aenter__(self) -> Self:
        self._live.start()
        self._redraws = asyncio.create_task(self._redraw())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._redraws.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._redraws
        self.message_ended()
        unfinished, self._running = list(self._running.values()), {}
        todos, self._todos = self._todos, []
        self._live.stop()
        for tool in unfinished:
            if tool.name in HIDDEN:
                continue
            tool.result, tool.failed, tool.ended = STOPPED, True, time.monotonic()
            self._transcript.tool(tool)
        if any(item.get("status") != "completed" for item in todos):
            self._transcript.block(todo_panel(todos))

    # what happens ---------------------------------------------------------------------------------------------------

    def text(self, delta: str) -> None:
        self._end_thinking()
        for block in self._markdown.feed(delta):
            self._transcript.prose(block)

    def thinking(self, delta: str) -> None:
        if self._thinking_since is None:
            self._thinking_since = time.monotonic()
        self._thinking = (self._thinking + clean(delta))[-2000:]

    def message_ended(self) -> None:
        self._end_thinking()
        for block in self._markdown.close():
            self._transcript.prose(block)

    def tool_started(self, tool: ToolRun) -> None:
        self._running[tool.id] = tool

    def tool_finished(self, tool: ToolRun) -> None:
        self._running.pop(tool.id, None)
        self._transcript.tool(tool)

    def todos(self, todos: list[dict[str, Any]], before: list[dict[str, Any]]) -> None:
        self._todos = todos
        for step in newly_done(before, todos):
            self._transcript.done(step)

    def notice(self, text: str) -> None:
        self._transcript.notice(text)

    def waiting(self, seconds: float | None) -> None:
        self._silent_since = None if seconds is None else time.monotonic() - seconds

    def paused(self) -> None:
        self._running.clear()

    def _end_thinking(self) -> None:
        if self._thinking_since is not None:
            seconds, self._thinking_since, self._thinking = time.monotonic() - self._thinking_since, None, ""
            self._transcript.thought(seconds)

    # the moving part ------------------------------------------------------------------------------------------------

    async def _redraw(self) -> None:
        while True:
            self._live.refresh()
            await asyncio.sleep(REDRAW_EVERY)

    def _moving_part(self) -> RenderableType:
        """Never taller than the screen: what has scrolled away cannot be redrawn."""
        room = max(self._console.height - 2, 3)
        body = max(room - (len(self._todos) + 2 if self._todos else 0) - 2, 3)
        parts: list[RenderableType] = []
        if thinking := self._thinking.strip():
            parts += [Text(""), Newest(Text(thinking, style="faint italic"), 4)]
        if self._markdown.pending.strip():
            parts += [Text(""), Newest(Prose(newest_part(self._markdown.pending, body)), body)]
        shown = [tool for tool in self._running.values() if tool.name not in HIDDEN][-max(body // 3, 1) :]
        for tool in shown:
            parts += [Text(""), Newest(card(tool, width=self._console.width), max(body // len(shown), 2))]
        if self._todos:
            parts += [Text(""), todo_panel(self._todos)]
        below = self._typed.shown() if self._typed else Text("")
        return Newest(Group(*parts, Text(""), self._status().append_text(below)), room)

    def _status(self) -> Text:
        now = time.monotonic()
        doing = "Thinking" if self._thinking_since is not None else "Working"
        if self._silent_since is not None:
            doing = f"Waiting for the model, {now - self._silent_since:.0f} s ·"
        status = Text(
            f"{FRAMES[int(now * 10) % len(FRAMES)]} {doing} ", style="accent", no_wrap=True, overflow="ellipsis"
        )
        return status.append(f"{now - self._started:.0f} s · Ctrl-C stops", style="faint")


class Newest:
    """The last ``lines`` lines of a renderable."""

    def __init__(self, body: RenderableType, lines: int) -> None:
        self._body = body
        self._lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in console.render_lines(self._body, options.update(height=None), pad=False)[-self._lines :]:
            yield from line
            yield Text("")


class PlainView(TurnView):
    """Args:
    progress: gets one line per finished step, notice and plan item.
    answer: gets the model's text as it comes; None keeps it back (the caller prints the final answer).
    """

    def __init__(self, progress: Console, answer: TextIO | None = None) -> None:
        self._progress = progress
        self._answer = answer
        self._in_line = False

    def text(self, delta: str) -> None:
        if self._answer is not None and (shown := clean(delta)):
            self._answer.write(shown)
            self._answer.flush()
            self._in_line = not shown.endswith("\n")

    def message_ended(self) -> None:
        if self._answer is not None and self._in_line:
            self._answer.write("\n")
            self._answer.flush()
            self._in_line = False

    def tool_finished(self, tool: ToolRun) -> None:
        if tool.name == "ask_clarification" and self._answer is not None:
            self.text(f"{tool.result}\n")
        elif tool.failed:
            self._line("✗", "bad", f"{summary(tool)}: {one_line((tool.result or '').removeprefix('Error: '), 200)}")
        elif tool.name not in HIDDEN:
            note = command_note(tool)
            glyph, style = ("✗", "bad") if is_unwell(tool) else ("●", "ok")
            self._line(glyph, style, summary(tool), f"  {note}" if note else "")

    def todos(self, todos: list[dict[str, Any]], before: list[dict[str, Any]]) -> None:
        for step in newly_done(before, todos):
            self._line("✓", "ok", one_line(step, 200))

    def notice(self, text: str) -> None:
        self._line("!", "warn", clean(text))

    def waiting(self, seconds: float | None) -> None:
        if seconds is not None:
            self._line("…", "faint", f"Waiting for the model, {seconds:.0f} s")

    def _line(self, glyph: str, style: str, text: str, note: str = "") -> None:
        line = Text(f"{glyph} ", style=style).append(text, style="none").append(note, style="faint")
        self._progress.print(line, soft_wrap=True)
