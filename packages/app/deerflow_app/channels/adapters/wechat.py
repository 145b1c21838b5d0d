"""WeChat by Tencent's iLink: long polls, answers that need the token of the question, files on a CDN."""

from __future__ import annotations

import secrets
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES128
from cryptography.hazmat.primitives.ciphers.modes import ECB

from deerflow.features.channels.types import (
    Accept,
    Adapter,
    Caps,
    FileRef,
    Me,
    OutFile,
    Part,
    Place,
    Ref,
    Refused,
    Signal,
    SignedOut,
    Unreachable,
)
from deerflow_app.channels.adapters.wechat_events import FILE, PICTURE, TEXT, events_of, secret_of
from deerflow_app.channels.ciphers import decrypted, encrypted, md5_of, padded
from deerflow_app.channels.wire import Http, allowed, limited, name_of, understood, whole

BASE_URL = "https://ilinkai.weixin.qq.com"
CDN_BASE_URL = "https://novac2c.cdn.weixin.qq.com/c2c"
CAPS = Caps(
    dialect="wechat",
    edits=False,
    signals=frozenset({Signal.WORKING, Signal.DONE, Signal.FAILED}),
    file_in=50 << 20,
    file_out=50 << 20,
    unprompted=10,
)
IMAGE = 20 << 20
_EXPIRED = -14
_TICKETS = 1000
_KNOWN = {"ret", "errcode", "msgs", "get_updates_buf", "typing_ticket", "upload_param"}
"""One of these stands in every answer that is not empty; another page of JSON is none of WeChat's."""


class WeChat(Adapter):
    """A personal account that signed in by QR code (see :mod:`wechat_login`).

    Args:
        bot_id: the account's id as the sign-in named it.
        channel_version: what we call ourselves to Tencent.
        polling_timeout: seconds for which a poll may be held open, if Tencent does not say.
        patience: seconds beyond that after which a poll counts as dead.
    """

    def __init__(
        self,
        bot_token: str,
        *,
        bot_id: str = "",
        base_url: str = BASE_URL,
        cdn_base_url: str = CDN_BASE_URL,
        channel_version: str = "1.0",
        app_id: str = "",
        route_tag: str = "",
        polling_timeout: float = 35.0,
        patience: float = 15.0,
    ) -> None:
        self.caps = CAPS
        self._bot_id = bot_id
        self._version = channel_version
        self._cdn_url = cdn_base_url.rstrip("/")
        self._poll = polling_timeout
        self._patience = patience
        self._tickets: dict[str, str] = {}
        self._tokens: dict[str, str] = {}
        headers = {"AuthorizationType": "ilink_bot_token", "Authorization": f"Bearer {bot_token}"}
        headers |= {"iLink-App-Id": app_id} if app_id else {}
        headers |= {"SKRouteTag": route_tag} if route_tag else {}
        self._http = Http(base_url, secrets=[bot_token], headers=headers)
        self._cdn = Http(self._cdn_url, secrets=[bot_token])

    async def aclose(self) -> None:
        await self._http.aclose()
        await self._cdn.aclose()

    async def identify(self) -> Me:
        with suppress(Refused):  # it may know no settings for ourselves; a token that has expired raises SignedOut
            await self._call("getconfig", {"ilink_user_id": self._bot_id}, repeatable=True)
        return Me(self._bot_id or "wechat", "WeChat")

    async def listen(self, accept: Accept, cursor: str, connected: Callable[[], None]) -> None:
        is_first, wait = True, self._poll
        while True:
            answer = await self._updates(cursor, wait + self._patience)
            if is_first:
                connected()
            events = [event for raw in answer.get("msgs") or () for event in understood(events_of, raw, "WeChat")]
            self._tokens |= {
                one.place.chat: one.wake["context_token"] for one in events if one.wake.get("context_token")
            }
            after = str(answer.get("get_updates_buf") or cursor)
            if events or after != cursor:
                await accept(events, after)
            cursor, is_first = after, False
            wait = answer.get("longpolling_timeout_ms", 0) / 1000 or self._poll

    async def _updates(self, cursor: str, timeout: float) -> Mapping[str, Any]:
        try:
            return await self._call("getupdates", {"get_updates_buf": cursor}, repeatable=True, timeout=timeout)
        except Refused as refused:
            raise Unreachable(str(refused)) from None  # only -14 says that it will never be answered

    async def post(self, place: Place, part: Part, key: str, wake: Mapping[str, Any]) -> Ref:
        return await self._send(place, {"type": TEXT, "text_item": {"text": part.text}}, key, wake)

    async def upload(self, place: Place, file: OutFile, key: str, wake: Mapping[str, Any]) -> Ref:
        is_image = file.mime.startswith("image/") and file.size <= IMAGE
        allowed(file.name, file.size, self.caps.file_out)
        secret = secrets.token_bytes(16)
        media = {
            "encrypt_query_param": await self._stored(place, file, secret, 1 if is_image else 3),
            "aes_key": b64encode(secret.hex().encode()).decode(),
            "encrypt_type": 1,
        }
        if is_image:
            item: dict[str, Any] = {"type": PICTURE, "image_item": {"media": media, "mid_size": padded(file.size, 16)}}
        else:
            item = {"type": FILE, "file_item": {"media": media, "file_name": name_of(file), "len": str(file.size)}}
        if file.caption:
            await self.post(place, Part(file.caption), f"{key}-c", wake)
        return await self._send(place, item, key, wake)

    async def fetch(self, file: FileRef) -> AsyncIterator[bytes]:
        allowed(file.name, file.size, self.caps.file_in)
        query = {"encrypted_query_param": file.key["query"]}
        async with self._cdn.stream(f"{self._cdn_url}/download", params=query) as answer:
            pieces = answer.aiter_bytes()
            if secret := secret_of(file.key["aes_key"]):
                pieces = decrypted(pieces, Cipher(AES128(secret), ECB()), 16)
            async for piece in limited(pieces, file.name, self.caps.file_in):
                yield piece

    async def signal(self, place: Place, message_id: str, signal: Signal, wake: Mapping[str, Any]) -> None:
        """Show that we type, or no longer."""
        if place.chat not in self._tickets:
            body = {"ilink_user_id": place.chat, "context_token": wake.get("context_token", "")}
            ticket = (await self._call("getconfig", body, repeatable=True)).get("typing_ticket")
            if not ticket:
                return
            if len(self._tickets) >= _TICKETS:
                self._tickets.clear()
            self._tickets[place.chat] = str(ticket)
        status = 1 if signal is Signal.WORKING else 2
        body = {"ilink_user_id": place.chat, "typing_ticket": self._tickets[place.chat], "status": status}
        try:
            await self._call("sendtyping", body, repeatable=True)
        except Refused:
            del self._tickets[place.chat]  # it lasts a day; the next sign gets a new one
            raise

    async def _send(self, place: Place, item: Mapping[str, Any], key: str, wake: Mapping[str, Any]) -> Ref:
        message = {
            "from_user_id": "",
            "to_user_id": place.chat,
            "client_id": key,
            "message_type": 2,  # of a bot
            "message_state": 2,  # whole
            "item_list": [item],
        }
        if token := wake.get("context_token") or self._tokens.get(place.chat):
            message["context_token"] = token
        await self._call("sendmessage", {"msg": message})
        return {"id": key}

    async def _stored(self, place: Place, file: OutFile, secret: bytes, media_type: int) -> str:
        """Put a file on the CDN, encrypted, and return what names it there."""
        size, name = padded(file.size, 16), secrets.token_hex(16)
        asked = {
            "filekey": name,
            "media_type": media_type,
            "to_user_id": place.chat,
            "rawsize": file.size,
            "rawfilemd5": await md5_of(file),
            "filesize": size,
            "no_need_thumb": True,
            "aeskey": secret.hex(),
        }
        granted = await self._call("getuploadurl", asked, repeatable=True)
        query = {"encrypted_query_param": str(granted.get("upload_param", "")), "filekey": name}
        answer = await self._cdn.request(
            "POST",
            f"{self._cdn_url}/upload",
            repeatable=True,  # no one sees it before a message names it
            params=query,
            content=encrypted(whole(file), Cipher(AES128(secret), ECB()), 16),
            headers={"Content-Type": "application/octet-stream", "Content-Length": str(size)},
            timeout=300.0,
        )
        if not answer.is_success or "x-encrypted-param" not in answer.headers:
            raise Refused(f"WeChat did not take the file: {answer.headers.get('x-error-message', answer.status_code)}.")
        return answer.headers["x-encrypted-param"]

    async def _call(
        self, method: str, body: Mapping[str, Any], *, repeatable: bool = False, **more: Any
    ) -> Mapping[str, Any]:
        answer = await self._http.json(
            "POST",
            f"/ilink/bot/{method}",
            repeatable=repeatable,
            json={**body, "base_info": {"channel_version": self._version}},
            headers={"X-WECHAT-UIN": b64encode(str(secrets.randbits(32)).encode()).decode()},
            **more,
        )
        code = answer.get("errcode") or answer.get("ret") or 0
        if code == _EXPIRED:
            raise SignedOut("WeChat has ended this sign-in. Scan a new QR code on the channel's page.")
        if code or (answer and not answer.keys() & _KNOWN):
            raise Refused(f"WeChat refused {method}: {code} {answer.get('errmsg', '')}".rstrip() + ".")
        return answer
