"""What `deerflow user …` and `deerflow token …` work on: the database of the configuration, without a gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from deerflow_app.cli.failures import Failure, usage_failure

if TYPE_CHECKING:
    from deerflow.accounts.users import User
    from deerflow.storage.database import Database
    from deerflow_app.cli.settings import Settings

T = TypeVar("T")


def with_database(settings: Settings, work: Callable[[Database], Awaitable[T]]) -> T:
    """Run ``work`` on the configured database. Raises Failure where it cannot be used, or refuses."""
    from deerflow.errors import RequestError
    from deerflow.storage.errors import DatabaseError

    database = _open(settings)

    async def run() -> T:
        try:
            return await work(database)
        finally:
            await database.aclose()

    try:
        return asyncio.run(run())
    except (RequestError, DatabaseError) as error:
        raise Failure(str(error)) from None


async def find_user(database: Database, email: str | None) -> User:
    """The account with that address; without one the oldest administrator. Raises Failure."""
    from deerflow.accounts.users import UserRepository

    users = UserRepository(database)
    if email is not None:
        if user := await users.by_email(email.strip()):
            return user
        raise Failure(f"There is no account with the address {email}.", remedy="`deerflow user list` shows all.")
    for user in await users.list(limit=10_000):
        if user.role == "admin":
            return user
    raise Failure("There is no administrator yet.", remedy="Make one with `deerflow user add EMAIL`.")


def _open(settings: Settings) -> Database:
    from deerflow.config import ConfigSource, Paths
    from deerflow.storage.database import Database

    config = ConfigSource(settings.config).current()
    if config.database.backend == "memory":
        raise usage_failure(
            "The database is in the memory of the gateway and nowhere else.",
            "Set database.backend to sqlite or postgres.",
        )
    return Database(config.database.location(Paths().data_dir, config.origin.project_root))
