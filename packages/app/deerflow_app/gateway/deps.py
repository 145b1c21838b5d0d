"""What routes ask for: who is there, and the database and the runtime that do the work."""

from __future__ import annotations

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


async def current_database(connection: HTTPConnection) -> Database:
    return connection.app.state.database


CurrentDatabase = Annotated[Database, Depends(current_database)]


async def current_runtime(connection: HTTPConnection) -> Runtime:
    return connection.app.state.runtime


CurrentRuntime = Annotated[Runtime, Depends(current_runtime)]


async def current_accounts(connection: HTTPConnection) -> Accounts:
    return connection.app.state.accounts


CurrentAccounts = Annotated[Accounts, Depends(current_accounts)]


async def current_settings(connection: HTTPConnection) -> GatewaySettings:
    return connection.app.state.settings


CurrentSettings = Annotated[GatewaySettings, Depends(current_settings)]


def _listed(given: Any) -> Any:
    if not isinstance(given, list):
        return given
    return [
        item for text in given for item in (orjson.loads(text) if text.startswith("[") else text.split(",")) if item
    ]


Listed = BeforeValidator(_listed)
"""For lists in addresses, as clients write them: repeated names, commas, or JSON. Nothing (``stream_mode=``) is an empty list."""
