"""Decide who may see and change what: as SQL text, as an expression of SQLAlchemy, and of a row that is loaded.

Everyone sees and changes their own rows. The rows of :data:`_OF_INSTANCE` without an owner belong to the instance: everyone sees
them, administrators change them. The texts are made at import time; :func:`values_of` gives the values of each.
"""

from __future__ import annotations

from typing import Protocol

from sqlalchemy import ColumnElement, Table, or_

from deerflow.identity import Principal
from deerflow.storage.tables import channel_connections

_OF_INSTANCE = frozenset({channel_connections.name})

NO_OWNER = ""
"""The owner of a thread that is being deleted. No principal can have it, so the thread is gone for everyone at once."""
GONE, THERE = f"user_id = '{NO_OWNER}'", f"user_id <> '{NO_OWNER}'"


class OwnedRow(Protocol):
    @property
    def user_id(self) -> str | None: ...


def readable(table: Table, alias: str = "") -> str:
    """Return the condition of rows that a principal may read, as SQL text."""
    column = f"{alias}.user_id" if alias else "user_id"
    return f"({column} IS NULL OR {column} = ?)" if table.name in _OF_INSTANCE else f"{column} = ?"


def changeable(table: Table) -> str:
    """Return the condition of rows that a principal may change, as SQL text. Rows of the instance are left out: load them."""
    return "user_id = ?"


def values_of(principal: Principal) -> tuple[str, ...]:
    """Return the values of the ``?`` in :func:`readable` and :func:`changeable`."""
    return (principal.user_id,)


def readable_by(principal: Principal, table: Table) -> ColumnElement[bool]:
    """Return the condition of :func:`readable` as an expression."""
    own = table.c.user_id == principal.user_id
    return or_(own, table.c.user_id.is_(None)) if table.name in _OF_INSTANCE else own


def changeable_by(principal: Principal, table: Table) -> ColumnElement[bool]:
    """Return the condition of :func:`changeable` as an expression."""
    return table.c.user_id == principal.user_id


def may_read(principal: Principal, row: OwnedRow) -> bool:
    """Return whether the principal may read a row."""
    return row.user_id is None or row.user_id == principal.user_id


def may_change(principal: Principal, row: OwnedRow) -> bool:
    """Return whether the principal may change a row; one of the instance is for administrators."""
    return row.user_id == principal.user_id or (row.user_id is None and principal.role == "admin")
