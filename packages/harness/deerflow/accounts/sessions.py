"""Signed-in browsers: a row each. Signing out deletes it, and the cookie that names it is worth nothing."""

from __future__ import annotations

import uuid
from datetime import timedelta

from sqlalchemy import Connection, delete, insert, select

from deerflow.accounts.users import User
from deerflow.storage.database import Database
from deerflow.storage.tables import sessions, users, utc_now


class SessionRepository:
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
            return User(**row._mapping) if row else None

        return await self._database.read(job)

    async def delete(self, session_id: str) -> None:
        """End a session. Nothing happens if it has ended."""
        await self._database.write(
            lambda connection: connection.execute(delete(sessions).where(sessions.c.id == session_id))
        )
