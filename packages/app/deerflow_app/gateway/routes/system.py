"""What this server is made of, and how well commands are confined. Paths of the host are for administrators."""

from __future__ import annotations

import asyncio
import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from deerflow_app.gateway.deps import CurrentPrincipal, CurrentRuntime, CurrentSettings

if TYPE_CHECKING:
    from deerflow.harness import Harness
    from deerflow.runtime import Runtime

router = APIRouter(tags=["system"])
_VERSION = version("deerflow")  # looks it up on the disk


class Problem(BaseModel):
    """Something that does not work here, and what to do."""

    model_config = ConfigDict(from_attributes=True)

    code: str
    sentence: str
    fix: str


class Limits(BaseModel):
    """Of one sandbox; 0: none."""

    model_config = ConfigDict(from_attributes=True)

    processes: int
    memory_mb: int
    file_size_mb: int
    disk_mb: int
    min_free_disk_mb: int
    open_files: int
    cpu_seconds: int


class ToolImage(BaseModel):
    """The Python packages that the agent's commands can use."""

    enabled: bool
    ready: bool
    problem: str | None = Field(description="What stands in the way of building it; told to administrators.")
    path: str | None = Field(description="Told to administrators.")


class Sandbox(BaseModel):
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
    tool_image: ToolImage
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
    sandbox: Sandbox
    config: ConfigInfo | None


@router.get("/api/system", summary="Versions, storage, and how commands are confined")
async def system(principal: CurrentPrincipal, runtime: CurrentRuntime, settings: CurrentSettings) -> SystemInfo:
    is_admin = principal.role == "admin"
    harness = await runtime.workshop.fresh()
    return SystemInfo(
        version=_VERSION,
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        database=StorageInfo(kind=_database_kind(runtime), data_dir=str(runtime.paths.data_dir) if is_admin else None),
        authentication="accounts" if settings.authentication else "none",
        registration=settings.registration and settings.authentication,
        sandbox=await asyncio.to_thread(_sandbox, harness, is_admin=is_admin),
        config=_config(runtime, harness) if is_admin else None,
    )


def _database_kind(runtime: Runtime) -> Literal["sqlite", "postgres", "memory"]:
    if runtime.database.is_postgres:
        return "postgres"
    return "memory" if runtime.database.location == ":memory:" else "sqlite"


def _sandbox(harness: Harness, *, is_admin: bool) -> Sandbox:
    """Blocks: the first probe tries what the machine allows."""
    config = harness.config.sandbox
    report = harness.sandbox_provider.probe()
    isolation = report.isolation
    return Sandbox(
        provider=report.provider,
        available=report.ok,
        isolation=isolation.level if isolation else "none",
        own_process_tree=isolation.pid if isolation else False,
        warnings=list(isolation.warnings) if isolation else [],
        problems=[Problem.model_validate(problem) for problem in report.problems] if is_admin else [],
        network=isolation.network if isolation else config.network.mode,
        allowed_hosts=list(config.network.allow),
        tool_image=_tool_image(harness, is_admin=is_admin),
        limits=Limits.model_validate(config.limits),
        enforced_limits=sorted(isolation.limits) if isolation else [],
        command_timeout=config.command_timeout,
    )


def _tool_image(harness: Harness, *, is_admin: bool) -> ToolImage:
    if not harness.config.sandbox.tool_image.enabled:
        return ToolImage(enabled=False, ready=False, problem=None, path=None)
    status = harness.tool_image.status()
    return ToolImage(
        enabled=True,
        ready=status.ready,
        problem=(status.reason or None) if is_admin else None,
        path=str(status.path) if is_admin else None,
    )


def _config(runtime: Runtime, harness: Harness) -> ConfigInfo:
    origin = harness.config.origin
    return ConfigInfo(
        file=str(origin.config_file) if origin.config_file else None,
        problem=runtime.config_source.problem,
        warnings=list(origin.warnings),
    )
