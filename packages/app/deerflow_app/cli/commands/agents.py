"""`deerflow agents …`: agents of your own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deerflow_app.cli.commands import AsJson, Settings, command, print_json, with_client
from deerflow_app.cli.failures import usage_failure
from deerflow_app.cli.terminal import clean, one_line

if TYPE_CHECKING:
    from deerflow_app.cli.backend import Client

app = typer.Typer(help="See, make and change agents of your own.", no_args_is_help=True, rich_markup_mode=None)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits and hyphens.")]


@command(app, "list")
def list_agents(settings: Settings, as_json: AsJson = False) -> None:
    """List your agents, and those of the installation."""
    agents = with_client(settings, lambda client: client.alist_agents())
    if as_json:
        return print_json({"agents": agents})
    for agent in agents:
        called = f" ({clean(agent['display_name'])})" if agent["display_name"] else ""
        typer.echo(f"{clean(agent['name'])}{called}\t{one_line(agent['description'], 100)}")


@command(app, "show")
def show(settings: Settings, name: Name, as_json: AsJson = False) -> None:
    """Show what an agent is made of."""
    agent = with_client(settings, lambda client: client.aget_agent(name))
    if as_json:
        return print_json(agent)
    for key, value in agent.items():
        if key != "soul" and value not in (None, ""):
            typer.echo(f"{key}: {clean(', '.join(value) if isinstance(value, list) else str(value))}")
    typer.echo(f"\n{clean(agent['soul'])}")


@command(app, "new")
def new(settings: Settings, name: Name) -> None:
    """Make an agent, or change one, in a conversation."""
    from deerflow_app.cli.commands.run import chat

    raise typer.Exit(chat(replace(settings, agent=name, is_bootstrap=True)))


@command(app, "set")
def change(
    settings: Settings,
    name: Name,
    display_name: Annotated[
        str | None, typer.Option("--display-name", metavar="TEXT", help="What people see, in any script.")
    ] = None,
    description: Annotated[str | None, typer.Option("--description", metavar="TEXT", help="One line.")] = None,
    soul: Annotated[Path | None, typer.Option("--soul", metavar="FILE", help="Its SOUL.md.")] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", metavar="NAME", help="The model that answers.")] = None,
    skill: Annotated[list[str] | None, typer.Option("--skill", help="The only skills; may be repeated.")] = None,
    group: Annotated[list[str] | None, typer.Option("--tool-group", help="The only tools; may be repeated.")] = None,
) -> None:
    """Make an agent, or change what is given of one."""
    given = {
        "display_name": display_name,
        "description": description,
        "model": model,
        "skills": skill or None,
        "tool_groups": group or None,
    }
    changes: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    if soul is not None:
        try:
            changes["soul"] = soul.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise usage_failure(f"{soul} cannot be read: {error}", "Give a text file.") from error

    async def save(client: Client) -> None:
        there = {agent["name"] for agent in await client.alist_agents()}
        make = client.aupdate_agent if name.lower() in there else client.acreate_agent
        await make(name, **changes)

    with_client(settings, save)
    typer.echo(f"Saved. Talk to it with: deerflow --agent {name}")


@command(app, "delete")
def delete(settings: Settings, name: Name) -> None:
    """Delete an agent of your own, with its versions and what it remembers."""
    with_client(settings, lambda client: client.adelete_agent(name))
    typer.echo("Deleted.")


@command(app, "versions")
def versions(settings: Settings, name: Name, as_json: AsJson = False) -> None:
    """Show how an agent came to be what it is, newest first."""
    found = with_client(settings, lambda client: client.aagent_versions(name))
    if as_json:
        return print_json({"versions": found})
    for each in found:
        mark = "  (current)" if each["is_current"] else ""
        typer.echo(f"version {each['version']}  {each['created_at']}  by {clean(each['author'])}{mark}")
        typer.echo(f"{clean(each['diff'])}\n")


@command(app, "undo")
def undo(
    settings: Settings,
    name: Name,
    version: Annotated[
        int | None, typer.Option("--version", metavar="N", min=1, help="The one before the current.")
    ] = None,
) -> None:
    """Go back to a former version."""

    async def back(client: Client) -> int:
        current = next((each["version"] for each in await client.aagent_versions(name) if each["is_current"]), 1)
        if (wanted := version or current - 1) == 0:
            raise usage_failure(f"{name} has no former version.", "`deerflow agents versions` shows those there are.")
        await client.arollback_agent(name, wanted)
        return wanted

    typer.echo(f"{name} is version {with_client(settings, back)} again.")
