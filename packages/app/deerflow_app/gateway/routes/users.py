"""The accounts of this site, and what administrators set for all of them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, Field, SecretStr

from deerflow.accounts import Role, User
from deerflow.errors import InvalidRequestError, NotFoundError
from deerflow.features.site import Mode, SiteSettings
from deerflow.storage.moment import Moment
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import (
    CurrentAccounts,
    CurrentAdmin,
    CurrentPrincipal,
    CurrentRuntime,
    PageSize,
    RequestBody,
)

router = Router(tags=["users"])


class UserRecord(BaseModel):
    id: str
    email: str
    system_role: Role = Field(validation_alias="role")
    needs_setup: bool = Field(description="The password was set by someone else and not changed since.")
    created_at: Moment
    suspended_at: Moment | None = Field(default=None, description="The account is shut since then.")
    last_seen_at: Moment | None = Field(default=None, description="To ten minutes.")


class Users(BaseModel):
    users: list[UserRecord]


class NewUser(RequestBody):
    email: str = Field(max_length=320, examples=["grace@example.com"])
    password: SecretStr | None = Field(default=None, max_length=4096, description="null: a random one is made.")
    system_role: Role = "user"


class CreatedUser(UserRecord):
    password: str | None = Field(description="The random password, shown only now.")


class UserChange(RequestBody):
    system_role: Role | None = None
    suspended: bool | None = Field(default=None, description="Sessions, tokens and runs end; schedules pause.")


class NewPassword(BaseModel):
    password: str = Field(description="Random, shown only now; its owner should change it.")


@router.get("/api/v1/users", summary="All accounts, oldest first", response_model=Users)
async def list_users(
    admin: CurrentAdmin,
    accounts: CurrentAccounts,
    limit: PageSize = 100,
    offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
) -> Any:
    return {"users": await accounts.users.list(limit=limit, offset=offset)}


@router.post("/api/v1/users", status_code=201, summary="Make an account for someone", response_model=CreatedUser)
async def create_user(body: NewUser, admin: CurrentAdmin, accounts: CurrentAccounts) -> Any:
    given = body.password.get_secret_value() if body.password is not None else None
    user, password = await accounts.add(body.email, given, body.system_role)
    return {**asdict(user), "password": password}


@router.patch("/api/v1/users/{user_id}", summary="Change a role, or suspend someone", response_model=UserRecord)
async def change_user(
    user_id: str, body: UserChange, admin: CurrentAdmin, accounts: CurrentAccounts, runtime: CurrentRuntime
) -> User:
    if (body.system_role is None) == (body.suspended is None):
        raise InvalidRequestError("Give either system_role or suspended.")
    if body.system_role is not None:
        return await accounts.set_role(user_id, body.system_role)
    user = await (runtime.people.suspend if body.suspended else runtime.people.resume)(user_id)
    accounts.forget()
    return user


@router.post("/api/v1/users/{user_id}/reset-password", summary="Give someone a random password; their sessions end")
async def reset_password(user_id: str, admin: CurrentAdmin, accounts: CurrentAccounts) -> NewPassword:
    user = await accounts.users.get(user_id)
    if user is None:
        raise NotFoundError("There is no such user.", reason="user_gone")
    return NewPassword(password=await accounts.reset_password(user))


@router.delete(
    "/api/v1/users/{user_id}",
    status_code=204,
    summary="Delete an account, its sessions, API tokens and crons; threads and files stay",
)
async def delete_user(user_id: str, admin: CurrentAdmin, accounts: CurrentAccounts) -> None:
    await accounts.delete(user_id)


# settings of the site ---------------------------------------------------------------------------------------------------


class Site(BaseModel):
    registration: bool | None = Field(description="null: as the server was started.")
    default_model: str | None = Field(description="Of new chats; null: the first one.")
    default_mode: Mode | None = Field(description="Of new chats; null: the page's own.")
    notice: str | None = Field(description="For everybody, on top of the page.")


class SiteChange(RequestBody):
    """Settings to change; those that are left out stay."""

    registration: bool | None = None
    default_model: str | None = Field(default=None, max_length=256)
    default_mode: Mode | None = None
    notice: str | None = Field(default=None, max_length=500)


@router.get("/api/v1/site", summary="What administrators have set for everybody", response_model=Site)
async def site(principal: CurrentPrincipal, runtime: CurrentRuntime) -> SiteSettings:
    return await runtime.site.get()


@router.patch(
    "/api/v1/site", summary="Set registration, the model and mode of new chats, or a notice", response_model=Site
)
async def change_site(body: SiteChange, admin: CurrentAdmin, runtime: CurrentRuntime) -> SiteSettings:
    return await runtime.site.change(body.model_dump(exclude_unset=True))
