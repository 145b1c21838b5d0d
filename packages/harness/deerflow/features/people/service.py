"""Suspended and deleted accounts: what becomes of the person's runs, schedules and data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from deerflow.accounts import User, UserRepository
from deerflow.capability import AskedRun, Capability
from deerflow.config import Paths
from deerflow.errors import ForbiddenError
from deerflow.features.retention import delete_belongings
from deerflow.features.schedules.rows import look_when_due
from deerflow.identity import Principal
from deerflow.storage.database import Database
from deerflow.tasks.jobs import Job, enqueue
from deerflow.threads.service import ThreadService

SUSPENDED = "suspended"
"""The kind of job that stops the runs of a person who was suspended, in whichever process. Its key is the person."""
PERSON = "person"
"""The kind of job that deletes everything of a person whose account was deleted. Its key is the person."""


class PeopleService(Capability):
    """Args:
    stop_runs: asks for the end of all runs of a person.
    wake: called when there are jobs.
    """

    name = "people"
    needs_server = True

    def __init__(
        self,
        database: Database,
        paths: Paths,
        threads: ThreadService,
        stop_runs: Callable[[Principal], Awaitable[object]],
        wake: Callable[[], None],
    ) -> None:
        self._database = database
        self._users = UserRepository(database)
        self._paths = paths
        self._threads = threads
        self._stop_runs = stop_runs
        self._wake = wake
        self.jobs = {SUSPENDED: self.stop, PERSON: self.clear}

    async def suspend(self, user_id: str) -> User:
        """End a person's sessions, API tokens and runs; their schedules pause. Raises NotFoundError, ConflictError."""
        also = lambda connection: enqueue(connection, SUSPENDED, user_id, {})  # noqa: E731
        user = await self._users.suspend(user_id, also=also)
        self._wake()
        return user

    async def stop(self, job: Job) -> None:
        """Handler of ``suspended`` jobs."""
        await self._stop_runs(Principal(job.key, source="internal"))

    async def resume(self, user_id: str) -> User:
        """Let a suspended person in again; their schedules go on. Raises NotFoundError."""
        user = await self._users.resume(user_id, also=look_when_due)
        self._wake()
        return user

    async def admit(self, asked: AskedRun) -> None:
        """Raise ForbiddenError for a person who is suspended, wherever their request comes from."""
        if await self._users.is_suspended(asked.principal.user_id):
            raise ForbiddenError("This account is suspended. Ask an administrator.", code="account_suspended")

    async def delete(self, user_id: str) -> None:
        """Delete an account at once, and everything of the person soon after, also if this process ends before.

        Raises NotFoundError, and ConflictError for the last administrator.
        """
        await self._users.delete(user_id, also=lambda connection: enqueue(connection, PERSON, user_id, {}))
        self._wake()

    async def clear(self, job: Job) -> None:
        """Handler of ``person`` jobs."""
        await self._stop_runs(Principal(job.key, source="internal"))
        await delete_belongings(self._database, self._threads, self._paths, job.key)
