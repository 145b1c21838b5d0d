"""Messages and clicks that were accepted, and how far each one came.

accepted → running | steered | asked | ignored → answered. A row is there before the platform gets its acknowledgement, and once, however
often the platform delivers it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection

from deerflow.features.channels import limits
from deerflow.features.channels.leases import Fenced
from deerflow.features.channels.stored import column, event_from_json, event_to_json, place_from_json
from deerflow.features.channels.types import Click, Event, Inbound, Place
from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.tables import channel_inbox, utc_now

MAX_AGE = timedelta(minutes=30)
TOO_OLD = "too old"
"""Why a message is ignored that the person could not know to be missed; it is summarised in its place, once."""
_ROWS = 500
"""Rows of one statement: each has 14 values, and SQLite takes 32,766."""


class InboxState(StrEnum):
    ACCEPTED = "accepted"
    RUNNING = "running"
    STEERED = "steered"
    ASKED = "asked"
    IGNORED = "ignored"
    ANSWERED = "answered"


@dataclass(frozen=True, slots=True)
class InboxRow:
    """A row of ``channel_inbox``. ``kind``: message, command (its text begins with a slash), click or schedule."""

    id: int
    connection_id: str
    message_id: str
    kind: str
    chat: str
    topic: str
    workspace: str
    author: str
    body: dict[str, Any]
    sent_at: datetime
    accepted_at: datetime
    state: str
    why: str | None
    user_id: str | None
    run_id: str | None
    tries: int
    due_at: datetime | None

    @property
    def event(self) -> Event:
        return event_from_json(self.body)


@dataclass(frozen=True, slots=True)
class _Delivery:
    connection_id: str
    events: Sequence[Event]
    cursor: str | None
    epoch: int | None
    stored: asyncio.Future[int]


class Inbox:
    """Args:
    max_age: older messages are not handled when they arrive; the engine says in their place how many there were.
    wake: called with a connection's id after something was accepted for it.
    """

    def __init__(
        self,
        database: Database,
        wake: Callable[[str], None] = lambda connection_id: None,
        *,
        max_age: timedelta = MAX_AGE,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._database = database
        self._wake = wake
        self._max_age = max_age
        self._clock = clock
        self._waiting: list[_Delivery] = []
        self._storing: asyncio.Task[None] | None = None

    async def accept(
        self, connection_id: str, events: Sequence[Event], cursor: str | None = None, *, epoch: int | None = None
    ) -> int:
        """Store events and the cursor after them in one transaction, and return how many of the events were new.

        Deliveries that come while one is being stored share the next transaction.

        Args:
            epoch: of the lease under which they were received; None where the platform calls us.

        Raises:
            Fenced: another process has the lease.
        """
        stored = asyncio.get_running_loop().create_future()
        self._waiting.append(_Delivery(connection_id, events, cursor, epoch, stored))
        if self._storing is None:
            self._storing = asyncio.create_task(self._store_waiting(), name="channels inbox")
        new = await asyncio.shield(stored)
        if new:
            self._wake(connection_id)
        return new

    def now(self) -> datetime:
        return self._clock()

    def is_late(self, event: Event) -> bool:
        """Return whether a message is too old to be handled."""
        return isinstance(event, Inbound) and event.sent_at < self._clock() - self._max_age

    async def _store_waiting(self) -> None:
        try:
            while self._waiting:
                some, self._waiting = self._waiting, []
                await self._store(some)
        finally:
            self._storing = None

    async def _store(self, some: list[_Delivery]) -> None:
        try:
            outcomes = await self._database.write(_store, some, self._clock(), self._max_age)
        except Exception as error:
            if len(some) == 1:
                _fail(some[0], error)
                return
            for one in some:  # one that cannot be stored takes no other with it
                await self._store([one])
            return
        for one, new in zip(some, outcomes, strict=True):
            if new is None:
                _fail(one, Fenced(f"Another process holds the channel {one.connection_id}."))
            elif not one.stored.done():
                one.stored.set_result(new)

    # rows, in the caller's transaction --------------------------------------------------------------------------------

    def heads(
        self, connection: Connection, connection_id: str, limit: int, but: Collection[tuple[str, str]] = ()
    ) -> tuple[list[InboxRow], datetime | None]:
        """Return the next row of each place, and when the first of those becomes due that wait.

        The oldest row of a place comes first; while it waits, the oldest command or click of that place.

        Args:
            but: (chat, topic) of places in which a row is being handled.
        """
        oldest = "min(id), min(CASE WHEN kind <> 'message' THEN id END)"
        of_places = (
            f"SELECT {oldest} FROM channel_inbox WHERE connection_id = ? AND state = 'accepted' GROUP BY chat, topic"
        )
        pairs = sql.execute(connection, f"{of_places} ORDER BY 1 LIMIT ?", connection_id, limit + len(but)).fetchall()
        rows = _by_id(connection, [id_ for pair in pairs for id_ in pair if id_ is not None])
        now, found = self._clock(), list[InboxRow]()
        due: datetime | None = None
        for first, urgent in pairs:
            if (rows[first].chat, rows[first].topic) in but:
                continue
            ready = [rows[id_] for id_ in (first, urgent) if id_ is not None and (rows[id_].due_at or now) <= now]
            waiting = [at for id_ in (first, urgent) if id_ is not None and (at := rows[id_].due_at) and at > now]
            found += ready[:1]
            known = [due] if due is not None else list[datetime]()
            due = min([*waiting, *known], default=None)
        return found[:limit], due

    def is_accepted(self, connection: Connection, row: InboxRow) -> bool:
        """Return whether nothing has become of the row yet."""
        query = "SELECT 1 FROM channel_inbox WHERE id = ? AND state = 'accepted'"
        return sql.execute(connection, query, row.id).fetchone() is not None

    def move(
        self,
        connection: Connection,
        row: InboxRow,
        state: InboxState,
        *,
        why: str | None = None,
        user_id: str | None = None,
        run_id: str | None = None,
    ) -> bool:
        """Move a row on from ``accepted``. False: it is not accepted any more, since another process has handled it."""
        changes = {"state": str(state), "why": why, "user_id": user_id, "run_id": run_id, "due_at": None}
        return bool(sql.update(connection, channel_inbox, changes, "id = ? AND state = 'accepted'", row.id))

    def answered(self, connection: Connection, run_id: str) -> None:
        """Mark all rows that a run took as answered."""
        taken = "run_id = ? AND state IN ('running', 'steered', 'asked')"
        sql.update(connection, channel_inbox, {"state": str(InboxState.ANSWERED)}, taken, run_id)

    def put_off(self, connection: Connection, row: InboxRow, seconds: float, *, failed: bool = False) -> None:
        """Handle the row later, unless it was moved on."""
        due_at = self._clock() + timedelta(seconds=seconds)
        changes = {"due_at": due_at, "tries": row.tries + failed}
        sql.update(connection, channel_inbox, changes, "id = ? AND state = 'accepted'", row.id)

    def bring_forward(self, connection: Connection, connection_id: str, place: Place) -> None:
        """Make what waits in a place due, since its run has ended. Wake the engine after the commit."""
        where = "connection_id = ? AND chat = ? AND topic = ? AND state = 'accepted' AND due_at IS NOT NULL"
        key = connection_id, column(place.chat), column(place.topic)
        sql.update(connection, channel_inbox, {"due_at": None}, where, *key)

    def waiting(self, connection: Connection, connection_id: str) -> int:
        """Return how many rows were not started yet."""
        query = "SELECT count(*) FROM channel_inbox WHERE connection_id = ? AND state = 'accepted'"
        return sql.execute(connection, query, connection_id).fetchone()[0]

    def of_run(self, connection: Connection, run_id: str) -> list[InboxRow]:
        return sql.select(connection, InboxRow, channel_inbox, "WHERE run_id = ? ORDER BY id", run_id)

    def places(self, connection: Connection, connection_id: str, limit: int = 200) -> list[Place]:
        """Return the places from which something came, the latest first."""
        query = "SELECT max(id) FROM channel_inbox WHERE connection_id = ? GROUP BY chat, topic ORDER BY 1 DESC LIMIT ?"
        ids = [id_ for (id_,) in sql.execute(connection, query, connection_id, limit)]
        rows = _by_id(connection, ids)
        return [place_from_json(rows[id_].body["place"]) for id_ in ids]

    def take_missed(self, connection: Connection, connection_id: str) -> list[tuple[InboxRow, int]]:
        """Return the last message of each place that came too late, with how many did; each is returned once."""
        where = "connection_id = ? AND state = 'ignored' AND why = ?"
        query = f"SELECT max(id), count(*) FROM channel_inbox WHERE {where} GROUP BY chat, topic"
        found = sql.execute(connection, query, connection_id, TOO_OLD).fetchall()
        sql.update(connection, channel_inbox, {"why": f"{TOO_OLD}, summarised"}, where, connection_id, TOO_OLD)
        rows = _by_id(connection, [id_ for id_, _ in found])
        return [(rows[id_], count) for id_, count in found]

    def accept_missed(self, connection: Connection, connection_id: str, place: Place) -> int:
        """Accept what came too late to a place after all, since the person asks for it; return how many rows that are."""
        where = "connection_id = ? AND chat = ? AND topic = ? AND state = 'ignored' AND why LIKE ?"
        key = connection_id, column(place.chat), column(place.topic), f"{TOO_OLD}%"
        return sql.update(connection, channel_inbox, {"state": str(InboxState.ACCEPTED), "why": None}, where, *key)


def is_addressed(event: Event) -> bool:
    """Return whether the person speaks to us, so that we may answer at all."""
    return isinstance(event, Click) or event.place.is_private or event.is_mention


def _store(connection: Connection, some: Sequence[_Delivery], now: datetime, max_age: timedelta) -> list[int | None]:
    """Store deliveries, in as few statements for many as for one; None for each one whose lease is over."""
    cursors: dict[tuple[str, int | None], str | None] = {}
    for one in some:
        key = one.connection_id, one.epoch
        cursors[key] = one.cursor if one.cursor is not None else cursors.get(key)
    held = {key for key, cursor in cursors.items() if _holds(connection, *key, cursor)}
    rows = [
        [row_of(one.connection_id, event, now, max_age) for event in one.events]
        if (one.connection_id, one.epoch) in held
        else None
        for one in some
    ]
    new = _insert(connection, [row for of_one in rows if of_one for row in of_one])
    return [None if of_one is None else sum(new.pop(_key(row), False) for row in of_one) for of_one in rows]


def _holds(connection: Connection, connection_id: str, epoch: int | None, cursor: str | None) -> bool:
    """Check a lease, hold it until the end of the transaction, and write the cursor."""
    if epoch is None:
        return True
    if cursor is not None:
        moved = "UPDATE channel_connections SET cursor = ? WHERE id = ? AND lease_epoch = ?"
        return bool(sql.change(connection, moved, cursor, connection_id, epoch))
    held = "SELECT 1 FROM channel_connections WHERE id = ? AND lease_epoch = ?" + sql.for_update(connection, "SHARE")
    return sql.execute(connection, held, connection_id, epoch).fetchone() is not None


def _insert(connection: Connection, rows: Sequence[dict[str, Any]]) -> dict[tuple[str, str], bool]:
    """Insert rows, and return the keys of those that were not there; people who write may be answered unprompted again."""
    new: dict[tuple[str, str], bool] = {}
    for begin in range(0, len(rows), _ROWS):
        some = rows[begin : begin + _ROWS]
        marks = ", ".join([f"({', '.join('?' * len(some[0]))})"] * len(some))
        statement = (
            f"INSERT INTO channel_inbox ({', '.join(some[0])}) VALUES {marks} "
            "ON CONFLICT (connection_id, message_id) DO NOTHING RETURNING connection_id, message_id"
        )
        values = (value for row in some for value in row.values())
        new |= dict.fromkeys(sql.execute(connection, statement, *values).fetchall(), True)
    limits.prompted(connection, {(row["connection_id"], row["chat"]) for row in rows if _key(row) in new})
    return new


def _key(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["connection_id"], row["message_id"]


def row_of(connection_id: str, event: Event, now: datetime, max_age: timedelta = MAX_AGE) -> dict[str, Any]:
    """Return a new row of ``channel_inbox``: accepted, or ignored because it is too old."""
    is_message = isinstance(event, Inbound)
    sent_at = event.sent_at if is_message else now
    is_late = sent_at < now - max_age
    kind = "click" if not is_message else "command" if event.text.lstrip().startswith("/") else "message"
    return {
        "connection_id": connection_id,
        "message_id": column(event.message_id if is_message else event.click_id),
        "kind": kind,
        "chat": column(event.place.chat),
        "topic": column(event.place.topic),
        "workspace": column(event.author.workspace),
        "author": column(event.author.id),
        "body": event_to_json(event),
        "sent_at": sent_at,
        "accepted_at": now,
        "state": str(InboxState.IGNORED if is_late else InboxState.ACCEPTED),
        "why": None if not is_late else TOO_OLD if is_addressed(event) else f"{TOO_OLD}, not addressed",
        "tries": 0,
    }


def _by_id(connection: Connection, ids: Collection[int]) -> dict[int, InboxRow]:
    if not ids:
        return {}
    rows = sql.select(connection, InboxRow, channel_inbox, f"WHERE id IN ({', '.join('?' * len(ids))})", *ids)
    return {row.id: row for row in rows}


def _fail(one: _Delivery, error: Exception) -> None:
    if not one.stored.done():
        one.stored.set_exception(error)
