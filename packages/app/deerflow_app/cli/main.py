"""The `deerflow` command: arguments and options. What they do stands in the modules next to this one.

Nothing heavy is imported before a command runs: `deerflow --help` answers at once.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer

from deerflow_app.cli.commands import (
    AsJson,
    ConfigFile,
    Debug,
    Settings,
    accounts,
    agents,
    backup,
    command,
    config,
    init,
    mcp,
    memory,
    migrate_database,
    moving_in,
    reports,
    server,
    service,
    settings_of,
    skills,
    update,
)
from deerflow_app.cli.failures import explain, usage_failure

app = typer.Typer(
    name="deerflow",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Model = Annotated[str | None, typer.Option("--model", "-m", metavar="NAME", help="The model that answers.")]
Agent = Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Talk to an agent of your own.")]
Local = Annotated[bool, typer.Option("--local", help="Work in this process, also where a server is running.")]
Plan = Annotated[bool, typer.Option("--plan", help="Let the agent keep a visible plan.")]
Subagents = Annotated[bool, typer.Option("--subagents", help="Let the agent give parts of the work to subagents.")]
Thinking = Annotated[bool, typer.Option("--thinking/--no-thinking", help="Let the model think where it can.")]


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave with its exit code: 0 ok, 1 it failed, 2 the call or the configuration is wrong."""
    settings = Settings()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character must not end the program
    # httpx would import its own command line, with rich and pygments: 5 MB and 60 ms for nothing.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
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
        str | None, typer.Option("--thread", metavar="ID", help="Open this chat and finish what was cut off.")
    ] = None,
    model: Model = None,
    plan: Plan = False,
    subagents: Subagents = False,
    thinking: Thinking = True,
    agent: Agent = None,
    local: Local = False,
    config_file: ConfigFile = None,
    debug: Debug = False,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    """DeerFlow gets work done: state a task, it plans, works in a sandbox and hands over files.

    Without a command it opens a chat; lines piped into it are messages.
    """
    settings = settings_of(context, config_file, debug)
    settings.local = local
    if version:
        from importlib.metadata import version as version_of

        typer.echo(f"deerflow {version_of('deerflow')}")
    elif context.invoked_subcommand is None:
        from deerflow_app.cli.commands.run import chat

        chosen = replace(settings, model=model, plan=plan, subagents=subagents, thinking=thinking, agent=agent)
        raise typer.Exit(chat(chosen, thread))


@command(app)
def run(
    settings: Settings,
    task: Annotated[str, typer.Argument(help="What is to be done; '-' reads it from stdin.")],
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
    subagents: Subagents = False,
    thinking: Thinking = True,
    agent: Agent = None,
    local: Local = False,
    approve: Annotated[
        Literal["ask", "auto", "deny"] | None,
        typer.Option(
            help="Calls that need a decision: ask for it, approve or reject all.  [default: ask on a terminal, else guardrails.unattended]"
        ),
    ] = None,
    check: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COMMAND", help="Must succeed in the sandbox at the end, or the agent goes on; may be repeated."
        ),
    ] = None,
) -> None:
    """Carry out one task: progress on stderr, the answer on stdout, delivered files in --out."""
    from deerflow_app.cli.commands.run import OneShot, on_terminal, run_once

    asked = on_terminal()
    if approve == "ask" and not asked:
        raise usage_failure("--approve ask needs a terminal.", "Use --approve auto or --approve deny.")
    chosen = replace(
        settings,
        local=local or settings.local,
        model=model,
        plan=plan,
        subagents=subagents,
        thinking=thinking,
        agent=agent,
        unattended=not (approve or asked),
    )
    wanted = OneShot(task, tuple(file or ()), out, thread, approve or ("ask" if asked else None), tuple(check or ()))
    raise typer.Exit(run_once(chosen, wanted, as_json=as_json))


@command(app)
def acp(settings: Settings, model: Model = None, agent: Agent = None, local: Local = False) -> None:
    """Be the agent of an editor that starts this program (Agent Client Protocol)."""
    import asyncio

    from deerflow_app.cli.backend import open_backend
    from deerflow_app.cli.commands.acp import serve

    chosen = replace(settings, model=model, agent=agent, local=local or settings.local)
    asyncio.run(serve(open_backend(chosen).client))


@command(app)
def doctor(settings: Settings, as_json: AsJson = False) -> None:
    """Check Python, configuration, models, sandbox and disk, and say how to mend what is broken."""
    from deerflow_app.cli.commands.doctor import diagnose, exit_code, print_report

    checks = diagnose(settings)
    print_report(checks, as_json=as_json)
    raise typer.Exit(exit_code(checks))


app.add_typer(config.app, name="config")
app.add_typer(accounts.user_app, name="user")
app.add_typer(accounts.token_app, name="token")
app.add_typer(agents.app, name="agents")
app.add_typer(skills.app, name="skills")
app.add_typer(mcp.app, name="mcp")
app.add_typer(memory.app, name="memory")
app.add_typer(moving_in.app, name="import")
app.add_typer(service.app, name="service")
for function in (
    init.init,
    config.setup,
    config.models,
    reports.usage,
    reports.trace,
    server.serve,
    server.stop,
    server.worker,
    server.provisioner,
    server.prune,
    backup.backup,
    backup.restore,
    update.update,
    update.rollback,
):
    command(app)(function)
command(app, "migrate-database")(migrate_database.migrate_database)
command(app, hidden=True)(update.trial)


if __name__ == "__main__":
    main()
