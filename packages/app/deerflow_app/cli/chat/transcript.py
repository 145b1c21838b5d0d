"""What is printed for good: the welcome, the finished parts of a conversation, an earlier conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.style import Style
from rich.text import Text

from deerflow.sandbox.interface import ProbeReport
from deerflow_app.cli.backend import is_demo
from deerflow_app.cli.chat.cards import HIDDEN, card, has_body, short_path
from deerflow_app.cli.chat.files import near
from deerflow_app.cli.chat.markdown import Prose
from deerflow_app.cli.chat.turn import ToolRun, TurnOutcome, is_failure
from deerflow_app.cli.failures import CommandFailure, turn_failure
from deerflow_app.cli.terminal import clean, duration, one_line

if TYPE_CHECKING:
    from pathlib import Path

    from deerflow_app.cli.backend import Model


class TerminalTranscript:
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

    def failure(self, failure: CommandFailure) -> None:
        text = Text("✗ ", style="bad").append(clean(failure.message), style="bad")
        if failure.remedy:
            text.append(f"\n  {failure.remedy}", style="none")
        self.block(text)

    def ending(self, outcome: TurnOutcome, files: Mapping[str, Path | None]) -> None:
        """The last lines of a turn: what was delivered and where it lies, time and tokens."""
        for virtual, file in files.items():
            self.delivered(virtual, file)
        self.block(Text(usage_line(outcome), style="faint"))

    def history(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """An earlier conversation, as it looked when it happened."""
        results = {message["tool_call_id"]: message for message in messages if message["type"] == "tool"}
        for message in messages:
            if message["type"] == "human":
                self.person(message["content"], [str(file.get("filename")) for file in message.get("files") or ()])
            elif message["type"] == "ai":
                self._assistant(message, results)

    def _assistant(self, message: Mapping[str, Any], results: Mapping[str, Mapping[str, Any]]) -> None:
        if message.get("reasoning_content"):
            self.thought()
        if error := message.get("error"):
            self.failure(turn_failure(error))
        elif text := message["content"].strip():
            self.prose(text)
        for call in message.get("tool_calls") or ():
            if (result := results.get(call["id"])) is not None:
                tool = ToolRun(call["id"], call["name"], call["args"], started=0, ended=0)
                tool.result, tool.failed = result["content"], is_failure(result)
                self.tool(tool)
                if tool.name == "present_files" and not tool.failed:
                    for path in tool.args.get("filepaths") or ():
                        self.delivered(path)


def usage_line(outcome: TurnOutcome) -> str:
    """``  12 s · 4,120 tokens in · 812 out · $0.02``."""
    parts = ["Stopped after " + duration(outcome.seconds) if outcome.stopped else duration(outcome.seconds)]
    if outcome.usage.get("total_tokens"):
        parts.append(f"{outcome.usage.get('input_tokens', 0):,} tokens in")
        parts.append(f"{outcome.usage.get('output_tokens', 0):,} out")
    parts += [f"{amount:.4f} {currency}" for currency, amount in outcome.cost.items()]
    return "  " + " · ".join(parts)


DEMO = (
    "No model is connected, so a scripted demo answers. Its words are canned; "
    "the sandbox, the commands and the files are real."
)
CONNECT = (
    ("Enter a key here", "/connect"),
    ("Or set one and start again", "export ANTHROPIC_API_KEY=…   (or OPENAI_API_KEY=…, …)"),
    ("Or write a config.yaml", "deerflow config init   and name your model in it"),
)

LEVELS = {
    "namespaces": "isolated with Linux namespaces",
    "namespaces-no-proc": "isolated with Linux namespaces, without a private /proc",
    "landlock": "confined with Landlock",
    "container": "in a container",
    "remote": "on a remote machine",
    "none": "NOT isolated: commands run as you, on this machine",
}
NETWORK = {
    "none": "network off",
    "allowlist": "network: allowed hosts only",
    "internet": "network: internet",
    "host": "network: all of this machine's",
}


def banner(
    version: str, model: Model, *, sandbox: ProbeReport | None, server: str | None = None, warnings: Sequence[str] = ()
) -> RenderableType:
    """The welcome. ``warnings`` are shown one per line, above the demo's label.

    Args:
        sandbox: of this process; None: a server has its own.
        server: its address, where one does the work.
    """
    parts: list[RenderableType] = [
        Text("\n  DeerFlow ", style="bold accent").append(version, style="faint"),
        Text(""),
        _model(model),
    ]
    notes = [*warnings]
    if server is not None:
        parts.append(_fact("server", connected(server)))
    if sandbox is not None:
        parts.append(_fact("sandbox", sandbox_label(sandbox), style="none" if sandbox.ok else "warn"))
        notes[:0] = sandbox.isolation.warnings if sandbox.isolation else ()
        notes[:0] = [] if sandbox.ok else [f"{problem.sentence} {problem.fix}" for problem in sandbox.problems]
    parts += [Padding(Text("! ", style="warn").append(clean(note)), (0, 2, 0, 2)) for note in notes]
    if is_demo(model):
        parts += [Text(""), Padding(_demo_label(), (0, 2))]
    parts += [
        Text(""),
        Text("  Type a task. /help lists the commands, Ctrl-C stops a turn, Ctrl-D leaves.", style="faint"),
    ]
    return Group(*parts)


def connected(server: str) -> str:
    """Said wherever a server does the work."""
    return f"Connected to {server}"


def model_label(model: Model) -> str:
    """The model's name as the person knows it, with the provider's id where that differs."""
    name = model.display_name or model.name
    return name if model.model in (name, model.name) or is_demo(model) else f"{name} ({model.model})"


def sandbox_label(sandbox: ProbeReport) -> str:
    """``isolated with Linux namespaces · network off``."""
    if not sandbox.ok or sandbox.isolation is None:
        return "no shell: commands cannot be run here (files can)"
    level = LEVELS.get(sandbox.isolation.level, sandbox.isolation.level)
    return f"{level} · {NETWORK.get(sandbox.isolation.network, sandbox.isolation.network)}"


def _fact(label: str, value: str, style: str = "none") -> Text:
    return Text(f"  {label:<9}", style="faint").append(clean(value), style=style)


def _model(model: Model) -> Text:
    line = _fact("model", model_label(model))
    if model.discovered_from and not is_demo(model):
        line.append(f" · {clean(str(model.discovered_from))}", style="faint")
    return line


def _demo_label() -> Panel:
    text = Text(DEMO + "\n")
    width = max(len(what) for what, _how in CONNECT)
    for what, how in CONNECT:
        text.append(f"\n{what:<{width}}   ").append(how, style="accent")
    return Panel(text, title="Demo model", title_align="left", border_style="warn", padding=(0, 1), width=92)
