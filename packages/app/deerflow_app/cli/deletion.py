"""What `deerflow user delete` does. Importing this costs: do it when it is to be done."""

from __future__ import annotations

import asyncio

from deerflow.accounts.users import User, UserRepository
from deerflow.config import ConfigSource, Paths
from deerflow.features.user_data import Belongings, belongings, delete_belongings
from deerflow.runtime import Runtime
from deerflow.storage.database import Database
from deerflow_app.cli.accounts import find_user
from deerflow_app.cli.failures import Failure
from deerflow_app.cli.settings import Settings
from deerflow_app.gateway.running import running_server


async def account_and_belongings(database: Database, paths: Paths, email: str) -> tuple[User, Belongings]:
    """Raises Failure for an unknown address and for the only administrator."""
    user = await find_user(database, email)
    others = [one for one in await UserRepository(database).list(limit=1_000_000) if one.id != user.id]
    if user.role == "admin" and not any(one.role == "admin" for one in others):
        raise Failure(
            f"{user.email} is the only administrator.",
            remedy="Make someone else one first: `deerflow user role EMAIL admin`.",
        )
    return user, await belongings(database, paths, user.id)


def delete_all(settings: Settings, paths: Paths, user: User) -> None:
    """The data first, so that whoever was interrupted can begin again with the address.

    Raises Failure while a server of this machine uses the same SQLite file: it may be executing runs of the user.
    """
    runtime = Runtime(ConfigSource(settings.config), paths, executes=False)
    if not runtime.database.is_postgres and (running := running_server(paths.base_dir)) is not None:
        raise Failure(f"DeerFlow is running: {running.url}", remedy="Stop it first, or delete with --keep-data.")
    asyncio.run(_delete_all(runtime, paths, user))


async def _delete_all(runtime: Runtime, paths: Paths, user: User) -> None:
    try:
        await runtime.start()
        await delete_belongings(runtime.database, runtime.threads, paths, user.id)
        await UserRepository(runtime.database).delete(user.id)
        # What came in between.
        await delete_belongings(runtime.database, runtime.threads, paths, user.id)
    finally:
        await runtime.aclose()
