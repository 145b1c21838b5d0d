"""`deerflow token …`: API tokens, straight from the gateway's database."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from deerflow_app.cli.commands.users import find_user, with_database
from deerflow_app.cli.failures import Failure, usage_failure
from deerflow_app.cli.options import AsJson, Settings, command, print_json

if TYPE_CHECKING:
    from deerflow.accounts import ApiToken, Scope
    from deerflow.identity import Principal
    from deerflow.storage.database import Database

app = typer.Typer(help="Manage API tokens of the gateway.", no_args_is_help=True, rich_markup_mode=None)

User = Annotated[
    str | None, typer.Option("--user", "-u", metavar="EMAIL", help="Whose token.  [default: the oldest administrator]")
]


@command(app, "create")
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
    user: User = None,
) -> None:
    """Make a token and print it; it is not shown again."""
    scopes = _scopes(scope or ["read", "write"])

    async def work(database: Database) -> str:
        from deerflow.accounts import TokenRepository

        owner = await _owner(database, user)
        if "admin" in scopes and owner.role != "admin":
            raise Failure("Only tokens of administrators may have the scope admin.")
        lifetime = timedelta(days=days) if days else None
        return (await TokenRepository(database).create(owner, name, scopes, lifetime=lifetime))[1]

    typer.echo(with_database(settings, work))


@command(app, "list")
def list_tokens(
    settings: Settings,
    user: User = None,
    as_json: AsJson = False,
) -> None:
    """List the tokens of a user, the newest first."""

    async def work(database: Database) -> list[ApiToken]:
        from deerflow.accounts import TokenRepository

        return await TokenRepository(database).list(await _owner(database, user))

    tokens = with_database(settings, work)
    if as_json:
        print_json({"tokens": [asdict(token) for token in tokens]})
        return
    for token in tokens:
        until = f"until {token.expires_at:%Y-%m-%d}" if token.expires_at else "for ever"
        used = f"used {token.last_used_at:%Y-%m-%d %H:%M}" if token.last_used_at else "never used"
        typer.echo(f"{token.id}\t{token.hint}…\t{token.name}\t{','.join(token.scopes)}\t{until}\t{used}")


@command(app, "revoke")
def revoke_token(
    settings: Settings,
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As `deerflow token list` shows it.")],
    user: User = None,
) -> None:
    """Make a token worthless. A running gateway notices within five seconds."""

    async def work(database: Database) -> None:
        from deerflow.accounts import TokenRepository

        await TokenRepository(database).revoke(await _owner(database, user), token_id)

    with_database(settings, work)
    typer.echo("Revoked.")


async def _owner(database: Database, email: str | None) -> Principal:
    from deerflow.identity import Principal

    user = await find_user(database, email)
    return Principal(user.id, role=user.role)


def _scopes(words: list[str]) -> tuple[Scope, ...]:
    from deerflow.accounts import SCOPES

    if unknown := [word for word in words if word not in SCOPES]:
        raise usage_failure(f"There is no scope {unknown[0]!r}.", f"Use {', '.join(SCOPES)}.")
    return tuple(scope for scope in SCOPES if scope in words)
