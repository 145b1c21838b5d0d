"""What models used and what it cost: the figures of ended runs, by day, model, agent or person."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any, Literal

from typing_extensions import TypedDict

from deerflow.config.schema import SpendingConfig, SpendingLimit
from deerflow.errors import ForbiddenError, InvalidRequestError
from deerflow.identity import Principal
from deerflow.storage.budgets import SCOPES, UNPRICED, Dimension, Scope, stands, today, usage_by
from deerflow.storage.database import Database
from deerflow.storage.threads import LEAD_AGENT

By = Literal["day", "model", "agent", "person"]
DEFAULT_DAYS, MOST_DAYS, MOST_ROWS = 30, 366, 1000


class Figures(TypedDict):
    """Args:
    key: the day, model, agent or person.
    unpriced_calls: calls of models without a known price: ``cost`` lacks them.
    estimated_calls: calls of which the provider gave no figures, counted by our estimate.
    cost: money by currency.
    """

    key: str
    calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    total_tokens: int
    unpriced_calls: int
    estimated_calls: int
    cost: dict[str, float]


class UsageReport(TypedDict):
    """Days are in UTC, both included; a run counts on the day on which it ended."""

    by: By
    since: str
    until: str
    rows: list[Figures]
    total: Figures


class Limit(TypedDict):
    """A limit of the configuration, with what a person let it be extended by.

    Args:
        unit: ``tokens``, or the currency of the limits.
        used: today, reservations included; None: it is counted for each turn or thread, or by all people together.
    """

    scope: Scope
    unit: str
    limit: float
    used: float | None


class UsageService:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def report(
        self,
        principal: Principal,
        *,
        by: By = "day",
        since: date | None = None,
        until: date | None = None,
        everyone: bool = False,
        person: str | None = None,
    ) -> UsageReport:
        """The figures of the last 30 days or of the days named; the latest day first, otherwise the largest.

        Args:
            everyone: also those of others; for administrators.
            person: those of this one; for administrators, and the person.

        Raises:
            ForbiddenError: figures of others, for somebody else than an administrator.
            InvalidRequestError: more than 366 days, or an end before the beginning.
        """
        whose = person or principal.user_id
        if (everyone or whose != principal.user_id) and principal.role != "admin":
            raise ForbiddenError("Only administrators see what others used.", reason="administrators_only")
        last = until or date.fromisoformat(today())
        first = since or last - timedelta(days=DEFAULT_DAYS - 1)
        if not 0 <= (last - first).days < MOST_DAYS:
            text = f"since and until name up to {MOST_DAYS} days, the earlier one first."
            raise InvalidRequestError(text, reason="period_invalid", days=MOST_DAYS)
        column: Dimension = "user_id" if by == "person" else by
        scope = first.isoformat(), last.isoformat(), None if everyone else whose
        found, sums = await self._database.browse(
            lambda connection: [usage_by(connection, each, *scope, MOST_ROWS) for each in (column, None)]
        )
        rows: dict[str, Figures] = {}
        for row in found:
            _add(rows.setdefault(row[column], _nothing(row[column])), row)
        shown = sorted(rows.values(), key=lambda row: row["key"] if by == "day" else row["total_tokens"], reverse=True)
        total = _nothing("total")
        for row in sums:
            _add(total, row)
        return UsageReport(by=by, since=scope[0], until=scope[1], rows=shown, total=total)

    async def limits(self, principal: Principal, spending: SpendingConfig) -> list[Limit]:
        """What the configuration allows. The agent is the one that all people share, so its use is for administrators."""
        counted: dict[Scope, str] = {"person": principal.user_id}
        if principal.role == "admin":
            counted["agent"] = LEAD_AGENT
        rows = await self._database.read(
            lambda connection: {scope: stands(connection, scope, key) for scope, key in counted.items()}
        )
        found: list[Limit] = []
        for scope, (_, setting, _) in SCOPES.items():
            limit: SpendingLimit = getattr(spending, setting)
            used, extensions = rows.get(scope, (None, 0))
            for index, (unit, allowed) in enumerate((("tokens", limit.tokens), (spending.currency, limit.money))):
                if allowed is not None:
                    whole = float(allowed) * (1 + extensions)
                    found.append(Limit(scope=scope, unit=unit, limit=whole, used=used[index] if used else None))
        return found


def _nothing(key: str) -> Figures:
    zeros = dict.fromkeys(("calls", "input_tokens", "cached_tokens", "output_tokens", "total_tokens"), 0)
    return Figures(key=key, unpriced_calls=0, estimated_calls=0, cost={}, **zeros)


def _add(figures: Figures, row: dict[str, Any]) -> None:
    for name in ("calls", "input_tokens", "cached_tokens", "output_tokens", "estimated_calls"):
        figures[name] += int(row[name])
    figures["total_tokens"] = figures["input_tokens"] + figures["output_tokens"]
    if row["currency"] == UNPRICED:
        figures["unpriced_calls"] += int(row["calls"])
    else:
        figures["cost"][row["currency"]] = figures["cost"].get(row["currency"], 0.0) + row["cost"]
