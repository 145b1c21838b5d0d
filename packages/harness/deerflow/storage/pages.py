"""Pages and files of the web that a thread keeps: where each came from and what it was, which no file of the thread can claim."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.tables import thread_pages, utc_now


@dataclass(frozen=True, slots=True)
class PageRow:
    """``path``: where the thread keeps it; ``digest``: SHA-256 of what was kept there."""

    path: str
    url: str
    title: str
    digest: str
    read_at: datetime


class ThreadPages:
    """The pages of one thread."""

    def __init__(self, database: Database, thread_id: str) -> None:
        self._database = database
        self._thread_id = thread_id

    async def add(self, path: str, url: str, title: str, data: bytes) -> None:
        """Record what was read at an address and is kept at ``path``. One that was read again takes the place of the former."""
        digest = (await asyncio.to_thread(hashlib.sha256, data)).hexdigest()
        await self._database.write(sql.change, _ADD, self._thread_id, path, url, title, digest, utc_now())

    async def newest(self, limit: int) -> list[PageRow]:
        """Return those that were read last, the newest first."""
        return await self._database.read(_newest, self._thread_id, limit)

    async def copy_to(self, thread_id: str) -> None:
        """Give another thread the same."""
        await self._database.write(sql.change, _COPY, thread_id, self._thread_id)


_ADD = """INSERT INTO thread_pages (thread_id, path, url, title, digest, read_at) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (thread_id, path) DO UPDATE SET url = excluded.url, title = excluded.title, digest = excluded.digest,
    read_at = excluded.read_at"""
_COPY = """INSERT INTO thread_pages (thread_id, path, url, title, digest, read_at)
    SELECT ?, path, url, title, digest, read_at FROM thread_pages WHERE thread_id = ?"""


def _newest(connection: Connection, thread_id: str, limit: int) -> list[PageRow]:
    tail = "WHERE thread_id = ? ORDER BY read_at DESC, path LIMIT ?"
    return sql.select(connection, PageRow, thread_pages, tail, thread_id, limit)
