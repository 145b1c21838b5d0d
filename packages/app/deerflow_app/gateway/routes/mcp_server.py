"""DeerFlow as a server of the Model Context Protocol: ``/mcp``, for programs with an API token."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Body, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from deerflow.errors import NotFoundError
from deerflow.files.artifacts import ArtifactService
from deerflow.files.uploads import UploadService
from deerflow.identity import Principal
from deerflow.runs.request import RunRequest
from deerflow.storage.runs import MultitaskStrategy, RunStatus
from deerflow.storage.threads import LEAD_AGENT
from deerflow_app.gateway.deps import CurrentPrincipal, CurrentRuntime, Runtime

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

router = APIRouter(tags=["mcp"])

PIECE = 1 << 20
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {}, "text/event-stream": {}}},
    202: {"description": "A notification was taken."},
    400: {"description": "An error of JSON-RPC.", "content": {"application/json": {"schema": {"type": "object"}}}},
}


@router.post("/api/mcp", summary="DeerFlow as an MCP server", response_class=Response, responses=_ANSWERS)
async def serve(
    message: Annotated[dict[str, Any], Body(description="A message of JSON-RPC 2.0.")],
    request: Request,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
) -> Response:
    """Streamable HTTP, without sessions; also at `/mcp`. Tools: run_task, get_run, list_files, get_file, search_chats."""
    await asyncio.to_thread(import_module, "deerflow_app.mcp_server")  # costs a second the first time
    return _Exchange(_Work(runtime, principal), await request.body())


class _Exchange(Response):
    """What answers one request of a client, by the official SDK."""

    def __init__(self, work: _Work, asked: bytes) -> None:
        super().__init__()
        self._work = work
        self._asked = [asked]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        scope["state"]["mcp_work"] = self._work
        limit = len(self._asked[0]) + 1

        async def received() -> Message:
            return {"type": "http.request", "body": self._asked.pop()} if self._asked else await receive()

        manager = StreamableHTTPSessionManager(_server()._lowlevel_server, stateless=True, max_request_body_size=limit)
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
