"""People's own connections to MCP servers: allowed elsewhere, kept encrypted in the database, refreshed by one process at a time."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

from deerflow.config.schema import McpServerConfig
from deerflow.config.secrets import Seal, WrongKeyError
from deerflow.config.section import require
from deerflow.errors import InvalidRequestError, UnavailableError
from deerflow.features.mcp.rows import McpAuthorization, McpConnection, McpConnectionRepository
from deerflow.identity import Principal
from deerflow.security.outbound import Outbound
from deerflow.storage.tables import utc_now

LIFETIME = timedelta(minutes=10)
"""For allowing access elsewhere."""
WAIT_SECONDS = 30.0
"""For another process that refreshes a token."""


class NotConnectedError(Exception):
    """The person has no connection, or it is allowed no more."""

    def __str__(self) -> str:
        return "Your connection to it has ended: connect again in the settings, under MCP."


@dataclass(frozen=True, slots=True)
class Given:
    """What came back from the authorization server (RFC 6749, section 4.1.2, and RFC 9207)."""

    state: str
    code: str | None = None
    issuer: str | None = None
    error: str | None = None


class McpConnections:
    """Args:
    key_file: of the installation; encrypts what is kept.
    outbound: which addresses may be asked that a server names.
    """

    def __init__(self, rows: McpConnectionRepository, key_file: Path, outbound: Outbound) -> None:
        self._rows = rows
        self._seal = Seal(key_file, "Your connection", "connect again in the settings, under MCP")
        self._outbound = outbound

    async def connected(self, user_id: str, servers: Mapping[str, McpServerConfig]) -> set[str]:
        """The names of those that the person is connected to."""
        own = {name: entry for name, entry in servers.items() if entry.is_own}
        rows = [row for row in await self._rows.of(user_id) if row.server in own] if own else []
        return await asyncio.to_thread(lambda: {row.server for row in rows if self._is_connected(row, own[row.server])})

    async def begin(
        self, principal: Principal, session: str | None, name: str, entry: McpServerConfig, redirect_uri: str
    ) -> str:
        """The address where the person allows access. Raises UnavailableError: the server cannot be connected; says why."""
        await _import()
        from deerflow.features.mcp import authorization as steps

        state = secrets.token_urlsafe(32)
        client = await self._client(principal.user_id, name)
        door = steps.door_of(entry, self._outbound)
        try:
            where, kept = await steps.begin(entry, redirect_uri, state, door, client)
        except steps.AuthorizationError as error:
            raise UnavailableError(f"{name} cannot be connected: {error}") from error
        data = await asyncio.to_thread(self._seal.closed, {**kept, "name": name, "session": session})
        await self._rows.expect(McpAuthorization(_digest(state), principal.user_id, data, utc_now() + LIFETIME))
        return where

    async def finish(
        self, principal: Principal, session: str | None, given: Given, servers: Mapping[str, McpServerConfig]
    ) -> str:
        """Keep the person's connection; the name of its server.

        Raises:
            InvalidRequestError: this person, in this session, has not begun it, or too long ago, or has not allowed it.
            UnavailableError: no token is to be had; says why.
        """
        found = await self._rows.take(_digest(given.state), principal.user_id)
        kept = await asyncio.to_thread(self._seal.opened, found.data) if found is not None else None
        name = (kept or {}).get("name", "")
        entry = servers.get(name)
        # A program may begin with its token what the person allows in a browser.
        stranger = kept is not None and kept["session"] not in (None, session)
        if kept is None or stranger or entry is None or not entry.is_own or kept["url"] != entry.url:
            raise InvalidRequestError(
                "This connection was not begun here, or more than ten minutes ago. Connect again."
            )
        if not given.code:
            raise InvalidRequestError(f"{name} was not connected: {given.error or 'nothing was allowed'}.")
        await _import()
        from deerflow.features.mcp import authorization as steps

        try:
            made, seconds = await steps.finish(kept, given.code, given.issuer, steps.door_of(entry, self._outbound))
        except steps.AuthorizationError as error:
            raise UnavailableError(f"{name} was not connected: {error}") from error
        data = await asyncio.to_thread(self._seal.closed, made)
        await self._rows.keep(McpConnection(principal.user_id, name, data, expires_at=_until(seconds, entry)))
        return name

    async def forget(self, principal: Principal, name: str) -> bool:
        """Whether there was one."""
        return await self._rows.forget(principal.user_id, name)

    async def header(self, user_id: str, name: str, entry: McpServerConfig, not_this: str = "") -> str:
        """What goes into ``Authorization``; another one than ``not_this``, which the server refused.

        Raises:
            NotConnectedError: the person must connect.
            ValueError: there is no token to be had now; says why.
            WrongKeyError
        """
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                held, known = await self._held(user_id, name)
                if held is None or known is None or not _fits(known, entry):
                    raise NotConnectedError
                header = f"{known['token_type']} {known['access_token']}"
                if header != not_this and (held.expires_at is None or held.expires_at > utc_now()):
                    return header
                if not known.get("refresh_token"):
                    await self._rows.forget(user_id, name, held.version)
                    raise NotConnectedError
                if await self._rows.lease(held):
                    await self._refresh(held, known, entry)
                else:
                    await asyncio.sleep(0.1)

    async def _refresh(self, held: McpConnection, known: Mapping[str, Any], entry: McpServerConfig) -> None:
        await _import()
        from deerflow.features.mcp import authorization as steps

        data = None
        until = held.expires_at
        try:
            made, seconds = await steps.refresh(_as_configured(known, entry), steps.door_of(entry, self._outbound))
            data, until = await asyncio.to_thread(self._seal.closed, made), _until(seconds, entry)
        except steps.AuthorizationRefusedError as error:
            await self._rows.forget(held.user_id, held.server, held.version)
            raise NotConnectedError from error
        except steps.AuthorizationError as error:
            raise ValueError(str(error)) from error
        finally:
            await self._rows.release(held, data, until)

    async def _held(self, user_id: str, name: str) -> tuple[McpConnection | None, dict[str, Any] | None]:
        row = next(iter(await self._rows.of(user_id, name)), None)
        return row, await asyncio.to_thread(self._seal.opened, row.data) if row is not None else None

    async def _client(self, user_id: str, name: str) -> Mapping[str, Any] | None:
        """Return how this installation is registered with the server for the person, if that can be read."""
        with suppress(WrongKeyError):
            return ((await self._held(user_id, name))[1] or {}).get("client")
        return None

    def _is_connected(self, row: McpConnection, entry: McpServerConfig) -> bool:
        try:
            return _fits(self._seal.opened(row.data), entry)
        except WrongKeyError:
            return True  # its session fails with the sentence about the key


async def _import() -> None:
    """The SDK takes its time, so it is imported when it is needed, and not on a loop."""
    await asyncio.to_thread(import_module, "deerflow.features.mcp.authorization")


def _fits(known: Mapping[str, Any] | None, entry: McpServerConfig) -> bool:
    """A token goes nowhere but to the server that it was given for, and is refreshed by the client that it was given to."""
    client_id = entry.oauth.client_id if entry.oauth is not None else None
    return known is not None and known["url"] == entry.url and client_id in (None, known["client"]["client_id"])


def _as_configured(known: Mapping[str, Any], entry: McpServerConfig) -> Mapping[str, Any]:
    """With the secret that the entry has now. Raises ConfigError: it refers to a variable that is not set."""
    oauth = entry.oauth
    if oauth is None or not oauth.client_id:
        return known
    return {**known, "client": {**known["client"], "client_secret": require([oauth.client_secret])[0]}}


def _until(seconds: int | None, entry: McpServerConfig) -> Any:
    skew = entry.oauth.refresh_skew_seconds if entry.oauth is not None else 0
    return None if seconds is None else utc_now() + timedelta(seconds=max(seconds - skew, seconds / 2, 1))


def _digest(state: str) -> str:
    return hashlib.sha256(state.encode()).hexdigest()
