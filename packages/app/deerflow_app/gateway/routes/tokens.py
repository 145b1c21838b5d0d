"""One's own API tokens. Managed by people who are signed in, not with a token."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from deerflow.accounts import ApiToken, Scope, TokenRepository
from deerflow.errors import ForbiddenError
from deerflow.identity import Principal
from deerflow_app.gateway.deps import CurrentCredential, CurrentDatabase
from deerflow_app.gateway.http.answers import Moment, RequestBody

router = APIRouter(tags=["tokens"])


class NewToken(RequestBody):
    name: str = Field(min_length=1, max_length=128, examples=["nightly report"])
    scopes: list[Scope] = Field(default=["read", "write"], min_length=1)
    expires_in_days: int | None = Field(default=None, ge=1, le=3650, description="null: never.")


class Token(BaseModel):
    id: str
    name: str
    hint: str = Field(description="How the token begins.", examples=["df_4bXk9z"])
    scopes: list[Scope]
    created_at: Moment
    expires_at: Moment | None
    last_used_at: Moment | None


class CreatedToken(Token):
    token: str = Field(description="Shown only now. Send it as `Authorization: Bearer …`.")


class Tokens(BaseModel):
    tokens: list[Token]


@router.get("/api/v1/auth/tokens", summary="One's API tokens, newest first")
async def list_tokens(credential: CurrentCredential, database: CurrentDatabase) -> Tokens:
    found = await TokenRepository(database).list(credential.principal)
    return Tokens(tokens=[Token(**_fields(token)) for token in found])


@router.post("/api/v1/auth/tokens", status_code=201, summary="Make an API token")
async def create_token(body: NewToken, credential: CurrentCredential, database: CurrentDatabase) -> CreatedToken:
    if credential.user is None:
        raise ForbiddenError("API tokens belong to accounts. Sign in with one first.")
    _check_scopes(body.scopes, credential.principal)
    lifetime = timedelta(days=body.expires_in_days) if body.expires_in_days else None
    tokens = TokenRepository(database)
    token, value = await tokens.create(credential.principal, body.name, tuple(body.scopes), lifetime=lifetime)
    return CreatedToken(**_fields(token), token=value)


@router.delete("/api/v1/auth/tokens/{token_id}", status_code=204, summary="Revoke an API token")
async def revoke_token(
    token_id: str, request: Request, credential: CurrentCredential, database: CurrentDatabase
) -> None:
    await TokenRepository(database).revoke(credential.principal, token_id)
    request.app.state.authenticator.forget()


def _check_scopes(scopes: list[Scope], principal: Principal) -> None:
    if "admin" in scopes and principal.role != "admin":
        raise ForbiddenError("Only administrators may make tokens with the scope 'admin'.")


def _fields(token: ApiToken) -> dict[str, Any]:
    return {name: getattr(token, name) for name in Token.model_fields}
