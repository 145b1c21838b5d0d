"""`deerflow user …` and `deerflow token …`: who may use the gateway, straight from its database."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from deerflow_app.cli.commands import AsJson, Settings, command, print_json
from deerflow_app.cli.failures import CommandFailure, usage_failure

if TYPE_CHECKING:
    from deerflow.accounts import Role, Scope, TokenRepository, User, UserRepository
    from deerflow.config import Paths
    from deerflow.identity import Principal
    from deerflow.runtime import Runtime
    from deerflow.storage.database import Database

T = TypeVar("T")

user_app = typer.Typer(help="Manage who may sign in to the gateway.", no_args_is_help=True, rich_markup_mode=None)
token_app = typer.Typer(help="Manage API tokens of the gateway.", no_args_is_help=True, rich_markup_mode=None)

Email = Annotated[str, typer.Argument(help="The e-mail address of the account.")]
Owner = Annotated[
    str | None, typer.Option("--user", "-u", metavar="EMAIL", help="Whose token.  [default: the oldest administrator]")
]
CREDENTIALS_FILE = "admin_initial_credentials.txt"
EVERYONE = 1_000_000


@command(user_app, "list")
def list_users(settings: Settings, as_json: AsJson = False) -> None:
    """List the accounts, the oldest first."""
    found = with_database(settings, lambda _, users: users.list(limit=EVERYONE))
    if as_json:
        shown = [
            {
                "id": user.id,
                "email": user.email,
                "system_role": user.role,
                "needs_setup": user.needs_setup,
                "suspended_at": user.suspended_at,
                "last_seen_at": user.last_seen_at,
            }
            for user in found
        ]
        return print_json({"users": shown})
    for user in found:
        seen = f"last seen {user.last_seen_at:%Y-%m-%d}" if user.last_seen_at else "never seen"
        typer.echo(f"{user.email}\t{user.role}\t{user.id}\t{'suspended' if user.suspended_at else seen}")
    if not found:
        typer.echo("No accounts yet. Make the first with `deerflow user add EMAIL`.", err=True)


@command(user_app, "add")
def add_user(
    settings: Settings,
    email: Email,
    role: Annotated[str, typer.Option("--role", metavar="admin|user", help="The first account is admin.")] = "user",
    password_stdin: Annotated[bool, typer.Option("--password-stdin", help="Read the password from stdin.")] = False,
) -> None:
    """Make an account. Its password is random and printed, unless given on stdin."""
    import secrets

    from deerflow_app.gateway.auth.accounts import check_email
    from deerflow_app.gateway.auth.passwords import Passwords, check_password

    given = typer.get_text_stream("stdin").readline().rstrip("\r\n") if password_stdin else None
    password = secrets.token_urlsafe(12) if given is None else given

    async def work(_: Database, users: UserRepository) -> User:
        address, hashed = check_email(email), await Passwords().hash(check_password(password))
        if not await users.any_admin():
            return await users.create_first_admin(address, hashed)
        return await users.create(address, hashed, _role(role), needs_setup=given is None)

    user = with_database(settings, work)
    typer.echo(f"Made the account {user.email} ({user.role}).", err=True)
    if given is None:
        typer.echo(password)


@command(user_app, "reset-password")
def reset_password(
    settings: Settings,
    email: Annotated[str | None, typer.Argument(help="Default: the oldest administrator.")] = None,
) -> None:
    """Set a random password, to be changed when signing in. All sessions of the account end."""
    import secrets

    from deerflow.config import Paths
    from deerflow_app.gateway.auth.passwords import Passwords

    password = secrets.token_urlsafe(12)

    async def work(_: Database, users: UserRepository) -> User:
        user = await find_user(users, email)
        return await users.set_password(user, await Passwords().hash(password), needs_setup=True)

    user = with_database(settings, work)
    # Not to the terminal, which others may see and which keeps what it showed.
    path = Paths().ensure_base_dir() / CREDENTIALS_FILE
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"email: {user.email}\npassword: {password}\n")
    typer.echo(f"The new password of {user.email} is in {path}. Delete that file when you have signed in.")


@command(user_app, "role")
def change_role(
    settings: Settings,
    email: Email,
    role: Annotated[str, typer.Argument(metavar="admin|user")],
) -> None:
    """Make someone an administrator, or no longer one."""

    async def work(_: Database, users: UserRepository) -> User:
        return await users.set_role((await find_user(users, email)).id, _role(role))

    user = with_database(settings, work)
    typer.echo(f"{user.email} is {user.role} now.")


@command(user_app, "suspend")
def suspend_user(settings: Settings, email: Email) -> None:
    """Shut an account for a while: sessions, API tokens and runs end, schedules pause. Chats and files stay."""

    async def work(runtime: Runtime) -> User:
        return await runtime.people.suspend((await find_user(UserRepository(runtime.database), email)).id)

    from deerflow.accounts import UserRepository

    user = with_runtime(settings, work)
    typer.echo(f"{user.email} is suspended. `deerflow user resume {user.email}` lets them in again.")


@command(user_app, "resume")
def resume_user(settings: Settings, email: Email) -> None:
    """Let someone who was suspended sign in again; their schedules go on."""

    async def work(runtime: Runtime) -> User:
        return await runtime.people.resume((await find_user(UserRepository(runtime.database), email)).id)

    from deerflow.accounts import UserRepository

    typer.echo(f"{with_runtime(settings, work).email} can sign in again.")


@command(user_app, "export")
def export_data(
    settings: Settings,
    archive: Annotated[Path, typer.Argument(metavar="ARCHIVE", help="The ZIP file to write.")],
    email: Annotated[
        str | None,
        typer.Option("--user", "-u", metavar="EMAIL", help="Whose data.  [default: those of this machine's user]"),
    ] = None,
) -> None:
    """Write everything of a person into a ZIP: chats, files, memory, agents, skills, schedules. No passwords, tokens or keys."""
    from deerflow.accounts import UserRepository
    from deerflow.identity import LOCAL_PRINCIPAL, Principal

    async def work(runtime: Runtime) -> None:
        person = LOCAL_PRINCIPAL
        if email is not None:
            person = Principal((await find_user(UserRepository(runtime.database), email)).id)
        part = archive.with_name(f"{archive.name}.part")
        try:
            with await asyncio.to_thread(part.open, "xb") as file:
                async for piece in runtime.personal_data.archive(person):
                    await asyncio.to_thread(file.write, piece)
            await asyncio.to_thread(os.link, part, archive)  # never over a file that is there
        finally:
            await asyncio.to_thread(part.unlink, missing_ok=True)

    if archive.exists():
        raise CommandFailure(f"{archive} exists already.", "Name a file that does not exist.")
    with_runtime(settings, work)
    typer.echo(f"Everything is in {archive}.")


@command(user_app, "delete")
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
    from deerflow.identity import Principal
    from deerflow.storage.threads import ThreadFilter, ThreadRepository

    paths = Paths()

    async def look(database: Database, users: UserRepository) -> tuple[User, int]:
        user = await find_user(users, email)
        admins = [one.id for one in await users.list(limit=EVERYONE) if one.role == "admin"]
        if admins == [user.id]:
            raise CommandFailure(
                f"{user.email} is the only administrator.",
                "Make someone else one first: `deerflow user role EMAIL admin`.",
            )
        return user, await ThreadRepository(database).count(Principal(user.id), ThreadFilter(unlisted=True))

    user, threads = with_database(settings, look)
    if with_data is None:
        with_data = not yes and threads > 0 and typer.confirm(f"Delete its {threads} threads, too?")
    if not yes:
        what = f" with {threads} threads and all its files" if with_data else ""
        typer.confirm(f"Delete the account {user.email}{what}?", abort=True)
    if with_data:
        delete_all(settings, paths, user)
        typer.echo(f"Deleted the account {user.email} with everything that it had.")
        return
    with_database(settings, lambda _, users: users.delete(user.id))
    typer.echo(f"Deleted the account {user.email}.")
    if threads:
        typer.echo(
            f"Its {threads} threads stay in the database and their files in {paths.user_dir(user.id)}, where nobody can "
            "open them over HTTP."
        )


@command(token_app, "create")
def create_token(
    settings: Settings,
    name: Annotated[str, typer.Argument(help="What it is for.")],
    scope: Annotated[
        list[str] | None,
        typer.Option("--scope", metavar="read|write|admin", help="May be repeated.  [default: read, write]"),
    ] = None,
    days: Annotated[
        int | None, typer.Option("--days", min=1, max=3650, help="Valid that long; default: for ever.")
    ] = None,
    user: Owner = None,
) -> None:
    """Make a token and print it; it is not shown again."""
    scopes = _scopes(scope or ["read", "write"])
    lifetime = timedelta(days=days) if days else None

    async def work(tokens: TokenRepository, owner: Principal) -> str:
        if "admin" in scopes and owner.role != "admin":
            raise CommandFailure("Only tokens of administrators may have the scope admin.")
        return (await tokens.create(owner, name, scopes, lifetime=lifetime))[1]

    typer.echo(with_tokens(settings, user, work))


@command(token_app, "list")
def list_tokens(settings: Settings, user: Owner = None, as_json: AsJson = False) -> None:
    """List the tokens of a user, the newest first."""
    found = with_tokens(settings, user, lambda tokens, owner: tokens.list(owner))
    if as_json:
        return print_json({"tokens": [asdict(token) for token in found]})
    for token in found:
        until = f"until {token.expires_at:%Y-%m-%d}" if token.expires_at else "for ever"
        used = f"used {token.last_used_at:%Y-%m-%d %H:%M}" if token.last_used_at else "never used"
        typer.echo(f"{token.id}\t{token.hint}…\t{token.name}\t{','.join(token.scopes)}\t{until}\t{used}")


@command(token_app, "revoke")
def revoke_token(
    settings: Settings,
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As 'deerflow token list' shows it.")],
    user: Owner = None,
) -> None:
    """Make a token worthless. A running gateway notices within five seconds."""
    with_tokens(settings, user, lambda tokens, owner: tokens.revoke(owner, token_id))
    typer.echo("Revoked.")


def _role(role: str) -> Role:
    if role == "admin" or role == "user":
        return role
    raise usage_failure(f"There is no role {role!r}.", "Use admin or user.")


def _scopes(words: list[str]) -> tuple[Scope, ...]:
    from deerflow.accounts import SCOPES

    if unknown := [word for word in words if word not in SCOPES]:
        raise usage_failure(f"There is no scope {unknown[0]!r}.", f"Use {', '.join(SCOPES)}.")
    return tuple(scope for scope in SCOPES if scope in words)


async def find_user(users: UserRepository, email: str | None) -> User:
    """The account with that address; without one the oldest administrator. Raises CommandFailure."""
    if email is not None:
        if user := await users.by_email(email.strip()):
            return user
        raise CommandFailure(f"There is no account with the address {email}.", "`deerflow user list` shows all.")
    for user in await users.list(limit=10_000):
        if user.role == "admin":
            return user
    raise CommandFailure("There is no administrator yet.", "Make one with `deerflow user add EMAIL`.")


def with_database(settings: Settings, work: Callable[[Database, UserRepository], Awaitable[T]]) -> T:
    """Run ``work`` on the configured database. Raises CommandFailure where it cannot be used, or refuses."""
    from deerflow.accounts import UserRepository
    from deerflow.config import ConfigSource, Paths
    from deerflow.errors import RequestError
    from deerflow.storage.database import Database
    from deerflow.storage.errors import DatabaseError

    config, paths = ConfigSource(settings.config).current(), Paths()
    if config.database.backend == "memory":
        raise usage_failure(
            "The database is in the memory of the gateway and nowhere else.",
            "Set database.backend to sqlite or postgres.",
        )
    database = Database.of(config, paths, alone=True)

    async def run() -> T:
        try:
            return await work(database, UserRepository(database))
        finally:
            await database.aclose()

    try:
        return asyncio.run(run())
    except (RequestError, DatabaseError) as error:
        raise CommandFailure(str(error)) from None


def with_tokens(settings: Settings, email: str | None, work: Callable[[TokenRepository, Principal], Awaitable[T]]) -> T:
    """Run ``work`` with the tokens of all, on behalf of a user. Raises like with_database, and for an unknown address."""
    from deerflow.accounts import TokenRepository
    from deerflow.identity import Principal

    async def run(database: Database, users: UserRepository) -> T:
        user = await find_user(users, email)
        return await work(TokenRepository(database), Principal(user.id, role=user.role))

    return with_database(settings, run)


def delete_all(settings: Settings, paths: Paths, user: User) -> None:
    """The data first, so that whoever was interrupted can begin again with the address.

    Raises CommandFailure while a server of this machine uses the same SQLite file: it may be executing runs of the user.
    """
    from deerflow.accounts import UserRepository
    from deerflow.features.retention import delete_belongings
    from deerflow_app.gateway import running_server

    async def work(runtime: Runtime) -> None:
        if not runtime.database.is_postgres and (running := running_server(paths.base_dir)) is not None:
            raise CommandFailure(f"DeerFlow is running: {running.url}", "Stop it first, or delete with --keep-data.")
        await delete_belongings(runtime.database, runtime.threads, paths, user.id)
        await UserRepository(runtime.database).delete(user.id)
        # What came in between.
        await delete_belongings(runtime.database, runtime.threads, paths, user.id)

    with_runtime(settings, work)


def with_runtime(settings: Settings, work: Callable[[Runtime], Awaitable[T]]) -> T:
    """Run ``work`` with a runtime that executes nothing. Raises CommandFailure if it refuses."""
    from deerflow.config import ConfigSource, Paths
    from deerflow.errors import RequestError
    from deerflow.runtime import Runtime

    runtime = Runtime(ConfigSource(settings.config), Paths(), executes=False)

    async def run() -> T:
        try:
            await runtime.start()
            return await work(runtime)
        finally:
            await runtime.aclose()

    try:
        return asyncio.run(run())
    except RequestError as error:
        raise CommandFailure(str(error)) from None
