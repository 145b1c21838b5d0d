"""What a turn, its thread, its person and its agent may spend, and what models used by day, person, agent and model.

What a call of a model may take is reserved before it, and replaced by what it took. The row of a run holds what it has charged so
far. A charge states the run's new total, and the difference goes to the other rows in the same transaction: so a process that dies in
a call leaves nothing that the next one does not put right. The row of a turn sums its runs, and stays until the turn has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection

from deerflow.config.schema import SpendingConfig, SpendingLimit
from deerflow.event_loop import to_its_end
from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.tables import budgets, daily_usage, utc_now

Scope = Literal["turn", "thread", "person", "agent"]
How = Literal["next", "last"]
SCOPES: dict[Scope, tuple[str, str, str]] = {
    "agent": ("per day for this agent", "per_agent_day", "Go on tomorrow (UTC)."),
    "person": ("per day and person", "per_person_day", "Go on tomorrow (UTC)."),
    "thread": ("per thread", "per_thread", "Go on in a new thread."),
    "turn": ("per turn", "per_run", "Send a message to go on."),
}
"""How a limit is called, its setting, and what helps."""
RUN, ANSWER = "run", "answer"
"""Scopes without a limit: what a run has charged, and the questions of a turn that were answered."""

SETTLE_AFTER = 0.25
"""Seconds: most tools are quicker, and the next call writes anyway."""


class Spent(NamedTuple):
    tokens: int = 0
    cost: float = 0.0


class LimitReached(Exception):
    """The next call could exceed a limit.

    Args:
        text: which, for the model and the person.
        remedy: what to do about it.
        facts: ``{setting, unit, limit, used}``; ``used`` includes what other calls have reserved.
        asks: at which limit a person may let the run go on.
    """

    def __init__(
        self, text: str, *, remedy: str = "", facts: Mapping[str, Any] | None = None, asks: Scope | None = None
    ) -> None:
        self.remedy, self.facts = remedy, dict(facts or {})
        self.asks: Scope | None = asks
        super().__init__(text)


@dataclass
class Budget:
    """The limits of one run.

    Args:
        keys: whose row each scope means, that of the run itself included.
        spent: what the run has used so far, in money of the currency of the limits.
        attended: whether a person can be asked.
        resumed: the run answers a question, perhaps this one.
    """

    database: Database
    limits: SpendingConfig
    keys: Mapping[str, str]
    spent: Callable[[str], Spent]
    attended: bool
    resumed: bool
    _reserved: dict[object, Spent] = field(default_factory=dict)
    _charged: Spent | None = None
    _timer: asyncio.TimerHandle | None = None
    _is_closed: bool = False
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def reserve(self, call: object, amount: Spent, *, last: bool = False) -> None:
        """Reserve what a call may take.

        Args:
            last: it may exceed what is left, if anything is: nothing follows it.

        Raises:
            LimitReached: and nothing was reserved.
        """
        if self._timer is not None:
            self._timer.cancel()
        async with self._one_at_a_time:
            self._reserved[call] = amount
            try:
                await self._charge("last" if last else "next", amount)
            except BaseException:
                del self._reserved[call]
                raise

    async def extend(self, scope: Scope, question: str) -> None:
        """The person lets the run go on at a limit: as much again may be spent. An answer that is replayed counts once.

        Args:
            question: identifies it in the turn.
        """
        key = f"{self.keys['turn']}/{sql.short_key(question)}"

        def answered(connection: Connection) -> None:
            row = {"scope": ANSWER, "key": key, "day": "", "tokens": 0, "cost": 0.0, "currency": "", "extensions": 0}
            if sql.insert(connection, budgets, row, "ON CONFLICT DO NOTHING").rowcount == 1:
                _add(connection, {scope: self.keys[scope]}, Spent(), self.limits.currency)
                sql.execute(connection, _EXTEND, scope, self.keys[scope], _day(scope))

        await self.database.write(answered)

    def settle(self, call: object) -> None:
        """The call has ended: what it took counts in place of what was reserved, in the database with the next call or soon."""
        del self._reserved[call]
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(SETTLE_AFTER, lambda: loop.create_task(self._settle()))

    async def cut_off(self) -> Spent:
        """Return what an earlier attempt at the run had reserved when its process died, beyond what it is known to have used."""
        own = await self.database.read(lambda connection: sql.execute(connection, _OWN, self.keys[RUN]).fetchone())
        used, charged = self.spent(self.limits.currency), own or Spent()
        return Spent(max(0, charged[0] - used.tokens), max(0.0, charged[1] - used.cost))

    async def close(self) -> None:
        """Charge nothing more: :func:`release` does the rest."""
        async with self._one_at_a_time:
            self._is_closed = True

    async def _settle(self) -> None:
        async with self._one_at_a_time:
            if not self._is_closed:
                await self._charge()

    async def _charge(self, how: How | None = None, added: Spent = Spent()) -> None:
        amounts = [self.spent(self.limits.currency), *self._reserved.values()]
        total = Spent(sum(each.tokens for each in amounts), sum(each.cost for each in amounts))
        known, self._charged = self._charged, None  # a cancelled charge may have been written
        # On PostgreSQL it could otherwise come after the end of the run.
        await to_its_end(self.database.write(self._write, known, total, how, added))
        self._charged = total

    def _write(self, connection: Connection, known: Spent | None, total: Spent, how: How | None, added: Spent) -> None:
        own = known or sql.execute(connection, _OWN, self.keys[RUN]).fetchone() or Spent()
        delta = Spent(total.tokens - own[0], total.cost - own[1])
        rows = _add(connection, self.keys, delta, self.limits.currency)
        if how is None:
            return
        for scope in SCOPES:
            if scope in rows and (reached := self._reached(scope, rows[scope], added, how)) is not None:
                raise reached

    def _reached(self, scope: Scope, row: _UsageRow, added: Spent, how: How) -> LimitReached | None:
        whose, setting, remedy = SCOPES[scope]
        limit: SpendingLimit = getattr(self.limits, setting)
        pairs = ((limit.tokens, row.tokens, added.tokens), (limit.money, row.cost, added.cost))
        for unit, (allowed, used, reserved) in zip(("tokens", self.limits.currency), pairs, strict=True):
            if allowed is None:
                continue
            before, allowed = max(0, used - reserved), allowed * (1 + row.extensions)
            if (before >= allowed) if how == "last" else used > allowed:
                return LimitReached(
                    f"the spending limit of {allowed:,.10g} {unit} {whose} is reached ({before:,.6g} used)",
                    remedy=f"{remedy} The limit is spending.{setting} in config.yaml.",
                    facts={"setting": f"spending.{setting}", "unit": unit, "limit": allowed, "used": before},
                    asks=scope if self.attended and limit.at_limit == "ask" else None,
                )
        return None


def keys_of(run_id: str, turn_id: str, thread_id: str, user_id: str, agent: str) -> dict[str, str]:
    """Whose budgets a run uses, always in the same order: two transactions that lock rows must not wait for each other."""
    return {"agent": agent, "person": user_id, RUN: run_id, "thread": thread_id, "turn": turn_id}


def release(
    connection: Connection, keys: Mapping[str, str], spent: Callable[[str], Spent], *, ends_turn: bool = False
) -> None:
    """The run has ended: what it used counts, nothing is reserved any more. ``ends_turn``: its turn has ended, too."""
    gone = "DELETE FROM budgets WHERE scope = 'run' AND key = ? RETURNING tokens, cost, currency"
    charged = sql.execute(connection, gone, keys[RUN]).fetchall()
    others = {scope: key for scope, key in keys.items() if scope != RUN}
    if ends_turn and (charged or keys["turn"] != keys[RUN]):
        forget_turn(connection, others.pop("turn"))
    for tokens, cost, currency in charged:
        total = spent(currency)
        _add(connection, others, Spent(total.tokens - tokens, total.cost - cost), currency)


def forget_turn(connection: Connection, turn_id: str) -> None:
    """The turn has ended: its limit and the questions at it are over."""
    own = f"{turn_id}/"
    sql.execute(connection, "DELETE FROM budgets WHERE scope = 'turn' AND key = ?", turn_id)
    answers = "DELETE FROM budgets WHERE scope = 'answer' AND substr(key, 1, ?) = ?"
    sql.execute(connection, answers, len(own), own)


def stands(connection: Connection, scope: Scope, key: str) -> tuple[Spent, int]:
    """What is spent or reserved now, and how often the limit was extended."""
    query = "SELECT tokens, cost, extensions FROM budgets WHERE scope = ? AND key = ? AND day = ?"
    tokens, cost, extensions = sql.execute(connection, query, scope, key, _day(scope)).fetchone() or (0, 0.0, 0)
    return Spent(tokens, cost), extensions


def spent(usage: Mapping[str, Mapping[str, Mapping[str, Any]]] | None, currency: str) -> Spent:
    """Of the usage of a run, ``{model: {caller: {...}}}``; money in other currencies is left out."""
    counted = [each for callers in (usage or {}).values() for each in callers.values()]
    tokens = sum(each["input_tokens"] + each["output_tokens"] for each in counted)
    return Spent(tokens, sum(each.get("cost", 0.0) for each in counted if each.get("currency") == currency))


class _UsageRow(NamedTuple):
    tokens: int
    cost: float
    extensions: int


_OWN = "SELECT tokens, cost FROM budgets WHERE scope = 'run' AND key = ?"
_EXTEND = "UPDATE budgets SET extensions = extensions + 1 WHERE scope = ? AND key = ? AND day = ?"
_ROW = "(?, ?, ?, ?, ?, ?, 0)"
_ADD = """INSERT INTO budgets (scope, key, day, tokens, cost, currency, extensions) VALUES {}
    ON CONFLICT (scope, key, day) DO UPDATE SET tokens = budgets.tokens + excluded.tokens,
    cost = budgets.cost + excluded.cost RETURNING scope, tokens, cost, extensions"""


def _add(connection: Connection, keys: Mapping[str, str], amount: Spent, currency: str) -> dict[str, _UsageRow]:
    values = [value for scope, key in keys.items() for value in (scope, key, _day(scope), *amount, currency)]
    rows = sql.execute(connection, _ADD.format(", ".join([_ROW] * len(keys))), *values).fetchall()
    return {row[0]: _UsageRow(*row[1:]) for row in rows}


def _day(scope: str) -> str:
    return today() if scope in ("person", "agent") else ""


def today() -> str:
    """The day in UTC, as ``2026-01-31``."""
    return utc_now().date().isoformat()


# sums of days -----------------------------------------------------------------------------------------------------------

UNPRICED = ""
"""``currency`` of calls whose cost is not known."""
COUNTED = ("calls", "input_tokens", "cached_tokens", "output_tokens", "cost", "estimated_calls")
Dimension = Literal["day", "model", "agent", "user_id"]

_SUMMED = ", ".join(f"{name} = COALESCE(daily_usage.{name}, 0) + excluded.{name}" for name in COUNTED)
_ADD_USAGE = f"ON CONFLICT (user_id, day, agent, model, currency) DO UPDATE SET {_SUMMED}"
_SUMS = ", ".join(f"COALESCE(SUM({name}), 0)" for name in COUNTED)


def add_usage(connection: Connection, user_id: str, agent: str, usage: Mapping[str, Mapping[str, Any]] | None) -> None:
    """Add what a run used, ``{model: {caller: {...}}}``, to today's sums."""
    for model, callers in (usage or {}).items():
        for counted in callers.values():
            key = {"user_id": user_id, "day": today(), "agent": agent, "model": model[:256]}
            row = {**key, "currency": counted.get("currency", UNPRICED), **{n: counted.get(n, 0) for n in COUNTED}}
            sql.insert(connection, daily_usage, row, _ADD_USAGE)


def usage_by(
    connection: Connection, by: Dimension | None, since: str, until: str, user_id: str | None, limit: int
) -> list[dict[str, Any]]:
    """Sums of the days from ``since`` to ``until``, a row for each value and currency; of everyone without ``user_id``."""
    names = [by, "currency"] if by else ["currency"]
    keys = ", ".join(names)
    whose, values = ("", ()) if user_id is None else ("AND user_id = ?", (user_id,))
    order = f"{by} DESC" if by == "day" else "SUM(input_tokens + output_tokens) DESC"
    query = f"""SELECT {keys}, {_SUMS} FROM daily_usage WHERE day BETWEEN ? AND ? {whose}
        GROUP BY {keys} ORDER BY {order} LIMIT ?"""
    rows = sql.execute(connection, query, since, until, *values, limit).fetchall()
    return [dict(zip((*names, *COUNTED), row, strict=True)) for row in rows]
