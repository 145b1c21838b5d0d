"""Notes on checkpoints, which LangGraph's savers can make only for new ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from sqlalchemy import Connection, text

from deerflow.storage.checkpoints.sqlite_steps import key_of

_KEY = "thread_id = :thread_id AND checkpoint_ns = :ns AND checkpoint_id = :checkpoint_id"
_LINE = "(SELECT line FROM checkpoint_lines WHERE thread_id = :thread_id AND checkpoint_ns = :ns)"


def annotate(connection: Connection, thread_id: str, ns: str, checkpoint_id: str, metadata: Mapping[str, Any]) -> None:
    """Merge ``metadata`` into that of a checkpoint. Nothing happens if it is not there."""
    is_postgres = connection.dialect.name == "postgresql"
    key = {"thread_id": thread_id, "ns": ns, "checkpoint_id": checkpoint_id if is_postgres else key_of(checkpoint_id)}
    known = connection.execute(text(f"SELECT metadata FROM checkpoints WHERE {_KEY}"), key).scalar()
    if isinstance(known, (bytes, str)):
        known = orjson.loads(known)
    merged = orjson.dumps({**(known or {}), **metadata})
    if is_postgres:
        statement, value = f"UPDATE checkpoints SET metadata = CAST(:metadata AS jsonb) WHERE {_KEY}", merged.decode()
    else:
        where = f"line = {_LINE} AND checkpoint_id = :checkpoint_id"
        statement, value = f"UPDATE checkpoint_steps SET metadata = :metadata WHERE {where}", merged
    connection.execute(text(statement), key | {"metadata": value})
