"""MCP servers: their state and people's own connections, for everybody; their entries and logs, for administrators; and DeerFlow as a
server."""

from __future__ import annotations

import asyncio
import html
import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import orjson
from fastapi import Body, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send
from typing_extensions import TypedDict

from deerflow.errors import NotFoundError, RequestError
from deerflow.features.mcp import McpPrompt
from deerflow.features.mcp.connections import Given
from deerflow.features.mcp.pins import McpChange
from deerflow.features.mcp.servers import McpTrial
from deerflow.features.mcp.states import McpServerState
from deerflow.files.artifacts import ArtifactService
from deerflow.files.uploads import UploadService
from deerflow.identity import Principal
from deerflow.runs.request import RunRequest
from deerflow.storage.runs import MultitaskStrategy, RunStatus
from deerflow.storage.threads import LEAD_AGENT
from deerflow_app.gateway.auth.scopes import READS, READS_AND_WRITES, require
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import CurrentAdmin, CurrentCredential, CurrentPrincipal, CurrentRuntime, Runtime

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

router = Router(prefix="/api/mcp", tags=["mcp"])

PIECE = 1 << 20
CALLBACK = "/api/mcp/oauth/callback"


class McpEntries(BaseModel):
    """Entries by name, as in `extensions_config.json`. Secrets are shown as marks; a mark that is sent back keeps its secret."""

    mcp_servers: dict[str, dict[str, Any]]


class McpEntry(BaseModel):
    name: str
    entry: dict[str, Any]


class McpSwitch(BaseModel):
    server_name: str
    enabled: bool


class McpReset(TypedDict):
    success: bool
    message: str


class McpServerStates(TypedDict):
    servers: list[McpServerState]


class McpPrompts(TypedDict):
    prompts: list[McpPrompt]


class McpLog(TypedDict):
    lines: list[str]


class McpChanges(TypedDict):
    changes: list[McpChange]


class McpAcceptance(BaseModel):
    """The `digest` of each definition that was looked at."""

    digests: list[str] = Field(max_length=1000)


class McpAuthorizationUrl(TypedDict):
    authorization_url: str


@router.get("/config", summary="Entries of MCP servers")
async def get_config(principal: CurrentAdmin, runtime: CurrentRuntime) -> McpEntries:
    return McpEntries.model_validate(await runtime.mcp.config(principal))


@router.put("/config", summary="Replace the entries of MCP servers")
async def put_config(given: McpEntries, principal: CurrentAdmin, runtime: CurrentRuntime) -> McpEntries:
    """Servers whose entry stays the same go on as they are. A mark keeps its secret only while `url`, `command` and `args` stay;
    an entry may refer only to variables that `mcp.variables` in `config.yaml` lists."""
    return McpEntries.model_validate(await runtime.mcp.update(principal, given.mcp_servers))


@router.patch("/config", summary="Switch an MCP server on or off")
async def switch_server(given: McpSwitch, principal: CurrentAdmin, runtime: CurrentRuntime) -> McpEntries:
    return McpEntries.model_validate(await runtime.mcp.switch(principal, given.server_name, given.enabled))


@router.post("/cache/reset", summary="Open new sessions with all MCP servers and read their tools again")
async def reset_sessions(principal: CurrentAdmin, runtime: CurrentRuntime) -> McpReset:
    """Answers when each is open or has failed; `/servers` says which."""
    names = await runtime.mcp.reset(principal)
    return {"success": True, "message": f"New sessions: {', '.join(names) or 'none, since no MCP server is on'}."}


@router.get("/servers", summary="State, tools and your connection of MCP servers")
async def list_servers(principal: CurrentPrincipal, runtime: CurrentRuntime) -> McpServerStates:
    """`connection` is `needed` or `connected` where each person connects for themselves, otherwise null. Administrators also see
    servers that are off, and what went wrong last."""
    return {"servers": await runtime.mcp.states(principal)}


@router.post("/test", summary="Open a session with an MCP server before it is kept")
async def test_server(given: McpEntry, principal: CurrentAdmin, runtime: CurrentRuntime) -> McpTrial:
    """A mark in `entry` stands for the secret of the server that is kept under this name."""
    return await runtime.mcp.test(principal, given.name, given.entry)


@router.get("/prompts", summary="Prompts of MCP servers, which a message can call")
async def list_prompts(principal: CurrentPrincipal, runtime: CurrentRuntime) -> McpPrompts:
    """A message that begins with `command`, and goes on with the arguments, calls the prompt."""
    return {"prompts": await runtime.mcp.prompts(principal)}


@router.post("/servers/{name}/restart", summary="Open a new session with an MCP server")
async def restart_server(name: str, principal: CurrentAdmin, runtime: CurrentRuntime) -> McpServerState:
    return await runtime.mcp.restart(principal, name)


@router.get("/servers/{name}/changes", summary="Tools of an MCP server that changed since they were accepted")
async def list_changes(name: str, principal: CurrentAdmin, runtime: CurrentRuntime) -> McpChanges:
    """Until they are accepted, such a tool is neither trusted nor read-only, and `allow` in its policy does not count."""
    return {"changes": await runtime.mcp.changes(principal, name)}


@router.post("/servers/{name}/accept", summary="Accept changed tools of an MCP server")
async def accept_changes(
    name: str, given: McpAcceptance, principal: CurrentAdmin, runtime: CurrentRuntime
) -> McpChanges:
    """Answers with those that still wait. One that has changed again meanwhile is an error, and nothing is accepted."""
    return {"changes": await runtime.mcp.accept(principal, name, given.digests)}


@router.get("/servers/{name}/log", summary="What an MCP server has written last")
async def read_log(name: str, principal: CurrentAdmin, runtime: CurrentRuntime) -> McpLog:
    return {"lines": await runtime.mcp.log(principal, name)}


@router.post("/servers/{name}/connect", summary="Begin a connection of your own to an MCP server")
async def connect(
    name: str, request: Request, credential: CurrentCredential, runtime: CurrentRuntime
) -> McpAuthorizationUrl:
    """Open `authorization_url` in a browser in which you are signed in; it comes back to `/api/mcp/oauth/callback` within ten minutes."""
    where = str(request.base_url.replace(path=CALLBACK, query="", fragment=""))
    url = await runtime.mcp.connect(credential.principal, credential.session_id, name, where)
    return {"authorization_url": url}


@router.delete("/servers/{name}/connect", status_code=204, summary="Forget your connection to an MCP server")
async def disconnect(name: str, principal: CurrentPrincipal, runtime: CurrentRuntime) -> None:
    await runtime.mcp.disconnect(principal, name)


_PAGES: dict[int | str, dict[str, Any]] = {
    status: {"description": "A page that says why.", "content": {"text/html": {"schema": {"type": "string"}}}}
    for status in (400, 404, 409, 422, 502)
}


@router.get(
    "/oauth/callback",
    summary="Where a browser comes back to after access to an MCP server was allowed",
    response_class=HTMLResponse,
    responses=_PAGES,
)
async def authorized(
    credential: CurrentCredential,
    runtime: CurrentRuntime,
    state: str = "",
    code: str | None = None,
    iss: str | None = None,
    error: str | None = None,
    error_description: str | None = None,
) -> HTMLResponse:
    """A page that closes itself where a page of ours has opened it, and otherwise leads back to the settings."""
    given = Given(state, code, iss, error_description or error)
    try:
        name = await runtime.mcp.connected(credential.principal, credential.session_id, given)
    except RequestError as problem:
        return _page("Not connected", str(problem), problem.status)
    return _page("Connected", f"{name} is connected. You can close this window.", 200)


def _page(title: str, text: str, status: int) -> HTMLResponse:
    """A page that failed stays, so that it can be read."""
    nonce = secrets.token_urlsafe(16)
    script = "if (window.opener) window.close(); else location.replace('/settings/mcp');" if status == 200 else ""
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<meta name="color-scheme" content="light dark"><title>{html.escape(title)}</title>'
        f'<style nonce="{nonce}">body{{font:16px/1.5 system-ui;max-width:32rem;margin:20vh auto;padding:0 1rem}}</style>'
        f"<h1>{html.escape(title)}</h1><p>{html.escape(text)}</p><p><a href='/settings/mcp'>Back to the settings</a></p>"
        f'<script nonce="{nonce}">{script}</script></html>'
    )
    policy = f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; frame-ancestors 'none'; base-uri 'none'"
    headers = {"content-security-policy": policy, "cache-control": "no-store", "referrer-policy": "no-referrer"}
    return HTMLResponse(page, status, headers)


# DeerFlow as a server of the Model Context Protocol: `/mcp`, for programs with an API token ------------------------------

_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {}, "text/event-stream": {}}},
    202: {"description": "A notification was taken."},
    400: {"description": "An error of JSON-RPC.", "content": {"application/json": {"schema": {"type": "object"}}}},
}


@router.post("", summary="DeerFlow as an MCP server", response_class=Response, responses=_ANSWERS)
async def serve(
    message: Annotated[dict[str, Any], Body(description="A message of JSON-RPC 2.0.")],
    credential: CurrentCredential,
    runtime: CurrentRuntime,
) -> Response:
    """Streamable HTTP, without sessions; also at `/mcp`. Tools: run_task, get_run, list_files, get_file, search_chats."""
    await asyncio.to_thread(import_module, "deerflow_app.mcp_server")  # costs a second the first time
    from deerflow_app.mcp_server import READING

    if message.get("method") == "tools/call":
        called = message.get("params")
        reads = isinstance(called, dict) and called.get("name") in READING
        # Who gives a task gets its answer, and a thread's former one.
        require(credential, *(READS if reads else READS_AND_WRITES))
    # What was looked at, and not what else may stand in the body.
    return _Exchange(_Work(runtime, credential.principal), orjson.dumps(message))


class _Exchange(Response):
    """What answers one request of a client, by the official SDK."""

    def __init__(self, work: _Work, asked: bytes) -> None:
        super().__init__()
        self._work = work
        self._asked = [asked]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        scope["state"]["mcp_work"] = self._work

        async def received() -> Message:
            return {"type": "http.request", "body": self._asked.pop()} if self._asked else await receive()

        # BodyLimit has counted what came; this counter would take the size that the client announced for that of `asked`.
        manager = StreamableHTTPSessionManager(
            _server()._lowlevel_server, stateless=True, max_request_body_size=sys.maxsize
        )
        async with manager.run():
            await manager.handle_request(scope, received, send)


@cache
def _server() -> MCPServer:
    from deerflow_app.mcp_server import server_of

    def work(context: Any) -> _Work:
        return context.request_context.request.state.mcp_work

    return server_of(work)


@dataclass(frozen=True)
class _Work:
    runtime: Runtime
    principal: Principal

    async def run(self, task: str, thread_id: str | None, seconds: float) -> str:
        request = RunRequest(
            assistant_id=LEAD_AGENT,
            input={"messages": [{"role": "user", "content": task}]},
            multitask_strategy=MultitaskStrategy.REJECT,
            on_completion="keep",
        )
        run = await self.runtime.runs.start(self.principal, request, thread_id=thread_id)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.runtime.runs.wait(self.principal, run.run_id)
        return run.thread_id

    async def status(self, thread_id: str) -> dict[str, Any]:
        from deerflow_app.mcp_server import status_of

        if not (runs := await self.runtime.runs.list(self.principal, thread_id, limit=1)):
            raise NotFoundError(f"Thread {thread_id} has no task yet.")
        run, values = runs[0], await self.runtime.runs.values(runs[0])
        status = "waiting" if values.get("__interrupt__") else "done"
        if run.status in (RunStatus.ERROR, RunStatus.TIMEOUT):
            status = "failed"
        return status_of(thread_id, status if run.ended else "running", values.get("messages") or [], run.error)

    async def file_sizes(self, thread_id: str) -> dict[str, int]:
        delivered = (await self._artifacts().list(self.principal, thread_id)).files
        sent = await UploadService(self.runtime.paths, self.runtime.threads.repository).list(self.principal, thread_id)
        return {file.path: file.size for file in (*delivered, *sent)}

    async def read(self, thread_id: str, path: str) -> AsyncIterator[bytes]:
        with closing(await self._artifacts().open(self.principal, thread_id, path)) as file:
            for offset in range(0, file.size, PIECE):
                yield await asyncio.to_thread(file.read, offset, PIECE)

    async def search(self, query: str) -> list[dict[str, Any]]:
        hits = await self.runtime.threads.messages.search(self.principal, query)
        return [{"thread_id": hit.thread_id, "title": hit.title, "snippet": hit.snippet} for hit in hits]

    def _artifacts(self) -> ArtifactService:
        return ArtifactService(self.runtime.paths, self.runtime.threads.repository)
