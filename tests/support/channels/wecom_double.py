"""WeCom on loopback: frames of an AI bot's long connection, and files encrypted with a key of their own."""

from __future__ import annotations

import base64
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CBC
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from tests.support.channels.double import Double, Fault, Operation
from tests.support.channels.loopback import Link

LIMIT = 20_480
INVALID_REQUEST, EXPIRED = 846605, 846608
ANN, BEN, GROUP = "ann", "ben", "wrk-group"
Frame = Mapping[str, Any]


@dataclass
class Bubble:
    """A message of the bot in a chat."""

    text: str
    keys: tuple[str, ...] = ()
    task: str = ""
    is_finished: bool = True


@dataclass
class Upload:
    name: str
    size: int
    chunks: list[bytes] = field(default_factory=list[bytes])


class WeComDouble(Double):
    """One bot.

    Attributes:
        frames: all that the bot sent.
        streams: the bot's streams, by id.
        bubbles: the bot's messages as people see them, oldest first.
        expired: request ids that take no answers; ``ended``: ids of streams that cannot be changed.
        notices: what a card became for one person alone.
    """

    def __init__(self, bot_id: str = "bot-1", secret: str = "s3cret-of-bot") -> None:
        super().__init__()
        self.bot_id, self.secret = bot_id, secret
        self.frames: list[dict[str, Any]] = []
        self.streams: dict[str, Bubble] = {}
        self.bubbles: list[Bubble] = []
        self.received: list[tuple[str, bytes]] = []
        self.notices: list[str] = []
        self.expired: set[str] = set()
        self.ended: set[str] = set()
        self.said: list[dict[str, Any]] = []
        self._signed_in: list[Link] = []
        self._uploads: dict[str, Upload] = {}
        self._media: dict[str, tuple[str, bytes]] = {}
        self._files: list[tuple[str, bytes]] = []
        self._number = 0

    async def write(self, body: Mapping[str, Any], *, is_private: bool = True, author: str = ANN) -> dict[str, Any]:
        """Send a message as a person; returns its body."""
        self._number += 1
        chat = {"chattype": "single"} if is_private else {"chattype": "group", "chatid": GROUP}
        whole = {
            "msgid": f"m{self._number}",
            "create_time": int(time.time()),
            "aibotid": self.bot_id,
            "from": {"userid": author},
            **chat,
            **body,
        }
        self.said.append(whole)
        await self.deliver("aibot_msg_callback", whole)
        return whole

    async def press(self, task: str, key: str, *, is_private: bool = True, author: str = ANN) -> None:
        card = {"card_type": "button_interaction", "event_key": key, "task_id": task}
        event = {"eventtype": "template_card_event", "template_card_event": card}
        self._number += 1
        chat = {"chattype": "single"} if is_private else {"chattype": "group", "chatid": GROUP}
        body = {"msgid": f"m{self._number}", "from": {"userid": author}, "msgtype": "event", "event": event, **chat}
        await self.deliver("aibot_event_callback", body)

    async def deliver(self, cmd: str, body: Mapping[str, Any]) -> None:
        """Send a callback to the program that is signed in; if there is none, it is lost."""
        self._number += 1
        frame = {"cmd": cmd, "headers": {"req_id": f"r{self._number}"}, "body": body}
        for link in self._signed_in:
            await link.send(json.dumps(frame))

    def keep(self, name: str, content: bytes) -> dict[str, str]:
        """Store a file of a person; returns the part of a message that names it."""
        key = secrets.token_bytes(32)
        encryptor = Cipher(AES256(key), CBC(key[:16])).encryptor()
        padding = 32 - len(content) % 32
        sealed = encryptor.update(content + bytes([padding]) * padding) + encryptor.finalize()
        self._files.append((name, sealed))
        address = f"{self.http}/files/{len(self._files) - 1}"
        return {"url": address, "aeskey": base64.b64encode(key).decode().rstrip("=")}

    async def displace(self) -> None:
        """Sign in as another program with the same bot."""
        event = {"msgid": "d", "msgtype": "event", "event": {"eventtype": "disconnected_event"}}
        await self.deliver("aibot_event_callback", event)
        for link in self._signed_in:
            await link.close()

    def operation(self, request: Request) -> Operation | None:
        is_whole = "range" not in request.headers
        return Operation.FETCH if request.url.path.startswith("/files/") and is_whole else None

    def failure(self, fault: Fault) -> Response:
        return JSONResponse({"errcode": 40058}, 429 if fault is Fault.LATER else 403, {"retry-after": "7"})

    async def respond(self, request: Request) -> Response:
        name, sealed = self._files[int(request.url.path.rsplit("/", 1)[-1])]
        head = {"content-disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"}
        return Response(sealed, media_type="application/octet-stream", headers=head)

    async def attend(self, link: Link) -> None:
        try:
            async for raw in link:
                frame = json.loads(raw)
                self.frames.append(frame)
                await self._serve(link, frame)
        finally:
            if link in self._signed_in:
                self._signed_in.remove(link)

    async def _serve(self, link: Link, frame: Frame) -> None:
        match fault := self.due(self._operation(frame)):
            case None:
                await link.send(json.dumps(await self._acknowledged(link, frame)))
            case Fault.CUT_BEFORE:
                link.abort()
            case Fault.CUT_AFTER:
                await self._acknowledged(link, frame)
                link.abort()
            case Fault.SERVER_ERROR | Fault.GARBAGE:
                await link.send("<html>Bad Gateway</html>")
            case _:
                code = 45009 if fault is Fault.LATER else 40001 if fault is Fault.SIGNED_OUT else 40058
                await link.send(json.dumps(self._answer_to(frame, code)))

    def _operation(self, frame: Frame) -> Operation | None:
        body = frame.get("body", {})
        match frame["cmd"]:
            case "aibot_subscribe":
                return Operation.LISTEN
            case "ping":
                return Operation.IDENTIFY if frame["headers"]["req_id"].startswith("identify") else None
            case "aibot_respond_msg" | "aibot_send_msg" if body["msgtype"] in ("file", "image"):
                return Operation.UPLOAD
            case "aibot_respond_msg" | "aibot_send_msg":
                is_edit = body.get("stream", {}).get("id") in self.streams or self._faults[Operation.EDIT]
                return Operation.EDIT if is_edit else Operation.POST
            case _:
                return None

    @staticmethod
    def _answer_to(frame: Frame, code: int = 0, body: Frame | None = None) -> dict[str, Any]:
        answer = {"headers": frame["headers"], "errcode": code, "errmsg": "ok" if not code else "refused"}
        return answer | ({"body": body} if body else {})

    async def _acknowledged(self, link: Link, frame: Frame) -> dict[str, Any]:
        """Do what a frame asks; return its acknowledgement."""
        body = frame.get("body", {})
        match frame["cmd"]:
            case "aibot_subscribe":
                if body != {"bot_id": self.bot_id, "secret": self.secret}:
                    return self._answer_to(frame, 40001)
                await self.displace()
                self._signed_in = [link]
            case "aibot_upload_media_init":
                self._uploads["u1"] = Upload(body["filename"], body["total_size"])
                return self._answer_to(frame, body={"upload_id": "u1"})
            case "aibot_upload_media_chunk":
                self._uploads[body["upload_id"]].chunks.append(base64.b64decode(body["base64_data"]))
            case "aibot_upload_media_finish":
                upload = self._uploads.pop(body["upload_id"])
                content = b"".join(upload.chunks)
                assert len(content) == upload.size
                self._media["media-1"] = (upload.name, content)
                return self._answer_to(frame, body={"media_id": "media-1", "type": "file", "created_at": 1})
            case "aibot_respond_msg" if frame["headers"]["req_id"] in self.expired:
                return self._answer_to(frame, INVALID_REQUEST)
            case "aibot_respond_msg" | "aibot_send_msg":
                return self._answer_to(frame, self._show(body))
            case "aibot_respond_update_msg":
                self._update(body)
            case _:
                pass
        return self._answer_to(frame)

    def _show(self, body: Frame) -> int:
        """Show a message of the bot; return an error code, or 0."""
        if body["msgtype"] in ("file", "image"):
            self.received.append(self._media[body[body["msgtype"]]["media_id"]])
            return 0
        stream = body.get("stream")
        card = body.get("template_card") if body["msgtype"] == "template_card" else None  # none shows beside a stream
        text = stream["content"] if stream else body["markdown"]["content"] if "markdown" in body else ""
        if len(text.encode()) > LIMIT:
            return 40058
        if stream and (known := self.streams.get(stream["id"])):
            if known.is_finished or stream["id"] in self.ended:
                return EXPIRED
            known.text, known.is_finished = text, stream["finish"]
            return 0
        keys = tuple(button["key"] for button in card["button_list"]) if card else ()
        bubble = Bubble(
            text or (card or {}).get("sub_title_text", ""),
            keys,
            card["task_id"] if card else "",
            not stream or stream["finish"],
        )
        self.bubbles.append(bubble)
        if stream:
            self.streams[stream["id"]] = bubble
        return 0

    def _update(self, body: Frame) -> None:
        card = body["template_card"]
        if body.get("userids"):
            self.notices.append(card["sub_title_text"])
            return
        for bubble in self.bubbles:
            if bubble.task == card["task_id"]:
                bubble.text = card["sub_title_text"]
                bubble.keys = tuple(one["key"] for one in card["button_list"] if one["key"] != "done")
