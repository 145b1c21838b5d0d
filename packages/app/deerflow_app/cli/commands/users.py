"""`deerflow user …`: the accounts of the gateway, straight from its database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from deerflow_app.cli.failures import Failure, usage_failure
from deerflow_app.cli.options import AsJson, Settings, command, print_json

if TYPE_CHECKING:
    from deerflow.accounts import Role, User, UserRepository
    from deerflow.config import Paths
    from deerflow.runtime import Runtime
    from deerflow.storage.database import Database

app = typer.Typer(help="Manage who may sign in to the gateway.", no_args_is_help=True, rich_markup_mode=None)

Email = Annotated[str, typer.Argument(help="The e-mail address of the account.")]
CREDENTIALS_FILE = "admin_initial_credentials.txt"


@command(app, "list")
def list_users(
    settings: Settings,
    as_json: AsJson = False,
) -> None:
    """List the accounts, the oldest first."""

    async def work(database: Database) -> list[User]:
        return await users_of(database).list(limit=1_000_000)

    users = with_database(settings, work)
    if as_json:
        shown = [
            {"id": user.id, "email": user.email, "system_role": user.role, "needs_setup": user.needs_setup}
            for user in users
        ]
        print_json({"users": shown})
        return
    for user in users:
        typer.echo(f"{user.email}\t{user.role}\t{user.id}")
    if not users:
        typer.echo("No accounts yet. Make the first with `deerflow user add EMAIL`.", err=True)


@command(app, "add")
def add_user(
    settings: Settings,
    email: Email,
    role: Annotated[str, typer.Option("--role", metavar="admin|user", help="The first account is admin.")] = "user",
    password_stdin: Annotated[bool, typer.Option("--password-stdin", help="Read the password from stdin.")] = False,
) -> None:
    """Make an account. Its password is random and printed, unless given on stdin."""
    given = typer.get_text_stream("stdin").readline().rstrip("\r\n") if password_stdin else None

    async def work(database: Database) -> tuple[User, str]:
        import secrets

        from deerflow_app.gateway.auth.accounts import check_email
        from deerflow_app.gateway.auth.passwords import Passwords, check_password

        users, password = users_of(database), secrets.token_urlsafe(12) if given is None else given
        address, hashed = check_email(email), await Passwords().hash(check_password(password))
        if not await users.any_admin():
            return await users.create_first_admin(address, hashed), password
        return await users.create(address, hashed, _role(role), needs_setup=given is None), password

    user, password = with_database(settings, work)
    typer.echo(f"Made the account {user.email} ({user.role}).", err=True)
    if given is None:
        typer.echo(password)


@command(app, "reset-password")
def reset_password(
    settings: Settings,
    email: Annotated[str | None, typer.Argument(help="Default: the oldest administrator.")] = None,
) -> None:
    """Set a random password, to be changed when signing in. All sessions of the account end."""

    async def work(database: Database) -> tuple[User, str]:
        import secrets

        from deerflow_app.gateway.auth.passwords import Passwords

        user, password = await find_user(database, email), secrets.token_urlsafe(12)
        hashed = await Passwords().hash(password)
        return await users_of(database).set_password(user, hashed, needs_setup=True), password

    user, password = with_database(settings, work)
    path = _write_credentials(user.email, password)
    typer.echo(f"The new password of {user.email} is in {path}. Delete that file when you have signed in.")


@command(app, "role")
def change_role(
    settings: Settings,
    email: Email,
    role: Annotated[str, typer.Argument(metavar="admin|user")],
) -> None:
    """Make someone an administrator, or no longer one."""

    async def work(database: Database) -> User:
        return await users_of(database).set_role((await find_user(database, email)).id, _role(role))

    user = with_database(settings, work)
    typer.echo(f"{user.email} is {user.role} now.")


@command(app, "delete")
def delete_user(
    settings: Settings,
    email: Email,
    with_data: Annotated[
        bool | None,
        typer.Option(
            "--with-data/--keep-data", help="Delete its threads and files, too, or leave them where they are."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; keep the data unless told otherwise.")] = False,
) -> None:
    """Delete an account, its sessions, API tokens and crons. Asks what is to become of its threads and files."""
    from deerflow.config import Paths

    paths = Paths()
    user, threads = with_database(settings, lambda database: account_and_thread_count(database, email))
    if with_data is None:
        with_data = not yes and threads > 0 and typer.confirm(f"Delete its {threads} threads, too?")
    if not yes:
        what = f" with {threads} threads and all its files" if with_data else ""
        typer.confirm(f"Delete the account {user.email}{what}?", abort=True)
    if with_data:
        delete_all(settings, paths, user)
        typer.echo(f"Deleted the account {user.email} with everything that it had.")
        return
    with_database(settings, lambda database: users_of(database).delete(user.id))
    typer.echo(f"Deleted the account {user.email}.")
    if threads:
        typer.echo(
            f"Its {threads} threads stay in the database and their files in {paths.user_dir(user.id)}, where nobody can "
            "open them over HTTP."
        )


def _role(role: str) -> Role:
    if role == "admin" or role == "user":
        return role
    raise usage_failure(f"There is no role {role!r}.", "Use admin or user.")


def _write_credentials(email: str, password: str) -> Path:
    """Not to the terminal, which others may see and which keeps what it showed."""
    import os

    from deerflow.config import Paths

    path = Paths().ensure_base_dir() / CREDENTIALS_FILE
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"email: {email}\npassword: {password}\n")
    return path


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


def users_of(database: Database) -> UserRepository:
    from deerflow.accounts import UserRepository

    return UserRepository(database)


async def find_user(database: Database, email: str | None) -> User:
    """The account with that address; without one the oldest administrator. Raises Failure."""
    users = users_of(database)
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
    paths = Paths()
    return Database(config.database.location(paths.data_dir, config.origin.project_root), users_dir=paths.users_dir)


async def account_and_thread_count(database: Database, email: str) -> tuple[User, int]:
    """Raises Failure for an unknown address and for the only administrator."""
    from deerflow.features.retention import thread_count

    user = await find_user(database, email)
    others = [one for one in await users_of(database).list(limit=1_000_000) if one.id != user.id]
    if user.role == "admin" and not any(one.role == "admin" for one in others):
        raise Failure(
            f"{user.email} is the only administrator.",
            remedy="Make someone else one first: `deerflow user role EMAIL admin`.",
        )
    return user, await thread_count(database, user.id)


def delete_all(settings: Settings, paths: Paths, user: User) -> None:
    """The data first, so that whoever was interrupted can begin again with the address.

    Raises Failure while a server of this machine uses the same SQLite file: it may be executing runs of the user.
    """
    from deerflow.config import ConfigSource
    from deerflow.runtime import Runtime
    from deerflow_app.gateway import running_server

    runtime = Runtime(ConfigSource(settings.config), paths, executes=False)
    if not runtime.database.is_postgres and (running := running_server(paths.base_dir)) is not None:
        raise Failure(f"DeerFlow is running: {running.url}", remedy="Stop it first, or delete with --keep-data.")
    asyncio.run(_delete_all(runtime, paths, user))


async def _delete_all(runtime: Runtime, paths: Paths, user: User) -> None:
    from deerflow.features.retention import delete_belongings

    try:
        await runtime.start()
        await delete_belongings(runtime.database, runtime.threads, paths, user.id)
        await users_of(runtime.database).delete(user.id)
        # What came in between.
        await delete_belongings(runtime.database, runtime.threads, paths, user.id)
    finally:
        await runtime.aclose()
