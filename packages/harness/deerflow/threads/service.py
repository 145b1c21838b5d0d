"""Threads from beginning to end: made, found, copied, pruned, deleted with everything that belongs to them."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import stat
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from langchain_core.messages import HumanMessage
from langgraph.types import StateUpdate
from pydantic import Field
from sqlalchemy import Connection, insert, literal, select
from typing_extensions import TypedDict

from deerflow.config import Paths
from deerflow.errors import ConflictError, NotFoundError
from deerflow.events.jsonable import plain
from deerflow.identity import Principal
from deerflow.sandbox.interface import sandbox_id
from deerflow.storage import search as message_search
from deerflow.storage import sql
from deerflow.storage.checkpoints import Checkpointer
from deerflow.storage.database import Database
from deerflow.storage.list_page import ListPage
from deerflow.storage.pages import ThreadPages
from deerflow.storage.provenance import copy_asked_calls, copy_provenance
from deerflow.storage.runs import RunStore
from deerflow.storage.search import MessageSearch
from deerflow.storage.tables import turns, utc_now
from deerflow.storage.thread_lock import ThreadBusyError
from deerflow.storage.threads import (
    IfExists,
    Thread,
    ThreadFilter,
    ThreadRepository,
    begin_deletion,
    end_deletion,
    expired,
    unfinished_deletions,
)
from deerflow.threads.checkpoint import compact, provisional_title, question_of, state_values
from deerflow.threads.states import Graph, ThreadStates
from deerflow.threads.task_transcripts import copy_transcripts
from deerflow.threads.transcript import TranscriptView
from deerflow.threads.view import ThreadView, thread_view
from deerflow.tools.clarification import Question

if TYPE_CHECKING:
    from deerflow.events.log import EventLog
    from deerflow.storage.thread_lock import ThreadLock

logger = logging.getLogger(__name__)

PruneStrategy = Literal["delete", "keep_latest"]

LOCK_WAIT = 30.0
"""Seconds that a deletion waits for a run that is being stopped."""


class WaitingFor(TypedDict):
    interrupts: Annotated[
        list[dict[str, Any]], Field(description="`{id, value}`: what a run with `command.resume` answers.")
    ]
    question: Annotated[Question | None, Field(description="What the next message answers.")]


@dataclass(eq=False, kw_only=True)
class ThreadService:
    database: Database
    paths: Paths
    checkpointer: Checkpointer
    event_log: EventLog
    lock: ThreadLock
    graph: Graph
    stop_run: Callable[[Principal, str], Awaitable[object]]
    """Ends a run of the principal, and returns when it has ended. May raise ConflictError or NotFoundError: it had."""
    destroy_sandbox: Callable[[str], Awaitable[None]]
    """Ends the sandbox with this id, if there is one."""
    changed: Callable[[str, str], None]
    """Called with its owner and id when a thread was made, changed or deleted."""

    def __post_init__(self) -> None:
        self._runs = RunStore(self.database)
        self.repository = ThreadRepository(self.database)
        self.states = ThreadStates(self.database, self.repository, self.graph, self.lock, self.changed)
        self.transcript = TranscriptView(self.database, self.repository, self.states, self.event_log)
        self.messages = MessageSearch(self.database)

    async def create(
        self,
        principal: Principal,
        thread_id: str | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
        assistant_id: str | None = None,
        if_exists: IfExists = "do_nothing",
        ttl: timedelta | None = None,
        supersteps: Sequence[Sequence[StateUpdate]] = (),
    ) -> ThreadView:
        """Make a thread, empty or with the steps of an imported one; None for the id makes one.

        Raises:
            ConflictError: the id is taken.
            InvalidRequestError: steps that do not fit the state, metadata that cannot be stored.
        """
        made = await self.repository.create(
            principal,
            thread_id or str(uuid.uuid4()),
            metadata=metadata,
            assistant_id=assistant_id,
            expires_at=None if ttl is None else utc_now() + ttl,
            if_exists=if_exists,
        )
        self.changed(principal.user_id, made.thread_id)
        if supersteps:
            try:
                await self.states.replay(principal, made.thread_id, supersteps)
            except BaseException:
                await self.delete(principal, made.thread_id)
                raise
            return await self.get(principal, made.thread_id)
        return thread_view(made)

    async def get(self, principal: Principal, thread_id: str) -> ThreadView:
        """The thread with its values and what it waits for. Raises NotFoundError."""
        return await self._with_state(await self.repository.get(principal, thread_id))

    async def search(
        self,
        principal: Principal,
        wanted: ThreadFilter = ThreadFilter(),
        page: ListPage = ListPage(),
        *,
        with_state: bool = False,
    ) -> tuple[list[ThreadView], int]:
        """A page of threads and how many there are.

        A thread that has no title yet is called as its first run begins.

        Args:
            with_state: with values and interrupts; otherwise the values are the titles, and no state is read.
        """
        found, total = await self.repository.search(principal, wanted, page)
        begun = [thread.thread_id for thread in found if not thread.title and thread.status == "busy"]
        titles = await self._runs.first_words(begun) if begun else {}
        shown = [await self._with_state(thread) if with_state else thread_view(thread) for thread in found]
        for thread in shown:
            if words := titles.get(thread["thread_id"]):
                thread["values"] = {"title": provisional_title(HumanMessage(words)), **thread["values"]}
        return shown, total

    async def _with_state(self, thread: Thread) -> ThreadView:
        snapshot = await self.states.snapshot(thread.thread_id)
        values = await asyncio.to_thread(state_values, snapshot.values, thread)
        asked = {
            task.id: [plain(interrupt) for interrupt in task.interrupts] for task in snapshot.tasks if task.interrupts
        }
        return {**thread_view(thread), "values": values, "interrupts": asked}

    async def waiting_for(self, principal: Principal, thread_id: str) -> WaitingFor:
        """Raises NotFoundError."""
        await self.repository.get(principal, thread_id)
        snapshot = await self.states.snapshot(thread_id)
        messages = snapshot.values.get("messages") or ()
        return {"interrupts": [plain(each) for each in snapshot.interrupts], "question": question_of(messages)}

    async def count(self, principal: Principal, wanted: ThreadFilter = ThreadFilter()) -> int:
        return await self.repository.count(principal, wanted)

    async def update(
        self,
        principal: Principal,
        thread_id: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        ttl: timedelta | None = None,
    ) -> ThreadView:
        """Merge ``metadata`` into the thread's. Raises NotFoundError."""
        expires_at = None if ttl is None else utc_now() + ttl
        updated = await self.repository.update(principal, thread_id, metadata=metadata, expires_at=expires_at)
        self.changed(updated.user_id, thread_id)
        return thread_view(updated)

    async def dismiss(self, principal: Principal, thread_id: str) -> None:
        """Take the thread from those that wait, until it asks again. Raises NotFoundError."""
        await self.repository.dismiss(principal, thread_id)
        self.changed(principal.user_id, thread_id)

    async def delete(self, principal: Principal, thread_id: str) -> None:
        """Delete the thread: its run is stopped; checkpoints, events, runs, feedback, files and sandbox go with it.

        For its owner it is gone as soon as the run has ended; should the process die before the rest is gone,
        :meth:`finish_deletions` does it.

        Raises:
            NotFoundError: there is no such thread.
            ConflictError: new runs were started again and again meanwhile.
        """
        await self.repository.get(principal, thread_id, to_change=True)
        for _ in range(5):
            await self._stop_runs(principal, thread_id)
            if await self.database.write(begin_deletion, principal.user_id, thread_id):
                self.changed(principal.user_id, thread_id)
                await self._remove(thread_id, principal.user_id)
                return
        raise ConflictError(f"Thread {thread_id} cannot be deleted: new runs start all the time.", code="thread_busy")

    async def finish_deletions(self) -> int:
        """Delete the rest of threads whose deletion was cut off, and threads whose time is over. How many there were."""
        cut_off = await self.database.read(unfinished_deletions)
        for thread_id, user_id in cut_off:
            await self._remove(thread_id, user_id)
        try:
            await asyncio.to_thread(self.paths.remove_leftovers)
        except OSError as error:
            logger.warning("Files of deleted threads are left in %s: %s", self.paths.deleted_dir, error)
        over = await self.database.read(expired)
        for thread_id, user_id in over:
            try:
                await self.delete(Principal(user_id, source="internal"), thread_id)
            except (NotFoundError, ConflictError) as error:
                logger.info("Thread %s is over its time and stays for now: %s", thread_id, error)
        return len(cut_off) + len(over)

    async def copy(self, principal: Principal, thread_id: str) -> ThreadView:
        """A new thread with the same history, files and title; runs and feedback stay with the first one.

        Raises:
            NotFoundError: there is no such thread.
            ConflictError: a run of it is active.
        """
        source = await self.repository.get(principal, thread_id)
        user = principal.user_id
        async with self.states.alone(source):
            made = await self.repository.create(
                principal,
                str(uuid.uuid4()),
                metadata=source.metadata,
                assistant_id=source.assistant_id,
                title=source.title,
                if_exists="raise",
            )
            self.changed(user, target := made.thread_id)
            paths = self.paths
            try:
                await asyncio.to_thread(copy_tree, paths.user_data(thread_id, user), paths.user_data(target, user))
                await ThreadPages(self.database, thread_id).copy_to(target)
                await self.checkpointer.acopy_thread(thread_id, target)
                await self.database.write(_copy_rows, thread_id, target)
                messages = (await self.states.snapshot(target)).values.get("messages", ())
                if not made.temporary:
                    await self.database.write(
                        lambda connection: message_search.index(connection, target, user, messages)
                    )
            except BaseException:
                await self.delete(principal, target)
                raise
        return await self.get(principal, target)

    async def prune(self, principal: Principal, thread_ids: Sequence[str], strategy: PruneStrategy = "delete") -> int:
        """Delete threads, or all but their newest state. How many: those that are not there or in use are left out."""
        pruned = 0
        for thread_id in dict.fromkeys(thread_ids):
            try:
                if strategy == "delete":
                    await self.delete(principal, thread_id)
                    pruned += 1
                else:
                    pruned += await self._compact(await self.repository.get(principal, thread_id, to_change=True))
            except (NotFoundError, ConflictError):
                continue
        return pruned

    async def _compact(self, thread: Thread) -> bool:
        """Keep the newest state alone. False if there is none, or the thread waits in the middle of a turn."""
        graph = await self.graph()
        async with self.states.alone(thread):
            return await compact(graph, self.checkpointer, thread.thread_id)

    async def _stop_runs(self, principal: Principal, thread_id: str) -> None:
        for run in reversed(await self._runs.active(thread_id)):
            try:
                await self.stop_run(principal, run.run_id)
            except (ConflictError, NotFoundError):
                continue

    async def _remove(self, thread_id: str, user_id: str) -> None:
        """Everything that is left of a thread whose deletion was begun. Repeatable."""
        try:
            async with self.lock.hold(user_id, thread_id, wait=LOCK_WAIT):
                await self._remove_parts(thread_id, user_id)
        except ThreadBusyError:
            logger.warning("Thread %s is deleted while something still holds it.", thread_id)
            await self._remove_parts(thread_id, user_id)
        await self.database.write(end_deletion, thread_id)

    async def _remove_parts(self, thread_id: str, user_id: str) -> None:
        await self.destroy_sandbox(sandbox_id(thread_id, user_id))
        await self.event_log.delete(thread_id)
        await self.checkpointer.adelete_thread(thread_id)
        try:
            await asyncio.to_thread(self.paths.remove, self.paths.thread_dir(thread_id, user_id))
        except OSError as error:
            logger.warning(
                "Files of the deleted thread %s are left in %s: %s", thread_id, self.paths.deleted_dir, error
            )


def _copy_rows(connection: Connection, source: str, target: str) -> None:
    copy_provenance(connection, source, target)
    sql.execute(connection, _SAME_STATUS, source, source, target)
    copy_asked_calls(connection, source, target)
    copy_transcripts(connection, source, target)
    columns = [column for column in turns.c if column.name != "thread_id"]
    copied = select(literal(target), *columns).where(turns.c.thread_id == source)
    connection.execute(insert(turns).from_select(["thread_id", *(column.name for column in columns)], copied))


_SAME_STATUS = """UPDATE threads SET status = (SELECT status FROM threads AS source WHERE source.thread_id = ?),
    waits_since = (SELECT waits_since FROM threads AS source WHERE source.thread_id = ?) WHERE thread_id = ?"""


def copy_tree(source: Path, target: Path) -> None:
    """Copy regular files, directories and links (as links) below ``source`` to ``target``, which is made. Blocks.

    The source belongs to a sandbox: nothing is followed, whatever it swaps meanwhile, and what is no file is left out.
    """
    if not source.is_dir():
        return
    for parent, directories, files, parent_fd in os.fwalk(source, follow_symlinks=False):
        made = target / Path(parent).relative_to(source)
        made.mkdir(parents=True, exist_ok=True)
        for name in directories + files:
            _copy_entry(name, parent_fd, made / name)


def _copy_entry(name: str, parent_fd: int, target: Path) -> None:
    try:
        if stat.S_ISLNK(os.stat(name, dir_fd=parent_fd, follow_symlinks=False).st_mode):
            target.symlink_to(os.readlink(name, dir_fd=parent_fd))
            return
        # NONBLOCK, since a pipe without a writer would keep us waiting.
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent_fd)
    except OSError:
        return  # vanished or swapped
    try:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode):
            return
        with os.fdopen(opened, "rb", closefd=False) as read, target.open("xb") as write:
            shutil.copyfileobj(read, write)
        target.chmod(stat.S_IMODE(status.st_mode) & 0o777)
    finally:
        os.close(opened)
