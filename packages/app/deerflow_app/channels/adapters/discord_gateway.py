"""Discord's gateway v10: one session over many connections. https://docs.discord.com/developers/events/gateway"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from deerflow.features.channels.types import Misconfigured, SignedOut, Unreachable
from deerflow_app.channels.wire import burst, parsed, socket

NO_TOKEN = (
    "Discord does not take the bot's token. Copy a new one: Developer Portal → your application → Bot → Reset Token."
)
NO_CONTENT = (
    "The Message Content Intent is off, so Discord would deliver empty texts. Switch it on: Developer Portal → your "
    "application → Bot → Privileged Gateway Intents."
)
ENDED = "SESSION_ENDED"
"""Our own kind of event: the session cannot be resumed, so nothing of it is replayed."""
_INTENTS = 1 << 0 | 1 << 9 | 1 << 12 | 1 << 15
"""GUILDS, GUILD_MESSAGES, DIRECT_MESSAGES, MESSAGE_CONTENT."""
_FATAL = {
    4010: "Discord refused the shard. Report this: a connection without shards was asked for.",
    4011: "The bot is in so many servers that Discord asks for shards. Use a bot of its own for this instance.",
    4012: "Discord no longer speaks gateway v10. Update DeerFlow.",
    4013: "Discord does not know one of the intents GUILDS, GUILD_MESSAGES, DIRECT_MESSAGES, MESSAGE_CONTENT. Update DeerFlow.",
    4014: NO_CONTENT,
}
_SESSION_ENDED = {4003, 4007, 4009}

Dispatch = tuple[str, Mapping[str, Any]]
Take = Callable[[Sequence[Dispatch], str], Awaitable[None]]
"""Handle events, each a kind and its data, with the cursor after them."""


class Gateway:
    """A connection at a time.

    Args:
        address: returns where a new session begins; its argument says that one will be signed in.
    """

    def __init__(self, token: str, address: Callable[[bool], Awaitable[str]]) -> None:
        self._token = token
        self._address = address
        self._session: dict[str, Any] = {}
        self._acknowledged = True
        self._unreached = ""

    async def run(self, cursor: str, take: Take) -> None:
        """Hand over events in order until the connection ends. Raises Unreachable, SignedOut, Misconfigured."""
        self._session = json.loads(cursor) if cursor else {}
        address = self._session.get("resume_gateway_url", "")
        if not address or address == self._unreached:
            address = await self._address(not self._session)
        self._unreached = address
        async with socket(f"{address.rstrip('/')}/?v=10&encoding=json", ping_interval=None) as link:
            try:
                await self._converse(link, take)
            except ConnectionClosed as closed:
                await self._explain(closed.rcvd.code if closed.rcvd else None, take)
            finally:
                # A close frame with 1000 would end the session, and with it the replay of what comes meanwhile.
                link.transport.abort()

    async def _converse(self, link: ClientConnection, take: Take) -> None:
        try:
            async with asyncio.timeout(20):
                hello = parsed(await link.recv())
        except TimeoutError:
            raise Unreachable("Discord opened a connection and said nothing.") from None
        self._unreached, self._acknowledged = "", True
        beats = asyncio.create_task(self._beat(link, hello["d"]["heartbeat_interval"] / 1000))
        try:
            await link.send(json.dumps(self._opening()))
            while True:
                await self._read(link, [parsed(raw) for raw in await burst(link)], take)
        finally:
            beats.cancel()

    async def _read(self, link: ClientConnection, frames: Sequence[Mapping[str, Any]], take: Take) -> None:
        events: list[Dispatch] = []
        for frame in frames:
            match frame["op"]:
                case 0:
                    self._session["seq"] = frame["s"]
                    if frame["t"] == "READY":
                        self._session |= {key: frame["d"][key] for key in ("session_id", "resume_gateway_url")}
                    events.append((frame["t"], frame["d"]))
                case 1:
                    await self._heartbeat(link)
                case 11:
                    self._acknowledged = True
        if events:
            await take(events, json.dumps(self._session))
        for frame in frames:
            if frame["op"] == 9 and not frame["d"]:
                await take([(ENDED, {})], "")
            if frame["op"] in (7, 9):
                raise Unreachable("Discord asked for a new connection.")

    def _opening(self) -> dict[str, Any]:
        if session := self._session.get("session_id"):
            return {"op": 6, "d": {"token": self._token, "session_id": session, "seq": self._session["seq"]}}
        properties = {"os": "linux", "browser": "deerflow", "device": "deerflow"}
        return {"op": 2, "d": {"token": self._token, "intents": _INTENTS, "properties": properties}}

    async def _beat(self, link: ClientConnection, every: float) -> None:
        """Send heartbeats; drop a connection on which the last one was not answered."""
        pause = every * random.random()
        with suppress(ConnectionClosed):  # the reader sees it as well
            while True:
                await asyncio.sleep(pause)
                if not self._acknowledged:
                    link.transport.abort()
                    return
                self._acknowledged, pause = False, every
                await self._heartbeat(link)

    async def _heartbeat(self, link: ClientConnection) -> None:
        await link.send(json.dumps({"op": 1, "d": self._session.get("seq")}))

    async def _explain(self, code: int | None, take: Take) -> None:
        if code == 4004:
            raise SignedOut(NO_TOKEN)
        if code in _FATAL:
            raise Misconfigured(_FATAL[code])
        if code in _SESSION_ENDED:
            await take([(ENDED, {})], "")
        raise Unreachable(f"Discord closed the connection ({code}).")
