"""The accounts of this site, for administrators."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field, SecretStr

from deerflow.accounts import Role, User
from deerflow.errors import NotFoundError
from deerflow_app.gateway.routes import CurrentAccounts, CurrentAdmin, Moment, PageSize, RequestBody

router = APIRouter(tags=["users"])


class UserRecord(BaseModel):
    id: str
    email: str
    system_role: Role = Field(validation_alias="role")
    needs_setup: bool = Field(description="The password was set by someone else and not changed since.")
    created_at: Moment


class Users(BaseModel):
    users: list[UserRecord]


class NewUser(RequestBody):
    email: str = Field(max_length=320, examples=["grace@example.com"])
    password: SecretStr | None = Field(default=None, max_length=4096, description="null: a random one is made.")
    system_role: Role = "user"


class CreatedUser(UserRecord):
    password: str | None = Field(description="The random password, shown only now.")


class RoleChange(RequestBody):
    system_role: Role


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


@router.patch("/api/v1/users/{user_id}", summary="Change a role", response_model=UserRecord)
async def change_role(user_id: str, body: RoleChange, admin: CurrentAdmin, accounts: CurrentAccounts) -> User:
    return await accounts.set_role(user_id, body.system_role)


@router.post("/api/v1/users/{user_id}/reset-password", summary="Give someone a random password; their sessions end")
async def reset_password(user_id: str, admin: CurrentAdmin, accounts: CurrentAccounts) -> NewPassword:
    user = await accounts.users.get(user_id)
    if user is None:
        raise NotFoundError("There is no such user.")
    return NewPassword(password=await accounts.reset_password(user))


@router.delete(
    "/api/v1/users/{user_id}",
    status_code=204,
    summary="Delete an account, its sessions, API tokens and crons; threads and files stay",
)
async def delete_user(user_id: str, admin: CurrentAdmin, accounts: CurrentAccounts) -> None:
    await accounts.delete(user_id)
