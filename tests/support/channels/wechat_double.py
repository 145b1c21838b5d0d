"""WeChat's iLink on loopback: long polls with a cursor, messages that need a token, a CDN of encrypted files, sign-in by QR code."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
import time
from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES128
from cryptography.hazmat.primitives.ciphers.modes import ECB
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from tests.support.channels.double import LATER, Double, Fault, Operation
from tests.support.channels.loopback import Cut

LIMIT = 4000
ANN, BEN = "ann@im.wechat", "ben@im.wechat"
TOKEN = "t0ken-of-wechat"
POLL = 1.0


class WeChatDouble(Double):
    """One account.

    Attributes:
        messages: all that people wrote; the cursor is how many were read.
        sent: our messages.
        typing: the states of "typing" that we showed.
        freezes: raised by one, the poll that waits is never answered; ``cuts``: it is cut. ``polls``: grows while one waits.
        qr: the answers to questions after a QR code, in order; the last stays.
        unprompted: how many messages may still be sent before a person writes again.
    """

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[dict[str, Any]] = []
        self.sent: list[dict[str, Any]] = []
        self.received: list[tuple[str, bytes]] = []
        self.typing: list[int] = []
        self.freezes = 0
        self.cuts = 0
        self.polls = 0
        self.qr: list[dict[str, Any]] = [{"status": "wait"}]
        self.unprompted = 10
        self._blobs: dict[str, bytes] = {}
        self._grants: dict[str, dict[str, Any]] = {}

    def write(self, *items: Mapping[str, Any], author: str = ANN, **more: Any) -> dict[str, Any]:
        """Send a message as a person; returns it."""
        number = len(self.messages) + 1
        message = {
            "seq": number,
            "message_id": 9000 + number,
            "from_user_id": author,
            "to_user_id": "b@im.bot",
            "create_time_ms": int(time.time() * 1000),
            "message_type": 1,
            "message_state": 2,
            "context_token": f"ct-{author}-{number}",
            "item_list": list(items),
            **more,
        }
        self.unprompted = 10
        self.messages.append(message)
        return message

    def keep(self, content: bytes) -> dict[str, str]:
        """Put a file of a person on the CDN; returns what names it in a message."""
        key = secrets.token_bytes(16)
        name = self._put(_sealed(content, key))
        return {"encrypt_query_param": name, "aes_key": base64.b64encode(key.hex().encode()).decode()}

    def operation(self, request: Request) -> Operation | None:
        match request.url.path.rsplit("/", 1)[-1]:
            case "getupdates":
                return Operation.LISTEN
            case "getconfig":
                return Operation.IDENTIFY
            case "sendmessage":
                return Operation.POST if b'"text_item"' in self._body(request) else Operation.UPLOAD
            case "download":
                return Operation.FETCH
            case _:
                return None

    def failure(self, fault: Fault) -> Response:
        if fault is Fault.LATER:
            return JSONResponse({"ret": -1}, 429, {"retry-after": str(LATER)})
        if fault is Fault.SIGNED_OUT:
            return JSONResponse({"ret": -14, "errcode": -14, "errmsg": "session timeout"})
        return JSONResponse({"ret": -2, "errmsg": "not allowed"}, 403)

    async def respond(self, request: Request) -> Response:
        method = request.url.path.rsplit("/", 1)[-1]
        if request.url.path.startswith("/c2c/"):
            return self._cdn(request, method)
        if method == "get_bot_qrcode":
            return JSONResponse({"ret": 0, "qrcode": "qr-1", "qrcode_img_content": "https://login.example/qr-1"})
        if method == "get_qrcode_status":
            return JSONResponse(self.qr.pop(0) if len(self.qr) > 1 else self.qr[0])
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return self.failure(Fault.SIGNED_OUT)
        body = json.loads(self._body(request))
        match method:
            case "getupdates":
                return await self._updates(body["get_updates_buf"])
            case "getconfig":
                return JSONResponse({"ret": 0, "typing_ticket": "ticket-1"})
            case "sendtyping":
                self.typing.append(body["status"])
            case "getuploadurl":
                self._grants[body["filekey"]] = body
                return JSONResponse({"ret": 0, "upload_param": f"up-{body['filekey']}"})
            case "sendmessage":
                return JSONResponse(self._send(body["msg"]))
            case _:
                pass
        return JSONResponse({"ret": 0})

    async def _updates(self, cursor: str) -> Response:
        read = int(cursor or 0)
        end, cuts, freezes = time.monotonic() + POLL, self.cuts, self.freezes
        while (len(self.messages) <= read and time.monotonic() < end) or freezes != self.freezes:
            if cursor == "" and freezes == self.freezes:
                break
            self.polls += 1
            await asyncio.sleep(0.01)
            if cuts != self.cuts:
                raise Cut
        answer = {"ret": 0, "msgs": self.messages[read:], "get_updates_buf": str(len(self.messages))}
        whole = json.dumps({**answer, "longpolling_timeout_ms": int(POLL * 1000)})
        return Response(whole, media_type="application/json")

    def _send(self, message: Mapping[str, Any]) -> dict[str, Any]:
        if message.get("context_token") not in {one["context_token"] for one in self.messages} or not self.unprompted:
            return {"ret": -2, "errmsg": "context_token"}
        (item,) = message["item_list"]
        if item["type"] == 1:
            if len(item["text_item"]["text"].encode("utf-16-le")) > 2 * LIMIT:
                return {"ret": -2, "errmsg": "too long"}
            self.sent.append(dict(message))
        else:
            inner = item["file_item"] if item["type"] == 4 else item["image_item"]
            key = bytes.fromhex(base64.b64decode(inner["media"]["aes_key"]).decode())
            content = _opened(self._blobs[inner["media"]["encrypt_query_param"]], key)
            self.received.append((inner.get("file_name", "image"), content))
        self.unprompted -= 1
        return {}

    def _cdn(self, request: Request, method: str) -> Response:
        name = request.query_params["encrypted_query_param"]
        if method == "download":
            return Response(self._blobs[name], media_type="application/octet-stream")
        grant, content = self._grants[request.query_params["filekey"]], self._body(request)
        plain = _opened(content, bytes.fromhex(grant["aeskey"]))
        is_right = (len(content), len(plain)) == (grant["filesize"], grant["rawsize"])
        if (
            not is_right
            or hashlib.md5(plain).hexdigest() != grant["rawfilemd5"]
            or "content-length" not in request.headers
        ):
            return Response(status_code=400, headers={"x-error-message": "the file is not what was announced"})
        return Response(headers={"x-encrypted-param": self._put(content)})

    def _put(self, sealed: bytes) -> str:
        name = f"blob+{len(self._blobs)}/="
        self._blobs[name] = sealed
        return name

    @staticmethod
    def _body(request: Request) -> bytes:
        return getattr(request, "_body", b"")


def _sealed(content: bytes, key: bytes) -> bytes:
    encryptor = Cipher(AES128(key), ECB()).encryptor()
    padding = 16 - len(content) % 16
    return encryptor.update(content + bytes([padding]) * padding) + encryptor.finalize()


def _opened(sealed: bytes, key: bytes) -> bytes:
    decryptor = Cipher(AES128(key), ECB()).decryptor()
    plain = decryptor.update(sealed) + decryptor.finalize()
    return plain[: -plain[-1]]
