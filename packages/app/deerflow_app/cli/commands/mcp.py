"""`deerflow mcp …`: servers of the Model Context Protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deerflow_app.cli.failures import Failure, usage_failure
from deerflow_app.cli.options import AsJson, Settings, command, print_json

if TYPE_CHECKING:
    from deerflow_app.cli.client import Client

app = typer.Typer(help="See, add and test MCP servers.", no_args_is_help=True, rich_markup_mode=None)

Name = Annotated[str, typer.Argument(metavar="NAME")]


@command(app, "list")
def list_servers(settings: Settings, as_json: AsJson = False) -> None:
    """List MCP servers, their state and how many tools they have."""
    servers = _with(settings, lambda client: client.alist_mcp_servers())
    if as_json:
        return print_json({"servers": servers})
    for server in servers:
        _print(server)


@command(app, "add")
def add(
    settings: Settings,
    name: Name,
    program: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="After --, with its arguments.")
    ] = None,
    url: Annotated[str | None, typer.Option("--url", help="Of a server over HTTP.")] = None,
    sse: Annotated[bool, typer.Option("--sse", help="The older way over HTTP.")] = False,
    env: Annotated[list[str] | None, typer.Option("--env", metavar="NAME=VALUE", help="For the program.")] = None,
    header: Annotated[list[str] | None, typer.Option("--header", metavar="NAME=VALUE", help="For HTTP.")] = None,
) -> None:
    """Add an MCP server, or replace the one of that name."""
    if bool(url) == bool(program):
        raise usage_failure("Give either --url, or a command after --.")
    entry: dict[str, Any] = {"enabled": True}
    if url:
        entry |= {"type": "sse" if sse else "http", "url": url, "headers": _pairs(header)}
    elif program:
        entry |= {"type": "stdio", "command": program[0], "args": program[1:], "env": _pairs(env)}

    async def save(client: Client) -> Any:
        servers = (await client.aget_mcp_config())["mcp_servers"]
        await client.aupdate_mcp_config({**servers, name: entry})
        return next(one for one in await client.alist_mcp_servers() if one["name"] == name)

    _print(_with(settings, save))


@command(app, "remove")
def remove(settings: Settings, name: Name) -> None:
    """Remove an MCP server."""

    async def save(client: Client) -> None:
        servers = (await client.aget_mcp_config())["mcp_servers"]
        if servers.pop(name, None) is None:
            raise Failure(f"There is no MCP server {name!r}.", remedy="`deerflow mcp list` shows those there are.")
        await client.aupdate_mcp_config(servers)

    _with(settings, save)
    typer.echo("Removed.")


@command(app, "test")
def test(settings: Settings, name: Name) -> None:
    """Open a session with an MCP server, and show its tools."""
    from deerflow_app.cli.terminal import one_line

    server = _with(settings, lambda client: client.arestart_mcp_server(name))
    _print(server)
    for tool in server["tools"]:
        typer.echo(f"  {one_line(tool['name'], 60)}\t{one_line(tool['description'], 100)}")
    if server["state"] != "ready":
        raise typer.Exit(1)


@command(app, "logs")
def logs(settings: Settings, name: Name) -> None:
    """Show what an MCP server has written, and what went wrong with it."""
    from deerflow_app.cli.terminal import clean

    for line in _with(settings, lambda client: client.aread_mcp_log(name)):
        typer.echo(clean(line))


def _print(server: Any) -> None:
    from deerflow_app.cli.terminal import clean, one_line

    more = one_line(server["error"], 200) if server["error"] else f"{len(server['tools'])} tools"
    typer.echo(f"{clean(server['name'])}\t{server['state']}\t{server['type']}\t{more}")


def _pairs(given: list[str] | None) -> dict[str, str]:
    pairs = [text.partition("=") for text in given or ()]
    if any(not name or not separator for name, separator, _ in pairs):
        raise usage_failure("Variables and headers are given as NAME=VALUE.")
    return {name: value for name, _, value in pairs}


def _with(settings: Settings, work: Callable[[Client], Awaitable[Any]]) -> Any:
    from deerflow_app.cli.opening import open_backend

    client = open_backend(settings).client

    async def run() -> Any:
        try:
            return await work(client)
        finally:
            await client.aclose()

    return asyncio.run(run())
