"""What this server is made of, and how well commands are confined (paths of the host are for administrators); the description of the
API, to be read."""

from __future__ import annotations

import asyncio
import json
import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal

from fastapi import Request
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel, Field

from deerflow.sandbox.interface import Limits, Problem
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import CurrentAccounts, CurrentPrincipal, CurrentRuntime, CurrentSettings

if TYPE_CHECKING:
    from deerflow.config import ConfigSource
    from deerflow.harness import Harness
    from deerflow.storage.database import Database

router = Router(tags=["system"])
description_routes = Router(tags=[])
_VERSION = version("deerflow")  # looks it up on the disk


class ToolImageInfo(BaseModel):
    """The Python packages that the agent's commands can use."""

    enabled: bool
    ready: bool
    problem: str | None = Field(description="What stands in the way of building it; told to administrators.")
    path: str | None = Field(description="Told to administrators.")


class SandboxInfo(BaseModel):
    provider: str
    available: bool = Field(description="False: the agent has no shell, only files.")
    isolation: Literal["namespaces", "namespaces-no-proc", "landlock", "container", "remote", "none"]
    own_process_tree: bool = Field(description="Commands see no process of the machine.")
    warnings: list[str]
    problems: list[Problem] = Field(
        description="Why there is no shell, or no better isolation; told to administrators."
    )
    network: Literal["none", "allowlist", "internet", "host"]
    allowed_hosts: list[str] = Field(description="With the network mode `allowlist`.")
    tool_image: ToolImageInfo
    limits: Limits
    enforced_limits: list[str] = Field(description="By what the limits are enforced, e.g. `nproc`, `cgroup-memory`.")
    command_timeout: float = Field(description="Seconds.")


class StorageInfo(BaseModel):
    kind: Literal["sqlite", "postgres", "memory"]
    data_dir: str | None = Field(description="Told to administrators.")


class ConfigInfo(BaseModel):
    """Told to administrators."""

    file: str | None
    problem: str | None = Field(description="Why the newest version of the file is not in force.")
    warnings: list[str]


class SystemInfo(BaseModel):
    version: str
    python: str
    platform: str
    database: StorageInfo
    authentication: Literal["accounts", "none"]
    registration: bool
    sandbox: SandboxInfo
    config: ConfigInfo | None


@router.get(
    "/api/system",
    summary="Versions, storage, and how commands are confined",
    response_model=SystemInfo,
)
async def system(
    principal: CurrentPrincipal, runtime: CurrentRuntime, settings: CurrentSettings, accounts: CurrentAccounts
) -> dict[str, Any]:
    is_admin = principal.role == "admin"
    harness = await runtime.agent_provider.fresh()
    return {
        "version": _VERSION,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "database": {
            "kind": _database_kind(runtime.database),
            "data_dir": str(runtime.paths.data_dir) if is_admin else None,
        },
        "authentication": "accounts" if settings.authentication else "none",
        "registration": await accounts.registration(),
        "sandbox": await asyncio.to_thread(_sandbox, harness, is_admin=is_admin),
        "config": _config(runtime.config_source, harness) if is_admin else None,
    }


def _database_kind(database: Database) -> str:
    if database.is_postgres:
        return "postgres"
    return "memory" if database.location == ":memory:" else "sqlite"


def _sandbox(harness: Harness, *, is_admin: bool) -> dict[str, Any]:
    """Blocks: the first probe tries what the machine allows."""
    config = harness.config.sandbox
    report = harness.sandbox_provider.probe()
    isolation = report.isolation
    return {
        "provider": report.provider,
        "available": report.ok,
        "isolation": isolation.level if isolation else "none",
        "own_process_tree": isolation.pid if isolation else False,
        "warnings": isolation.warnings if isolation else [],
        "problems": report.problems if is_admin else [],
        "network": isolation.network if isolation else config.network.mode,
        "allowed_hosts": config.network.allow,
        "tool_image": _tool_image(harness, is_admin=is_admin),
        "limits": Limits(**config.limits.model_dump(include={*Limits.__slots__})),
        "enforced_limits": sorted(isolation.limits) if isolation else [],
        "command_timeout": config.command_timeout,
    }


def _tool_image(harness: Harness, *, is_admin: bool) -> ToolImageInfo:
    if not harness.config.sandbox.tool_image.enabled:
        return ToolImageInfo(enabled=False, ready=False, problem=None, path=None)
    status = harness.tool_image.status()
    return ToolImageInfo(
        enabled=True,
        ready=status.ready,
        problem=(status.reason or None) if is_admin else None,
        path=str(status.path) if is_admin else None,
    )


def _config(source: ConfigSource, harness: Harness) -> ConfigInfo:
    origin = harness.config.origin
    return ConfigInfo(
        file=str(origin.config_file) if origin.config_file else None,
        problem=source.problem,
        warnings=list(origin.warnings),
    )


# /docs ----------------------------------------------------------------------------------------------------------------


# The viewer, Swagger UI, is loaded from elsewhere, so the page may do nothing in anybody's name: it is kept apart from the site that
# serves it.
_SOURCE = "https://cdn.jsdelivr.net"
_VIEWER = f"{_SOURCE}/npm/swagger-ui-dist@5"
_POLICY = (
    f"sandbox allow-scripts allow-popups; default-src 'none'; script-src {_SOURCE} 'unsafe-inline'; "
    f"style-src {_SOURCE} 'unsafe-inline'; img-src data:; font-src data:; frame-ancestors 'self'"
)
_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="{viewer}/swagger-ui.css">
</head>
<body>
<div id="viewer"><p>The viewer of this page comes from {source}, which cannot be reached.
The description itself is at <a href="/openapi.json">/openapi.json</a>, for any viewer of OpenAPI.</p></div>
<script src="{viewer}/swagger-ui-bundle.js"></script>
<script>SwaggerUIBundle({{spec: {spec}, dom_id: "#viewer", supportedSubmitMethods: []}})</script>
</body>
</html>
"""


@description_routes.get("/openapi.json", include_in_schema=False)
async def description(request: Request) -> JSONResponse:
    return JSONResponse(request.app.openapi())


@description_routes.get("/docs", include_in_schema=False)
async def docs(request: Request) -> HTMLResponse:
    spec = json.dumps(request.app.openapi()).replace("<", "\\u003c")
    page = _PAGE.format(title=request.app.title, viewer=_VIEWER, source=_SOURCE, spec=spec)
    return HTMLResponse(page, headers={"Content-Security-Policy": _POLICY})
