"""The HTTP application around a runtime."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Depends, FastAPI
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deerflow.errors import UnavailableError
from deerflow.reflection import resolve_variable
from deerflow.storage.database import Database
from deerflow.storage.errors import DatabaseError
from deerflow_app.gateway.auth import Authenticator
from deerflow_app.gateway.auth.accounts import Accounts
from deerflow_app.gateway.auth.scopes import check_scopes
from deerflow_app.gateway.auth.throttle import Throttle
from deerflow_app.gateway.http import errors
from deerflow_app.gateway.http.authentication import Authentication
from deerflow_app.gateway.http.compression import CompressionMiddleware
from deerflow_app.gateway.http.errors import Failures
from deerflow_app.gateway.http.requests import BodyLimit, HostCheck, InTurn, Prefixes, TrustedProxies
from deerflow_app.gateway.http.revocation import RECHECK_SECONDS, Revocation
from deerflow_app.gateway.routes import web
from deerflow_app.gateway.settings import GatewaySettings
from deerflow_app.metrics import Metrics

if TYPE_CHECKING:
    from deerflow.runtime import Runtime

_DESCRIPTION = """\
Threads, runs, assistants, schedules and files of DeerFlow, in the shape that LangGraph's SDKs speak.

Sign in with `POST /api/v1/auth/login/local` and send `X-CSRF-Token` (the value of the cookie `csrf_token`) with every
write, or send an API token as `Authorization: Bearer df_…`. The routes under `/api` for threads, runs, assistants and the
store are also served without `/api` and under `/api/langgraph`.
"""


SERVED_AT_ONCE = ("health", "metrics", "auth", "auth.token_routes")
RUNTIME_ROUTERS = (
    "agents",
    "approvals",
    "assistants",
    "changes",
    "channel_logins",
    "channels",
    "channels.http_routes",
    "files",
    "files.page_routes",
    "files.preview_routes",
    "forks",
    "crons",
    "events",
    "events.protocol_routes",
    "features",
    "guides",
    "feedback",
    "mcp",
    "memory",
    "messages",
    "models",
    "models.usage_routes",
    "openai.model_routes",
    "openai.chat_routes",
    "openai.response_routes",
    "runs",
    "skills",
    "store",
    "suggestions",
    "system",
    "threads",
    "threads.state_routes",
    "transcriptions",
    "uploads",
    "users",
)
"""Modules below ``routes``, and what there is in them besides ``router``."""


def create_app(database: Database, settings: GatewaySettings, make_runtime: Callable[[], Runtime]) -> FastAPI:
    """The application. It answers for health, sign-in and the page as soon as it is served; what needs the runtime waits for it.

    Args:
        database: of the runtime; migrated before anything is answered.
        make_runtime: called in a thread while the application is served already, since its imports take seconds. The
            application starts the runtime and closes it at its end.

    ``app.state.opening`` is the task that opens the runtime; where it fails, requests that need the runtime fail with it.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        try:
            await database.migrate()
        except DatabaseError as error:
            app.state.start_error = error
            await database.aclose()
            raise
        opening = app.state.opening = asyncio.create_task(_open(app, make_runtime), name="open the runtime")
        try:
            yield
        finally:
            await asyncio.wait([opening])
            if not opening.cancelled():
                opening.exception()  # or asyncio says that nobody asked for it; ``start_error`` has it
            await (database if app.state.runtime is None else app.state.runtime).aclose()

    authenticator = Authenticator(database, settings)
    app = _app(
        database,
        settings,
        authenticator,
        title="DeerFlow API Gateway",
        version=version("deerflow"),
        description=_DESCRIPTION,
        lifespan=lifespan,
        dependencies=[Depends(check_scopes)],  # of routes that others add; ours have it by their routers
        redirect_slashes=False,
    )
    app.state.settings = settings
    app.state.accounts = Accounts(database, authenticator, settings)
    app.state.model_tests = Throttle(window=60)
    _include(app, *SERVED_AT_ONCE)
    app.router.routes.append(_Pending())
    if settings.serve_ui:
        app.router.routes.extend(web.router.routes)
    return app


def create_status_app(runtime: Runtime, settings: GatewaySettings) -> FastAPI:
    """The application of a worker whose runtime is started: health and figures."""
    app = _app(runtime.database, settings, Authenticator(runtime.database, settings))
    app.state.opening = asyncio.get_running_loop().create_future()
    app.state.opening.set_result(None)
    app.state.runtime = runtime
    _include(app, "health", "metrics")
    return app


def _app(database: Database, settings: GatewaySettings, authenticator: Authenticator, **more: Any) -> FastAPI:
    """Return an application without routes, and without a runtime yet."""
    middleware = _middleware(settings, authenticator)
    app = FastAPI(middleware=middleware, docs_url=None, redoc_url=None, openapi_url=None, **more)
    app.state.start_error = None
    app.state.runtime = None
    app.state.database = database
    app.state.metrics = Metrics(database)
    app.state.authenticator = authenticator
    errors.install(app)
    return app


async def _open(app: FastAPI, make_runtime: Callable[[], Runtime]) -> None:
    try:
        app.state.runtime = await asyncio.to_thread(make_runtime)
        at = next(at for at, route in enumerate(app.router.routes) if isinstance(route, _Pending))
        before = len(app.router.routes)
        await asyncio.to_thread(add_routes, app)
        await asyncio.to_thread(_add_package_routes, app)
        await app.state.runtime.start()
    except Exception as error:
        app.state.start_error = error
        raise
    routes = app.router.routes
    # The page takes every path that is left, so it stays last.
    routes[:] = [*routes[:at], *routes[before:], *routes[at + 1 : before]]


def add_routes(app: FastAPI) -> None:
    """Add the routes that need the runtime, behind all others. Importing them takes seconds."""
    _include(app, *RUNTIME_ROUTERS)
    if app.state.settings.enable_docs:
        _include(app, "system.description_routes")


def _add_package_routes(app: FastAPI) -> None:
    """Add the routes of other packages. They are for people who are signed in: no API token opens them."""
    for name, package in app.state.runtime.packages.items():
        if package.router:
            app.include_router(
                resolve_variable(package.router, APIRouter), prefix=f"/api/capabilities/{name}", tags=[name]
            )


def _include(app: FastAPI, *names: str) -> None:
    for name in names:
        app.router.routes.extend(router_of(name).routes)


def router_of(name: str) -> APIRouter:
    """A router of the tables above."""
    module, _, attribute = name.partition(".")
    return getattr(import_module(f"deerflow_app.gateway.routes.{module}"), attribute or "router")


class _Pending(BaseRoute):
    """Stands for the routes of the runtime until they are there: requests for them wait."""

    _PATHS = re.compile(r"/(api|preview|docs|openapi\.json)(/|$)")

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        wanted = scope["type"] in ("http", "websocket") and self._PATHS.match(scope["path"])
        return (Match.FULL if wanted else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = scope["app"].state
        await asyncio.wait([state.opening])
        if state.start_error is not None or state.opening.cancelled():
            raise UnavailableError("The server could not start; its log says why.")
        await scope["app"].router(scope, receive, send)


def _middleware(settings: GatewaySettings, authenticator: Authenticator) -> list[Middleware]:
    """Outermost first. Failures stands inside CORS, or pages of other sites could not read what went wrong."""
    cors = Middleware(
        CORSMiddleware,
        allow_origins=settings.cors_origins,
        allow_credentials=True,
        allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"],
        allow_headers=["*"],
        expose_headers=["Content-Location", "Location", "Retry-After", "X-Pagination-Total", "X-Pagination-Next"],
    )
    local_only = settings.is_loopback or not settings.authentication
    return [
        Middleware(InTurn),
        Middleware(CompressionMiddleware),
        Middleware(SecurityHeaders),
        Middleware(TrustedProxies, networks=settings.trusted_proxies),
        *([cors] if settings.cors_origins else []),
        Middleware(Failures),
        *([Middleware(HostCheck, allowed=settings.allowed_hosts)] if local_only or settings.allowed_hosts else []),
        Middleware(Prefixes),
        Middleware(BodyLimit, limit=settings.max_body_bytes),
        Middleware(
            Authentication,
            authenticator=authenticator,
            enabled=settings.authentication,
            origins=settings.own_origins,
        ),
        Middleware(Revocation, authenticator=authenticator, seconds=RECHECK_SECONDS),
    ]


_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "SAMEORIGIN",
    "Content-Security-Policy": "frame-ancestors 'self'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), payment=(), usb=()",
}


@dataclass
class SecurityHeaders:
    """A route that sets one of them itself keeps its own. Answers of the API are not to be cached unless it says so."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if scope["path"].startswith("/api/"):
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self.app(scope, receive, with_headers)
