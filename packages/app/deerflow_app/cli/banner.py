"""The first lines of a chat: what runs, how well it is confined, and what to know before one starts."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text

from deerflow.sandbox.interface import ProbeReport
from deerflow_app.cli.client import Model, is_demo
from deerflow_app.cli.terminal import clean

DEMO = (
    "No model is connected, so a scripted demo answers. Its words are canned; "
    "the sandbox, the commands and the files are real."
)
CONNECT = (
    ("Set a key and start again", "export ANTHROPIC_API_KEY=…   (or OPENAI_API_KEY=…, …)"),
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
        line.append(f" · {clean(model.discovered_from)}", style="faint")
    return line


def _demo_label() -> Panel:
    text = Text(DEMO + "\n")
    width = max(len(what) for what, _how in CONNECT)
    for what, how in CONNECT:
        text.append(f"\n{what:<{width}}   ").append(how, style="accent")
    return Panel(text, title="Demo model", title_align="left", border_style="warn", padding=(0, 1), width=92)
