"""Who may sign in, and who has. Addresses are kept and compared in lower case; a change of password ends all sessions."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from sqlalchemy import ColumnElement, Connection, Row, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from deerflow.errors import ConflictError, NotFoundError, RequestError
from deerflow.identity import LOCAL_PRINCIPAL
from deerflow.storage.database import Database
from deerflow.storage.tables import api_tokens, crons, sessions, users, utc_now

Role = Literal["admin", "user"]


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


class EmailTakenError(RequestError):
    """Another account has this address."""

    code = "email_already_exists"


class UserRepository:
    """Only accounts; what belongs to them is elsewhere. Whoever calls this decides who may do it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def any_admin(self) -> bool:
        return await self._database.read(lambda connection: bool(_admins(connection)))

    async def get(self, user_id: str) -> User | None:
        return await self._database.read(lambda connection: _find(connection, users.c.id == user_id))

    async def by_email(self, email: str) -> User | None:
        return await self._database.read(lambda connection: _find(connection, users.c.email == email.lower()))

    async def list(self, *, limit: int = 100, offset: int = 0) -> list[User]:
        """The oldest first."""

        def job(connection: Connection) -> list[User]:
            query = select(users).order_by(users.c.created_at, users.c.id).limit(limit).offset(offset)
            return [_user(row) for row in connection.execute(query)]

        return await self._database.browse(job)

    async def create_first_admin(self, email: str, password_hash: str) -> User:
        """The account that owns what was done on this machine without one: its id is that of the local user.

        Raises:
            ConflictError: there is an administrator already, or someone else was first just now.
        """

        def job(connection: Connection) -> User:
            if _admins(connection):
                raise taken
            return _insert(connection, email, password_hash, "admin", LOCAL_PRINCIPAL.user_id)

        taken = ConflictError("An administrator exists already; sign in.", code="system_already_initialized")
        try:
            return await self._database.write(job)
        except IntegrityError:
            raise taken from None

    async def create(self, email: str, password_hash: str, role: Role = "user", *, needs_setup: bool = False) -> User:
        """Raises EmailTakenError."""
        try:
            return await self._database.write(
                lambda connection: _insert(connection, email, password_hash, role, str(uuid.uuid4()), needs_setup)
            )
        except IntegrityError:
            raise EmailTakenError("Email already registered.") from None

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
                raise ConflictError("The password was changed meanwhile. Sign in again.")
            if end_sessions:
                connection.execute(delete(sessions).where(sessions.c.user_id == user.id))
            if needs_setup:
                connection.execute(delete(api_tokens).where(api_tokens.c.user_id == user.id))
            return _get(connection, user.id)

        try:
            return await self._database.write(job)
        except IntegrityError:
            raise EmailTakenError("Email already in use.") from None

    async def rehash(self, user: User, password_hash: str) -> None:
        """Keep the same password in a newer format."""
        same = (users.c.id == user.id) & (users.c.password_hash == user.password_hash)
        await self._database.write(
            lambda connection: connection.execute(update(users).where(same).values(password_hash=password_hash))
        )

    async def set_role(self, user_id: str, role: Role) -> User:
        """Raises NotFoundError, and ConflictError if nobody could administer this site afterwards."""

        def job(connection: Connection) -> User:
            _keep_an_admin(connection, user_id, leaves=role != "admin")
            connection.execute(update(users).where(users.c.id == user_id).values(role=role))
            return _get(connection, user_id)

        return await self._database.write(job)

    async def delete(self, user_id: str) -> None:
        """Delete the account, its sessions, API tokens and schedules.

        Raises NotFoundError, and ConflictError if nobody could administer this site afterwards.
        """

        def job(connection: Connection) -> None:
            _keep_an_admin(connection, user_id, leaves=True)
            connection.execute(delete(api_tokens).where(api_tokens.c.user_id == user_id))
            connection.execute(delete(sessions).where(sessions.c.user_id == user_id))
            connection.execute(delete(crons).where(crons.c.user_id == user_id))
            connection.execute(delete(users).where(users.c.id == user_id))

        await self._database.write(job)


class SessionRepository:
    """Signed-in browsers: a row each. Signing out deletes it, and the cookie that names it is worth nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, user_id: str, lifetime: timedelta) -> str:
        """Begin a session and return its id. Sessions of the user that have expired are removed."""

        def job(connection: Connection) -> str:
            now, session_id = utc_now(), str(uuid.uuid4())
            connection.execute(delete(sessions).where(sessions.c.user_id == user_id, sessions.c.expires_at < now))
            connection.execute(
                insert(sessions).values(id=session_id, user_id=user_id, created_at=now, expires_at=now + lifetime)
            )
            return session_id

        return await self._database.write(job)

    async def user_of(self, session_id: str) -> User | None:
        """Whose session it is, or None if it has ended."""

        def job(connection: Connection) -> User | None:
            query = (
                select(users)
                .join(sessions, sessions.c.user_id == users.c.id)
                .where(sessions.c.id == session_id, sessions.c.expires_at > utc_now())
            )
            row = connection.execute(query).one_or_none()
            return _user(row) if row else None

        return await self._database.read(job)

    async def delete(self, session_id: str, *, everywhere: bool = False) -> None:
        """End a session, or all of its user. Nothing happens if it has ended."""
        meant = sessions.c.id == session_id
        if everywhere:
            meant = sessions.c.user_id == select(sessions.c.user_id).where(meant).scalar_subquery()
        await self._database.write(lambda connection: connection.execute(delete(sessions).where(meant)))


def _user(row: Row) -> User:
    return User(**row._mapping)


def _find(connection: Connection, condition: ColumnElement[bool]) -> User | None:
    row = connection.execute(select(users).where(condition)).one_or_none()
    return _user(row) if row else None


def _get(connection: Connection, user_id: str) -> User:
    if user := _find(connection, users.c.id == user_id):
        return user
    raise NotFoundError("There is no such user.")


def _insert(
    connection: Connection, email: str, password_hash: str, role: Role, user_id: str, needs_setup: bool = False
) -> User:
    user = User(user_id, email.lower(), password_hash, role, needs_setup, 0, utc_now())
    columns = {name: getattr(user, name) for name in User.__slots__}
    connection.execute(insert(users).values(**columns))
    return user


def _admins(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(users).where(users.c.role == "admin")).scalar_one()


def _keep_an_admin(connection: Connection, user_id: str, *, leaves: bool) -> None:
    """The rows are locked, so that two administrators cannot remove each other at the same moment."""
    admins = connection.execute(
        select(users.c.id).where(users.c.role == "admin").order_by(users.c.id).with_for_update()
    )
    if set(admins.scalars()) == {user_id} and leaves:
        raise ConflictError("This is the only administrator. Make another user an administrator first.")
    _get(connection, user_id)
