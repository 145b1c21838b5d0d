"""Rows of what agents remember of people: facts, found by their words, and the summaries beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection

from deerflow.config.switches import MEMORY
from deerflow.storage import sql
from deerflow.storage.search import owner_word, words_of
from deerflow.storage.tables import memory_facts, memory_sections, utc_now
from deerflow.storage.threads import find

_COLUMNS = "user_id = ? AND agent = ?"
_HOLDS = f"{_COLUMNS} AND ended_at IS NULL AND (expires_at IS NULL OR expires_at > ?)"
_CONFIRMED = f"{_HOLDS} AND untrusted IS NULL"


class Owner(NamedTuple):
    """Whose memory it is: of a person, with a custom agent or with the lead agent (empty)."""

    user_id: str
    agent: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """Args:
    source: the thread that it was learned in, ``manual`` or ``unknown``.
    message_id: of the message there that it comes from.
    source_error: of a correction: what was wrong before.
    untrusted: where the text came from that neither the person nor the agent wrote, of a fact that the person has not confirmed:
        it is shown to them alone. None: the fact is confirmed, or the person's own.
    ended_at: since when it does not hold any more; it can be restored for some time.
    superseded_by: id of the fact that holds instead.
    """

    id: str
    content: str
    category: str
    confidence: float
    source: str
    created_at: datetime
    message_id: str | None = None
    source_error: str | None = None
    untrusted: str | None = None
    used_at: datetime | None = None
    expires_at: datetime | None = None
    ended_at: datetime | None = None
    superseded_by: str | None = None

    def holds(self, now: datetime) -> bool:
        return self.ended_at is None and (self.expires_at is None or self.expires_at > now)


class OwnedRows:
    """The memory of one owner in a transaction. See :class:`deerflow.features.memory.store.OwnedMemory`."""

    def __init__(self, connection: Connection, owner: Owner) -> None:
        self._connection = connection
        self._owner = owner

    def sections(self) -> tuple[Mapping[str, Any], datetime | None]:
        found = self._execute(f"SELECT sections, updated_at FROM memory_sections WHERE {_COLUMNS}").fetchone()
        if found is None:
            return {}, None
        stored, updated_at = found
        return sql.loads(stored), sql.moment(updated_at)

    def touch(self, sections: Mapping[str, Any] | None = None) -> None:
        row = {**self._owner._asdict(), "sections": dict(sections or {}), "updated_at": utc_now()}
        new = "updated_at = excluded.updated_at" + (", sections = excluded.sections" if sections is not None else "")
        sql.insert(self._connection, memory_sections, row, f"ON CONFLICT (user_id, agent) DO UPDATE SET {new}")

    def live(self, *, category: str | None = None, limit: int = 1_000_000) -> list[Fact]:
        only, values = ("AND category = ?", [category]) if category is not None else ("", [])
        tail = f"WHERE {_CONFIRMED} {only} ORDER BY confidence DESC, created_at DESC, id LIMIT ?"
        return self._facts(tail, utc_now(), *values, limit)

    def unconfirmed(self) -> list[Fact]:
        tail = f"WHERE {_HOLDS} AND untrusted IS NOT NULL ORDER BY created_at DESC, id"
        return self._facts(tail, utc_now())

    def find(self, words: Sequence[str], limit: int) -> list[Fact]:
        if not words:
            return []
        if self._connection.dialect.name == "sqlite":
            any_of = " OR ".join(f'"{word}"' for word in words)
            matching, where = f'"{self._word()}" AND ({any_of})', "memory_index MATCH ? ORDER BY rank"
            values = [matching]
        else:
            matching = " | ".join(f"'{word}'" for word in words)
            where = "words @@ (CAST(? AS tsquery) && CAST(? AS tsquery)) ORDER BY ts_rank(words, CAST(? AS tsquery), 1) DESC"
            values = [f"'{self._word()}'", matching, matching]
        best = f"SELECT rowid FROM memory_index WHERE {where} LIMIT ?"
        return self._facts(f"WHERE {_CONFIRMED} AND number IN ({best})", utc_now(), *values, limit)

    def get(self, fact_id: str) -> Fact | None:
        return next(iter(self._facts(f"WHERE {_COLUMNS} AND id = ?", fact_id)), None)

    def superseded_by(self, fact_id: str) -> list[Fact]:
        return self._facts(f"WHERE {_COLUMNS} AND superseded_by = ?", fact_id)

    def of_source(self, source: str) -> list[Fact]:
        return self._facts(f"WHERE {_HOLDS} AND source = ?", utc_now(), source)

    def put(self, fact: Fact) -> None:
        row = {**self._owner._asdict(), **asdict(fact)}
        new = ", ".join(f"{name} = excluded.{name}" for name in row if name not in ("user_id", "agent", "id"))
        upsert = f"ON CONFLICT (user_id, agent, id) DO UPDATE SET {new} RETURNING number"
        (number,) = sql.insert(self._connection, memory_facts, row, upsert).fetchone()
        sql.execute(self._connection, "DELETE FROM memory_index WHERE rowid = ?", number)
        if fact.ended_at is None and fact.untrusted is None:  # what others wrote must not crowd out what is confirmed
            indexed = [self._word(), *dict.fromkeys(words_of(fact.content))]
            sqlite = self._connection.dialect.name == "sqlite"
            value, words = ("?", " ".join(indexed)) if sqlite else ("array_to_tsvector(CAST(? AS text[]))", indexed)
            sql.execute(self._connection, f"INSERT INTO memory_index (rowid, words) VALUES (?, {value})", number, words)

    def used(self, fact_ids: Sequence[str]) -> None:
        marks = ", ".join("?" * len(fact_ids))
        sql.update(
            self._connection,
            memory_facts,
            {"used_at": utc_now()},
            f"{_COLUMNS} AND id IN ({marks})",
            *self._owner,
            *fact_ids,
        )

    def purge(self, ended_before: datetime | None = None) -> None:
        """Delete what has ended before then; None: everything."""
        past, values = ("AND ended_at < ?", [ended_before]) if ended_before is not None else ("", [])
        self._execute(f"DELETE FROM memory_facts WHERE {_COLUMNS} {past}", *values)

    def _word(self) -> str:
        return owner_word("/".join(self._owner))

    def _facts(self, tail: str, *values: Any) -> list[Fact]:
        return sql.select(self._connection, Fact, memory_facts, tail, *self._owner, *values)

    def _execute(self, statement: str, *values: Any) -> Any:
        return sql.execute(self._connection, statement, *self._owner, *values)


def is_new(connection: Connection, owner: Owner) -> bool:
    """Whether the memory is used for the first time; it is not a second time."""
    row = {**owner._asdict(), "sections": {}, "updated_at": utc_now()}
    return sql.insert(connection, memory_sections, row, "ON CONFLICT DO NOTHING").rowcount == 1


# how far threads were read ---------------------------------------------------------------------------------------------


class Watermark(NamedTuple):
    """Facts were taken from a thread up to this message; ``is_read``: also from it."""

    message_id: str
    is_read: bool


def watermark(connection: Connection, thread_id: str) -> Watermark | None:
    query = "SELECT message_id, is_read FROM memory_watermarks WHERE thread_id = ?"
    found = sql.execute(connection, query, thread_id).fetchone()
    return Watermark(found[0], bool(found[1])) if found else None


def begin_reading(connection: Connection, thread_id: str, message_id: str) -> None:
    """Facts are to be taken from this message on, unless the thread has a watermark already."""
    statement = "INSERT INTO memory_watermarks (thread_id, message_id, is_read) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
    sql.execute(connection, statement, thread_id, message_id, False)


def skip(connection: Connection, thread_id: str, message_id: str) -> None:
    """Facts are taken from nothing up to this message."""
    statement = """INSERT INTO memory_watermarks (thread_id, message_id, is_read) VALUES (?, ?, ?)
        ON CONFLICT (thread_id) DO UPDATE SET message_id = excluded.message_id, is_read = excluded.is_read"""
    sql.execute(connection, statement, thread_id, message_id, True)


def is_paused(connection: Connection, thread_id: str) -> bool:
    """Whether its person wants a thread neither to use nor to make memories."""
    thread = find(connection, thread_id)
    return thread is not None and MEMORY in thread.switched_off


def advance(connection: Connection, thread_id: str, before: Watermark, message_id: str) -> bool:
    """Move the watermark behind a message. False: it was moved meanwhile, or the thread has gone."""
    statement = """UPDATE memory_watermarks SET message_id = ?, is_read = ?
        WHERE thread_id = ? AND message_id = ? AND is_read = ?"""
    return sql.change(connection, statement, message_id, True, thread_id, *before) == 1


def put_row(connection: Connection, row: Mapping[str, Any]) -> None:
    """Write a row of ``memory_facts`` as another database has it, its index included."""
    fact = Fact(**{field.name: row[field.name] for field in fields(Fact)})
    OwnedRows(connection, Owner(row["user_id"], row["agent"])).put(fact)
