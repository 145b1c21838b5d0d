"""The routes for files on a real database and real directories, without the rest of the gateway."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI, Request

from deerflow.config import AppConfig, Paths
from deerflow.context import RunContext
from deerflow.features.documents.service import DocumentService
from deerflow.identity import Principal
from deerflow.sandbox.converters import Converters
from deerflow.storage.database import Database
from deerflow.storage.threads import ThreadRepository
from deerflow_app.gateway.http import errors
from deerflow_app.gateway.http.errors import Failures
from deerflow_app.gateway.routes import changes, current_principal, current_runtime, current_settings, files, uploads

SECRET = "s" * 40
ANNA = Principal("anna", source="session")


@dataclass
class FilesApp:
    """Requests are anna's unless the header X-User names another."""

    app: FastAPI
    client: httpx.AsyncClient
    paths: Paths
    threads: ThreadRepository

    async def thread(self, thread_id: str = "t1", user: str = "anna") -> Path:
        """Make a thread with its directories; returns its ``user-data``."""
        await self.threads.create(Principal(user), thread_id)
        await asyncio.to_thread(self.paths.ensure_thread_dirs, thread_id, user)
        return self.paths.user_data(thread_id, user)

    def left_over(self, thread_id: str = "t1") -> list[str]:
        """Names in the uploads, and of what was never moved there."""
        thread = self.paths.thread_dir(thread_id, "anna")
        return sorted(path.name for place in ("user-data/uploads", "incoming") for path in (thread / place).glob("*"))

    @asynccontextmanager
    async def served(self) -> AsyncIterator[int]:
        """The application on a real socket; gives the port."""
        listener = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(self.app, log_level="warning", lifespan="off"))
        serving = asyncio.create_task(server.serve([listener]))
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await serving


async def _no_context(thread_id: str, principal: Principal) -> RunContext:
    raise AssertionError("No document is read here.")


@asynccontextmanager
async def files_app(base: Path, database: Path, config: dict[str, Any] | None = None) -> AsyncIterator[FilesApp]:
    async def current() -> AppConfig:
        return AppConfig.model_validate({"models": [], **(config or {})})

    runtime = SimpleNamespace(paths=Paths(base), database=Database(database))
    runtime.config_source = SimpleNamespace(acurrent=current)
    converters = Converters()
    runtime.agent_provider = SimpleNamespace(harness=SimpleNamespace(converters=converters))
    runtime.documents = DocumentService(runtime.database, current, _no_context, lambda: None)
    app = FastAPI(redirect_slashes=False)
    app.add_middleware(Failures)
    errors.install(app)
    for router in (changes.router, files.router, files.page_routes, files.preview_routes, uploads.router):
        app.include_router(router)

    async def principal(request: Request) -> Principal:
        return Principal(request.headers.get("x-user", "anna"), source="session")

    app.dependency_overrides[current_principal] = principal
    app.dependency_overrides[current_runtime] = lambda: runtime
    app.dependency_overrides[current_settings] = lambda: SimpleNamespace(auth_secret=SECRET)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://files") as client:
        yield FilesApp(app, client, runtime.paths, ThreadRepository(runtime.database))
    await converters.shutdown()
    await runtime.database.aclose()
