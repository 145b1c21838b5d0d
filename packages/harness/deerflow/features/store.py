"""LangGraph's store over the database, apart for each user: what agents remember across threads. The service is its HTTP side."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import orjson
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)
from sqlalchemy import ColumnElement, Connection, Row, and_, delete, func, or_, select, true, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite

from deerflow.errors import InvalidRequestError
from deerflow.identity import Principal
from deerflow.storage.database import Database
from deerflow.storage.json_filter import matches
from deerflow.storage.tables import store_items, utc_now
from deerflow.storage.visibility import changeable_by, readable_by

SEPARATOR = "\x1f"
NAMESPACE_LENGTH = 512
KEY_LENGTH = 256
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


class DatabaseStore(BaseStore):
    """The store of one user. Cheap: make one per run. To be made on the event loop that the database belongs to.

    Items with a time to live are gone when it is over, whether or not their rows still are. There is no vector index:
    ``query`` and ``index`` have no effect, and a search gives the items written last first.

    The synchronous methods work from other threads, as tools use them; on the event loop itself they raise
    ``asyncio.InvalidStateError``.

    Raises (from every method):
        InvalidNamespaceError: a namespace or key is too long or holds control characters.
        ValueError: a value is no JSON, or a filter cannot be used.
    """

    supports_ttl = True
    __slots__ = ("_clock", "_database", "_loop", "_principal")

    def __init__(self, database: Database, principal: Principal, *, clock: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._principal = principal
        self._clock = clock
        self._loop = asyncio.get_running_loop()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is self._loop:
            raise asyncio.InvalidStateError("On the event loop use aget, aput, asearch and their kin.")
        return asyncio.run_coroutine_threadsafe(self.abatch(ops), self._loop).result()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """All reads see the store as it was before the writes of the batch; of several writes to one key the last counts."""
        batch = list(ops)
        puts = {(op.namespace, op.key): op for op in batch if isinstance(op, PutOp)}
        for op in puts.values():
            _check_put(op)
        # In one order everywhere, so that batches that meet do not lock each other out.
        work = _Batch(self._principal, self._clock(), batch, [puts[place] for place in sorted(puts)])
        lists = any(isinstance(op, SearchOp | ListNamespacesOp) for op in batch)
        read = self._database.browse if lists else self._database.read
        results = await (self._database.write if puts else read)(work.run)
        if work.read_now:
            await self._database.write(work.refresh)
        return results


@dataclass
class _Batch:
    principal: Principal
    now: datetime
    ops: list[Op]
    puts: list[PutOp]
    read_now: set[tuple[str, str]] = field(default_factory=set)
    """Namespace and key of items with a time to live that begins anew since they were read."""

    def run(self, connection: Connection) -> list[Result]:
        self.read_now.clear()
        results: list[Result] = [self._read(connection, op) for op in self.ops]
        if self.puts:
            # Here, so that no timer is needed; and an expired item that is written again is a new one.
            connection.execute(delete(store_items).where(self._changeable(), store_items.c.expires_at <= self.now))
        for op in self.puts:
            self._put(connection, op)
        return results

    def refresh(self, connection: Connection) -> None:
        rows = connection.execute(
            select(store_items.c.namespace, store_items.c.key, store_items.c.ttl_minutes).where(
                self._visible(), tuple_(store_items.c.namespace, store_items.c.key).in_(sorted(self.read_now))
            )
        ).all()
        for namespace, key, minutes in rows:
            if minutes is not None:
                connection.execute(
                    update(store_items)
                    .where(self._changeable(), _at(namespace, key))
                    .values(expires_at=self.now + timedelta(minutes=minutes))
                )

    def _read(self, connection: Connection, op: Op) -> Result:
        if isinstance(op, GetOp):
            return self._get(connection, op)
        if isinstance(op, SearchOp):
            return self._search(connection, op)
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(connection, op)
        if isinstance(op, PutOp):
            return None
        raise ValueError(f"Unknown operation type: {type(op)}")

    def _get(self, connection: Connection, op: GetOp) -> Item | None:
        here = _at(SEPARATOR.join(op.namespace), op.key)
        row = connection.execute(select(store_items).where(self._visible(), here)).one_or_none()
        if row is None:
            return None
        self._was_read(row, op.refresh_ttl)
        return Item(**_fields(row))

    def _search(self, connection: Connection, op: SearchOp) -> list[SearchItem]:
        wanted = matches(connection, store_items.c.value, op.filter, operators=True) if op.filter else true()
        found = connection.execute(
            select(store_items)
            .where(self._visible(), _below(op.namespace_prefix), wanted)
            .order_by(store_items.c.updated_at.desc(), store_items.c.namespace.desc(), store_items.c.key.desc())
            .limit(op.limit)
            .offset(op.offset)
        ).all()
        for row in found:
            self._was_read(row, op.refresh_ttl)
        return [SearchItem(**_fields(row)) for row in found]

    def _namespaces(self, connection: Connection, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        names = connection.scalars(select(store_items.c.namespace).where(self._visible()).distinct())
        all_ = (tuple(name.split(SEPARATOR)) for name in names)
        found = {
            path[: op.max_depth]
            for path in all_
            if all(_fits(condition, path) for condition in op.match_conditions or ())
        }
        return sorted(found)[op.offset : op.offset + op.limit]

    def _put(self, connection: Connection, op: PutOp) -> None:
        namespace = SEPARATOR.join(op.namespace)
        if op.value is None:
            connection.execute(delete(store_items).where(self._changeable(), _at(namespace, op.key)))
            return
        insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
        new = {
            "value": dict(op.value),
            "updated_at": self.now,
            "ttl_minutes": op.ttl,
            "expires_at": None if op.ttl is None else self.now + timedelta(minutes=op.ttl),
        }
        made = insert(store_items).values(
            user_id=self.principal.user_id, namespace=namespace, key=op.key, created_at=self.now, **new
        )
        connection.execute(made.on_conflict_do_update(index_elements=["user_id", "namespace", "key"], set_=new))

    def _was_read(self, row: Row[Any], refresh: bool) -> None:
        if refresh and row.ttl_minutes is not None:
            self.read_now.add((row.namespace, row.key))

    def _changeable(self) -> ColumnElement[bool]:
        return changeable_by(self.principal, store_items)

    def _visible(self) -> ColumnElement[bool]:
        expires = store_items.c.expires_at
        return and_(readable_by(self.principal, store_items), or_(expires.is_(None), expires > self.now))


def _at(namespace: str, key: str) -> ColumnElement[bool]:
    return and_(store_items.c.namespace == namespace, store_items.c.key == key)


def _fields(row: Row[Any]) -> dict[str, Any]:
    return {
        "namespace": tuple(row.namespace.split(SEPARATOR)),
        "key": row.key,
        "value": row.value,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def _below(prefix: Sequence[str]) -> ColumnElement[bool]:
    """The namespace is this one or below. Not LIKE, which ignores case on SQLite and knows wildcards."""
    if not prefix:
        return true()
    start = SEPARATOR.join(prefix) + SEPARATOR
    return func.substr(store_items.c.namespace + SEPARATOR, 1, len(start)) == start


def _fits(condition: MatchCondition, path: tuple[str, ...]) -> bool:
    wanted = condition.path
    if len(path) < len(wanted):
        return False
    part = path[: len(wanted)] if condition.match_type == "prefix" else path[len(path) - len(wanted) :]
    return all(want in ("*", label) for want, label in zip(wanted, part, strict=True))


def _check_put(op: PutOp) -> None:
    path = SEPARATOR.join(op.namespace)
    if len(path) > NAMESPACE_LENGTH or len(op.key) > KEY_LENGTH:
        raise InvalidNamespaceError(
            f"A namespace may have {NAMESPACE_LENGTH} characters in all, a key {KEY_LENGTH}; got {len(path)} and {len(op.key)}."
        )
    for text in (*op.namespace, op.key):
        if any(char < " " or "\ud800" <= char <= "\udfff" for char in text):
            raise InvalidNamespaceError(f"{text!r} holds control characters, which a namespace or key may not have.")
    if op.value is None:
        return
    try:
        stored = orjson.dumps(dict(op.value), option=orjson.OPT_NON_STR_KEYS)
    except (TypeError, ValueError) as error:
        raise ValueError(f"The value of {op.key!r} cannot be stored as JSON: {error}") from error
    if _NUL.search(stored):
        raise ValueError(f"The value of {op.key!r} holds NUL characters, which cannot be stored.")


class StoreService:
    """The stores of all users."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, principal: Principal) -> DatabaseStore:
        """The store of that user, for a graph. To be called on the event loop."""
        return DatabaseStore(self._database, principal)

    @contextmanager
    def asked(self, principal: Principal) -> Iterator[DatabaseStore]:
        """The same for a request: namespaces, keys, values and filters that it cannot take raise InvalidRequestError."""
        try:
            yield self.of(principal)
        except ValueError as error:
            raise InvalidRequestError(str(error)) from error
