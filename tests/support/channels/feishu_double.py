"""Feishu on loopback: its HTTP interface and its long connection of protobuf frames, as its official client sees them."""

from __future__ import annotations

import asyncio
import base64
import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from tests.support.channels.double import LATER, Double, Fault, Operation
from tests.support.channels.loopback import Link

from deerflow_app.channels.adapters.feishu_frames import CONTROL, DATA, FeishuFrame

BOT, ANN, BEN, CHAT, BENS, GROUP, TENANT = "ou_bot", "on_ann", "on_ben", "oc_private", "oc_ben", "oc_group", "tenant-1"
CARD_BYTES = 30 << 10


@dataclass
class Message:
    """One of the bot's. ``parent``: the message that it replies to."""

    id: str
    kind: str
    content: dict[str, Any]
    to: str
    parent: str = ""
    in_thread: bool = False
    key: str = ""


@dataclass
class Entity:
    """A card of CardKit."""

    card: dict[str, Any]
    sequence: int = 0
    is_closed: bool = False
    changes: list[str] = field(default_factory=list)


class FeishuDouble(Double):
    """One custom app.

    Attributes:
        messages: of the bot, oldest first. ``cards``: entities by the ID of their message. ``files``: what people sent, ``kept``: what the bot uploaded.
        acknowledged: the payload of the acknowledgement, by the ID of the delivery.
        waiting: deliveries that no acknowledgement has come for; a new link gets them again.
        lifetime: seconds of a token. ``ping``: seconds between two pings. ``parts``: frames that an event is cut into.
        nonce: seconds, of which a client waits a random part before it connects again.
        is_revoked: the secret is no longer valid. ``scopes``: what the app may do; None: everything.
    """

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[Message] = []
        self.cards: dict[str, Entity] = {}
        self.files: dict[str, bytes] = {}
        self.kept: dict[str, tuple[str, bytes]] = {}
        self.reactions: list[tuple[str, str]] = []
        self.acknowledged: dict[str, dict[str, Any]] = {}
        self.waiting: dict[str, dict[str, Any]] = {}
        self.said: list[dict[str, Any]] = []
        self.tokens: list[str] = []
        self.pings = 0
        self.lifetime, self.ping, self.parts, self.nonce = 7200, 0.15, 1, 30
        self.is_revoked, self.is_expired = False, False
        self.scopes: set[str] | None = None
        self._asked: Operation | None = None
        self._next = 0

    # As a person

    async def write(self, content: Mapping[str, Any], kind: str = "text", **message: Any) -> str:
        """Send a message; returns its ID. ``sender_type`` and ``ids`` change who it comes from."""
        self._next += 1
        ids = message.pop("ids", {"open_id": "ou_ann", "union_id": ANN, "user_id": "u1"})
        sender = {"sender_id": ids, "sender_type": message.pop("sender_type", "user"), "tenant_key": TENANT}
        whole = {
            "message_id": f"om_in{self._next}",
            "create_time": str(int(time.time() * 1000)),
            "chat_id": CHAT,
            "chat_type": "p2p",
            "message_type": kind,
            "content": json.dumps(content),
            **message,
        }
        self.said.append({"sender": sender, "message": whole})
        await self.deliver("im.message.receive_v1", self.said[-1])
        return whole["message_id"]

    async def press(self, message: Message, key: str, person: str = ANN) -> str:
        """Press the button with this key; returns the ID of the delivery."""
        event = {
            "operator": {"open_id": person.replace("on_", "ou_"), "union_id": person, "tenant_key": TENANT},
            "token": "c-1",
            "action": {"value": self.buttons(message)[key], "tag": "button"},
            "host": "im_message",
            "context": {"open_message_id": message.id, "open_chat_id": message.to},
        }
        return await self.deliver("card.action.trigger", event)

    async def deliver(self, kind: str, event: Any) -> str:
        """Put an event on a link; returns the ID of the delivery."""
        header = {"event_id": uuid.uuid4().hex, "event_type": kind, "create_time": "1", "tenant_key": TENANT}
        delivery = uuid.uuid4().hex
        self.waiting[delivery] = {"schema": "2.0", "header": header, "event": event}
        if self.links:
            await self.put(self.links[-1], delivery)
        return delivery

    async def put(self, link: Link, delivery: str) -> None:
        raw = json.dumps(self.waiting[delivery], ensure_ascii=False).encode()
        size = -(-len(raw) // self.parts)
        for number in range(self.parts):
            names = {
                "type": "event",
                "message_id": delivery,
                "sum": str(self.parts),
                "seq": str(number),
                "trace_id": "t",
            }
            await link.send(FeishuFrame(7, DATA, names, raw[number * size : (number + 1) * size], 1, 1).dump())

    def card(self, message: Message) -> dict[str, Any]:
        """Return the card that people see."""
        entity = self.cards.get(message.id)
        return entity.card if entity else message.content

    def text(self, message: Message) -> str:
        if message.kind == "text":
            return message.content["text"]
        return self.card(message)["body"]["elements"][0]["content"]

    def buttons(self, message: Message) -> dict[str, dict[str, Any]]:
        """Return the values of its buttons by key."""
        columns = [one for element in self.card(message)["body"]["elements"][1:] for one in element["columns"]]
        values = [one["elements"][0]["behaviors"][0]["value"] for one in columns]
        return {value["key"]: value for value in values}

    def toasts(self) -> list[str]:
        answers = [json.loads(base64.b64decode(one["data"])) for one in self.acknowledged.values() if "data" in one]
        return [one["toast"]["content"] for one in answers]

    # As the platform

    async def attend(self, link: Link) -> None:
        for delivery in list(self.waiting):
            await self.put(link, delivery)
        async for raw in link:
            assert isinstance(raw, bytes)
            frame = FeishuFrame.load(raw)
            if frame.method == CONTROL:
                self.pings += 1
                pong = json.dumps(self._config()).encode()
                await link.send(FeishuFrame(frame.service, CONTROL, {"type": "pong"}, pong).dump())
                continue
            payload = json.loads(frame.payload)
            assert payload["code"] == 200 and frame.headers["biz_rt"]
            delivery = frame.headers["message_id"]
            self.acknowledged[delivery] = payload
            self.waiting.pop(delivery, None)

    def operation(self, request: Request) -> Operation | None:
        path = request.url.path
        if path == "/callback/ws/endpoint":
            return Operation.LISTEN
        if path.endswith("/bot/v3/info"):
            return Operation.IDENTIFY
        if path.endswith("/im/v1/messages") or path.endswith("/reply"):
            kind = json.loads(request._body)["msg_type"]
            return Operation.UPLOAD if kind in ("image", "file") else Operation.POST
        if request.method == "PATCH" and "/im/v1/messages/" in path:
            return Operation.EDIT
        return Operation.FETCH if "/resources/" in path else None

    def due(self, operation: Operation | None) -> Fault | None:
        self._asked = operation
        return super().due(operation)

    def failure(self, fault: Fault) -> Response:
        match fault:
            case Fault.LATER:
                body = {"code": 99991400, "msg": "request trigger frequency limit"}
                return JSONResponse(body, 429, {"x-ogw-ratelimit-reset": f"{LATER:.0f}"})
            case Fault.SIGNED_OUT:
                self.is_revoked = True
                return self._refused(514, "app secret invalid") if self._asked is Operation.LISTEN else self._no_token()
            case Fault.DISPLACED:
                return JSONResponse({"code": 1000040350, "msg": "system busy: connections exceed the limit"})
            case _:
                return self._refused(230002, "The bot is not in the group.")

    async def respond(self, request: Request) -> Response:
        path, method = request.url.path.removeprefix("/open-apis"), request.method
        if path == "/callback/ws/endpoint":
            return self._endpoint(await request.json())
        if path == "/auth/v3/tenant_access_token/internal":
            return self._token(await request.json())
        if request.headers.get("authorization") != f"Bearer {self.tokens[-1]}" or self.is_expired:
            self.is_expired = False
            return self._no_token()
        if method == "POST" and (path == "/im/v1/messages" or path.endswith("/reply")):
            return self._post(path, await request.json(), request.query_params.get("receive_id_type", ""))
        if method == "PATCH" and path.startswith("/im/v1/messages/"):
            return self._patch(path.rsplit("/", 1)[-1], await request.json())
        if path.startswith("/cardkit/v1/cards"):
            return self._cardkit(method, path.split("/")[4:], await request.json())
        if path in ("/im/v1/images", "/im/v1/files"):
            return await self._keep(request)
        if path.endswith("/reactions"):
            self.reactions.append((path.split("/")[4], (await request.json())["reaction_type"]["emoji_type"]))
            return self._good({"reaction_id": "r1"})
        if "/resources/" in path:
            disposition = {"content-disposition": "attachment"}
            return Response(
                self.files[path.rsplit("/", 1)[-1]], headers=disposition, media_type="application/octet-stream"
            )
        if path == "/bot/v3/info":
            return JSONResponse(
                {"code": 0, "msg": "ok", "bot": {"open_id": BOT, "app_name": "Deer", "activate_status": 2}}
            )
        return self._refused(404, f"no such path: {path}")

    def _good(self, data: Mapping[str, Any] | None = None) -> Response:
        return JSONResponse({"code": 0, "msg": "success", "data": data or {}})

    def _refused(self, code: int, why: str, **more: Any) -> Response:
        return JSONResponse({"code": code, "msg": why, **more}, 400)

    def _no_token(self) -> Response:
        return self._refused(
            99991663, "Invalid access token for authorization. Please make a test attempt with the correct token."
        )

    def _needs(self, scope: str) -> Response | None:
        if self.scopes is None or scope in self.scopes:
            return None
        violations = {"permission_violations": [{"type": "action_scope_required", "subject": scope}]}
        return self._refused(
            99991672, f"Access denied. One of the following scopes is required: [{scope}]", error=violations
        )

    def _endpoint(self, body: Mapping[str, Any]) -> Response:
        if body != {"AppID": "cli_1", "AppSecret": "app-secret"}:
            return JSONResponse({"code": 514, "msg": "app secret invalid"})
        url = f"{self.ws}/ws/v2?device_id=d1&service_id=7&access_key=access-key&ticket=ticket-1"
        return JSONResponse({"code": 0, "msg": "", "data": {"URL": url, "ClientConfig": self._config()}})

    def _config(self) -> dict[str, Any]:
        return {
            "ReconnectCount": -1,
            "ReconnectInterval": 120,
            "ReconnectNonce": self.nonce,
            "PingInterval": self.ping,
        }

    def _token(self, body: Mapping[str, Any]) -> Response:
        if self.is_revoked or body != {"app_id": "cli_1", "app_secret": "app-secret"}:
            return JSONResponse({"code": 10014, "msg": "app secret invalid"})
        self.tokens.append(f"t-{len(self.tokens)}")
        return JSONResponse({"code": 0, "msg": "ok", "tenant_access_token": self.tokens[-1], "expire": self.lifetime})

    def _post(self, path: str, body: Mapping[str, Any], to: str) -> Response:
        if missing := self._needs("im:message:send_as_bot"):
            return missing
        assert len(body["uuid"]) <= 50
        parent = path.split("/")[4] if path.endswith("/reply") else ""
        if refusal := self._too_long(body["content"]):
            return refusal
        for known in self.messages:
            if known.key == body["uuid"]:
                return self._good({"message_id": known.id})
        assert parent or to in ("chat_id", "open_id")
        self._next += 1
        place = GROUP if parent else body["receive_id"]
        message = Message(
            f"om_{self._next}",
            body["msg_type"],
            json.loads(body["content"]),
            place,
            parent,
            body.get("reply_in_thread", False),
            body["uuid"],
        )
        self.messages.append(message)
        return self._good({"message_id": message.id, "msg_type": message.kind})

    def _too_long(self, content: str) -> Response | None:
        if len(content.encode()) <= CARD_BYTES:
            return None
        return self._refused(230025, "The length of the message content reaches its limit.")

    def _patch(self, message_id: str, body: Mapping[str, Any]) -> Response:
        found = next((one for one in self.messages if one.id == message_id), None)
        if found is None or found.kind != "interactive" or message_id in self.cards:
            return self._refused(230001, "Your request contains an invalid request parameter.")
        if refusal := self._too_long(body["content"]):
            return refusal
        found.content = json.loads(body["content"])
        assert found.content["config"]["update_multi"]
        return self._good()

    def _cardkit(self, method: str, rest: Sequence[str], body: Mapping[str, Any]) -> Response:
        if missing := self._needs("cardkit:card:write"):
            return missing
        if rest == ["id_convert"]:
            found = next(one for one in self.messages if one.id == body["message_id"])
            self.cards.setdefault(found.id, Entity(found.content))
            return self._good({"card_id": f"card-{found.id}"})
        entity = self.cards[rest[0].removeprefix("card-")]
        if body["sequence"] <= entity.sequence:
            return self._refused(300317, "sequence number compare failed")
        is_text, config = rest[-1] == "content", entity.card["config"]
        if is_text and (entity.is_closed or not config["streaming_mode"]):
            return self._refused(300309, "streaming mode is closed")
        entity.sequence = body["sequence"]
        entity.changes.append(rest[-1] if len(rest) > 1 else "card")
        if is_text:
            entity.card["body"]["elements"][0]["content"] = body["content"]
        elif rest[-1] == "settings":
            config.update(json.loads(body["settings"])["config"])
        else:
            entity.card = json.loads(body["card"]["data"])
        return self._good()

    async def _keep(self, request: Request) -> Response:
        form = await request.form()
        is_image = request.url.path.endswith("images")
        file = form["image" if is_image else "file"]
        assert isinstance(file, UploadFile) and ("image_type" in form) == is_image
        key = f"{'img' if is_image else 'file'}_{len(self.kept)}"
        name = file.filename if is_image else form["file_name"]
        self.kept[key] = (str(name), await file.read())
        return self._good({"image_key" if is_image else "file_key": key})

    async def until_acknowledged(self, delivery: str) -> dict[str, Any]:
        async with asyncio.timeout(10):
            while delivery not in self.acknowledged:
                await asyncio.sleep(0.01)
        return self.acknowledged[delivery]
