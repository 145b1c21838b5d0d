"""What belongs to one user: how much it is, and taking it away."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, delete, func, select

from deerflow.config import Paths
from deerflow.errors import NotFoundError
from deerflow.identity import Principal
from deerflow.storage.database import Database
from deerflow.storage.tables import (
    assistants,
    crons,
    grants,
    mcp_authorizations,
    mcp_connections,
    memory_facts,
    memory_sections,
    store_items,
    threads,
)
from deerflow.threads.service import ThreadService

_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Belongings:
    """``directory`` holds the files; it need not be there."""

    threads: int
    directory: Path


async def belongings(database: Database, paths: Paths, user_id: str) -> Belongings:
    count = select(func.count()).where(threads.c.user_id == user_id)
    found = await database.browse(lambda connection: connection.execute(count).scalar_one())
    return Belongings(found, paths.user_dir(user_id))


async def delete_belongings(database: Database, service: ThreadService, paths: Paths, user_id: str) -> None:
    """Delete all threads, files, assistants, crons, store items, grants, memory and connections of a user. Can be repeated.

    Raises:
        ConflictError: new runs start on a thread again and again.
        OSError: files cannot be deleted.
    """
    principal = Principal(user_id, source="internal")
    await database.write(lambda connection: _delete_rows(connection, user_id))
    while found := (await service.repository.search(principal, limit=_AT_ONCE))[0]:
        for thread in found:
            with suppress(NotFoundError):
                await service.delete(principal, thread.thread_id)
    await asyncio.to_thread(_remove, paths.user_dir(user_id))


def _delete_rows(connection: Connection, user_id: str) -> None:
    own = (crons, assistants, store_items, grants, memory_facts, memory_sections, mcp_connections, mcp_authorizations)
    for table in own:
        connection.execute(delete(table).where(table.c.user_id == user_id))


def _remove(directory: Path) -> None:
    with suppress(FileNotFoundError):
        shutil.rmtree(directory)
