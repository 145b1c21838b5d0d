"""Everything of one person in one archive, to take away."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import Connection, select

from deerflow.accounts import UserRepository
from deerflow.config import Paths
from deerflow.config.paths import VIRTUAL_ROOT
from deerflow.errors import NotFoundError
from deerflow.features.assistants.agents import AgentService
from deerflow.features.memory import MemoryService
from deerflow.files.artifacts import pieces_off_loop, thread_members
from deerflow.files.zip_stream import ZipStream
from deerflow.identity import Principal
from deerflow.sandbox.interface import OUTPUTS, UPLOADS, WORKSPACE
from deerflow.storage.database import Database
from deerflow.storage.tables import crons, threads, utc_now
from deerflow.threads.service import ThreadService

FORMAT, VERSION = "deerflow-personal-data", 1
MANIFEST = "manifest.json"
_JSON = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS
_PLACES = (OUTPUTS, UPLOADS, WORKSPACE)

logger = logging.getLogger(__name__)


class PersonalData:
    """Args:
    threads, memory, agents: what people have.
    """

    def __init__(
        self, database: Database, paths: Paths, threads: ThreadService, memory: MemoryService, agents: AgentService
    ) -> None:
        self._database = database
        self._paths = paths
        self._threads = threads
        self._memory = memory
        self._agents = agents

    async def archive(self, principal: Principal) -> AsyncGenerator[bytes, None]:
        """Yield a ZIP of all that belongs to a person, chat by chat and file by file; no more than one is ever held.

        ``manifest.json`` comes last: an archive without one is not whole. Passwords, tokens, keys and secrets are not part of it.
        """
        zipped, holds, left_out = ZipStream(), Counter[str](), list[dict[str, str]]()
        for thread_id, created_at in await self._database.browse(_threads_of, principal.user_id):
            try:
                documents = await self._conversation(principal, thread_id)
            except NotFoundError:  # deleted meanwhile
                continue
            except Exception as error:
                logger.warning("Thread %s is left out of an archive.", thread_id, exc_info=True)
                left_out.append({"chat": thread_id, "error": type(error).__name__})
                documents = {}
            holds["chats"] += bool(documents)
            below = f"chats/{_folder(documents, thread_id, created_at)}/"
            for name, content in documents.items():
                yield await asyncio.to_thread(zipped.add, below + name, content)
            members = thread_members(
                zipped, self._paths, thread_id, principal.user_id, VIRTUAL_ROOT, _PLACES, below, holds
            )
            async with aclosing(pieces_off_loop(members)) as pieces:
                async for piece in pieces:
                    yield piece
        async for name, document in self._documents(principal, holds):
            content = await asyncio.to_thread(orjson.dumps, document, option=_JSON)
            yield await asyncio.to_thread(zipped.add, name, content)
        async with aclosing(pieces_off_loop(self._own_files(zipped, principal.user_id, holds))) as pieces:
            async for piece in pieces:
                yield piece
        manifest = orjson.dumps(await self._manifest(principal, holds, left_out), option=_JSON)
        yield await asyncio.to_thread(zipped.add, MANIFEST, manifest)
        yield await asyncio.to_thread(zipped.end)

    async def _conversation(self, principal: Principal, thread_id: str) -> dict[str, bytes]:
        name, markdown = await self._threads.transcript.export(principal, thread_id, "md")
        _, json = await self._threads.transcript.export(principal, thread_id, "json")
        return {name: markdown, "conversation.json": json}

    async def _documents(
        self, principal: Principal, holds: Counter[str]
    ) -> AsyncGenerator[tuple[str, Mapping[str, Any] | list[Any]], None]:
        """Yield the documents that the database keeps besides chats, by name in the archive."""
        own = await self._agents.own(principal)
        for agent in own:
            holds["agents"] += 1
            yield f"agents/{agent.name}.json", agent.model_dump(mode="json")
        for name in (None, *(agent.name for agent in await self._agents.list(principal))):
            remembered = await self._memory.document(principal, name)
            if name is None or remembered["facts"]:
                holds["facts"] += len(remembered["facts"])
                yield f"memory/{name or 'memory'}.json", remembered
        if schedules := await self._database.browse(_schedules_of, principal.user_id):
            holds["schedules"] += len(schedules)
            yield "schedules.json", schedules

    def _own_files(self, zipped: ZipStream, user_id: str, holds: Counter[str]) -> Generator[bytes, None, None]:
        """The person's profile, the agents that files define, and skills. Blocks."""
        for file in (self._paths.user_profile_file(user_id), self._paths.user_soul_file(user_id)):
            yield from _tree(zipped, file.parent, "", only=file.name)
        yield from _tree(zipped, self._paths.user_agents_dir(user_id), "agents/")
        custom = self._paths.user_skills_dir(user_id) / "custom"
        if custom.is_dir():
            holds["skills"] += sum(each.is_dir() for each in custom.iterdir())
        yield from _tree(zipped, custom, "skills/")

    async def _manifest(
        self, principal: Principal, holds: Counter[str], left_out: list[dict[str, str]]
    ) -> dict[str, Any]:
        user = await UserRepository(self._database).get(principal.user_id)
        person = {"email": user.email, "role": user.role, "created_at": user.created_at} if user else {}
        return {
            "format": FORMAT,
            "version": VERSION,
            "made_at": utc_now(),
            "person": {"id": principal.user_id, **person},
            "holds": dict.fromkeys(("chats", "files", "facts", "agents", "skills", "schedules"), 0) | holds,
            "left_out": left_out,
        }


def _folder(documents: dict[str, bytes], thread_id: str, created_at: datetime) -> str:
    name = next(iter(documents), thread_id).removesuffix(".md")
    return f"{created_at:%Y-%m-%d} {name} {thread_id[:8]}"


def _threads_of(connection: Connection, user_id: str) -> list[tuple[str, datetime]]:
    """All at once: a page of them would shift when a chat is deleted meanwhile."""
    columns = select(threads.c.thread_id, threads.c.created_at).where(threads.c.user_id == user_id)
    found = connection.execute(columns.order_by(threads.c.created_at, threads.c.thread_id))
    return [(row.thread_id, row.created_at) for row in found]


def _schedules_of(connection: Connection, user_id: str) -> list[dict[str, Any]]:
    found = connection.execute(select(crons).where(crons.c.user_id == user_id).order_by(crons.c.created_at))
    return [dict(row._mapping) for row in found]


def _tree(zipped: ZipStream, directory: Path, below: str, *, only: str | None = None) -> Generator[bytes, None, None]:
    """Add the regular files below ``directory``, or the one named ``only`` in it. Links are left out."""
    if not directory.is_dir():
        return
    for parent, directories, names, parent_fd in os.fwalk(directory, follow_symlinks=False):
        directories[:] = [] if only else sorted(directories)
        for name in [only] if only else sorted(names):
            try:
                fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent_fd)
            except OSError:
                continue  # a link, or gone
            try:
                if stat.S_ISREG(os.fstat(fd).st_mode):
                    path = (Path(parent) / name).relative_to(directory)
                    yield from zipped.add_file(f"{below}{path}", fd)
            finally:
                os.close(fd)
