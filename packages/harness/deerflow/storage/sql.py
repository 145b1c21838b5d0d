"""SQL text over the driver's own connection, for what every run asks: compiled statements cost ten times as much.

A ``?`` stands for a value on both databases. Moments and JSON are stored as the tables of :mod:`deerflow.storage.tables` do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from hashlib import blake2b
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel
from sqlalchemy import Boolean, Connection, Table
from sqlalchemy.exc import DataError

from deerflow.errors import InvalidRequestError
from deerflow.storage.tables import Json, UtcDateTime

T = TypeVar("T")
Decoder = Callable[[Any], Any]


def execute(connection: Connection, statement: str, *values: Any) -> Any:
    """Run ``statement`` and return the driver's cursor, whose rows are tuples. Raises DataError for what cannot be stored."""
    raw: Any = connection.connection.driver_connection
    try:
        if connection.dialect.name == "sqlite":
            return raw.execute(statement, [_to_sqlite(value) for value in values])
        return raw.execute(_numbered(statement), [_to_postgres(value) for value in values])
    except Exception as error:
        if isinstance(error, UnicodeEncodeError | OverflowError) or type(error).__name__ == "DataError":
            raise DataError(statement, values, error) from error
        raise


def short_key(text: str) -> str:
    """Return 32 hex digits that stand for a text of any length in a column of a primary key."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


def select(connection: Connection, kind: type[T], table: Table, tail: str, *values: Any) -> list[T]:
    """What follows from ``SELECT … FROM table`` and ``tail``, as instances of a dataclass with the names of columns."""
    head, decoders = _reader(kind, table, connection.dialect.name)
    rows = execute(connection, head + tail, *values).fetchall()
    if not decoders:
        return [kind(*row) for row in rows]
    made: list[T] = []
    for row in rows:
        known = list(row)
        for index, decode in decoders:
            if known[index] is not None:
                known[index] = decode(known[index])
        made.append(kind(*known))
    return made


def first(connection: Connection, kind: type[T], table: Table, tail: str, *values: Any) -> T | None:
    """As :func:`select`, of one row at most."""
    found = select(connection, kind, table, tail, *values)
    return found[0] if found else None


def insert(connection: Connection, table: Table, row: Mapping[str, Any], tail: str = "") -> Any:
    """``INSERT INTO table (…) VALUES (…)`` and ``tail``."""
    names, marks = ", ".join(f'"{name}"' for name in row), ", ".join("?" * len(row))
    return execute(connection, f"INSERT INTO {table.name} ({names}) VALUES ({marks}) {tail}", *row.values())


def update(connection: Connection, table: Table, row: Mapping[str, Any], where: str, *values: Any) -> int:
    """How many rows were changed."""
    changes = ", ".join(f'"{name}" = ?' for name in row)
    return change(connection, f"UPDATE {table.name} SET {changes} WHERE {where}", *row.values(), *values)


def change(connection: Connection, statement: str, *values: Any) -> int:
    """Run ``statement`` and return how many rows it changed."""
    return execute(connection, statement, *values).rowcount


def for_update(connection: Connection, how: str = "UPDATE") -> str:
    """What ends a query whose rows nobody else may change meanwhile. SQLite has one writer anyway."""
    return "" if connection.dialect.name == "sqlite" else f" FOR {how}"


@cache
def _reader(kind: type[Any], table: Table, dialect: str) -> tuple[str, list[tuple[int, Decoder]]]:
    names = [field.name for field in fields(kind)]
    decoders = (
        [(index, _decoder(table.c[name].type)) for index, name in enumerate(names)] if dialect == "sqlite" else []
    )
    columns = ", ".join(f'"{name}"' for name in names)
    return f"SELECT {columns} FROM {table.name} ", [(index, decode) for index, decode in decoders if decode]


def _decoder(type_: Any) -> Decoder | None:
    if isinstance(type_, UtcDateTime):
        return moment
    if type_ is Json:
        return orjson.loads
    return bool if isinstance(type_, Boolean) else None


def moment(stored: str | datetime) -> datetime:
    """A moment as the driver gives it."""
    return stored if isinstance(stored, datetime) else datetime.fromisoformat(stored).replace(tzinfo=UTC)


def _to_sqlite(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    return dumps(value) if isinstance(value, dict | list) else value


def _to_postgres(value: Any) -> Any:
    from psycopg.types.json import Jsonb

    return Jsonb(value, dumps) if isinstance(value, dict) else value


def loads(stored: Any) -> Any:
    """JSON as the driver gives it."""
    return stored if isinstance(stored, dict | list) else orjson.loads(stored)


def dumps(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


@cache
def _numbered(statement: str) -> str:
    return statement.replace("%", "%%").replace("?", "%s")


# what a database can hold -----------------------------------------------------------------------------------------------

MAX_DEPTH = 100
_HALF = re.compile("[\ud800-\udfff]")


def check_unicode(value: Any, field: str = "") -> None:
    """Refuse text that UTF-8 cannot carry.

    Raises:
        InvalidRequestError: names the field, e.g. ``input.messages.0.content``, or ``field`` where ``value`` is a text.
    """
    with suppress(TypeError):  # something is no JSON, or no UTF-8: to be looked at piece by piece
        orjson.dumps(value, default=vars, option=orjson.OPT_NON_STR_KEYS)
        return
    if (place := not_unicode(value, field)) is not None:
        raise InvalidRequestError(
            f"{place}: this text is not valid UTF-8. Send it as UTF-8, without halves of surrogate pairs."
        )


def not_unicode(value: Any, field: str = "", depth: int = 0) -> str | None:
    """Return the place of the first text in ``value`` that holds half of a surrogate pair, as bytes that are not UTF-8 become; None: there is none."""
    if isinstance(value, str):
        return None if value.isascii() or not _HALF.search(value) else field
    if depth > MAX_DEPTH:
        return None
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, BaseModel):
        items = vars(value).items()
    elif isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    for key, item in items:
        name = storable_text(str(key))
        inside = f"{field}.{name}" if field else name
        if isinstance(key, str) and _HALF.search(key):
            return inside
        if (place := not_unicode(item, inside, depth + 1)) is not None:
            return place
    return None


def storable_text(text: str) -> str:
    """``text`` without what a database or UTF-8 cannot hold: NUL characters, lone surrogates."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def storable(value: Any) -> Any:
    """JSON-able ``value`` with nothing in it that cannot be stored, see :func:`storable_text`: itself if there is nothing to change.

    Raises:
        InvalidRequestError: it is nested more than 100 levels deep.
    """
    with suppress(TypeError):  # it holds lone surrogates, or keys that are no text
        shown = orjson.dumps(value)
        if b"\\u0000" not in shown and shown.count(b"{") + shown.count(b"[") <= MAX_DEPTH:
            return value
    return _stored(value, 0)


def _stored(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise InvalidRequestError(f"The request is nested more than {MAX_DEPTH} levels deep.")
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, Mapping):
        return {storable_text(str(key)): _stored(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_stored(item, depth + 1) for item in value]
    return value
