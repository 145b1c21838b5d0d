"""Signing in and out, one's own account and its API tokens, which are managed by people who are signed in, not with a token."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Any

from fastapi import Form, Query, Request, Response
from pydantic import BaseModel, Field, SecretStr
from starlette.responses import StreamingResponse

from deerflow.accounts import Role, Scope, TokenRepository, User
from deerflow.errors import ForbiddenError
from deerflow.storage.moment import Moment
from deerflow.storage.tables import utc_now
from deerflow_app.gateway.auth import Cookies
from deerflow_app.gateway.auth.accounts import SignedIn
from deerflow_app.gateway.auth.throttle import client_of
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import (
    CurrentAccounts,
    CurrentCredential,
    CurrentDatabase,
    CurrentPrincipal,
    CurrentRuntime,
    CurrentSettings,
    RequestBody,
)

router = Router(tags=["auth"])
token_routes = Router(tags=["tokens"])
_EMAIL = Field(max_length=320, examples=["ada@example.com"])


class SignIn(BaseModel):
    """The form of OAuth 2's password grant; ``username`` is the e-mail address."""

    username: str = Field(max_length=320)
    password: SecretStr = Field(max_length=4096)


class NewAccount(RequestBody):
    email: str = _EMAIL
    password: SecretStr = Field(description="At least 8 characters, and none of the common ones.", max_length=4096)


class FirstAccount(NewAccount):
    setup_code: str | None = Field(
        default=None, max_length=64, description="Printed by `deerflow serve`; needed only from other machines."
    )


class PasswordChange(RequestBody):
    current_password: SecretStr = Field(max_length=4096)
    new_password: SecretStr = Field(max_length=4096)
    new_email: str | None = Field(default=None, max_length=320)
    end_sessions: bool = Field(default=True, description="Sign out all other browsers.")


class Farewell(RequestBody):
    password: SecretStr = Field(max_length=4096)


class SessionInfo(BaseModel):
    expires_in: int = Field(description="Seconds.")
    needs_setup: bool = Field(description="The password was set by someone else and should be changed.")


class Account(BaseModel):
    id: str
    email: str | None = Field(description="null for the local user of a gateway without authentication.")
    system_role: Role = Field(validation_alias="role")
    needs_setup: bool = False


class SetupStatus(BaseModel):
    needs_setup: bool = Field(description="There is no administrator yet; make one with /api/v1/auth/initialize.")
    code_required: bool = Field(description="Whoever asks would need the setup code for that.")
    registration: bool = Field(description="Anyone may make an account.")
    registration_enabled: bool = Field(description="The same.")
    authentication: bool = Field(description="False: everyone is the local user.")


class Message(BaseModel):
    message: str


@router.post("/api/v1/auth/login/local", summary="Sign in with e-mail address and password")
async def login(
    form: Annotated[SignIn, Form()], request: Request, response: Response, accounts: CurrentAccounts
) -> SessionInfo:
    password, device = form.password.get_secret_value(), _cookies(request).device(request)
    signed_in = await accounts.sign_in(form.username, password, client_of(request), device)
    user = _set_cookies(request, response, signed_in)
    return SessionInfo(expires_in=_cookies(request).max_age, needs_setup=user.needs_setup)


@router.post(
    "/api/v1/auth/register",
    status_code=201,
    summary="Make an account for oneself, where that is open",
    response_model=Account,
)
async def register(body: NewAccount, request: Request, response: Response, accounts: CurrentAccounts) -> User:
    signed_in = await accounts.register(body.email, body.password.get_secret_value(), client_of(request))
    return _set_cookies(request, response, signed_in)


@router.post(
    "/api/v1/auth/initialize",
    status_code=201,
    summary="Make the first administrator, once",
    response_model=Account,
)
async def initialize(body: FirstAccount, request: Request, response: Response, accounts: CurrentAccounts) -> User:
    password = body.password.get_secret_value()
    signed_in = await accounts.initialize(body.email, password, client_of(request), body.setup_code)
    return _set_cookies(request, response, signed_in)


@router.post("/api/v1/auth/logout", summary="End the session; its cookie is worth nothing afterwards")
async def logout(
    request: Request,
    response: Response,
    accounts: CurrentAccounts,
    everywhere: Annotated[bool, Query(description="End all sessions of the account.")] = False,
) -> Message:
    credential = getattr(request.state, "credential", None)
    if credential and credential.session_id:
        await accounts.sign_out(credential.session_id, everywhere=everywhere)
    _cookies(request).clear(request, response)
    return Message(message="Signed out.")


@router.post(
    "/api/v1/auth/change-password",
    summary="Change one's password; all other sessions end, unless one chooses otherwise",
)
async def change_password(
    body: PasswordChange,
    request: Request,
    response: Response,
    credential: CurrentCredential,
    accounts: CurrentAccounts,
) -> Message:
    if credential.user is None:
        raise ForbiddenError("The local user has no password. Sign in with an account.", reason="local_user")
    signed_in = await accounts.change_password(
        credential.user,
        body.current_password.get_secret_value(),
        body.new_password.get_secret_value(),
        body.new_email,
        client_of(request),
        end_sessions=body.end_sessions,
    )
    _set_cookies(request, response, signed_in)
    return Message(message="Password changed.")


@router.get("/api/v1/auth/me", summary="Who is signed in", response_model=Account)
async def me(request: Request, response: Response, credential: CurrentCredential) -> Any:
    if credential.session_id and not _cookies(request).has_csrf(request, credential.session_id):
        _cookies(request).set_csrf(request, response, credential.session_id)
    local = {"id": credential.principal.user_id, "email": None, "role": credential.principal.role}
    return credential.user or local


@router.get(
    "/api/v1/auth/me/archive",
    summary="Everything of one's own in a ZIP: chats, files, memory, agents, skills, schedules",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/zip": {}}}},
)
async def archive(principal: CurrentPrincipal, runtime: CurrentRuntime) -> StreamingResponse:
    """Its `manifest.json` comes last. Passwords, tokens, keys and secrets are not part of it."""
    headers = {"Content-Disposition": f'attachment; filename="deerflow-{utc_now():%Y-%m-%d}.zip"'}
    return StreamingResponse(runtime.personal_data.archive(principal), media_type="application/zip", headers=headers)


@router.post("/api/v1/auth/delete-account", summary="Delete one's own account and everything that belongs to it")
async def delete_account(
    body: Farewell,
    request: Request,
    response: Response,
    credential: CurrentCredential,
    accounts: CurrentAccounts,
    runtime: CurrentRuntime,
) -> Message:
    """Sessions, tokens, schedules and runs end at once; chats, files, memory, agents, skills and channels are gone soon after.

    409 `last_administrator`: make another user an administrator first."""
    if credential.user is None:
        raise ForbiddenError("The local user has no account that could be deleted.", reason="local_user")
    await accounts.confirm(credential.user, body.password.get_secret_value(), client_of(request))
    await runtime.people.delete(credential.user.id)
    accounts.forget()
    _cookies(request).clear(request, response)
    return Message(message="Your account is deleted.")


@router.get("/api/v1/auth/setup-status", summary="Whether the first administrator is still to be made")
async def setup_status(request: Request, accounts: CurrentAccounts, settings: CurrentSettings) -> SetupStatus:
    needs_setup = await accounts.needs_setup()
    registration = await accounts.registration()
    return SetupStatus(
        needs_setup=needs_setup,
        code_required=needs_setup and accounts.setup_code_required(client_of(request)),
        registration=registration,
        registration_enabled=registration,
        authentication=settings.authentication,
    )


def _set_cookies(request: Request, response: Response, signed_in: SignedIn) -> User:
    _cookies(request).set(request, response, signed_in.claims)
    _cookies(request).set_device(request, response, signed_in.device)
    return signed_in.user


def _cookies(request: Request) -> Cookies:
    return request.app.state.authenticator.cookies


# API tokens -----------------------------------------------------------------------------------------------------------


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


@token_routes.get("/api/v1/auth/tokens", summary="One's API tokens, newest first", response_model=Tokens)
async def list_tokens(credential: CurrentCredential, database: CurrentDatabase) -> Any:
    return {"tokens": await TokenRepository(database).list(credential.principal)}


@token_routes.post("/api/v1/auth/tokens", status_code=201, summary="Make an API token", response_model=CreatedToken)
async def create_token(body: NewToken, credential: CurrentCredential, database: CurrentDatabase) -> Any:
    principal = credential.principal
    if credential.user is None:
        raise ForbiddenError("API tokens belong to accounts. Sign in with one first.", reason="local_user")
    if "admin" in body.scopes and principal.role != "admin":
        text = "Only administrators may make tokens with the scope 'admin'."
        raise ForbiddenError(text, reason="administrators_only")
    lifetime = timedelta(days=body.expires_in_days) if body.expires_in_days else None
    tokens = TokenRepository(database)
    token, value = await tokens.create(principal, body.name, tuple(body.scopes), lifetime=lifetime)
    return {**asdict(token), "token": value}


@token_routes.delete("/api/v1/auth/tokens/{token_id}", status_code=204, summary="Revoke an API token")
async def revoke_token(
    token_id: str, request: Request, credential: CurrentCredential, database: CurrentDatabase
) -> None:
    await TokenRepository(database).revoke(credential.principal, token_id)
    request.app.state.authenticator.forget()
