"""Accounts of platforms and the people behind them. An account starts nothing before its person has connected it with a code of the page."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from deerflow.accounts import UserRepository
from deerflow.errors import NotFoundError, TooManyRequestsError
from deerflow.features.channels.types import Author
from deerflow.identity import LOCAL_PRINCIPAL, Principal
from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.tables import channel_codes, channel_identities, utc_now
from deerflow.storage.visibility import readable, values_of

LIFETIME = timedelta(minutes=10)
TRIES = 5
WRONG_CODE = "wrong code"
"""Why messages with a wrong code went no further, in the inbox."""
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
GUEST = "guest-"
"""Beginning of the user ids of guests, which no account has: those are UUIDs or ``default``."""

_CONNECT = re.compile(r"/(connect|bind|start)(?:@\w+)?(?:\s+(\S+))?\s*", re.IGNORECASE)

Clock = Callable[[], datetime]
People = Callable[[str], Awaitable[Principal | None]]


@dataclass(frozen=True, slots=True)
class Identity:
    """An account of a platform and whose it is.

    Args:
        workspace: whose ids these are; empty if ids are global.
        ended_at: when the person disconnected it, or another person connected it. None: it is connected.
    """

    id: int
    kind: str
    workspace: str
    external_id: str
    user_id: str
    name: str
    created_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class Bound:
    """A new binding; ``former``: whose the account was before, if that was another person."""

    principal: Principal
    former: str | None


class WrongCodeError(NotFoundError):
    """The code was never made, is used, or too old."""


def code_in(text: str, kind: str) -> str | None:
    """Return the code that a message brings, or an empty text if it asks how to connect; None: it is no such command.

    ``connect the db`` is a message, since the slash is missing, and so is ``/connect to the db and look``.
    """
    found = _CONNECT.fullmatch(text)
    if found is None or (found[1].lower() == "start" and kind != "telegram"):
        return None
    return found[2] or ""


class Bindings:
    """Args:
    people: the person of a user id with their current role, or None if they may not act any more.
    """

    def __init__(self, database: Database, people: People | None = None, *, clock: Clock = utc_now) -> None:
        self._database = database
        self._people = people or people_of(database)
        self._clock = clock

    async def code(self, principal: Principal, kind: str = "") -> tuple[str, datetime]:
        """Make a code that connects an account to the person, once and until a moment.

        Args:
            kind: the platform that it holds for; empty: any.
        """
        value, now = secrets.token_urlsafe(16), self._clock()
        row = {"hash": _digest(value), "user_id": principal.user_id, "kind": kind, "until": now + LIFETIME}

        def job(connection: Connection) -> None:
            sql.execute(connection, "DELETE FROM channel_codes WHERE until < ?", now - DAY)
            sql.insert(connection, channel_codes, row)

        await self._database.write(job)
        return value, now + LIFETIME

    async def bind(self, kind: str, author: Author, code: str) -> Bound:
        """Connect an account to the person who made the code. The last one who does it has the account.

        Raises:
            WrongCodeError: there is no such code any more.
            TooManyRequestsError: five wrong codes came from this account within an hour.
        """
        now = self._clock()

        def job(connection: Connection) -> tuple[str, str | None] | None:
            if _happened(connection, kind, author, WRONG_CODE, now - HOUR) >= TRIES:
                raise TooManyRequestsError("Too many wrong codes. Try again in an hour, with a new code.")
            taken = """UPDATE channel_codes SET used_at = ? WHERE hash = ? AND used_at IS NULL AND until > ?
                AND kind IN (?, '') RETURNING user_id"""
            row = sql.execute(connection, taken, now, _digest(code), now, kind).fetchone()
            if row is None:
                return None
            former = _find(connection, kind, author)
            if former is not None:
                _end(connection, former.id, now)
            made = {
                "kind": kind,
                "workspace": author.workspace,
                "external_id": author.id,
                "user_id": row[0],
                "name": author.name,
                "created_at": now,
            }
            sql.insert(connection, channel_identities, made)
            return row[0], former.user_id if former is not None and former.user_id != row[0] else None

        found = await self._database.write(job)
        principal = await self._people(found[0]) if found is not None else None
        if found is None or principal is None:
            raise WrongCodeError(
                "This code is not valid: it was used, is older than ten minutes, or was never made.",
                reason="code_wrong",
            )
        return Bound(principal, found[1])

    async def unbind(self, kind: str, author: Author) -> bool:
        """Return whether the account was connected."""
        now = self._clock()

        def job(connection: Connection) -> bool:
            found = _find(connection, kind, author)
            return found is not None and _end(connection, found.id, now)

        return await self._database.write(job)

    async def person(self, kind: str, author: Author) -> Principal | None:
        """Return the person behind an account as they are now, or None: not connected, suspended or gone."""
        found = await self._database.read(_find, kind, author)
        return await self._people(found.user_id) if found is not None else None

    async def of(self, principal: Principal) -> list[Identity]:
        """Return the person's accounts, those that are connected first."""
        tail = f"WHERE {readable(channel_identities)} ORDER BY ended_at IS NOT NULL, created_at DESC, id"
        return await self._database.read(sql.select, Identity, channel_identities, tail, *values_of(principal))

    async def end(self, principal: Principal, identity_id: int) -> None:
        """Disconnect one of the person's accounts. Raises NotFoundError."""
        mine = {each.id for each in await self.of(principal) if each.ended_at is None}
        if identity_id not in mine or not await self._database.write(_end, identity_id, self._clock()):
            raise NotFoundError("You have no such account connected.")

    async def guest(self, kind: str, author: Author, per_day: int) -> Principal | None:
        """Return the guest behind an account, or None if they have written as much in a day as guests may."""
        user_id = guest_id(kind, author)
        since = self._clock() - DAY
        written = await self._database.read(_written, author, user_id, since)
        return Principal(user_id, "user", "channel") if written < per_day else None

    async def has_happened(self, kind: str, author: Author, why: str, within: timedelta = DAY) -> bool:
        """Return whether a message of the account went no further for this reason lately."""
        since = self._clock() - within
        return await self._database.read(_happened, kind, author, why, since) > 0


def people_of(database: Database) -> People:
    """Return a look-up of people by user id. On a server without accounts the local user acts."""
    users = UserRepository(database)

    async def person(user_id: str) -> Principal | None:
        user = await users.get(user_id)
        if user is not None:
            return None if user.needs_setup else Principal(user.id, user.role, "channel")
        if user_id.startswith(GUEST):
            return Principal(user_id, "user", "channel")
        if user_id == LOCAL_PRINCIPAL.user_id and not await users.list(limit=1):
            return Principal(user_id, LOCAL_PRINCIPAL.role, "channel")
        return None

    return person


def guest_id(kind: str, author: Author) -> str:
    return GUEST + hashlib.sha256(f"{kind}/{author.workspace}/{author.id}".encode()).hexdigest()[:32]


def _find(connection: Connection, kind: str, author: Author) -> Identity | None:
    tail = "WHERE kind = ? AND workspace = ? AND external_id = ? AND ended_at IS NULL"
    return sql.first(connection, Identity, channel_identities, tail, kind, author.workspace, author.id)


def _end(connection: Connection, identity_id: int, now: datetime) -> bool:
    row = {"ended_at": now}
    return sql.update(connection, channel_identities, row, "id = ? AND ended_at IS NULL", identity_id) == 1


def _happened(connection: Connection, kind: str, author: Author, why: str, since: datetime) -> int:
    """Return how many messages of an account went no further for this reason. The inbox is the record: it survives a restart."""
    statement = """SELECT COUNT(*) FROM channel_inbox WHERE accepted_at > ? AND workspace = ? AND author = ? AND why = ?
        AND connection_id IN (SELECT id FROM channel_connections WHERE kind = ?)"""
    return sql.execute(connection, statement, since, author.workspace, author.id, why, kind).fetchone()[0]


def _written(connection: Connection, author: Author, user_id: str, since: datetime) -> int:
    statement = (
        "SELECT COUNT(*) FROM channel_inbox WHERE accepted_at > ? AND workspace = ? AND author = ? AND user_id = ?"
    )
    return sql.execute(connection, statement, since, author.workspace, author.id, user_id).fetchone()[0]


def _digest(code: str) -> str:
    """A code has 128 random bits: there is nothing to guess, so a fast hash will do."""
    return hashlib.sha256(code.encode(errors="replace")).hexdigest()
