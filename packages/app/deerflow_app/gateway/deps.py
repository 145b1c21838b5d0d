"""What routes ask for: who is there, and the database and the runtime that do the work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import orjson
from fastapi import Depends
from pydantic import BeforeValidator
from starlette.requests import HTTPConnection

from deerflow.errors import ForbiddenError, UnauthenticatedError
from deerflow.identity import Principal
from deerflow.storage.database import Database
from deerflow_app.gateway.auth.accounts import Accounts
from deerflow_app.gateway.auth.authenticator import Credential
from deerflow_app.gateway.settings import GatewaySettings

if TYPE_CHECKING:
    from deerflow.runtime import Runtime
else:
    Runtime = Any  # FastAPI resolves annotations when routes are made


async def current_credential(connection: HTTPConnection) -> Credential:
    """Set by the Authentication middleware. Raises UnauthenticatedError."""
    credential = getattr(connection.state, "credential", None)
    if credential is None:
        raise UnauthenticatedError("Authentication required. Sign in, or send an API token.")
    return credential


CurrentCredential = Annotated[Credential, Depends(current_credential)]


async def current_principal(credential: CurrentCredential) -> Principal:
    """On whose behalf the request is."""
    return credential.principal


CurrentPrincipal = Annotated[Principal, Depends(current_principal)]


async def current_admin(principal: CurrentPrincipal) -> Principal:
    """Raises ForbiddenError for others. A token of an administrator needs the scope ``admin``."""
    if principal.role != "admin":
        raise ForbiddenError("Only administrators may do this, and API tokens only with the scope 'admin'.")
    return principal


CurrentAdmin = Annotated[Principal, Depends(current_admin)]


def _of_app(name: str) -> Callable[[HTTPConnection], Awaitable[Any]]:
    async def current(connection: HTTPConnection) -> Any:
        return getattr(connection.app.state, name)

    return current


current_runtime, current_settings = _of_app("runtime"), _of_app("settings")
CurrentRuntime = Annotated[Runtime, Depends(current_runtime)]
CurrentSettings = Annotated[GatewaySettings, Depends(current_settings)]
CurrentDatabase = Annotated[Database, Depends(_of_app("database"))]
CurrentAccounts = Annotated[Accounts, Depends(_of_app("accounts"))]


def _listed(given: Any) -> Any:
    if not isinstance(given, list):
        return given
    return [
        item for text in given for item in (orjson.loads(text) if text.startswith("[") else text.split(",")) if item
    ]


Listed = BeforeValidator(_listed)
"""For lists in addresses, as clients write them: repeated names, commas, or JSON. Nothing (``stream_mode=``) is an empty list."""
