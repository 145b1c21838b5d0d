"""The HTTP application around a runtime."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from deerflow.storage.errors import DatabaseError
from deerflow_app.gateway import docs_page, errors, routers
from deerflow_app.gateway.auth.accounts import Accounts
from deerflow_app.gateway.auth.authenticator import Authenticator
from deerflow_app.gateway.auth.cookies import Cookies
from deerflow_app.gateway.auth.throttle import Throttle
from deerflow_app.gateway.compression import CompressionMiddleware
from deerflow_app.gateway.middleware.authentication import Authentication
from deerflow_app.gateway.middleware.body_limit import BodyLimit
from deerflow_app.gateway.middleware.failures import Failures
from deerflow_app.gateway.middleware.hosts import HostCheck
from deerflow_app.gateway.middleware.prefixes import Prefixes
from deerflow_app.gateway.middleware.proxies import TrustedProxies
from deerflow_app.gateway.middleware.revocation import RECHECK_SECONDS, Revocation
from deerflow_app.gateway.middleware.security_headers import SecurityHeaders
from deerflow_app.gateway.middleware.turns import InTurn
from deerflow_app.gateway.settings import GatewaySettings

if TYPE_CHECKING:
    from deerflow.runtime import Runtime

_DESCRIPTION = """\
Threads, runs, assistants, schedules and files of DeerFlow, in the shape that LangGraph's SDKs speak.

Sign in with `POST /api/v1/auth/login/local` and send `X-CSRF-Token` (the value of the cookie `csrf_token`) with every
write, or send an API token as `Authorization: Bearer df_…`. The routes under `/api` for threads, runs, assistants and the
store are also served without `/api` and under `/api/langgraph`.
"""


def create_app(runtime: Runtime, settings: GatewaySettings) -> FastAPI:
    """The application; serving it starts ``runtime``, and ending it closes the runtime. Blocks on files."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        try:
            try:
                await runtime.start()
            except DatabaseError as error:
                app.state.start_error = error
                raise
            yield
        finally:
            await runtime.aclose()

    cookies = Cookies(settings.auth_secret, settings.session_lifetime)
    authenticator = Authenticator(
        runtime.database, cookies, enabled=settings.authentication, internal_token=settings.internal_token
    )
    app = FastAPI(
        title="DeerFlow API Gateway",
        version=version("deerflow"),
        description=_DESCRIPTION,
        lifespan=lifespan,
        middleware=_middleware(settings, authenticator, cookies),
        responses=errors.RESPONSES,
        generate_unique_id_function=_operation_id,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json" if settings.enable_docs else None,
    )
    app.state.start_error = None
    app.state.runtime = runtime
    app.state.settings = settings
    app.state.cookies = cookies
    app.state.authenticator = authenticator
    app.state.accounts = Accounts(runtime.database, authenticator, settings)
    app.state.model_tests = Throttle(window=60)
    errors.install(app)
    if settings.enable_docs:
        docs_page.install(app)
    for router in routers.routers(serve_ui=settings.serve_ui):
        app.include_router(router)
    return app


def _middleware(settings: GatewaySettings, authenticator: Authenticator, cookies: Cookies) -> list[Middleware]:
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
            cookies=cookies,
            enabled=settings.authentication,
            origins=settings.own_origins,
        ),
        Middleware(Revocation, authenticator=authenticator, seconds=RECHECK_SECONDS),
    ]


def _operation_id(route: APIRoute) -> str:
    """What generated clients call the operation."""
    return f"{route.tags[0] if route.tags else 'gateway'}_{route.name}".replace(" ", "_")
