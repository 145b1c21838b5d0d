"""LangGraph's checkpoints in the database."""

from __future__ import annotations

from deerflow.storage.checkpoints.base import Checkpointer
from deerflow.storage.database import Database

__all__ = ["Checkpointer", "checkpointer_for"]


def checkpointer_for(database: Database) -> Checkpointer:
    """The checkpoints in ``database``. Nothing is opened before it is used, but for PostgreSQL modules are imported, which
    blocks: on an event loop, call this with ``asyncio.to_thread``."""
    if database.is_postgres:
        from deerflow.storage.checkpoints.postgres import PostgresCheckpointer

        return PostgresCheckpointer(database)
    from deerflow.storage.checkpoints.sqlite import SqliteCheckpointer

    return SqliteCheckpointer(database.sqlite, database.sqlite_reader)
