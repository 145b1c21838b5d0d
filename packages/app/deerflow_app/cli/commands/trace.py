"""`deerflow trace`: when a run did what."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from deerflow_app.cli.options import AsJson, Settings, print_json

if TYPE_CHECKING:
    from deerflow.runs.timeline import Span, Timeline
    from deerflow_app.cli.client import Client

BAR = 24
"""Characters for the whole run."""
STYLES = {"error": "bad", "running": "warn", "waiting": "warn"}


def trace(
    settings: Settings,
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id of the run, or of a thread: its newest run.")],
    as_json: AsJson = False,
    as_otlp: Annotated[bool, typer.Option("--otlp", help="Print a trace of OpenTelemetry (OTLP/JSON).")] = False,
) -> None:
    """Show when a run called models and tools, what it waited for, and what that cost."""
    from deerflow_app.cli.opening import open_backend

    found = asyncio.run(_timeline(open_backend(settings).client, run))
    if as_otlp:
        from deerflow.runs.otlp import otlp

        return print_json(otlp(found))
    if as_json:
        return print_json(found)
    from rich.table import Table
    from rich.text import Text

    from deerflow_app.cli.terminal import clean, make_console

    spans = found["spans"]
    total, depths = found["elapsed_ms"], _depths(spans)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="faint", expand=True)
    for column in ("AT", "TOOK", "", "WHAT", "FIRST TOKEN", "TOKENS", "COST"):
        table.add_column(column, justify="left" if column in ("", "WHAT") else "right", no_wrap=True)
    table.add_column("DETAIL", ratio=1, no_wrap=True)
    for span in spans:
        took = max(0, (total if span["end_ms"] is None else span["end_ms"]) - span["start_ms"])
        style = STYLES.get(span["status"], "")
        what = "  " * depths[span["id"]] + f"{span['kind']} {clean(span['name'])}".strip()
        what += "" if span["status"] == "success" else f" ({clean(span['status'])})"
        table.add_row(
            _seconds(span["start_ms"]),
            _seconds(took) if took else "",
            Text(_bar(span["start_ms"], took, total), style="faint"),
            Text(what, style=style),
            _seconds(span["first_token_ms"] - span["start_ms"]) if "first_token_ms" in span else "",
            _tokens(span),
            _cost(span),
            Text(clean(span["detail"]), style="faint", overflow="ellipsis"),
        )
    console = make_console()
    console.print(table)
    cost = f"cost {found['cost']:.4f}" if found["cost"] else None
    ended = found["stop_reason"] or found["status"]
    facts = (
        ended,
        found["verification"],
        _seconds(total),
        cost,
        f"thread {found['thread_id']}",
        f"trace {found['trace_id']}",
    )
    console.print(" · ".join(filter(None, facts)), style="faint", soft_wrap=True)


async def _timeline(client: Client, run_id: str) -> Timeline:
    try:
        return await client.atimeline(run_id)
    finally:
        await client.aclose()


def _bar(start: int, took: int, total: int) -> str:
    scale = BAR / max(total, 1)
    before = min(BAR - 1, int(start * scale))
    return " " * before + "━" * max(1, min(BAR - before, round(took * scale)))


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.2f} s"


def _depths(spans: list[Span]) -> dict[int | None, int]:
    depths: dict[int | None, int] = {None: -1}
    for span in spans:
        depths[span["id"]] = depths[span["parent"]] + 1
    return depths


def _tokens(span: Span) -> str:
    tokens = span.get("input_tokens", 0), span.get("output_tokens", 0)
    cached = f" ({span['cached_tokens']:,} cached)" if span.get("cached_tokens") else ""
    return f"{tokens[0]:,}{cached} → {tokens[1]:,}" if any(tokens) else ""


def _cost(span: Span) -> str:
    cost = span.get("cost")
    return f"{cost['amount']:.4f} {cost['currency']}" if cost else ""
