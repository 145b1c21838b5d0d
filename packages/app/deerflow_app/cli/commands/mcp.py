"""`deerflow mcp …`: servers of the Model Context Protocol."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deerflow_app.cli.commands import AsJson, Settings, command, print_json, with_client
from deerflow_app.cli.failures import CommandFailure, usage_failure
from deerflow_app.cli.terminal import clean, one_line

if TYPE_CHECKING:
    from deerflow_app.cli.backend import Backend, Client

app = typer.Typer(help="See, add and test MCP servers.", no_args_is_help=True, rich_markup_mode=None)

Name = Annotated[str, typer.Argument(metavar="NAME")]


@command(app, "list")
def list_servers(settings: Settings, as_json: AsJson = False) -> None:
    """List MCP servers, their state and how many tools they have."""
    servers = with_client(settings, lambda client: client.alist_mcp_servers())
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

    _print(with_client(settings, save))


@command(app, "remove")
def remove(settings: Settings, name: Name) -> None:
    """Remove an MCP server."""

    async def save(client: Client) -> None:
        servers = (await client.aget_mcp_config())["mcp_servers"]
        if servers.pop(name, None) is None:
            raise CommandFailure(f"There is no MCP server {name!r}.", "`deerflow mcp list` shows those there are.")
        await client.aupdate_mcp_config(servers)

    with_client(settings, save)
    typer.echo("Removed.")


@command(app, "test")
def test(settings: Settings, name: Name) -> None:
    """Open a session with an MCP server, and show its tools."""
    server = with_client(settings, lambda client: client.arestart_mcp_server(name))
    _print(server)
    for tool in server["tools"]:
        note = f"{tool['note']} " if tool["note"] else ""
        typer.echo(f"  {one_line(tool['name'], 60)}\t{one_line(note + tool['description'], 200)}")
    if server["state"] != "ready":
        raise typer.Exit(1)


TRUST = (
    "A trusted server is believed what it says of its tools: those that it calls read-only are not asked about, and what those return "
    "that it calls closed is not taken for text from outside. Trust only a server whose author and operator you trust."
)


@command(app, "trust")
def trust(
    settings: Settings, name: Name, off: Annotated[bool, typer.Option("--off", help="Trust it no longer.")] = False
) -> None:
    """Believe what an MCP server says of its tools.

    Tools that it calls read-only are not asked about then, and what its closed tools return is not taken for text from outside.
    Trust only a server whose author and operator you trust.
    """

    async def save(client: Client) -> None:
        servers = (await client.aget_mcp_config())["mcp_servers"]
        if name not in servers:
            raise CommandFailure(f"There is no MCP server {name!r}.", "`deerflow mcp list` shows those there are.")
        await client.aupdate_mcp_config({**servers, name: {**servers[name], "trusted": not off}})

    with_client(settings, save)
    typer.echo(f"{clean(name)} is not trusted any more." if off else f"{clean(name)} is trusted. {TRUST}")


@command(app, "changes")
def changes(
    settings: Settings,
    name: Name,
    accept: Annotated[bool, typer.Option("--accept", help="Let policies and trust hold for what is shown.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show tools of an MCP server that changed since they were accepted, and accept them."""

    async def look(client: Client) -> Any:
        found = await client.alist_mcp_changes(name)
        if accept and found:
            await client.aaccept_mcp_changes(name, [one["digest"] for one in found])
        return found

    found = with_client(settings, look)
    if as_json:
        return print_json({"changes": found})
    for one in found:
        moved = " (another command or address)" if one["is_moved"] else ""
        typer.echo(f"{one['change']}: {one_line(one['tool'], 60)}{moved}")
        for sign, text in (("-", one["before"]), ("+", one["after"])):
            for line in (text or "").splitlines():
                typer.echo(f"  {sign} {clean(line)}")
    if not found:
        typer.echo("Nothing has changed.")
    elif accept:
        typer.echo("Accepted.")


@command(app, "logs")
def logs(settings: Settings, name: Name) -> None:
    """Show what an MCP server has written, and what went wrong with it."""
    for line in with_client(settings, lambda client: client.aread_mcp_log(name)):
        typer.echo(clean(line))


@command(app, "serve")
def serve(settings: Settings) -> None:
    """Be an MCP server on standard input and output, for other agents and editors."""
    from deerflow_app.cli.backend import open_backend
    from deerflow_app.mcp_server import server_of

    backend = open_backend(settings)

    async def run() -> None:
        work = _TerminalWork(backend)
        try:
            await server_of(lambda _: work).run_stdio_async()
        finally:
            await backend.client.aclose()

    asyncio.run(run())


class _TerminalWork:
    """See ``deerflow_app.mcp_server.ToolWork``."""

    def __init__(self, backend: Backend) -> None:
        self._client = backend.client
        self._turns: dict[str, asyncio.Task[str | None]] = {}
        self.file_sizes = backend.file_sizes
        self.read = backend.client.aread_artifact
        self.search = backend.client.asearch_chats

    async def run(self, task: str, thread_id: str | None, seconds: float) -> str:
        thread_id = thread_id or str(uuid.uuid4())
        self._turns[thread_id] = asyncio.create_task(self._turn(thread_id, task))
        await asyncio.wait({self._turns[thread_id]}, timeout=seconds)
        return thread_id

    async def status(self, thread_id: str) -> dict[str, Any]:
        from deerflow_app.mcp_server import status_of

        known, state = self._turns.get(thread_id), await self._client.athread_state(thread_id)
        error = known.result() if known is not None and known.done() else None
        running = not known.done() if known is not None else bool(state.get("running"))
        status = "running" if running else "failed" if error else "waiting" if state["interrupts"] else "done"
        return status_of(thread_id, status, state["values"]["messages"], error)

    async def _turn(self, thread_id: str, task: str) -> str | None:
        """Why it failed, if it did."""
        try:
            async for event in self._client.astream(task, thread_id=thread_id):
                if event.type == "end" and event.data["error"]:
                    return str(event.data["error"])
        except Exception as error:
            return str(error)
        return None


def _print(server: Any) -> None:
    more = one_line(server["error"], 200) if server["error"] else f"{len(server['tools'])} tools"
    if not server["error"] and server["changes"]:
        more += f", {server['changes']} changed: see `deerflow mcp changes {clean(server['name'])}`"
    if server["connection"] == "needed":
        more = "needs a connection of your own: connect it on the page, in Settings under MCP"
    typer.echo(f"{clean(server['name'])}\t{server['state']}\t{server['type']}\t{more}")


def _pairs(given: list[str] | None) -> dict[str, str]:
    pairs = [text.partition("=") for text in given or ()]
    if any(not name or not separator for name, separator, _ in pairs):
        raise usage_failure("Variables and headers are given as NAME=VALUE.")
    return {name: value for name, _, value in pairs}
