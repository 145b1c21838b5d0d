"""`deerflow import …`: taking over what other programs keep."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deerflow_app.cli.commands import AsJson, Debug, Settings, command, print_json, settings_of
from deerflow_app.cli.commands.accounts import find_user
from deerflow_app.cli.commands.server import opened
from deerflow_app.cli.failures import usage_failure
from deerflow_app.cli.terminal import clean, one_line

if TYPE_CHECKING:
    from deerflow.runtime import Runtime
    from deerflow_app.moving_in.report import MoveReport

    Work = Callable[[Runtime, MoveReport], Awaitable[None]]

app = typer.Typer(
    help="Take over chats, memory, agents and files of other programs.", no_args_is_help=True, rich_markup_mode=None
)
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would come.")]


@app.command("deer-flow")
def deer_flow(
    context: typer.Context,
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Its data directory, '.deer-flow'. Stop deer-flow first.")
    ],
    theirs: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="deer-flow's config.yaml.  [default: the one above DIR]"),
    ] = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Take over deer-flow's threads, files, memory, agents, skills, MCP servers and accounts. Nothing of it is changed.

    May be repeated: what is here already stays as it is. DeerFlow's own configuration is the one found here; another one is named
    before the command: deerflow --config FILE import deer-flow DIR.
    """
    from deerflow.config import Paths
    from deerflow_app.moving_in.deer_flow import import_deer_flow
    from deerflow_app.moving_in.deer_flow_home import DeerFlowHome

    home = DeerFlowHome.find(directory, theirs)
    if home.directory.resolve() == Paths().base_dir.resolve():
        raise usage_failure(
            f"{directory} is the data directory of this DeerFlow, too.", "Name another one for it: DEER_FLOW_HOME."
        )

    async def work(runtime: Runtime, report: MoveReport) -> None:
        await import_deer_flow(home, runtime, report, dry_run=dry_run)

    _run(settings_of(context, None, debug), work, dry_run=dry_run, as_json=as_json)


@command(app, "chats")
def chats(
    settings: Settings,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The archive, or the JSON file, of the export.")],
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="EMAIL", help="Whose they become.  [default: the first administrator's]"),
    ] = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Make threads of the chats that ChatGPT, Claude or Open WebUI have exported. May be repeated."""
    from deerflow.accounts import UserRepository
    from deerflow.identity import LOCAL_PRINCIPAL, Principal
    from deerflow_app.moving_in.chats import import_chats
    from deerflow_app.moving_in.threads import ThreadImport

    async def work(runtime: Runtime, report: MoveReport) -> None:
        owner = LOCAL_PRINCIPAL
        if user is not None:
            owner = Principal((await find_user(UserRepository(runtime.database), user)).id)
        await import_chats(file, owner, ThreadImport(runtime.threads, report, dry_run=dry_run), report)

    _run(settings, work, dry_run=dry_run, as_json=as_json)


def _run(settings: Settings, work: Work, *, dry_run: bool, as_json: bool) -> None:
    """Open what is kept here, import, and show the table, also of an import that fails in the middle."""
    from deerflow.runtime import Runtime
    from deerflow.storage.database import Database
    from deerflow_app.moving_in.report import MoveReport

    source, paths = opened(settings)
    config = source.current()
    if config.database.backend == "memory":
        raise usage_failure(
            "The database is in memory: nothing would stay.", "Set database.backend to sqlite or postgres."
        )
    is_new = config.database.backend == "sqlite" and not Path(config.database_location(paths)).exists()
    # A dry run makes no database.
    database = Database(":memory:") if dry_run and is_new else Database.of(config, paths, alone=True)
    runtime, report = Runtime(source, paths, executes=False, database=database), MoveReport()

    async def run() -> None:
        try:
            await work(runtime, report)
        finally:
            await runtime.aclose()

    try:
        asyncio.run(run())
    finally:
        if [*report.rows()]:
            print_json(report.as_json() | {"dry_run": dry_run}) if as_json else _show(report, dry_run)


def _show(report: MoveReport, dry_run: bool) -> None:
    typer.echo(f"{'':<24}{'would come' if dry_run else 'came':>12}{'there before':>14}{'not':>8}")
    for kind, came, there, not_ in report.rows():
        typer.echo(f"{kind:<24}{came:>12}{there:>14}{not_:>8}")
    for note in report.notes:
        name = f" {one_line(note.name, 80)!r}" if note.name else ""
        typer.echo(f"{note.kind}{name}: {clean(note.why)}")
    if dry_run:
        typer.echo("Nothing was changed: this was a dry run.")
