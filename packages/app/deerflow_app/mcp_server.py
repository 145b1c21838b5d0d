"""DeerFlow as a server of the Model Context Protocol: its tools, over standard input and output and over HTTP alike."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

from deerflow.errors import RequestError
from deerflow.sandbox.interface import SandboxError
from deerflow_app.remote import RemoteError

MAX_FILE_BYTES = 4 << 20
DECLARED = (RequestError, RemoteError, SandboxError)
"""Errors whose text is for those who asked; what other errors say stays in the log."""

READING = frozenset({"get_run", "list_files", "get_file", "search_chats"})
"""Tools that change nothing; the others start runs."""

P = ParamSpec("P")
T = TypeVar("T")


class ToolWork(Protocol):
    """What does the work, on behalf of one person."""

    async def run(self, task: str, thread_id: str | None, seconds: float) -> str:
        """Begin a task, wait for its end for so long at most, and return the thread's id."""
        ...

    async def status(self, thread_id: str) -> dict[str, Any]:
        """See ``get_run`` below."""
        ...

    def file_sizes(self, thread_id: str, /) -> Awaitable[dict[str, int]]: ...
    def read(self, thread_id: str, path: str) -> AsyncIterator[bytes]:
        """A file piece by piece."""
        ...

    async def search(self, query: str) -> Sequence[Mapping[str, Any]]: ...


def server_of(work: Callable[[Context], ToolWork]) -> MCPServer:
    """A server whose requests are done by ``work`` of each request."""
    server = MCPServer("deerflow", instructions="Give DeerFlow tasks, and get what it made.")
    reads = ToolAnnotations(read_only_hint=True)

    @server.tool()
    @_explained
    async def run_task(
        context: Context, task: str, thread_id: str | None = None, wait_seconds: float = 45
    ) -> dict[str, Any]:
        """Give a task to DeerFlow, in a new thread or as a further message of one. Returns when it has ended, or after
        wait_seconds with the status "running": then get_run tells how it goes on."""
        doing = work(context)
        return await doing.status(await doing.run(task, thread_id, wait_seconds))

    @server.tool(annotations=reads)
    @_explained
    async def get_run(context: Context, thread_id: str) -> dict[str, Any]:
        """How the last task of a thread stands: running, waiting (for a person's decision), failed or done; and the answer."""
        return await work(context).status(thread_id)

    @server.tool(annotations=reads)
    @_explained
    async def list_files(context: Context, thread_id: str) -> dict[str, int]:
        """The files of a thread: their size in bytes by path."""
        return await work(context).file_sizes(thread_id)

    @server.tool(annotations=reads)
    @_explained
    async def get_file(context: Context, thread_id: str, path: str) -> str:
        """The text of a file of a thread; what is no text comes as base64."""
        data = b""
        async for piece in work(context).read(thread_id, path):
            data += piece
            if len(data) > MAX_FILE_BYTES:
                raise ToolError(f"The file has more than {MAX_FILE_BYTES} bytes.")
        try:
            return data.decode()
        except UnicodeDecodeError:
            return base64.b64encode(data).decode()

    @server.tool(annotations=reads)
    @_explained
    async def search_chats(context: Context, query: str) -> list[dict[str, Any]]:
        """What was said in threads, the newest first."""
        return [{**hit} for hit in await work(context).search(query)]

    return server


def _explained(tool: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    @wraps(tool)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await tool(*args, **kwargs)
        except DECLARED as error:
            raise ToolError(str(error)) from error

    return call


def status_of(thread_id: str, status: str, messages: list[Any], error: str | None) -> dict[str, Any]:
    """The answer of ``get_run``, from a thread's messages as JSON."""
    said = [one["content"] for one in messages if one["type"] == "ai" and one["content"]]
    return {"thread_id": thread_id, "status": status, "answer": said[-1] if said else "", "error": error}
