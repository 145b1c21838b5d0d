"""The `deerflow` command: arguments and options. What they do stands in the modules next to this one.

Nothing heavy is imported before a command runs: `deerflow --help` answers at once.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from deerflow_app.cli.commands import server, tokens, users
from deerflow_app.cli.failures import explain
from deerflow_app.cli.options import AsJson, ConfigFile, Debug, Settings, settings_of

if TYPE_CHECKING:
    from deerflow.config import AppConfig

app = typer.Typer(
    name="deerflow",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
config_app = typer.Typer(
    help="Look at the configuration and keep it current.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(config_app, name="config")

Model = Annotated[str | None, typer.Option("--model", "-m", metavar="NAME", help="The model that answers.")]
Local = Annotated[bool, typer.Option("--local", help="Work in this process, also where a server is running.")]
Plan = Annotated[bool, typer.Option("--plan", help="Let the agent keep a visible plan.")]
Thinking = Annotated[bool, typer.Option("--thinking/--no-thinking", help="Let the model think where it can.")]


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave with its exit code: 0 ok, 1 it failed, 2 the call or the configuration is wrong."""
    settings = Settings()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character must not end the program
    try:
        app(args=list(argv) if argv is not None else None, prog_name="deerflow", obj=settings)
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        sys.exit(1)
    except Exception as error:
        if settings.debug:
            raise
        failure = explain(error)
        sys.stderr.write(f"deerflow: {failure.message}\n" + (f"  {failure.remedy}\n" if failure.remedy else ""))
        sys.exit(failure.exit_code)
    sys.exit(0)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    thread: Annotated[
        str | None, typer.Option("--thread", metavar="ID", help="Open this thread and finish its last turn.")
    ] = None,
    model: Model = None,
    plan: Plan = False,
    thinking: Thinking = True,
    local: Local = False,
    config: ConfigFile = None,
    debug: Debug = False,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    """DeerFlow gets work done: state a task, it plans, works in a sandbox and hands over files.

    Without a command it opens a chat; lines piped into it are messages.
    """
    settings = settings_of(context, config, debug, local)
    if version:
        from importlib.metadata import version as version_of

        typer.echo(f"deerflow {version_of('deerflow')}")
    elif context.invoked_subcommand is None:
        from deerflow_app.cli.commands.chat import chat

        raise typer.Exit(chat(settings, thread=thread, model=model, plan=plan, thinking=thinking))


@app.command()
def run(
    context: typer.Context,
    task: Annotated[str, typer.Argument(help="What is to be done; `-` reads it from stdin.")],
    file: Annotated[
        list[Path] | None,
        typer.Option("--file", "-f", metavar="PATH", help="Hand this file to the agent; may be repeated."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where delivered files go.  [default: deerflow-out]"),
    ] = None,
    as_json: AsJson = False,
    model: Model = None,
    thread: Annotated[str | None, typer.Option("--thread", metavar="ID", help="Continue this thread.")] = None,
    plan: Plan = False,
    thinking: Thinking = True,
    local: Local = False,
    config: ConfigFile = None,
    debug: Debug = False,
) -> None:
    """Carry out one task: progress on stderr, the answer on stdout, delivered files in --out."""
    from deerflow_app.cli.commands.run import Task, run_once

    settings = settings_of(context, config, debug, local)
    wanted = Task(task, tuple(file or ()), out, thread)
    raise typer.Exit(run_once(settings, wanted, model=model, plan=plan, thinking=thinking, as_json=as_json))


@app.command()
def doctor(context: typer.Context, as_json: AsJson = False, config: ConfigFile = None, debug: Debug = False) -> None:
    """Check Python, configuration, models, sandbox and disk, and say how to mend what is broken."""
    from deerflow_app.cli.commands.doctor import diagnose, exit_code, print_report
    from deerflow_app.cli.terminal import make_console

    checks = diagnose(settings_of(context, config, debug))
    print_report(checks, make_console(), as_json=as_json)
    raise typer.Exit(exit_code(checks))


@app.command()
def setup(
    context: typer.Context,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing when there is nothing to do.")] = False,
    config: ConfigFile = None,
    debug: Debug = False,
) -> None:
    """Prepare the sandbox's Python packages, once; without this the first start does it."""
    from deerflow_app.cli.commands.config import set_up
    from deerflow_app.cli.terminal import make_console

    set_up(_current(settings_of(context, config, debug)), make_console(stderr=True), quiet=quiet)


@app.command()
def models(context: typer.Context, as_json: AsJson = False, config: ConfigFile = None, debug: Debug = False) -> None:
    """List the models that can answer."""
    from deerflow_app.cli.commands.config import print_models
    from deerflow_app.cli.terminal import make_console

    print_models(_current(settings_of(context, config, debug)), make_console(), as_json=as_json)


@config_app.command("show")
def config_show(
    context: typer.Context, as_json: AsJson = False, config: ConfigFile = None, debug: Debug = False
) -> None:
    """Show the configuration in force, defaults included, secrets masked."""
    from deerflow_app.cli.commands.config import print_config
    from deerflow_app.cli.terminal import make_console

    print_config(_current(settings_of(context, config, debug)), make_console(), as_json=as_json)


@config_app.command("path")
def config_path(context: typer.Context, config: ConfigFile = None, debug: Debug = False) -> None:
    """Print the path of the config file in use; exit code 1 when there is none."""
    from deerflow_app.cli.commands.config import config_file

    file = config_file(settings_of(context, config, debug))
    if file is None:
        typer.echo("No config file. `deerflow config init` writes one.", err=True)
        raise typer.Exit(1)
    typer.echo(file)


@config_app.command("init")
def config_init(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("config.yaml"),
    debug: Debug = False,
) -> None:
    """Write a commented config.yaml to begin with. Nothing is overwritten."""
    from deerflow_app.cli.commands.config import write_example

    settings_of(context, None, debug)
    write_example(path)
    typer.echo(f"Wrote {path}. Name your model in it, then run: deerflow doctor")


@config_app.command("upgrade")
def config_upgrade(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    config: ConfigFile = None,
    debug: Debug = False,
) -> None:
    """Bring config.yaml to the current version; values and comments stay, the old file is kept as config.yaml.bak."""
    from deerflow_app.cli.commands.config import config_file, upgrade
    from deerflow_app.cli.terminal import make_console

    upgrade(config_file(settings_of(context, config, debug)), make_console(), dry_run=dry_run)


def _current(settings: Settings) -> AppConfig:
    from deerflow.config import ConfigSource

    return ConfigSource(settings.config).current()


app.add_typer(users.app, name="user")
app.add_typer(tokens.app, name="token")
for command in (
    server.serve,
    server.worker,
    server.prune,
    server.backup,
    server.restore,
):
    app.command()(command)


if __name__ == "__main__":
    main()
