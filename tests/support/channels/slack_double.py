"""Slack on loopback: Web API, uploads in three steps, and Socket Mode, as its official clients see them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from uuid import uuid4

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from tests.support.channels.double import LATER, Double, Fault, Operation
from tests.support.channels.loopback import Link

OPERATIONS = {
    "auth.test": Operation.IDENTIFY,
    "apps.connections.open": Operation.LISTEN,
    "chat.postMessage": Operation.POST,
    "chat.update": Operation.EDIT,
    "files.completeUploadExternal": Operation.UPLOAD,
}
TEAM, US, ANN, ROBOT, BEN = "T1", "UBOT", "U1", "U2", "U3"
PRIVATE, BENS, CHANNEL = "D1", "D3", "C1"


class SlackDouble(Double):
    """One workspace.

    Attributes:
        waiting: envelopes by id that were not acknowledged; they come again on the next link.
        acknowledged: ids of envelopes, in order.
        messages: of the app, by (channel, ts).
        history: messages of people.
        zones: time zones of people, by their id.
    """

    def __init__(self, bot_token: str = "xoxb-1-secretbot", app_token: str = "xapp-1-secretapp") -> None:
        super().__init__()
        self.bot_token = bot_token
        self.app_token = app_token
        self.waiting: dict[str, dict[str, Any]] = {}
        self.acknowledged: list[str] = []
        self.messages: dict[tuple[str, str], dict[str, Any]] = {}
        self.history: list[dict[str, Any]] = []
        self.slots: dict[str, dict[str, Any]] = {}
        self.uploads: list[tuple[str, bytes]] = []
        self.files: dict[str, bytes] = {}
        self.notices: list[dict[str, Any]] = []
        self.reactions: list[dict[str, Any]] = []
        self.zones: dict[str, str] = {}
        self.page = 200
        self.error: dict[str, Any] | None = None
        """Answered to every method of the bot."""
        self._count = 0

    @property
    def api(self) -> str:
        return f"{self.http}/api/"

    def ts(self) -> str:
        self._count += 1
        return f"{int(time.time())}.{self._count:06d}"

    async def write(self, channel: str = PRIVATE, **event: Any) -> dict[str, Any]:
        """Send a message as a person; returns the event. A mention comes twice, as Slack has it."""
        ts = self.ts()
        kind = "im" if channel.startswith("D") else "channel"
        whole = {
            "type": "message",
            "user": ANN,
            "team": TEAM,
            "channel": channel,
            "ts": ts,
            "event_ts": ts,
            "channel_type": kind,
            **event,
        }
        self.history.append(whole)
        await self.push(whole)
        if f"<@{US}>" in whole.get("text", "") and kind == "channel":
            await self.push(
                {key: value for key, value in whole.items() if key != "channel_type"} | {"type": "app_mention"}
            )
        return whole

    async def push(self, event: Mapping[str, Any]) -> None:
        payload = {"token": "x", "team_id": TEAM, "api_app_id": "A1", "type": "event_callback", "event": dict(event)}
        payload |= {"event_id": f"Ev{uuid4().hex[:10]}", "event_time": int(time.time())}
        await self.deliver("events_api", payload)

    async def press(self, channel: str, ts: str, key: str, person: str = ANN) -> None:
        message = self.messages[channel, ts]
        payload = {
            "type": "block_actions",
            "user": {"id": person, "username": "ann", "name": "ann", "team_id": TEAM},
            "api_app_id": "A1",
            "trigger_id": "1.2.x",
            "team": {"id": TEAM, "domain": "x"},
            "container": {"type": "message", "message_ts": ts, "channel_id": channel, "is_ephemeral": False},
            "channel": {"id": channel, "name": "directmessage"},
            "message": {
                "type": "message",
                "ts": ts,
                **({"thread_ts": message["thread_ts"]} if "thread_ts" in message else {}),
            },
            "response_url": f"{self.http}/respond",
            "actions": [{"type": "button", "action_id": key, "block_id": "b", "value": key, "action_ts": self.ts()}],
        }
        await self.deliver("interactive", payload)

    async def deliver(self, kind: str, payload: Mapping[str, Any]) -> None:
        """Send an envelope on the newest link, or keep it until there is one."""
        envelope = {
            "envelope_id": str(uuid4()),
            "type": kind,
            "accepts_response_payload": False,
            "payload": dict(payload),
        }
        self.waiting[envelope["envelope_id"]] = envelope
        standing = [link for link in self.links if link.is_open and not link.is_silent]
        if standing:
            with suppress(ConnectionError):  # it ends just now; the next link brings the envelope
                await standing[-1].send(json.dumps(envelope))

    async def refresh(self) -> Link:
        """Announce the end of the newest link; returns it."""
        link = self.links[-1]
        await link.send(json.dumps({"type": "disconnect", "reason": "refresh_requested", "debug_info": {"host": "h"}}))
        return link

    async def attend(self, link: Link) -> None:
        unanswered = list(self.waiting.values())
        hello = {"type": "hello", "num_connections": len(self.links), "connection_info": {"app_id": "A1"}}
        await link.send(json.dumps({**hello, "debug_info": {"host": "h", "approximate_connection_time": 18060}}))
        for envelope in unanswered:
            await link.send(json.dumps({**envelope, "retry_attempt": 1, "retry_reason": "timeout"}))
        async for message in link:
            found = json.loads(message)
            if self.waiting.pop(found.get("envelope_id"), None) is not None:
                self.acknowledged.append(found["envelope_id"])

    def operation(self, request: Request) -> Operation | None:
        if request.url.path.startswith("/files-pri/"):
            return Operation.FETCH
        return OPERATIONS.get(request.url.path.rsplit("/", 1)[-1])

    def failure(self, fault: Fault) -> Response:
        match fault:
            case Fault.LATER:
                return JSONResponse({"ok": False, "error": "ratelimited"}, 429, {"Retry-After": f"{LATER:.0f}"})
            case Fault.SIGNED_OUT:
                return _error("token_revoked")
            case _:
                return _error("channel_not_found")

    async def respond(self, request: Request) -> Response:
        path, method = request.url.path, request.url.path.rsplit("/", 1)[-1]
        if path.startswith("/upload/"):
            self.slots[method]["content"] = await _content(request)
            return PlainTextResponse("OK")
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if path.startswith("/files-pri/"):
            if token != self.bot_token:  # no error: a page on which a person would sign in
                return HTMLResponse("<html>Sign in to Slack</html>")
            return Response(self.files[path.split("/")[2]], media_type="application/octet-stream")
        body = await _arguments(request)
        token = token or body.get("token", "")
        if method == "apps.connections.open":
            if token != self.app_token:
                return _error("not_allowed_token_type" if token == self.bot_token else "invalid_auth")
            return _ok(url=f"{self.ws}/link/?ticket=secretticket{self._count}&app_id=A1")
        if token != self.bot_token:
            return _error("invalid_auth")
        if self.error is not None:
            return _error(**self.error)
        return getattr(self, "_" + re.sub("[.]|(?=[A-Z])", "_", method).lower(), _ok_to)(body)

    def _auth_test(self, body: Mapping[str, Any]) -> Response:
        return _ok(user_id=US, bot_id="BBOT", team_id=TEAM, user="deer", team="Herd", url="https://x.slack.com/")

    def _chat_post_message(self, body: Mapping[str, Any]) -> Response:
        if (refusal := _refusal(body)) is not None:
            return refusal
        ts = self.ts()
        self.messages[body["channel"], ts] = dict(body)
        return _ok(channel=body["channel"], ts=ts, message={"ts": ts, "text": body.get("text", "")})

    def _chat_update(self, body: Mapping[str, Any]) -> Response:
        found = self.messages.get((body["channel"], body["ts"]))
        if found is None:
            return _error("message_not_found")
        if len(str(body.get("text", "")).encode()) > 4000:
            return _error("msg_too_long")
        if (refusal := _refusal(body)) is not None:
            return refusal
        found.update(body)  # blocks that an edit does not name stay
        return _ok(channel=body["channel"], ts=body["ts"], text=body.get("text", ""))

    def _chat_post_ephemeral(self, body: Mapping[str, Any]) -> Response:
        self.notices.append(dict(body))
        return _ok(message_ts=self.ts())

    def _files_get_upload_u_r_l_external(self, body: Mapping[str, Any]) -> Response:
        if body.get("is_json"):
            return _error("invalid_arguments")  # this method takes a form only
        name = f"F{len(self.slots)}"
        self.slots[name] = dict(body)
        return _ok(file_id=name, upload_url=f"{self.http}/upload/v1/{name}")

    def _files_complete_upload_external(self, body: Mapping[str, Any]) -> Response:
        files = json.loads(body["files"]) if isinstance(body["files"], str) else body["files"]
        for file in files:
            slot = self.slots[file["id"]]
            if len(slot["content"]) != int(slot["length"]):
                return _error("file_upload_size_mismatch")
            self.uploads.append((slot["filename"], slot["content"]))
        return _ok(files=files)

    def _files_info(self, body: Mapping[str, Any]) -> Response:
        return _ok(file={"id": body["file"], "url_private": f"{self.http}/files-pri/{body['file']}/a"})

    def _users_info(self, body: Mapping[str, Any]) -> Response:
        if body["user"] not in (ANN, BEN, ROBOT):
            return _error("user_not_found")
        zone = {"tz": self.zones[body["user"]], "tz_offset": 0} if body["user"] in self.zones else {}
        return _ok(user={"id": body["user"], "name": "someone", **zone})

    def _conversations_history(self, body: Mapping[str, Any]) -> Response:
        roots = [one for one in self._said() if one.get("thread_ts", one["ts"]) == one["ts"]]
        return self._paged(body, list(reversed(roots)))

    def _conversations_replies(self, body: Mapping[str, Any]) -> Response:
        return self._paged(body, [one for one in self._said() if body["ts"] in (one["ts"], one.get("thread_ts"))])

    def _said(self) -> list[dict[str, Any]]:
        """Return all messages, those of the app too, oldest first."""
        ours = [
            {"type": "message", "user": US, "bot_id": "BBOT", "ts": ts, **message}
            for (_, ts), message in self.messages.items()
        ]
        return sorted([*self.history, *ours], key=lambda one: float(one["ts"]))

    def _paged(self, body: Mapping[str, Any], messages: list[dict[str, Any]]) -> Response:
        oldest, start = float(body.get("oldest", 0)), int(body.get("cursor") or 0)
        fitting = [one for one in messages if one["channel"] == body["channel"] and float(one["ts"]) > oldest]
        bare = [{key: value for key, value in one.items() if key not in ("channel", "channel_type")} for one in fitting]
        more = str(start + self.page) if len(bare) > start + self.page else ""
        return _ok(
            messages=bare[start : start + self.page], has_more=bool(more), response_metadata={"next_cursor": more}
        )

    def _reactions_add(self, body: Mapping[str, Any]) -> Response:
        if dict(body) in self.reactions:
            return _error("already_reacted")
        self.reactions.append(dict(body))
        return _ok()

    def _reactions_remove(self, body: Mapping[str, Any]) -> Response:
        if dict(body) not in self.reactions:
            return _error("no_reaction")
        self.reactions.remove(dict(body))
        return _ok()


def _refusal(body: Mapping[str, Any]) -> Response | None:
    """Return the error of a message that Slack would not take."""
    blocks = body.get("blocks") or []
    blocks = json.loads(blocks) if isinstance(blocks, str) else blocks
    for block in blocks:
        if block["type"] == "section" and not 1 <= len(block["text"]["text"]) <= 3000:
            return _error("invalid_blocks")
        for element in block.get("elements", ()):
            if len(element["text"]["text"]) > 75 or len(element["value"]) > 2000 or len(element["action_id"]) > 255:
                return _error("invalid_blocks")
    if len(blocks) > 50 or sum(len(block.get("text", {}).get("text", "")) for block in blocks) > 13_200:
        return _error("msg_blocks_too_long")
    return None if body.get("text") or blocks else _error("no_text")


async def _content(request: Request) -> bytes:
    """Return a file's bytes, sent bare or in a form."""
    if request.headers.get("content-type", "").startswith("multipart/"):
        for value in (await request.form()).values():
            if isinstance(value, UploadFile):
                return await value.read()
    return await request.body()


async def _arguments(request: Request) -> dict[str, Any]:
    if request.headers.get("content-type", "").startswith("application/json"):
        return {**request.query_params, **await request.json()} | (
            {"is_json": True} if "files." in request.url.path and "complete" not in request.url.path else {}
        )
    return {**request.query_params, **{key: value for key, value in (await request.form()).items()}}


def _ok(**found: Any) -> Response:
    return JSONResponse({"ok": True, **found})


def _ok_to(body: Mapping[str, Any]) -> Response:
    return _ok()


def _error(error: str, **more: Any) -> Response:
    return JSONResponse({"ok": False, "error": error, **more})
