"""Discord on loopback: gateway v10 with sessions that are replayed in order, and as much of REST v10 as a bot of ours uses."""

from __future__ import annotations

import asyncio
import json
import re
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from tests.support.channels.double import LATER, Double, Fault, Operation
from tests.support.channels.loopback import Link

TOKEN = "bot-token"
_USER = {"discriminator": "0", "avatar": None, "global_name": None}
ME = {**_USER, "id": "900", "username": "deer", "bot": True}
ANN = {**_USER, "id": "7", "username": "ann", "global_name": "Ann"}
BEN = {**_USER, "id": "8", "username": "ben", "global_name": "Ben"}
_APPLICATION = {
    "id": ME["id"],
    "name": "Deer",
    "icon": None,
    "description": "",
    "bot_public": False,
    "bot_require_code_grant": False,
    "owner": ANN,
    "verify_key": "",
}
GUILD, CHANNEL, PRIVATE, BENS = "1", "10", "20", "30"
_EPOCH = 1420070400000
_UNKNOWN_CHANNEL = (404, 10003, "Unknown Channel")


def as_json(content: Any, status: int = 200, **headers: str) -> Response:
    """Answer with exactly ``application/json``: the official client knows no other type."""
    return Response(json.dumps(content), status, headers, media_type="application/json")


def refusal(status: int, code: int, message: str) -> Response:
    return as_json({"code": code, "message": message}, status)


class DiscordDouble(Double):
    """A server with one text channel, and a private chat.

    ``messages``: what stands in each channel. ``identified``, ``resumed``: sign-ins of the gateway.
    """

    def __init__(self) -> None:
        super().__init__()
        self.channels: dict[str, dict[str, Any]] = {
            CHANNEL: {"id": CHANNEL, "type": 0, "guild_id": GUILD, "name": "general"},
            PRIVATE: {"id": PRIVATE, "type": 1},
            BENS: {"id": BENS, "type": 1},
        }
        self.messages: dict[str, list[dict[str, Any]]] = {}
        self.files: dict[str, bytes] = {}
        self.reactions: list[tuple[str, str, str]] = []
        self.typing: list[str] = []
        self.callbacks: dict[str, dict[str, Any]] = {}
        self.identified: list[dict[str, Any]] = []
        self.resumed: list[dict[str, Any]] = []
        self.heartbeats = 0
        self.heartbeat_interval = 45.0
        self.answers_heartbeats = True
        self.has_content_intent = True
        self.mayopen_threads = True
        self.sign_ins_left = 1000
        self._token = TOKEN
        self._sessions: dict[str, list[dict[str, Any]]] = {}
        self._live: dict[str, Link] = {}
        self._last = 0

    # Orders of tests

    def sign_out(self) -> None:
        self._token = "another"

    def forget_sessions(self) -> None:
        """Let every later RESUME fail, as after some minutes."""
        self._sessions.clear()
        self._live.clear()

    async def say(
        self, text: str, *, channel: str = CHANNEL, author: dict[str, Any] = ANN, **more: Any
    ) -> dict[str, Any]:
        """Write a message as a person and deliver it."""
        message = self.written(text, channel, author, **more)
        await self.deliver("MESSAGE_CREATE", message)
        return message

    def written(self, text: str, channel: str = CHANNEL, author: dict[str, Any] = ANN, **more: Any) -> dict[str, Any]:
        number = self._snowflake()
        message: dict[str, Any] = {
            "id": number,
            "type": 0,
            "channel_id": channel,
            "author": author,
            "content": text,
            "timestamp": datetime.fromtimestamp(((int(number) >> 22) + _EPOCH) / 1000, UTC).isoformat(
                timespec="milliseconds"
            ),
            "edited_timestamp": None,
            "tts": False,
            "pinned": False,
            "mention_everyone": False,
            "mentions": [],
            "mention_roles": [],
            "attachments": [],
            "embeds": [],
            "flags": 0,
            "components": [],
            **more,
        }
        self.messages.setdefault(channel, []).append(message)
        guild = self.channels[channel].get("guild_id")
        return message | ({"guild_id": guild, "member": {"nick": None}} if guild else {})

    def attachment(self, name: str, data: bytes, mime: str = "text/plain") -> dict[str, Any]:
        attachment = self._snowflake()
        self.files[attachment] = data
        url = f"{self.http}/attachments/{attachment}/{name}"
        about = {"id": attachment, "filename": name, "size": len(data), "content_type": mime}
        return {**about, "url": url, "proxy_url": url}

    def found(self, channel: str, message: str) -> dict[str, Any]:
        return next(one for one in self.messages[channel] if one["id"] == message)

    async def repeat(self) -> None:
        """Deliver the last message a second time."""
        events = next(reversed(self._sessions.values()))
        await self.deliver("MESSAGE_CREATE", next(one["d"] for one in reversed(events) if one["t"] == "MESSAGE_CREATE"))

    def open_thread(self, channel: str, message: str, name: str) -> Response:
        if not self.mayopen_threads:
            return refusal(403, 50013, "Missing Permissions")
        if message in self.channels:
            return refusal(400, 160004, "A thread has already been created for this message")
        if not 1 <= len(name) <= 100:
            return refusal(400, 50035, "Invalid Form Body")
        self.channels[message] = {"id": message, "type": 11, "guild_id": GUILD, "parent_id": channel, "name": name}
        return as_json(self.channels[message], 201)

    async def click(self, message: dict[str, Any], custom_id: str, user: dict[str, Any] = ANN) -> dict[str, Any]:
        channel = self.channels[message["channel_id"]]
        who = {"member": {"user": user, "nick": None}} if channel.get("guild_id") else {"user": user}
        interaction = {
            "id": self._snowflake(),
            "application_id": ME["id"],
            "type": 3,
            "version": 1,
            "token": "click-token",
            "attachment_size_limit": 10 << 20,
            "channel_id": channel["id"],
            "channel": channel,
            "data": {"custom_id": custom_id, "component_type": 2},
            "message": message,
            **({"guild_id": GUILD} if channel.get("guild_id") else {}),
            **who,
        }
        await self.deliver("INTERACTION_CREATE", interaction)
        return interaction

    async def deliver(self, kind: str, data: dict[str, Any]) -> None:
        """Number an event in each session and send it where a connection stands. One that is being replayed gets it in its turn."""
        for session, events in self._sessions.items():
            frame = {"op": 0, "t": kind, "s": len(events) + 1, "d": data}
            events.append(frame)
            if session in self._live:
                with suppress(ConnectionError):  # it is cut, and the session stays
                    await self._live[session].send(json.dumps(frame))

    async def order(self, frame: dict[str, Any]) -> None:
        for link in self.links:
            await link.send(json.dumps(frame))

    # The gateway

    async def attend(self, link: Link) -> None:
        link._protocol.debug = False  # the log of this side would show the token, which the adapter's must not
        await link.send(json.dumps({"op": 10, "d": {"heartbeat_interval": self.heartbeat_interval * 1000}}))
        session = ""
        async for raw in link:
            frame = json.loads(raw)
            if frame["op"] == 1:
                self.heartbeats += 1
                if self.answers_heartbeats:
                    await link.send(json.dumps({"op": 11}))
            elif frame["d"]["token"] != self._token:
                await link.close(4004)
            elif frame["op"] == 2:
                session = await self._identify(link, frame["d"])
            elif frame["op"] == 6:
                session = await self._resume(link, frame["d"])
        if self._live.get(session) is link:
            del self._live[session]
        goodbye = link._protocol.close_rcvd
        if goodbye and goodbye.code in (1000, 1001):
            self._sessions.pop(session, None)

    async def _identify(self, link: Link, data: dict[str, Any]) -> str:
        self.identified.append(data)
        if not self.has_content_intent:
            await link.close(4014)
            return ""
        session = f"session-{len(self.identified)}"
        ready = {"v": 10, "user": ME, "guilds": [], "session_id": session, "resume_gateway_url": self.ws}
        self._sessions[session] = [{"op": 0, "t": "READY", "s": 1, "d": ready}]
        await link.send(json.dumps(self._sessions[session][0]))
        self._live[session] = link
        return session

    async def _resume(self, link: Link, data: dict[str, Any]) -> str:
        self.resumed.append(data)
        session = data["session_id"]
        if session not in self._sessions:
            await link.send(json.dumps({"op": 9, "d": False}))
            return ""
        sent = data["seq"]
        while sent < len(self._sessions[session]):  # what comes meanwhile is behind it
            await link.send(json.dumps(self._sessions[session][sent]))
            sent += 1
        events = self._sessions[session]
        events.append({"op": 0, "t": "RESUMED", "s": len(events) + 1, "d": {}})
        self._live[session] = link
        await link.send(json.dumps(events[-1]))
        return session

    # REST

    def operation(self, request: Request) -> Operation | None:
        path = request.url.path
        if path == "/users/@me":
            return Operation.IDENTIFY
        if path == "/gateway/bot":
            return Operation.LISTEN
        if request.method == "GET" and re.fullmatch(r"/channels/\d+/messages/\d+", path):
            return Operation.FETCH
        if request.method == "PATCH":
            return Operation.EDIT
        if request.method == "POST" and path.endswith("/messages"):
            is_form = request.headers["content-type"].startswith("multipart/")
            return Operation.UPLOAD if is_form else Operation.POST
        return None

    def failure(self, fault: Fault) -> Response:
        if fault is Fault.LATER:
            body = {"message": "You are being rate limited.", "retry_after": LATER, "global": False}
            # The official client takes an answer without Via for one of a firewall.
            head = {"Retry-After": str(int(LATER) + 1), "X-RateLimit-Scope": "user", "Via": "1.1 google"}
            return as_json(body, 429, **head)
        if fault is Fault.SIGNED_OUT:
            return refusal(401, 0, "401: Unauthorized")
        return refusal(403, 50013, "Missing Permissions")

    async def respond(self, request: Request) -> Response:
        match request.method, request.url.path.strip("/").split("/"):
            case "GET", ["attachments", file, _]:
                return Response(self.files[file], media_type="application/octet-stream")
            case "POST", ["interactions", interaction, _, "callback"]:
                self.callbacks[interaction] = await request.json()
                if "with_response" not in request.query_params:
                    return Response(status_code=204)
                return as_json({"interaction": {"id": interaction, "type": 3}})
        if request.headers.get("authorization") != f"Bot {self._token}":
            return self.failure(Fault.SIGNED_OUT)
        match request.method, request.url.path.strip("/").split("/"):
            case "GET", ["users", "@me"]:
                return as_json(ME)
            case "GET", ["applications", "@me"] | ["oauth2", "applications", "@me"]:
                return as_json({**_APPLICATION, "flags": 1 << 19 if self.has_content_intent else 0})
            case "GET", ["gateway", "bot"]:
                limit = {"total": 1000, "remaining": self.sign_ins_left, "reset_after": 90_000, "max_concurrency": 1}
                return as_json({"url": self.ws, "shards": 1, "session_start_limit": limit})
            case method, ["channels", channel, *rest]:
                if channel not in self.channels:
                    return refusal(*_UNKNOWN_CHANNEL)
                return await self._in_channel(method, channel, rest, request)
        return refusal(404, 0, "404: Not Found")

    async def _in_channel(self, method: str, channel: str, rest: list[str], request: Request) -> Response:
        match method, rest:
            case "GET", []:
                return as_json(self.channels[channel])
            case "POST", ["typing"]:
                self.typing.append(channel)
                return Response(status_code=204)
            case "PUT", ["messages", message, "reactions", emoji, "@me"]:
                self.reactions.append((channel, message, emoji))
                return Response(status_code=204)
            case "POST", ["messages", message, "threads"]:
                return self.open_thread(channel, message, (await request.json())["name"])
            case "GET", ["messages"]:
                query = request.query_params
                newer = [one for one in self.messages.get(channel, []) if int(one["id"]) > int(query["after"])]
                return as_json(newer[: int(query["limit"])][::-1])
            case "POST", ["messages"]:
                return await self._post(channel, request)
            case method, ["messages", message]:
                found = next((one for one in self.messages.get(channel, []) if one["id"] == message), None)
                if found is None:
                    return refusal(404, 10008, "Unknown Message")
                if method == "PATCH":
                    found |= await request.json()
                return as_json(found)
        return refusal(404, 0, "404: Not Found")

    async def _post(self, channel: str, request: Request) -> Response:
        files: list[tuple[str, bytes]] = []
        if request.headers["content-type"].startswith("multipart/"):
            async with request.form() as form:
                body = json.loads(str(form["payload_json"]))
                for field, value in form.items():
                    if field.startswith("files["):
                        files.append((value.filename, await value.read()))  # type: ignore[union-attr]
        else:
            assert request.headers["content-type"] == "application/json"
            body = await request.json()
        content = body.pop("content", None) or ""
        if len(content) > 2000 or any(len(data) > 10 << 20 for _, data in files):
            return refusal(400, 50035, "Invalid Form Body")
        if not content and not files:
            return refusal(400, 50006, "Cannot send an empty message")
        for one in self.messages.get(channel, []):
            if body.get("enforce_nonce") and one.get("nonce") == body["nonce"]:
                return as_json(one)
        attached = [self.attachment(name, data) for name, data in files]
        message = self.written(content, channel, ME, **body | {"attachments": attached})
        await self.deliver("MESSAGE_CREATE", message)
        return as_json(message)

    def _snowflake(self) -> str:
        """Return a new id, of a later millisecond than any before."""
        self._last = max(int(time.time() * 1000) - _EPOCH, self._last + 1)
        return str(self._last << 22)

    async def connection(self, count: int = 1) -> None:
        """Wait until so many connections were signed in."""
        while len(self.identified) + len(self.resumed) < count or not self._live:
            await asyncio.sleep(0.005)
