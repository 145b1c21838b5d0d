"""Messages that go to platforms: one row for each, and how far it came.

pending → sending → sent | uncertain | dead. An answer is a placeholder and edits of it: only the placeholder can be sent twice. Every
function takes a SQLAlchemy connection, so that a run and its placeholder are one transaction; call ``wake`` after the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection

from deerflow.features.channels import limits
from deerflow.features.channels.leases import Fenced
from deerflow.features.channels.stored import button_from_json, column, place_from_json, place_to_json
from deerflow.features.channels.types import Button, Caps, Part, Place, Ref
from deerflow.storage import sql
from deerflow.storage.tables import channel_outbox, utc_now

MARK = " (may be a duplicate)"
"""Ends a text that was perhaps sent before. ``render`` leaves room for it."""
PLACEHOLDER = "…"
GIVEN_UP = timedelta(hours=24)
WAITING = "state IN ('pending', 'sending', 'uncertain')"


@dataclass(frozen=True, slots=True)
class Target:
    """Destination of a message. ``wake``: of the message that it answers, if the platform needs that."""

    connection_id: str
    place: Place
    wake: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A row of ``channel_outbox``. ``is_final``: it must arrive; others are progress, of which only the newest counts."""

    id: int
    connection_id: str
    chat: str
    topic: str
    place: dict[str, Any]
    turn: str
    part: int
    kind: str
    body: dict[str, Any]
    is_final: bool
    key: str
    wake: dict[str, Any]
    state: str
    ref: dict[str, Any] | None
    seq: int
    sent_seq: int
    tries: int
    tried_at: datetime | None
    is_marked: bool
    due_at: datetime
    error: str | None
    created_at: datetime
    updated_at: datetime

    @property
    def target(self) -> Target:
        return Target(self.connection_id, place_from_json(self.place), self.wake)

    @property
    def content(self) -> Part:
        """Return the content to send of a row of the kind ``text``."""
        buttons = [button_from_json(one) for one in self.body["buttons"]]
        return Part(self.body["text"] + MARK * self.is_marked, buttons, self.body["is_final"])


class Outbox:
    """Args:
    wake: called with a connection's id when something may be sent.
    """

    def __init__(
        self,
        wake: Callable[[str], None] = lambda connection_id: None,
        *,
        given_up: timedelta = GIVEN_UP,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.wake = wake
        self.clock = clock
        self._given_up = given_up

    # what is to be sent -----------------------------------------------------------------------------------------------

    def replace(
        self,
        connection: Connection,
        target: Target,
        turn: str,
        part: int,
        text: str,
        buttons: Sequence[Button] = (),
        is_final: bool = False,
    ) -> int:
        """Make this the text of a turn's part, and return the row's id.

        However often it is called, one message with the newest text is sent. Progress (not final) may be left out and never replaces a
        final text; on platforms without edits it is not sent.

        Args:
            turn: the id of the turn, unique in the connection.
            text: written by ``render`` for the platform's dialect.
        """
        body = _text(text, buttons, is_final)
        query = f"WHERE connection_id = ? AND turn = ? AND kind = 'text' AND part = ?{sql.for_update(connection)}"
        key = target.connection_id, column(turn), part
        known = sql.first(connection, OutboxRow, channel_outbox, query, *key)
        if known is None:
            return self._insert(connection, target, turn, part, "text", body, is_final)
        if known.state == "dead" or (known.body["is_final"] and not is_final) or known.body == body:
            return known.id
        changes = {
            "body": body,
            "is_final": is_final,
            "seq": known.seq + 1,
            "wake": sql.storable(dict(target.wake)) if target.wake else known.wake,
            "updated_at": self.clock(),
        }
        if known.state == "sent":
            changes |= {"state": "pending", "due_at": self.clock()}
        sql.update(connection, channel_outbox, changes, "id = ?", known.id)
        return known.id

    def file(
        self,
        connection: Connection,
        target: Target,
        turn: str,
        part: int,
        path: str,
        *,
        thread_id: str,
        user_id: str,
        caption: str = "",
    ) -> int:
        """Send a file of a thread, and return the row's id; a second call for the same turn and part changes nothing.

        Args:
            part: counts the files of a turn, apart from its texts.
            path: virtual path in the thread, such as ``/mnt/user-data/outputs/report.pdf``.
        """
        body = sql.storable({"path": path, "thread_id": thread_id, "user_id": user_id, "caption": caption})
        return self._insert(connection, target, turn, part, "file", body, True)

    def deliver(self, connection: Connection, target: Target, text: str, *, key: str = "") -> int:
        """Send a text that belongs to no turn, such as a notice or what a schedule made; return the row's id.

        Args:
            key: what makes a second call for the same thing change nothing.
        """
        body = _text(text, is_final=True)
        return self._insert(connection, target, f"notice:{key or uuid4().hex}", 0, "text", body, True)

    def unfinished(self, connection: Connection, connection_id: str) -> list[str]:
        """Return the turns of which a message shows progress, those that began first before others."""
        query = (
            "SELECT turn FROM channel_outbox WHERE connection_id = ? AND NOT is_final AND state <> 'dead' "
            "GROUP BY turn ORDER BY min(id)"
        )
        return [turn for (turn,) in sql.execute(connection, query, connection_id)]

    def refs(self, connection: Connection, connection_id: str, chat: str) -> list[Ref]:
        """Return what the newest messages of a chat are called on the platform."""
        query = "SELECT ref FROM channel_outbox WHERE connection_id = ? AND chat = ? AND ref IS NOT NULL ORDER BY id DESC LIMIT 500"
        return [sql.loads(ref) for (ref,) in sql.execute(connection, query, connection_id, chat).fetchall()]

    def get(self, connection: Connection, row_id: int) -> OutboxRow | None:
        return sql.first(connection, OutboxRow, channel_outbox, "WHERE id = ?", row_id)

    # for the sender ---------------------------------------------------------------------------------------------------

    def heads(
        self, connection: Connection, connection_id: str, caps: Caps, limit: int, but: Collection[tuple[str, str]] = ()
    ) -> tuple[list[OutboxRow], datetime | None]:
        """Return the next row of each place that may be tried now, and when the first of those that wait may be.

        What must arrive comes before progress, a lower id before a higher one.

        Args:
            but: (chat, topic) of places to which something is being sent.
        """
        now = self.clock()
        if (until := limits.blocked_until(connection, connection_id)) and until > now:
            return [], until
        first = "min(CASE WHEN is_final THEN id END)"
        if caps.edits:
            first = "coalesce(min(CASE WHEN is_final OR ref IS NULL THEN id END), min(id))"
        heads = f"SELECT {first} FROM channel_outbox WHERE connection_id = ? AND {WAITING} GROUP BY chat, topic"
        rows = sql.select(
            connection,
            OutboxRow,
            channel_outbox,
            f"WHERE id IN ({heads}) ORDER BY due_at, id LIMIT ?",
            *(connection_id, limit + len(but) + 1),
        )
        rows = [row for row in rows if (row.chat, row.topic) not in but]
        waiting = [row.due_at for row in rows if row.due_at > now]
        return [row for row in rows if row.due_at <= now][:limit], min(waiting, default=None)

    def begin(self, connection: Connection, row: OutboxRow, epoch: int, caps: Caps) -> OutboxRow | None:
        """Take a row for sending, and return what it holds now: ``state`` is then pending, or uncertain if it may have been sent.
        None: not now.

        Raises:
            Fenced: another process has the lease.
        """
        now = self.clock()
        query = f"WHERE id = ?{sql.for_update(connection)}"
        current = sql.first(connection, OutboxRow, channel_outbox, query, row.id)
        if not _is_held(connection, row, epoch):
            raise Fenced(f"Another process holds the channel {row.connection_id}.")
        if current is None or current.state in ("sent", "dead"):
            return None
        # The caller has the lease and does not send this row: whoever did has died, or could not record the outcome.
        before = "pending" if current.state == "pending" else "uncertain"
        until = limits.blocked_until(connection, row.connection_id, row.chat)
        if current.ref is None and (until is None or until <= now):
            until = limits.take_post(connection, row.connection_id, row.chat, caps, now)
        if until is not None and until > now:
            sql.update(connection, channel_outbox, {"state": before, "due_at": until}, "id = ?", row.id)
            return None
        if caps.edits and current.kind == "text" and current.ref is None and current.seq > 1:
            # It began as a placeholder, and goes as one: an answer that is an edit cannot come twice.
            current = replace(current, body=_text(PLACEHOLDER), is_final=False, seq=0)
        changes: dict[str, Any] = {"state": "sending"}
        if current.ref is None:
            changes |= self._first_try(current, before, caps, now)
        else:
            changes["seq"] = current.seq + 1  # a platform may refuse a number that it has seen
        sql.update(connection, channel_outbox, changes, "id = ?", row.id)
        return replace(current, **{**changes, "state": before})

    def is_given_up(self, row: OutboxRow) -> bool:
        """Return whether it is too late to try again."""
        return row.updated_at + self._given_up < self.clock()

    def sent(self, connection: Connection, row: OutboxRow, epoch: int, ref: Ref, seq: int | None = None) -> None:
        """Record what the platform has; what was replaced meanwhile is sent next.

        Args:
            seq: the content that is there for certain, if it is not the row's.
        """
        seq = row.seq if seq is None else seq
        changes = {"ref": sql.storable(dict(ref)), "sent_seq": seq, "tries": 0, "error": None, "due_at": self.clock()}
        if self._settle(connection, row, epoch, changes):
            again = (
                "UPDATE channel_outbox SET state = CASE WHEN seq > sent_seq THEN 'pending' ELSE 'sent' END WHERE id = ?"
            )
            sql.execute(connection, again, row.id)

    def later(
        self, connection: Connection, row: OutboxRow, epoch: int, due_at: datetime, error: str, tries: int = 0
    ) -> None:
        """Record that nothing was sent: it is tried again at ``due_at``. An edit that is only progress is dropped."""
        if self._drop(connection, row, epoch, error):
            return
        changes = {"state": row.state, "due_at": due_at, "error": error, "tries": row.tries + tries}
        if row.state == "pending" and row.ref is None:
            changes["tried_at"] = None
        self._settle(connection, row, epoch, changes)

    def uncertain(self, connection: Connection, row: OutboxRow, epoch: int, due_at: datetime, error: str) -> None:
        """Record that it may have been sent."""
        if not self._drop(connection, row, epoch, error):
            changes = {"state": "uncertain", "due_at": due_at, "error": error, "tries": row.tries + 1}
            self._settle(connection, row, epoch, changes)

    def repost(self, connection: Connection, row: OutboxRow, epoch: int, error: str) -> None:
        """Record that the sent message cannot be edited any more: what must arrive is sent as a new one."""
        if not self._drop(connection, row, epoch, error):
            may_be_there = row.is_marked or (row.is_final and row.state == "uncertain")
            changes = {"state": "pending", "ref": None, "tried_at": None, "key": uuid4().hex, "error": error}
            changes["is_marked"] = may_be_there
            self._settle(connection, row, epoch, changes)

    def dead(self, connection: Connection, row: OutboxRow, epoch: int, error: str) -> bool:
        """Give the row up. False: another process has it."""
        return self._settle(connection, row, epoch, {"state": "dead", "error": error})

    def _drop(self, connection: Connection, row: OutboxRow, epoch: int, error: str) -> bool:
        """Forget an edit without which the answer is complete, unless newer text came meanwhile. False: the row is no such."""
        if row.ref is None or row.is_final:
            return False
        if self._settle(connection, row, epoch, {"error": error}):
            dropped = "UPDATE channel_outbox SET state = CASE WHEN seq > ? THEN 'pending' ELSE 'sent' END WHERE id = ?"
            sql.execute(connection, dropped, row.seq, row.id)
        return True

    def _insert(
        self,
        connection: Connection,
        target: Target,
        turn: str,
        part: int,
        kind: str,
        body: dict[str, Any],
        is_final: bool,
    ) -> int:
        now, turn = self.clock(), column(turn)
        row = {
            "connection_id": target.connection_id,
            "chat": column(target.place.chat),
            "topic": column(target.place.topic),
            "place": place_to_json(target.place),
            "turn": turn,
            "part": part,
            "kind": kind,
            "body": body,
            "is_final": is_final,
            "key": uuid4().hex,
            "wake": sql.storable(dict(target.wake)),
            "state": "pending",
            "seq": 1,
            "sent_seq": 0,
            "tries": 0,
            "is_marked": False,
            "due_at": now,
            "created_at": now,
            "updated_at": now,
        }
        once = "ON CONFLICT (connection_id, turn, kind, part) DO NOTHING"
        sql.insert(connection, channel_outbox, row, once)
        query = "SELECT id FROM channel_outbox WHERE connection_id = ? AND turn = ? AND kind = ? AND part = ?"
        return sql.execute(connection, query, target.connection_id, turn, kind, part).fetchone()[0]

    def _first_try(self, row: OutboxRow, before: str, caps: Caps, now: datetime) -> dict[str, Any]:
        """Return the changes of a row that is sent as a new message. A placeholder is never marked: its edits are the answer."""
        if not row.is_final and not caps.key_window:
            return {}
        if before == "pending" or row.tried_at is None:
            return {"tried_at": now}
        in_window = row.tried_at + timedelta(seconds=caps.key_window) > now
        return {"is_marked": row.is_marked or (row.is_final and not in_window)}

    def _settle(self, connection: Connection, row: OutboxRow, epoch: int, changes: Mapping[str, Any]) -> bool:
        if not _is_held(connection, row, epoch):
            return False
        return bool(sql.update(connection, channel_outbox, changes, "id = ? AND state = 'sending'", row.id))


def _text(text: str, buttons: Sequence[Button] = (), is_final: bool = False) -> dict[str, Any]:
    return sql.storable({"text": text, "buttons": [asdict(one) for one in buttons], "is_final": is_final})


def _is_held(connection: Connection, row: OutboxRow, epoch: int) -> bool:
    held = "SELECT 1 FROM channel_connections WHERE id = ? AND lease_epoch = ?" + sql.for_update(connection, "SHARE")
    return sql.execute(connection, held, row.connection_id, epoch).fetchone() is not None
