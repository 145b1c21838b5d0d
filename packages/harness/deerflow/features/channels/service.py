"""Channels as the page, the API and the command line see them: connections, accounts of people, codes, states."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Connection

from deerflow.config.env import MASK, mask_secrets
from deerflow.config.secrets import WrongKeyError
from deerflow.errors import ConflictError, ForbiddenError, InvalidRequestError, NotFoundError
from deerflow.features.channels.bindings import LIFETIME, Bindings, Identity
from deerflow.features.channels.config import KINDS, ChannelConfig, Configs
from deerflow.features.channels.connections import (
    GONE,
    MISCONFIGURED,
    ChannelConnection,
    ChannelConnections,
    checked,
    split,
    without_none,
)
from deerflow.features.channels.conversations import Conversations
from deerflow.features.channels.engine import Wanted
from deerflow.features.channels.gate import newest_private_chat
from deerflow.features.channels.outbox import WAITING, Outbox, Target
from deerflow.features.channels.types import Adapter, Misconfigured, Place
from deerflow.identity import Principal
from deerflow.storage import sql
from deerflow.storage.database import Database
from deerflow.storage.tables import channel_connections, utc_now
from deerflow.storage.visibility import may_change, may_read, readable, values_of

FILE = "file-"
"""Beginning of the ids of connections that stand in the configuration file; the kind follows."""

Make = Callable[[Mapping[str, Any]], Adapter]


@dataclass(frozen=True, slots=True)
class ConnectCode:
    """A code that connects an account, and how.

    Args:
        link: opens the chat with the bot and brings the code, where the platform has that; empty: write the command.
    """

    code: str
    until: datetime
    command: str
    link: str
    expires_in: int = int(LIFETIME.total_seconds())


class ChannelService:
    """Administrators change the connections of the instance, others see them; each has their own besides, which no one else sees.

    Args:
        changed: called after a connection was changed, so that its holder opens it again.
    """

    def __init__(
        self,
        database: Database,
        connections: ChannelConnections,
        bindings: Bindings,
        conversations: Conversations,
        outbox: Outbox,
        *,
        configs: Configs,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._database = database
        self._connections = connections
        self._bindings = bindings
        self._conversations = conversations
        self._outbox = outbox
        self._configs = configs
        self._announce = changed

    # connections ------------------------------------------------------------------------------------------------------

    async def list(self, principal: Principal) -> list[dict[str, Any]]:
        """Return the connections as the person may see them: errors and settings are for those who may change one."""
        tail = f"WHERE {readable(channel_connections)} ORDER BY kind, created_at, id"
        rows = await self._connections.select(tail, *values_of(principal))
        waiting = await self._database.read(_waiting)
        return [_shown(row, principal, waiting.get(row.id, 0)) for row in rows]

    async def get(self, principal: Principal, connection_id: str) -> dict[str, Any]:
        """Raises ForbiddenError, NotFoundError."""
        return _shown(await self._changeable(principal, connection_id), principal)

    async def add(
        self, principal: Principal, kind: str, given: Mapping[str, Any], *, own: bool = False
    ) -> dict[str, Any]:
        """Add a connection of the instance, or the person's ``own``, which answers them alone.

        Raises:
            ForbiddenError: for others than administrators, unless it is their own.
            InvalidRequestError: the platform is not known, or a setting is not valid; names it.
        """
        self.check_may_add(principal, own=own)
        if kind not in KINDS:
            raise InvalidRequestError(f"{kind!r} is no platform. There are: {', '.join(KINDS)}.")
        settings, secrets = split(given)
        now = utc_now()
        row = ChannelConnection(
            id=uuid.uuid4().hex, kind=kind, user_id=principal.user_id if own else None, in_file=False, is_on=settings.pop("enabled", True) is not False,
            secrets=await self._connections.sealed(secrets), settings=checked(settings), version=1, me=None,
            state="retrying", state_since=now, error=None, created_at=now, updated_at=now,
        )  # fmt: skip
        await self._connections.add(row)
        self._announce()
        return _shown(row, principal)

    def check_may_add(self, principal: Principal, *, own: bool) -> None:
        """Raises ForbiddenError."""
        if not own and principal.role != "admin":
            raise ForbiddenError(
                "Only administrators may add channels for everyone. Add one of your own.", reason="administrators_only"
            )

    async def change(self, principal: Principal, connection_id: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Change settings; a mark keeps the secret that it stands for, None takes a setting away.

        Raises:
            ConflictError: the connection stands in the configuration file.
            ForbiddenError, InvalidRequestError, NotFoundError: as :meth:`add`.
        """
        row = await self._changeable(principal, connection_id)
        if row.in_file:
            raise ConflictError(
                f"This channel stands in config.yaml: change channels.{row.kind} there.",
                reason="channel_in_config",
                name=row.kind,
            )
        settings, secrets = split(given)
        kept = await self._connections.secrets(row)
        merged = kept | {key: value for key, value in secrets.items() if value != MASK}
        changed = replace(
            row,
            is_on=settings.pop("enabled", row.is_on) is not False,
            settings=checked(without_none(row.settings | settings)),
            secrets=await self._connections.sealed(without_none(merged)),
        )
        return _shown(await self._changed(changed), principal)

    async def restart(self, principal: Principal, connection_id: str) -> None:
        """Sign in again with the settings as they are now. Raises ForbiddenError, NotFoundError."""
        row = await self._changeable(principal, connection_id)
        if row.in_file:
            await self.sync()
            row = await self._connections.get(connection_id)
        await self._changed(row)

    async def remove(self, principal: Principal, connection_id: str) -> None:
        """Remove a connection with all that came and waits to go. Raises as :meth:`change`."""
        row = await self._changeable(principal, connection_id)
        if row.in_file:
            raise ConflictError(
                f"This channel stands in config.yaml: take channels.{row.kind} out of it.",
                reason="channel_in_config",
                name=row.kind,
            )
        await self._connections.remove(connection_id)
        self._announce()

    async def test(self, principal: Principal, connection_id: str, chat: str = "") -> str:
        """Send a test message and return the chat that gets it: the one named, or where the person wrote in private last.

        Raises:
            ConflictError: the person has not written to the bot yet.
            ForbiddenError, NotFoundError
        """
        if chat:
            self.check_may_add(principal, own=False)
        row = await self._connections.get(connection_id)
        if not may_read(principal, row):
            raise NotFoundError(GONE, reason="channel_gone")

        def job(connection: Connection) -> str | None:
            own = principal.user_id, "connection_id = ?", row.id
            where = (row.id, chat) if chat else newest_private_chat(connection, *own)
            if where is None:
                return None
            text = "This is a test message from DeerFlow. The channel works."
            self._outbox.deliver(connection, Target(row.id, Place(where[1], is_private=not chat)), text)
            return where[1]

        if (found := await self._database.write(job)) is None:
            raise ConflictError(
                "Write to the bot in a private chat first: then it knows where you are.", reason="channel_write_first"
            )
        self._outbox.wake(row.id)
        return found

    async def sync(self) -> Sequence[str]:
        """Make the rows of connections in the configuration file what the file says; return the ids of those that changed."""
        config, _ = await self._configs()
        wanted = {FILE + kind: (kind, channel, None) for kind, channel in config.channels.items() if kind in KINDS}
        wanted |= {FILE + kind: (kind, None, why) for kind, why in config.problems.items() if kind in KINDS}
        tail = "WHERE in_file = ?"
        known = {row.id: row for row in await self._connections.select(tail, True)}
        changed: list[str] = []
        for connection_id, (kind, channel, why) in wanted.items():
            if await self._sync(connection_id, kind, channel, why, known.get(connection_id)):
                changed.append(connection_id)
        for connection_id in known.keys() - wanted.keys():
            if known[connection_id].is_on:  # what came stays, so that switching it on again loses nothing
                await self._changed(replace(known[connection_id], is_on=False))
                changed.append(connection_id)
        return changed

    async def wanted(self, makers: Mapping[str, tuple[Make, bool]]) -> dict[str, Wanted]:
        """Return the connections that there shall be, for the engine, after a look at the configuration file.

        Args:
            makers: by kind what makes an adapter of settings and secrets, and whether the platform calls us.
        """
        await self.sync()
        tail = "WHERE is_on = ? ORDER BY created_at, id"
        found: dict[str, Wanted] = {}
        for row in await self._connections.select(tail, True):
            if row.kind not in makers:
                continue
            make, is_http = makers[row.kind]
            try:
                open_ = partial(make, row.settings | await self._connections.secrets(row))
            except WrongKeyError as error:
                open_ = partial(_cannot_open, str(error))
            found[row.id] = Wanted(row.kind, str(row.version), open_, is_http)
        return found

    # accounts of people -----------------------------------------------------------------------------------------------

    async def identities(self, principal: Principal) -> Sequence[Identity]:
        """Return the person's accounts, those that are connected first."""
        return await self._bindings.of(principal)

    async def disconnect(self, principal: Principal, identity_id: int) -> None:
        """Raises NotFoundError."""
        await self._bindings.end(principal, identity_id)

    async def code(self, principal: Principal, kind: str) -> ConnectCode:
        """Make a code for an account of a platform.

        Raises:
            ConflictError: people do not connect accounts of this platform here.
            NotFoundError: there is no connection to it.
        """
        _, connections = await self._configs()
        if not connections.enabled or not connections.of(kind).enabled:
            raise ConflictError(f"Accounts of {kind} are not connected here: channel_connections is off.")
        tail = f"WHERE kind = ? AND is_on = ? AND {readable(channel_connections)} ORDER BY created_at"
        rows = await self._connections.select(tail, kind, True, *values_of(principal))
        if not rows:
            raise NotFoundError(f"No channel of {kind} is on.")
        code, until = await self._bindings.code(principal, kind)
        bot = connections.of(kind).bot_username
        link = str((rows[0].me or {}).get("link") or (f"https://t.me/{bot}" if bot and kind == "telegram" else ""))
        start = f"{link}?start={code}" if kind == "telegram" and link else ""
        return ConnectCode(code, until, f"/connect {code}", start)

    async def adopt_store(self, store: Mapping[str, Any], owner: str) -> int:
        """Take over the reference's ``channels/store.json``; return how many conversations are new."""
        rows = await self._connections.select("ORDER BY in_file, created_at DESC")
        return await self._conversations.adopt({row.kind: row.id for row in rows}, store, owner)

    async def _changeable(self, principal: Principal, connection_id: str) -> ChannelConnection:
        row = await self._connections.get(connection_id)
        if not may_change(principal, row):
            if row.user_id is not None:
                raise NotFoundError(GONE, reason="channel_gone")
            raise ForbiddenError("Only administrators may change this channel.", reason="administrators_only")
        return row

    # parts ------------------------------------------------------------------------------------------------------------

    async def _sync(
        self,
        connection_id: str,
        kind: str,
        channel: ChannelConfig | None,
        why: str | None,
        known: ChannelConnection | None,
    ) -> bool:
        settings, secrets = split(channel.model_dump(mode="json", exclude_defaults=True)) if channel else ({}, {})
        settings.pop("enabled", None)
        now = utc_now()
        if known is not None:
            same = known.settings == settings and known.is_on == (why is None) and (why is None or known.error == why)
            with suppress(WrongKeyError):  # the file has them, too
                if same and await self._connections.secrets(known) == secrets:
                    return False
        sealed = await self._connections.sealed(secrets)
        state = MISCONFIGURED if why else "retrying"
        row = ChannelConnection(
            id=connection_id, kind=kind, user_id=None, in_file=True, is_on=why is None, secrets=sealed, settings=settings,
            version=known.version if known else 0, me=known.me if known else None, state=state, state_since=now, error=why,
            created_at=known.created_at if known else now, updated_at=now,
        )  # fmt: skip
        if known is None:
            await self._connections.add(row)
        await self._changed(row)
        return True

    async def _changed(self, row: ChannelConnection) -> ChannelConnection:
        changed = await self._connections.change(row)
        self._announce()
        return changed


def _cannot_open(why: str) -> Adapter:
    raise Misconfigured(why)


def _waiting(connection: Connection) -> dict[str, int]:
    """Return how many messages of each connection could not be sent yet."""
    count = f"SELECT connection_id, COUNT(*) FROM channel_outbox WHERE {WAITING} AND is_final GROUP BY connection_id"
    return {found[0]: found[1] for found in sql.execute(connection, count).fetchall()}


def _shown(row: ChannelConnection, principal: Principal, waiting: int = 0) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": row.id,
        "kind": row.kind,
        "is_on": row.is_on,
        "in_file": row.in_file,
        "state": row.state,
        "state_since": row.state_since,
        "me": row.me,
        "own": row.user_id is not None,
        "can_change": may_change(principal, row),
        "waiting": waiting,
    }
    if not shown["can_change"]:
        return shown
    return {**shown, "error": row.error, "settings": mask_secrets(row.settings), "version": row.version}
