"""The provisioner's HTTP API: ``/api/sandboxes`` with the token, ``/health`` without."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request
from pydantic import BaseModel, StringConstraints
from starlette.responses import JSONResponse

from deerflow.identity import ID_PATTERN
from deerflow_app.provisioner.kubernetes import KubernetesApi, KubernetesError
from deerflow_app.provisioner.sandboxes import PATIENCE, ProvisionedSandbox, Sandboxes
from deerflow_app.provisioner.settings import ProvisionerSettings

log = logging.getLogger(__name__)

SandboxId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$")]
"""Part of the names of objects, which may have 63 characters."""
Id = Annotated[str, StringConstraints(pattern=f"^{ID_PATTERN.pattern}$")]


class SandboxRequest(BaseModel):
    """The thread that needs a sandbox."""

    sandbox_id: SandboxId
    thread_id: Id
    user_id: Id = "default"
    """The thread's owner; the default is the one of an installation without accounts."""
    owner: Id | None = None
    """The process that asks; others cannot remove the sandbox then."""


def create_app(settings: ProvisionerSettings, patience: float = PATIENCE) -> FastAPI:
    """Return the application. Raises OSError outside of a pod with a service account. Blocks.

    Args:
        patience: seconds for which a pod is waited for before the answer says that it is not ready.
    """
    api = KubernetesApi(settings.server, settings.service_account, settings.namespace)
    sandboxes = Sandboxes(settings, api, patience)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        sweeping = asyncio.create_task(sandboxes.sweep_again_and_again(), name="sweep")
        yield
        sweeping.cancel()
        with suppress(asyncio.CancelledError):
            await sweeping
        await api.aclose()

    async def check_token(request: Request) -> None:
        given = request.headers.get("Authorization", "").encode()
        if not hmac.compare_digest(given, f"Bearer {settings.token}".encode()):
            raise HTTPException(
                401, "Show the provisioner's token: Authorization: Bearer …", {"WWW-Authenticate": "Bearer"}
            )

    app = FastAPI(title="DeerFlow provisioner", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.add_exception_handler(KubernetesError, _refused)
    app.get("/health")(_health)
    app.include_router(_routes(sandboxes), dependencies=[Depends(check_token)])
    return app


async def _health() -> dict[str, str]:
    return {"status": "ok"}


def _routes(sandboxes: Sandboxes) -> APIRouter:
    router = APIRouter(prefix="/api/sandboxes")

    @router.post("")
    async def create(wanted: SandboxRequest) -> dict[str, Any]:
        return _shown(await sandboxes.create(wanted.sandbox_id, wanted.thread_id, wanted.user_id, wanted.owner or ""))

    @router.get("")
    async def list_all() -> dict[str, Any]:
        found = await sandboxes.list()
        return {"sandboxes": [_shown(one) for one in found], "count": len(found)}

    @router.get("/{sandbox_id}")
    async def get(sandbox_id: SandboxId) -> dict[str, Any]:
        found = await sandboxes.get(sandbox_id)
        if found is None:
            raise HTTPException(404, f"Sandbox {sandbox_id!r} not found")
        return _shown(found)

    @router.put("/{sandbox_id}/lease")
    async def renew(sandbox_id: SandboxId, owner: Id) -> dict[str, Any]:
        await sandboxes.renew(sandbox_id, owner)
        return {"ok": True, "sandbox_id": sandbox_id}

    @router.delete("/{sandbox_id}")
    async def delete(sandbox_id: SandboxId, owner: str = "") -> dict[str, Any]:
        await sandboxes.delete(sandbox_id, owner)
        return {"ok": True, "sandbox_id": sandbox_id}

    return router


def _shown(sandbox: ProvisionedSandbox) -> dict[str, Any]:
    return {name: value for name, value in asdict(sandbox).items() if value or name not in ("api_key", "reason")}


async def _refused(request: Request, error: Exception) -> JSONResponse:
    log.error("%s %s: %s", request.method, request.url.path, error)
    action = "Pod creation failed" if request.method == "POST" else "The cluster refuses"
    return JSONResponse({"detail": f"{action}: {error}"}, 500)
