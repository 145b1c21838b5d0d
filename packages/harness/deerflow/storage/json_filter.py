"""Conditions on JSON columns, in SQL, with one meaning on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    case,
    cast,
    exists,
    false,
    func,
    literal,
    not_,
    select,
    true,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import Float, Text

from deerflow.errors import InvalidRequestError

Kind = Literal["null", "bool", "number", "text", "array", "object"]
_POSTGRES = {"bool": ("boolean",), "text": ("string",)}
_SQLITE = {"bool": ("true", "false"), "number": ("integer", "real")}
_ORDER = {"$gt": "__gt__", "$gte": "__ge__", "$lt": "__lt__", "$lte": "__le__"}

MAX_CONDITIONS, MAX_DEPTH = 100, 16


class FilterError(InvalidRequestError, ValueError):
    """What is searched for cannot be: LangGraph's stores raise a ValueError."""


def check_size(wanted: Any, depth: int = 0) -> int:
    """How many conditions a filter has. Raises FilterError for one that would keep the database busy for long."""
    if depth > MAX_DEPTH:
        raise FilterError(f"A filter may be nested {MAX_DEPTH} levels deep.")
    parts = wanted.values() if isinstance(wanted, Mapping) else wanted if isinstance(wanted, list | tuple) else ()
    number = 1
    for part in parts:
        number += check_size(part, depth + 1)
        if number > MAX_CONDITIONS:
            raise FilterError(f"A filter may have {MAX_CONDITIONS} conditions.")
    return number


def matches(
    connection: Connection, column: ColumnElement[Any], wanted: Mapping[str, Any], *, operators: bool = False
) -> ColumnElement[bool]:
    """Whether the object in ``column`` has what ``wanted`` names.

    Objects match when each wanted key matches, arrays when they are as long and match item by item, scalars when they
    are equal: numbers by value, and a key that is absent equals null.

    Args:
        operators: objects with keys that begin with ``$`` are comparisons: ``$eq``, ``$ne``, and ``$gt``, ``$gte``,
            ``$lt``, ``$lte``, which compare numbers with numbers and texts with texts; anything else is no match.

    Raises:
        FilterError: an unknown operator, a key with quotes, backslashes or control characters, or a value that no row
            can hold.
    """
    check_size(wanted)
    root = (_PostgresMatch if connection.dialect.name == "postgresql" else _SqliteMatch)(column)
    return and_(true(), *(_like(root.at(key), value, operators) for key, value in wanted.items()))


def contains(connection: Connection, column: ColumnElement[Any], wanted: Mapping[str, Any]) -> ColumnElement[bool]:
    """``jsonb @>``: an object contains another one's keys, a list another one's elements, a value only itself.

    Raises:
        FilterError: there is too much of it.
    """
    check_size(wanted)
    if connection.dialect.name == "postgresql":
        return type_coerce(column, JSONB).contains(wanted)
    return and_(true(), *(_holds(column, value, key) for key, value in wanted.items()))


def _like(place: _Place, wanted: Any, operators: bool) -> ColumnElement[bool]:
    if isinstance(wanted, Mapping):
        if operators and any(str(key).startswith("$") for key in wanted):
            return and_(*(_compared(place, operator, operand) for operator, operand in wanted.items()))
        return and_(place.is_a("object"), *(_like(place.at(key), value, operators) for key, value in wanted.items()))
    if isinstance(wanted, list | tuple):
        items = (_like(place.at(index), item, operators) for index, item in enumerate(wanted))
        return and_(place.is_a("array"), place.length() == len(wanted), *items)
    _kind(wanted)
    return place.equals(wanted)


def _compared(place: _Place, operator: str, operand: Any) -> ColumnElement[bool]:
    kind = _kind(operand)
    if operator == "$eq":
        return place.equals(operand)
    if operator == "$ne":
        return not_(place.equals(operand))
    if operator not in _ORDER:
        raise FilterError(f"Unknown operator {operator!r}. Known: $eq, $ne, {', '.join(_ORDER)}.")
    if kind not in ("number", "text"):
        return false()
    compared = getattr(place.scalar(kind), _ORDER[operator])(literal(float(operand) if kind == "number" else operand))
    # CASE, since the conversion of a value of another kind may fail.
    return case((place.is_a(kind), compared), else_=false())


def _kind(value: Any) -> Kind:
    """Raises FilterError for what no row can hold."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise FilterError(f"{value} is not a number of 64 bits.")
        return "number"
    if isinstance(value, str):
        if "\0" in value:
            raise FilterError("Text with NUL characters cannot be stored, so nothing can match it.")
        return "text"
    if isinstance(value, Mapping):
        for item in value.values():
            _kind(item)
        return "object"
    if isinstance(value, list | tuple):
        for item in value:
            _kind(item)
        return "array"
    raise FilterError(f"A {type(value).__name__} is no JSON value.")


@dataclass(frozen=True)
class _Steps:
    """The way to a place inside of a JSON column."""

    column: ColumnElement[Any]
    steps: tuple[str | int, ...] = ()

    def at(self, step: Any) -> Self:
        if not isinstance(step, int) and any(char in '"\\\x7f' or char < " " for char in str(step)):
            raise FilterError(f"Cannot filter by {step!r}: a key with quotes, backslashes or control characters.")
        return type(self)(self.column, (*self.steps, step if isinstance(step, int) else str(step)))


class _PostgresMatch(_Steps):
    @property
    def _value(self) -> ColumnElement[Any]:
        return func.coalesce(func.jsonb_extract_path(self.column, *map(str, self.steps)), cast(literal("null"), JSONB))

    def is_a(self, kind: Kind) -> ColumnElement[bool]:
        return func.jsonb_typeof(self._value).in_(_POSTGRES.get(kind, (kind,)))

    def length(self) -> ColumnElement[int]:
        """Of the array here."""
        return case((self.is_a("array"), func.jsonb_array_length(self._value)), else_=-1)

    def scalar(self, kind: Kind) -> ColumnElement[Any]:
        """The number or text here."""
        text = func.jsonb_extract_path_text(self.column, *map(str, self.steps), type_=Text())
        return cast(text, Float(53)) if kind == "number" else text.collate("C")

    def equals(self, wanted: Any) -> ColumnElement[bool]:
        """Exactly, keys that are not wanted included."""
        return self._value == cast(literal(wanted, JSONB(none_as_null=False)), JSONB)


class _SqliteMatch(_Steps):
    @property
    def _path(self) -> str:
        return "$" + "".join(f"[{step}]" if isinstance(step, int) else f'."{step}"' for step in self.steps)

    @property
    def _type(self) -> ColumnElement[str]:
        return func.coalesce(func.json_type(self.column, self._path), "null")

    def is_a(self, kind: Kind) -> ColumnElement[bool]:
        return self._type.in_(_SQLITE.get(kind, (kind,)))

    def length(self) -> ColumnElement[int]:
        return func.json_array_length(self.column, self._path)

    def scalar(self, kind: Kind) -> ColumnElement[Any]:
        return func.json_extract(self.column, self._path)

    def equals(self, wanted: Any) -> ColumnElement[bool]:
        kind = _kind(wanted)
        if kind == "object":
            keys = func.json_each(self.column, self._path).table_valued("key")
            size = select(func.count()).select_from(keys).scalar_subquery()
            return and_(
                self.is_a(kind), size == len(wanted), *(self.at(key).equals(value) for key, value in wanted.items())
            )
        if kind == "array":
            items = (self.at(index).equals(value) for index, value in enumerate(wanted))
            return and_(self.is_a(kind), self.length() == len(wanted), *items)
        if kind == "null":
            return self.is_a(kind)
        if kind == "bool":
            return self._type == ("true" if wanted else "false")
        return case((self.is_a(kind), self.scalar(kind) == literal(wanted)), else_=false())


_Place = _PostgresMatch | _SqliteMatch

# what a JSON value of SQLite contains ----------------------------------------------------------------------------------


def _holds(json: Any, wanted: Any, key: str | None = None) -> ColumnElement[bool]:
    """Whether the object has ``wanted`` under this key, or the list an element that contains it."""
    entry = func.json_each(json).table_valued("key", "value", "type", name=None)
    place = () if key is None else (entry.c.key == key,)
    return exists(select(literal(1)).select_from(entry).where(*place, _is(entry, wanted)))


def _is(entry: Any, wanted: Any) -> ColumnElement[bool]:
    if isinstance(wanted, Mapping):
        return and_(entry.c.type == "object", *(_holds(entry.c.value, value, key) for key, value in wanted.items()))
    if isinstance(wanted, (list, tuple)):
        return and_(entry.c.type == "array", *(_holds(entry.c.value, item) for item in wanted))
    if wanted is None or isinstance(wanted, bool):
        return entry.c.type == {None: "null", True: "true", False: "false"}[wanted]
    kinds = ("text",) if isinstance(wanted, str) else ("integer", "real")
    return and_(entry.c.type.in_(kinds), entry.c.value == literal(wanted))
