"""API tokens of users. Only a hash is kept: a token is shown once, to the one who makes it."""

from __future__ import annotations

import hashlib
import secrets
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from sqlalchemy import Connection, Row, delete, insert, or_, select, update

from deerflow.accounts.users import User
from deerflow.errors import InvalidRequestError, NotFoundError
from deerflow.identity import Principal
from deerflow.storage.database import Database
from deerflow.storage.tables import api_tokens, users, utc_now

PREFIX = "df_"
Scope = Literal["read", "write", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
TOUCH_EVERY = timedelta(minutes=1)
_HINT_LENGTH = 9


@dataclass(frozen=True, slots=True)
class ApiToken:
    """``hint`` is how the token begins."""

    id: str
    user_id: str
    name: str
    hint: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


class TokenRepository:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(
        self, principal: Principal, name: str, scopes: tuple[Scope, ...], *, lifetime: timedelta | None = None
    ) -> tuple[ApiToken, str]:
        """Make a token of ``principal``; returns what is kept of it, and the token itself.

        Raises InvalidRequestError without a name or scope.
        """
        if not name.strip() or len(name) > 128 or not scopes:
            raise InvalidRequestError("A token needs a name of at most 128 characters and at least one scope.")
        value = PREFIX + secrets.token_urlsafe(32)
        now = utc_now()
        ordered: tuple[Scope, ...] = tuple(scope for scope in SCOPES if scope in scopes)
        expires_at = now + lifetime if lifetime else None
        token = ApiToken(
            str(uuid.uuid4()), principal.user_id, name.strip(), value[:_HINT_LENGTH], ordered, now, expires_at, None
        )
        columns = {field: getattr(token, field) for field in ApiToken.__slots__} | {"scopes": list(ordered)}
        await self._database.write(
            lambda connection: connection.execute(insert(api_tokens).values(**columns, hash=_hash(value)))
        )
        return token, value

    async def list(self, principal: Principal) -> list[ApiToken]:
        """The newest first."""

        def job(connection: Connection) -> list[ApiToken]:
            query = select(api_tokens).where(api_tokens.c.user_id == principal.user_id)
            return [_token(row) for row in connection.execute(query.order_by(api_tokens.c.created_at.desc()))]

        return await self._database.read(job)

    async def revoke(self, principal: Principal, token_id: str) -> None:
        """Raises NotFoundError."""
        mine = (api_tokens.c.id == token_id) & (api_tokens.c.user_id == principal.user_id)

        def job(connection: Connection) -> int:
            return connection.execute(delete(api_tokens).where(mine)).rowcount

        if not await self._database.write(job):
            raise NotFoundError("There is no such token.")

    async def find(self, value: str) -> tuple[ApiToken, User] | None:
        """What a token is and whose, or None if it was revoked, has expired or its owner is gone.

        That it was used is written down, at most once a minute.
        """
        now = utc_now()

        def job(connection: Connection) -> tuple[ApiToken, User] | None:
            valid = or_(api_tokens.c.expires_at.is_(None), api_tokens.c.expires_at > now)
            row = connection.execute(select(api_tokens).where(api_tokens.c.hash == _hash(value), valid)).one_or_none()
            if row is None:
                return None
            owner = connection.execute(select(users).where(users.c.id == row.user_id)).one_or_none()
            return (_token(row), User(**owner._mapping)) if owner else None

        found = await self._database.read(job)
        if found and (found[0].last_used_at is None or now - found[0].last_used_at > TOUCH_EVERY):
            used = update(api_tokens).where(api_tokens.c.id == found[0].id).values(last_used_at=now)
            await self._database.write(lambda connection: connection.execute(used))
        return found


def _hash(value: str) -> str:
    """A token has 256 random bits: there is nothing to guess, so a fast hash will do."""
    return hashlib.sha256(value.encode(errors="replace")).hexdigest()


def _token(row: Row) -> ApiToken:
    fields: dict[str, Any] = {field: row._mapping[field] for field in ApiToken.__slots__}
    fields["scopes"] = tuple(row.scopes)
    return ApiToken(**fields)
