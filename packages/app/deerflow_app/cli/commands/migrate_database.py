"""`deerflow migrate-database`: from SQLite to PostgreSQL, and back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deerflow_app.cli import Settings
from deerflow_app.cli.commands.server import alone, opened
from deerflow_app.cli.failures import usage_failure
from deerflow_app.cli.terminal import make_console

if TYPE_CHECKING:
    from collections.abc import Callable

    from deerflow.storage.transfer import Copied

_POSTGRES = ("postgresql://", "postgres://")
_SQLITE = "sqlite:///"


def migrate_database(
    settings: Settings,
    url: Annotated[
        str,
        typer.Argument(metavar="URL", help="An empty database: postgresql://…, or the path of a SQLite file to make."),
    ],
) -> None:
    """Copy the whole database to one of the other kind, and compare both. Stop DeerFlow first; the present one stays as it is.

    Repeat the command if it was cut off: it goes on.
    """
    from deerflow.storage.migrate import check_usable
    from deerflow.storage.transfer import begin, finish

    source, paths = opened(settings)
    location, target = source.current().database_location(paths, direct=True), _target(url)
    if "://" not in location and not Path(location).exists():
        raise usage_failure(
            "There is no database yet that could be copied.", "Set `database` in config.yaml to the new one."
        )
    console = make_console(stderr=True)
    with alone(paths.ensure_base_dir()):
        check_usable(location)
        filled = begin(location, target)
        with console.status("") as status:
            copied = asyncio.run(_copy(location, filled, lambda step: status.update(f"  {step}")))
        finish(target, filled)
    rows = sum(copied.rows.values())
    typer.echo(
        f"Copied and compared {rows} rows of {len(copied.rows)} tables, and the history of {copied.threads} threads."
    )
    setting = (
        "backend: postgres and postgres_url"
        if "://" in target
        else f"backend: sqlite and sqlite_dir: {Path(target).parent}"
    )
    typer.echo(
        f"Now set `database` in config.yaml to {setting}, then start DeerFlow. The files of threads stay where they are."
    )


async def _copy(location: str, target: str, show: Callable[[str], None]) -> Copied:
    from deerflow.features.memory import rows
    from deerflow.storage.database import Database
    from deerflow.storage.tables import memory_facts
    from deerflow.storage.transfer import transfer

    source, copy = Database(location), Database(target, filling=True)
    try:
        return await transfer(source, copy, show, {memory_facts: rows.put_row})
    finally:
        await source.aclose()
        await copy.aclose()


def _target(url: str) -> str:
    """Return the location of the database. Raises CommandFailure for a URL of another kind."""
    if url.startswith(_POSTGRES):
        return "postgresql://" + url.split("://", 1)[1]
    path = url.removeprefix(_SQLITE)
    if "://" in path or (Path(path).exists() and not Path(path).is_file()):
        raise usage_failure(
            f"{url.split('://')[0]} is no database to copy to.", "Give postgresql://… or the path of a SQLite file."
        )
    if Path(path).name != "deerflow.db":
        raise usage_failure(
            f"The SQLite file must be called deerflow.db, not {Path(path).name}.", "Name its directory before it."
        )
    return str(Path(path).absolute())
