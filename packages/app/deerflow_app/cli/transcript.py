"""The finished parts of a conversation, printed for good; also how an earlier conversation is shown again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType
from rich.style import Style
from rich.text import Text

from deerflow_app.cli.cards import HIDDEN, card, has_body, short_path
from deerflow_app.cli.deliver import near
from deerflow_app.cli.failures import Failure, turn_failure
from deerflow_app.cli.markdown import Prose
from deerflow_app.cli.terminal import clean, duration, one_line
from deerflow_app.cli.turn import Outcome, ToolRun, is_failure

if TYPE_CHECKING:
    from pathlib import Path


class Transcript:
    """Prints parts with air between them."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last_was_compact = False

    def block(self, body: RenderableType, *, compact: bool = False, whole_lines: bool = False) -> None:
        """Print ``body`` after an empty line; neighbouring ``compact`` blocks (one-line cards) stand together.

        ``whole_lines`` are left for the terminal to wrap, so that a path can be copied in one piece.
        """
        if not (compact and self._last_was_compact):
            self._console.print()
        self._console.print(body, soft_wrap=whole_lines)
        self._last_was_compact = compact

    def person(self, text: str, files: Sequence[str] = ()) -> None:
        """What the person said and attached."""
        lines = clean(text).strip().splitlines() or [""]
        said = Text("\n".join([f"› {lines[0]}", *(f"  {line}" for line in lines[1:])]), style="bold")
        for name in files:
            said.append(f"\n  + {clean(name)}", style="faint")
        self.block(said)

    def prose(self, markdown: str) -> None:
        self.block(Prose(clean(markdown)))

    def tool(self, tool: ToolRun) -> None:
        """The card of a finished call; a question that ends the turn stands as prose."""
        if tool.name == "ask_clarification" and not tool.failed:
            self.prose(tool.result or "")
        elif tool.name not in HIDDEN or tool.failed:
            self.block(card(tool, width=self._console.width), compact=not has_body(tool))

    def thought(self, seconds: float | None = None) -> None:
        lasted = f" for {duration(seconds)}" if seconds is not None else ""
        self.block(Text(f"∴ Thought{lasted}", style="faint"), compact=True)

    def done(self, step: str) -> None:
        """A step of the plan was completed."""
        self.block(Text("✓ ", style="ok").append(one_line(step, 200), style="faint"), compact=True)

    def delivered(self, virtual: str, file: Path | None = None) -> None:
        """A file that was handed over, and where it lies on this machine."""
        line = Text("↓ ", style="ok").append(short_path(virtual), style="bold")
        if file is not None:
            where = clean(near(file)).replace("\n", "⏎")
            line.append("  ").append(where, style=Style(color="cyan", link=file.as_uri()))
        self.block(line, compact=True, whole_lines=True)

    def notice(self, text: str) -> None:
        self.block(Text("! ", style="warn").append(clean(text), style="warn"), compact=True)

    def failure(self, failure: Failure) -> None:
        text = Text("✗ ", style="bad").append(clean(failure.message), style="bad")
        if failure.remedy:
            text.append(f"\n  {failure.remedy}", style="none")
        self.block(text)

    def ending(self, outcome: Outcome, files: Mapping[str, Path | None]) -> None:
        """The last lines of a turn: what was delivered and where it lies, time and tokens."""
        for virtual, file in files.items():
            self.delivered(virtual, file)
        self.block(Text(usage_line(outcome), style="faint"))

    def history(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """An earlier conversation, as it looked when it happened."""
        results = {str(m.get("tool_call_id")): m for m in messages if m.get("type") == "tool"}
        for message in messages:
            if message.get("type") == "human":
                self.person(
                    str(message.get("content") or ""),
                    [str(file.get("filename")) for file in message.get("files") or ()],
                )
            elif message.get("type") == "ai":
                self._assistant(message, results)

    def _assistant(self, message: Mapping[str, Any], results: Mapping[str, Mapping[str, Any]]) -> None:
        if message.get("reasoning_content"):
            self.thought()
        if error := message.get("error"):
            self.failure(turn_failure(error))
        elif text := str(message.get("content") or "").strip():
            self.prose(text)
        for call in message.get("tool_calls") or ():
            result = results.get(str(call.get("id")))
            if result is not None:
                tool = ToolRun(str(call.get("id")), str(call.get("name")), call.get("args") or {}, started=0, ended=0)
                tool.result, tool.failed = str(result.get("content") or ""), is_failure(result)
                self.tool(tool)
                if tool.name == "present_files" and not tool.failed:
                    for path in tool.args.get("filepaths") or ():
                        self.delivered(path)


def usage_line(outcome: Outcome) -> str:
    """``  12 s · 4,120 tokens in · 812 out · $0.02``."""
    parts = ["Stopped after " + duration(outcome.seconds) if outcome.stopped else duration(outcome.seconds)]
    if outcome.usage.get("total_tokens"):
        parts.append(f"{outcome.usage.get('input_tokens', 0):,} tokens in")
        parts.append(f"{outcome.usage.get('output_tokens', 0):,} out")
    parts += [f"{amount:.4f} {currency}" for currency, amount in outcome.cost.items()]
    return "  " + " · ".join(parts)
