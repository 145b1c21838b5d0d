"""Who may sign in, and who has: accounts, signed-in browsers and API tokens.

Addresses are kept and compared in lower case; a change of password ends all sessions. Of a token only a hash is kept: it is
shown once, to the one who makes it.
"""

from __future__ import annotations

import hashlib
import secrets
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

from sqlalchemy import Connection, update
from sqlalchemy.exc import IntegrityError

from deerflow.errors import ConflictError, InvalidRequestError, NotFoundError, RequestError
from deerflow.identity import LOCAL_PRINCIPAL, Principal
from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.errors import DatabaseError
from deerflow.storage.tables import api_tokens, sessions, users, utc_now
from deerflow.storage.visibility import changeable, readable, values_of

Role = Literal["admin", "user"]
PREFIX = "df_"
"""How API tokens begin."""
Scope = Literal["read", "write", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
TOUCH_EVERY = timedelta(minutes=1)
SEEN_EVERY = timedelta(minutes=10)
"""Precision of the time at which a person was last seen."""
_HINT_LENGTH = 9


@dataclass(frozen=True, slots=True)
class User:
    """``token_version`` counts changes of the password: what was signed under an older one is worth nothing."""

    id: str
    email: str
    password_hash: str | None = field(repr=False)
    role: Role
    needs_setup: bool
    token_version: int
    created_at: datetime
    suspended_at: datetime | None = None
    last_seen_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ApiToken:
    """``hint`` is how the token begins."""

    id: str
    user_id: str
    name: str
    hint: str
    scopes: Sequence[Scope]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None


class EmailTakenError(RequestError):
    """Another account has this address."""

    code = "email_already_exists"


class UserRepository:
    """Only accounts; what belongs to them is elsewhere. Whoever calls this decides who may do it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def any_admin(self) -> bool:
        return await self._database.read(_any_admin)

    async def get(self, user_id: str) -> User | None:
        return await self._database.read(_find, "id = ?", user_id)

    async def by_email(self, email: str) -> User | None:
        return await self._database.read(_find, "email = ?", email.lower())

    async def list(self, *, limit: int = 100, offset: int = 0) -> list[User]:
        """The oldest first."""
        tail = "ORDER BY created_at, id LIMIT ? OFFSET ?"
        return await self._database.browse(sql.select, User, users, tail, limit, offset)

    async def create_first_admin(self, email: str, password_hash: str) -> User:
        """The account that owns what was done on this machine without one: its id is that of the local user.

        Raises:
            ConflictError: there is an administrator already, or someone else was first just now.
        """
        user = User(LOCAL_PRINCIPAL.user_id, email.lower(), password_hash, "admin", False, 0, utc_now())
        if not await self._database.write(lambda connection: not _any_admin(connection) and _insert(connection, user)):
            raise ConflictError("An administrator exists already; sign in.", code="system_already_initialized")
        return user

    async def create(self, email: str, password_hash: str, role: Role = "user", *, needs_setup: bool = False) -> User:
        """Raises EmailTakenError."""
        user = User(str(uuid.uuid4()), email.lower(), password_hash, role, needs_setup, 0, utc_now())
        if not await self._database.write(_insert, user):
            raise EmailTakenError("Email already registered.")
        return user

    async def set_password(
        self,
        user: User,
        password_hash: str,
        *,
        email: str | None = None,
        needs_setup: bool = False,
        end_sessions: bool = True,
    ) -> User:
        """Set a new password and end all sessions of ``user``, who is as the caller last saw them.

        Args:
            needs_setup: someone else set it, since the user lost control of the account: API tokens end, too.
            end_sessions: False keeps them.

        Raises:
            ConflictError: the password was changed meanwhile.
            EmailTakenError: ``email`` belongs to another account.
        """

        def job(connection: Connection) -> User:
            unchanged = (
                (users.c.id == user.id)
                & (users.c.token_version == user.token_version)
                & (users.c.password_hash == user.password_hash)
            )
            values = {
                "password_hash": password_hash,
                "needs_setup": needs_setup,
                "token_version": user.token_version + end_sessions,
            }
            values |= {"email": email.lower()} if email else {}
            if not connection.execute(update(users).where(unchanged).values(**values)).rowcount:
                raise ConflictError("The password was changed meanwhile. Sign in again.", reason="password_changed")
            if end_sessions:
                _delete_of(connection, user.id, "sessions")
            if needs_setup:
                _delete_of(connection, user.id, "api_tokens")
            return _get(connection, user.id)

        try:
            return await self._database.write(job)
        except IntegrityError:
            raise EmailTakenError("Email already in use.") from None

    async def rehash(self, user: User, password_hash: str) -> None:
        """Keep the same password in a newer format."""
        same = ("id = ? AND password_hash = ?", user.id, user.password_hash)
        await self._database.write(sql.update, users, {"password_hash": password_hash}, *same)

    async def set_role(self, user_id: str, role: Role) -> User:
        """Raises NotFoundError, and ConflictError if nobody could administer this site afterwards."""

        def job(connection: Connection) -> User:
            _keep_an_admin(connection, user_id, leaves=role != "admin")
            sql.update(connection, users, {"role": role}, "id = ?", user_id)
            return _get(connection, user_id)

        return await self._database.write(job)

    async def suspend(self, user_id: str, *, also: Callable[[Connection], object] = lambda _: None) -> User:
        """Shut the account: sessions and API tokens end, no one can sign in to it. Do ``also`` in the same transaction.

        Raises NotFoundError, and ConflictError if nobody could administer this site afterwards.
        """

        def job(connection: Connection) -> User:
            _keep_an_admin(connection, user_id, leaves=True)
            _delete_of(connection, user_id, *_ACCESS)
            sql.update(connection, users, {"suspended_at": utc_now()}, "id = ? AND suspended_at IS NULL", user_id)
            also(connection)
            return _get(connection, user_id)

        return await self._database.write(job)

    async def resume(self, user_id: str, *, also: Callable[[Connection], object] = lambda _: None) -> User:
        """Open a suspended account again, and do ``also`` in the same transaction. Raises NotFoundError."""

        def job(connection: Connection) -> User:
            sql.update(connection, users, {"suspended_at": None}, "id = ?", user_id)
            also(connection)
            return _get(connection, user_id)

        return await self._database.write(job)

    async def is_suspended(self, user_id: str) -> bool:
        return await self._database.read(_is_suspended, user_id)

    async def delete(self, user_id: str, *, also: Callable[[Connection], object] = lambda _: None) -> None:
        """Delete the account, its sessions, API tokens and schedules, and do ``also`` in the same transaction.

        Raises NotFoundError, and ConflictError if nobody could administer this site afterwards.
        """

        def job(connection: Connection) -> None:
            _keep_an_admin(connection, user_id, leaves=True)
            _delete_of(connection, user_id, *_ACCESS, "crons")
            sql.execute(connection, "DELETE FROM users WHERE id = ?", user_id)
            also(connection)

        await self._database.write(job)


class SessionRepository:
    """Signed-in browsers: a row each. Signing out deletes it, and the cookie that names it is worth nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, user_id: str, lifetime: timedelta) -> str:
        """Begin a session and return its id. Sessions of the user that have expired are removed."""

        def job(connection: Connection) -> str:
            now, session_id = utc_now(), str(uuid.uuid4())
            sql.execute(connection, "DELETE FROM sessions WHERE user_id = ? AND expires_at < ?", user_id, now)
            row = {"id": session_id, "user_id": user_id, "created_at": now, "expires_at": now + lifetime}
            sql.insert(connection, sessions, row)
            return session_id

        return await self._database.write(job)

    async def user_of(self, session_id: str) -> User | None:
        """Return the owner of the session, or None if it has ended. That they were seen is recorded now and then."""
        of_session = "id = (SELECT user_id FROM sessions WHERE id = ? AND expires_at > ?) AND suspended_at IS NULL"
        user = await self._database.read(_find, of_session, session_id, utc_now())
        if user is not None and _is_long_ago(user.last_seen_at, SEEN_EVERY):
            await _see(self._database, user.id)
        return user

    async def delete(self, session_id: str, *, everywhere: bool = False) -> None:
        """End a session, or all of its user. Nothing happens if it has ended."""
        meant = "user_id = (SELECT user_id FROM sessions WHERE id = ?)" if everywhere else "id = ?"
        await self._database.write(sql.change, f"DELETE FROM sessions WHERE {meant}", session_id)


class TokenRepository:
    """API tokens of users."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(
        self, principal: Principal, name: str, scopes: Sequence[Scope], *, lifetime: timedelta | None = None
    ) -> tuple[ApiToken, str]:
        """Make a token of ``principal``; returns what is kept of it, and the token itself.

        Raises InvalidRequestError without a name or scope.
        """
        if not name.strip() or len(name) > 128 or not scopes:
            raise InvalidRequestError(
                "A token needs a name of at most 128 characters and at least one scope.", reason="token_incomplete"
            )
        value = PREFIX + secrets.token_urlsafe(32)
        now = utc_now()
        ordered: tuple[Scope, ...] = tuple(scope for scope in SCOPES if scope in scopes)
        expires_at = now + lifetime if lifetime else None
        token = ApiToken(
            str(uuid.uuid4()), principal.user_id, name.strip(), value[:_HINT_LENGTH], ordered, now, expires_at, None
        )
        row = asdict(token) | {"scopes": sql.dumps(ordered), "hash": _hash(value)}
        await self._database.write(lambda connection: sql.insert(connection, api_tokens, row) and None)
        return token, value

    async def list(self, principal: Principal) -> list[ApiToken]:
        """The newest first."""
        tail = f"WHERE {readable(api_tokens)} ORDER BY created_at DESC"
        return await self._database.read(sql.select, ApiToken, api_tokens, tail, *values_of(principal))

    async def revoke(self, principal: Principal, token_id: str) -> None:
        """Raises NotFoundError."""
        statement = f"DELETE FROM api_tokens WHERE id = ? AND {changeable(api_tokens)}"
        if not await self._database.write(sql.change, statement, token_id, *values_of(principal)):
            raise NotFoundError("There is no such token.")

    async def find(self, value: str) -> tuple[ApiToken, User] | None:
        """What a token is and whose, or None if it was revoked, has expired or its owner is gone.

        That it was used is written down, at most once a minute.
        """
        now = utc_now()

        def job(connection: Connection) -> tuple[ApiToken, User] | None:
            valid = "WHERE hash = ? AND (expires_at IS NULL OR expires_at > ?)"
            token = sql.first(connection, ApiToken, api_tokens, valid, _hash(value), now)
            owner = _find(connection, "id = ? AND suspended_at IS NULL", token.user_id) if token else None
            return (token, owner) if token and owner else None

        found = await self._database.read(job)
        if found and _is_long_ago(found[0].last_used_at, TOUCH_EVERY):
            await self._database.write(sql.update, api_tokens, {"last_used_at": now}, "id = ?", found[0].id)
        if found and _is_long_ago(found[1].last_seen_at, SEEN_EVERY):
            await _see(self._database, found[1].id)
        return found


def _find(connection: Connection, condition: str, *values: Any) -> User | None:
    return sql.first(connection, User, users, f"WHERE {condition}", *values)


def _get(connection: Connection, user_id: str) -> User:
    if user := _find(connection, "id = ?", user_id):
        return user
    raise NotFoundError("There is no such user.", reason="user_gone")


def _insert(connection: Connection, user: User) -> bool:
    """False if the id or the address is taken."""
    return bool(sql.insert(connection, users, asdict(user), "ON CONFLICT DO NOTHING").rowcount)


def _any_admin(connection: Connection) -> bool:
    return sql.execute(connection, "SELECT 1 FROM users WHERE role = 'admin' LIMIT 1").fetchone() is not None


def _keep_an_admin(connection: Connection, user_id: str, *, leaves: bool) -> None:
    """The rows are locked, so that two administrators cannot remove each other at the same moment."""
    active = "role = 'admin' AND suspended_at IS NULL"
    query = f"SELECT id FROM users WHERE {active} ORDER BY id{sql.for_update(connection)}"
    admins = sql.execute(connection, query).fetchall()
    if admins == [(user_id,)] and leaves:
        raise ConflictError(
            "This is the only administrator. Make another user an administrator first.", code="last_administrator"
        )
    _get(connection, user_id)


_ACCESS = ("api_tokens", "sessions")


def _delete_of(connection: Connection, user_id: str, *tables: str) -> None:
    for table in tables:
        sql.execute(connection, f"DELETE FROM {table} WHERE user_id = ?", user_id)


def _is_suspended(connection: Connection, user_id: str) -> bool:
    query = "SELECT 1 FROM users WHERE id = ? AND suspended_at IS NOT NULL"
    return sql.execute(connection, query, user_id).fetchone() is not None


async def _see(database: Database, user_id: str) -> None:
    """Record that a person was here. A full disk keeps no one out."""
    with suppress(DatabaseError):
        await database.write(sql.update, users, {"last_seen_at": utc_now()}, "id = ?", user_id)


def _is_long_ago(moment: datetime | None, span: timedelta) -> bool:
    return moment is None or utc_now() - moment > span


def _hash(value: str) -> str:
    """A token has 256 random bits: there is nothing to guess, so a fast hash will do."""
    return hashlib.sha256(value.encode(errors="replace")).hexdigest()
