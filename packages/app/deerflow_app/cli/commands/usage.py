"""`deerflow usage`: what models used and what it cost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from deerflow_app.cli.failures import usage_failure
from deerflow_app.cli.options import AsJson, Settings, print_json

if TYPE_CHECKING:
    from deerflow.features.usage import Figures, UsageReport
    from deerflow_app.cli.client import Client

BY = ("day", "model", "agent", "person")


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
    from deerflow_app.cli.opening import open_backend

    report = asyncio.run(_report(open_backend(settings).client, by, days, everyone))
    if as_json:
        return print_json(report)
    from rich.table import Table
    from rich.text import Text

    from deerflow_app.cli.terminal import clean, make_console

    table = Table(box=None, padding=(0, 3, 0, 0), header_style="faint")
    for column in (by.upper(), "CALLS", "INPUT", "CACHED", "OUTPUT", "COST"):
        table.add_column(column, justify="left" if column == by.upper() else "right")
    for row in (*report["rows"], report["total"]):
        counts = (row["calls"], row["input_tokens"], row["cached_tokens"], row["output_tokens"])
        table.add_row(Text(clean(row["key"])), *(f"{count:,}" for count in counts), _cost(row))
    make_console().print(table)


async def _report(client: Client, by: str, days: int, everyone: bool) -> UsageReport:
    from datetime import UTC, datetime, timedelta
    from typing import Any

    since = datetime.now(UTC).date() - timedelta(days=days - 1)
    dimension: Any = by
    try:
        return await client.ausage(by=dimension, since=since, everyone=everyone)
    finally:
        await client.aclose()


def _cost(row: Figures) -> str:
    money = [f"{amount:.4f} {currency}" for currency, amount in sorted(row["cost"].items())]
    unknown = [f"{row['unpriced_calls']} calls of unknown cost"] if row["unpriced_calls"] else []
    return " + ".join(money + unknown) or "–"
