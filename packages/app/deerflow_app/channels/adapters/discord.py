"""Discord: its gateway for what arrives, REST v10 for what is sent. https://docs.discord.com/developers"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from deerflow.features.channels.types import (
    Accept,
    Adapter,
    Caps,
    Click,
    Event,
    FileRef,
    Inbound,
    Later,
    Me,
    Misconfigured,
    OutFile,
    Part,
    Place,
    Ref,
    Refused,
    Signal,
    SignedOut,
    Uncertain,
    Unreachable,
)
from deerflow_app.channels.adapters.discord_gateway import ENDED, NO_CONTENT, NO_TOKEN, Dispatch, Gateway
from deerflow_app.channels.adapters.discord_messages import body, events, replies_to
from deerflow_app.channels.wire import Http, allowed, limited, multipart, understood

API = "https://discord.com/api/v10"
FILE_LIMIT = 10 << 20
_REACTIONS = {Signal.SEEN: "👀", Signal.JOINED: "➕", Signal.DONE: "✅", Signal.FAILED: "❌"}
_CONTENT_FLAGS = 1 << 18 | 1 << 19
_TEXT_CHANNELS, _THREADS = {0, 5}, {10, 11, 12}
_EPOCH, _SAME_MOMENT, _PAGE, _KNOWN = 1420070400000, (1 << 22) - 1, 100, 10_000


class Discord(Adapter):
    """A bot on Discord.

    Args:
        threads: a message in a channel opens a thread of its own, in which it is answered.
    """

    def __init__(self, token: str, *, threads: bool = True, base_url: str = API) -> None:
        self.caps = Caps(
            dialect="discord",
            edit_every=1.2,
            buttons=25,
            signals=frozenset({*_REACTIONS, Signal.WORKING}),
            file_in=FILE_LIMIT,
            file_out=FILE_LIMIT,
            key_window=120.0,
            ack_seconds=3.0,
            replays=False,
        )
        self._token = token
        self._opens_threads = threads
        self._http = Http(base_url, secrets=[token], headers={"User-Agent": "DiscordBot (deerflow, 1)"})
        self._gateway = Gateway(token, self._address)
        self._me = ""
        self._channels: dict[str, Mapping[str, Any]] = {}
        self._histories: dict[tuple[str, int], list[dict[str, Any]]] = {}

    async def aclose(self) -> None:
        await self._http.aclose()

    async def identify(self) -> Me:
        if not self._token:
            raise Misconfigured(
                "Set channels.discord.bot_token: Developer Portal → your application → Bot → Reset Token."
            )
        user = await self._call("GET", "/users/@me")
        if not (await self._call("GET", "/applications/@me")).get("flags", 0) & _CONTENT_FLAGS:
            raise Misconfigured(NO_CONTENT)
        self._me = user["id"]
        return Me(user["id"], user["username"], link=f"https://discord.com/users/{user['id']}")

    async def listen(self, accept: Accept, cursor: str, connected: Callable[[], None]) -> None:
        """As in the contract. ``caps.replays`` says at ``connected`` whether Discord replayed what came meanwhile."""
        if not self._me:
            await self.identify()

        async def take(dispatches: Sequence[Dispatch], cursor: str) -> None:
            kinds = {kind for kind, _ in dispatches}
            found = [event for kind, data in dispatches if (event := await self._event(kind, data))]
            if found or kinds & {"READY", ENDED}:
                await accept(found, cursor)
            if kinds & {"READY", "RESUMED"}:
                self._histories.clear()
                self.caps = replace(self.caps, replays="RESUMED" in kinds)
                connected()

        await self._gateway.run(cursor, take)

    async def _address(self, signs_in: bool) -> str:
        found = await self._call("GET", "/gateway/bot")
        limit = found.get("session_start_limit", {})
        if signs_in and limit.get("remaining", 1) <= 0:  # one more, and Discord resets the token
            raise Later("The bot signed in to Discord too often today.", limit["reset_after"] / 1000, everywhere=True)
        return found["url"]

    async def _event(self, kind: str, data: Mapping[str, Any]) -> Event | None:
        for event in understood(partial(events, kind, me=self._me), data, "Discord"):
            return event if event.place.is_private else replace(event, place=await self._place(event, data))
        return None

    async def _place(self, event: Event, data: Mapping[str, Any]) -> Place:
        here = event.place.chat
        channel = data.get("channel") or await self._channel(here)
        name = channel.get("name") or ""
        if channel.get("type") in _THREADS:
            return Place(channel["parent_id"], here, name=name)
        opens = self._opens_threads and channel.get("type") in _TEXT_CHANNELS and not replies_to(data, self._me)
        if opens and isinstance(event, Inbound):
            return Place(here, event.message_id, name=name)  # a thread has the id of the message that it was made from
        return Place(here, name=name)

    async def _channel(self, channel: str) -> Mapping[str, Any]:
        """Return a channel, or nothing if it is not there for us."""
        if channel not in self._channels:
            try:
                found = await self._call("GET", f"/channels/{channel}")
            except Refused:
                return {}
            if len(self._channels) >= _KNOWN:
                self._channels.clear()
            self._channels[channel] = found
        return self._channels[channel]

    async def missed(self, place: Place, since: datetime) -> Sequence[Event]:
        """As in the contract. The channel around a thread is read too, once a session: threads begin there."""
        after = max(0, round(since.timestamp() * 1000) - _EPOCH) << 22 | _SAME_MOMENT
        found: list[Event] = []
        for channel in filter(None, (place.chat, place.topic)):
            if (channel, after) not in self._histories:
                self._histories[channel, after] = await self._history(channel, after)
            guild = "" if place.is_private else (await self._channel(channel)).get("guild_id")
            for one in self._histories[channel, after]:
                if event := await self._event("MESSAGE_CREATE", {"guild_id": guild, **one}):
                    found.append(event)
        return sorted(found, key=lambda event: int(event.message_id) if isinstance(event, Inbound) else 0)

    async def _history(self, channel: str, after: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            try:
                page = await self._call("GET", f"/channels/{channel}/messages", params={"after": after, "limit": _PAGE})
            except Refused:  # deleted, or a thread that was never opened
                return found
            found += sorted(page, key=lambda one: int(one["id"]))
            if len(page) < _PAGE:
                return found
            after = int(found[-1]["id"])

    async def post(self, place: Place, part: Part, key: str, wake: Mapping[str, Any]) -> Ref:
        channel = await self._target(place, wake)
        return await self._send(channel, {"json": body(part) | _named(key)})

    async def edit(self, place: Place, ref: Ref, part: Part, seq: int) -> Ref:
        path = f"/channels/{ref['channel']}/messages/{ref['id']}"
        await self._call("PATCH", path, repeatable=True, json=body(part))
        return ref

    async def upload(self, place: Place, file: OutFile, key: str, wake: Mapping[str, Any]) -> Ref:
        allowed(file.name, file.size, self.caps.file_out)
        channel = await self._target(place, wake)
        form = {"payload_json": json.dumps(body(Part(file.caption)) | _named(key))}
        return await self._send(channel, multipart(form, "files[0]", file))

    async def _send(self, channel: str, content: Mapping[str, Any]) -> Ref:
        sent = await self._call("POST", f"/channels/{channel}/messages", **content)
        return {"channel": channel, "id": sent["id"]}

    async def _target(self, place: Place, wake: Mapping[str, Any]) -> str:
        """Return the channel to send to; open its thread first. Never the channel around it, where all would read the answer."""
        if not place.topic or wake.get("channel") == place.topic:
            return place.topic or place.chat
        if await self._channel(place.topic):
            return place.topic
        path = f"/channels/{place.chat}/messages/{place.topic}/threads"
        try:
            name = wake.get("title") or "DeerFlow"
            self._channels[place.topic] = await self._call("POST", path, repeatable=True, json={"name": name})
        except Refused as refused:
            if not await self._channel(place.topic):  # another may have opened it meanwhile
                raise Refused(
                    f"No thread could be opened in #{place.name or place.chat}: give the bot the permissions Create Public "
                    f"Threads and Send Messages in Threads, or set channels.discord.thread_mode to false. {refused}"
                ) from None
        return place.topic

    async def fetch(self, file: FileRef) -> AsyncIterator[bytes]:
        allowed(file.name, file.size, self.caps.file_in)
        message = await self._call("GET", f"/channels/{file.key['channel']}/messages/{file.key['message']}")
        # Addresses of attachments expire within a day, so a new one is asked for.
        address = next((one["url"] for one in message.get("attachments", []) if one["id"] == file.key["id"]), "")
        if not address:
            raise Refused(f"{file.name} is no longer on Discord.")
        async with self._http.stream(address) as answer:
            async for piece in limited(answer.aiter_bytes(), file.name, self.caps.file_in):
                yield piece

    async def signal(self, place: Place, message_id: str, signal: Signal, wake: Mapping[str, Any]) -> None:
        channel = wake.get("channel") or place.topic or place.chat
        if signal is Signal.WORKING:
            channel = place.topic if place.topic in self._channels else channel
            await self._call("POST", f"/channels/{channel}/typing", repeatable=True)
        else:
            reaction = f"/messages/{message_id}/reactions/{quote(_REACTIONS[signal])}/@me"
            await self._call("PUT", f"/channels/{channel}{reaction}", repeatable=True)

    async def answered(self, click: Click, notice: str) -> None:
        said: dict[str, Any] = {"type": 6}
        if notice:
            said = {"type": 4, "data": {"content": notice[:2000], "flags": 64, "allowed_mentions": {"parse": []}}}
        await self._call("POST", f"/interactions/{click.wake['id']}/{click.wake['token']}/callback", json=said)

    async def _call(self, method: str, path: str, *, repeatable: bool = False, **more: Any) -> Any:
        # Not a header of all requests: files are on another host.
        headers = {"Authorization": f"Bot {self._token}", **more.pop("headers", {})}
        answer = await self._http.request(method, path, repeatable=repeatable, headers=headers, **more)
        if answer.status_code == 401:
            raise SignedOut(NO_TOKEN)
        try:
            said = answer.json() if answer.content else {}
        except ValueError:
            why = f"{answer.url.host} answered {answer.status_code} without JSON."
            raise Unreachable(why) if repeatable or method == "GET" else Uncertain(why) from None
        if answer.status_code >= 400:
            raise Refused(
                f"Discord: {said.get('message', 'no reason given')} ({said.get('code', answer.status_code)})."
            )
        return said


def _named(key: str) -> dict[str, Any]:
    """Return what makes a second message of the same key the first one, for some minutes."""
    return {"nonce": sha256(key.encode()).hexdigest()[:25], "enforce_nonce": True}
