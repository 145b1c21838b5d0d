"""`deerflow usage` and `deerflow trace`: what models used and what it cost, and when a run did what."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deerflow_app.cli.commands import AsJson, Settings, print_json, with_client
from deerflow_app.cli.failures import usage_failure
from deerflow_app.cli.terminal import clean, make_console

if TYPE_CHECKING:
    from deerflow.features.tracing.timeline import Span
    from deerflow.features.usage.service import Figures

BY = ("day", "model", "agent", "person")
BAR = 24
"""Characters for the whole run."""
STYLES = {"error": "bad", "running": "warn", "waiting": "warn"}


def usage(
    settings: Settings,
    by: Annotated[str, typer.Option("--by", metavar="day|model|agent|person", help="What the rows are.")] = "day",
    days: Annotated[int, typer.Option("--days", min=1, max=366, help="How many, up to today (UTC).")] = 30,
    everyone: Annotated[bool, typer.Option("--everyone", help="Of all people, for administrators.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show tokens and money of ended runs."""
    if by not in BY:
        raise usage_failure(f"There are no rows by {by!r}.", f"Use {', '.join(BY)}.")
    dimension: Any = by
    since = datetime.now(UTC).date() - timedelta(days=days - 1)
    report = with_client(settings, lambda client: client.ausage(by=dimension, since=since, everyone=everyone))
    if as_json:
        return print_json(report)
    from rich.table import Column, Table
    from rich.text import Text

    numbers = [Column(name, justify="right") for name in ("CALLS", "INPUT", "CACHED", "OUTPUT", "COST")]
    table = Table(by.upper(), *numbers, box=None, padding=(0, 3, 0, 0), header_style="faint")
    for row in (*report["rows"], report["total"]):
        counts = (row["calls"], row["input_tokens"], row["cached_tokens"], row["output_tokens"])
        table.add_row(Text(clean(row["key"])), *(f"{count:,}" for count in counts), _money(row))
    make_console().print(table)


def _money(row: Figures) -> str:
    money = [f"{amount:.4f} {currency}" for currency, amount in sorted(row["cost"].items())]
    unknown = [f"{row['unpriced_calls']} calls of unknown cost"] if row["unpriced_calls"] else []
    shown = " + ".join(money + unknown) or "–"
    return f"{shown} ({row['estimated_calls']} calls estimated)" if row["estimated_calls"] else shown


def trace(
    settings: Settings,
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id of the run, or of a thread: its newest run.")],
    as_json: AsJson = False,
    as_otlp: Annotated[bool, typer.Option("--otlp", help="Print a trace of OpenTelemetry (OTLP/JSON).")] = False,
) -> None:
    """Show when a run called models and tools, what it waited for, and what that cost."""
    found = with_client(settings, lambda client: client.atimeline(run))
    if as_otlp:
        from deerflow.features.tracing.otlp import otlp

        return print_json(otlp(found))
    if as_json:
        return print_json(found)
    from rich.table import Table
    from rich.text import Text

    total = found["elapsed_ms"]
    depths: dict[int | None, int] = {None: -1}
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="faint", expand=True)
    for column in ("AT", "TOOK", "", "WHAT", "FIRST TOKEN", "TOKENS", "COST"):
        table.add_column(column, justify="left" if column in ("", "WHAT") else "right", no_wrap=True)
    table.add_column("DETAIL", ratio=1, no_wrap=True)
    for span in found["spans"]:
        depths[span["id"]] = depths[span["parent"]] + 1
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
    facts = (
        found["stop_reason"] or found["status"],
        found["verification"],
        _seconds(total),
        f"cost {found['cost']:.4f}" if found["cost"] else None,
        f"thread {found['thread_id']}",
        f"trace {found['trace_id']}",
    )
    console.print(" · ".join(filter(None, facts)), style="faint", soft_wrap=True)


def _bar(start: int, took: int, total: int) -> str:
    scale = BAR / max(total, 1)
    before = min(BAR - 1, int(start * scale))
    return " " * before + "━" * max(1, min(BAR - before, round(took * scale)))


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.2f} s"


def _tokens(span: Span) -> str:
    tokens = span.get("input_tokens", 0), span.get("output_tokens", 0)
    cached = f" ({span['cached_tokens']:,} cached)" if span.get("cached_tokens") else ""
    return f"{tokens[0]:,}{cached} → {tokens[1]:,}" if any(tokens) else ""


def _cost(span: Span) -> str:
    cost = span.get("cost")
    return f"{cost['amount']:.4f} {cost['currency']}" if cost else ""
