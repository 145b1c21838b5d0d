"""What models used, summed by day, person, agent and model, in the transaction that ends a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from sqlalchemy import Connection

from deerflow.storage import sql
from deerflow.storage.tables import daily_usage, utc_now

UNPRICED = ""
"""``currency`` of calls whose cost is not known."""
COUNTED = ("calls", "input_tokens", "cached_tokens", "output_tokens", "cost")
Dimension = Literal["day", "model", "agent", "user_id"]

_ADDED = ", ".join(f"{name} = daily_usage.{name} + excluded.{name}" for name in COUNTED)
_ADD = f"ON CONFLICT (user_id, day, agent, model, currency) DO UPDATE SET {_ADDED}"
_SUMS = ", ".join(f"SUM({name})" for name in COUNTED)


def add_usage(connection: Connection, user_id: str, agent: str, usage: Mapping[str, Mapping[str, Any]] | None) -> None:
    """Add what a run used, ``{model: {caller: {...}}}``, to today's sums."""
    for model, callers in (usage or {}).items():
        for counted in callers.values():
            key = {"user_id": user_id, "day": today(), "agent": agent, "model": model[:256]}
            row = {**key, "currency": counted.get("currency", UNPRICED), **{n: counted.get(n, 0) for n in COUNTED}}
            sql.insert(connection, daily_usage, row, _ADD)


def usage_by(
    connection: Connection, by: Dimension | None, since: str, until: str, user_id: str | None, limit: int
) -> list[dict[str, Any]]:
    """Sums of the days from ``since`` to ``until``, a row for each value and currency; of everyone without ``user_id``."""
    keys = ", ".join([by, "currency"] if by else ["currency"])
    whose = "AND user_id = ?" if user_id is not None else ""
    order = f"{by} DESC" if by == "day" else "SUM(input_tokens + output_tokens) DESC"
    query = f"""SELECT {keys}, {_SUMS} FROM daily_usage WHERE day BETWEEN ? AND ? {whose}
        GROUP BY {keys} ORDER BY {order} LIMIT ?"""
    values = [since, until, *([user_id] if user_id is not None else []), limit]
    names = [*([by] if by else []), "currency", *COUNTED]
    rows = sql.execute(connection, query, *values).fetchall()
    return [{name: value for name, value in zip(names, row, strict=True)} for row in rows]


def today() -> str:
    """The day in UTC, as ``2026-01-31``."""
    return utc_now().date().isoformat()
