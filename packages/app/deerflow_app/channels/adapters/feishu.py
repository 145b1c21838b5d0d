"""Feishu and Lark: events over the long connection, answers as cards that are edited."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from deerflow.features.channels.types import (
    Accept,
    Adapter,
    Caps,
    Click,
    Event,
    FileRef,
    Me,
    OutFile,
    Part,
    Place,
    Ref,
    Signal,
    Unreachable,
)
from deerflow_app.channels.adapters import feishu_events
from deerflow_app.channels.adapters.feishu_api import FeishuApi
from deerflow_app.channels.adapters.feishu_card import card_of
from deerflow_app.channels.adapters.feishu_frames import CONTROL, Assembly, FeishuFrame
from deerflow_app.channels.wire import allowed, and_behind, limited, name_of, socket, understood

logger = logging.getLogger(__name__)

_TOAST_WAIT = 2.0
"""Seconds for which the acknowledgement of a click waits for its notice; Feishu waits 3."""
_STREAM_CLOSED, _OVERTAKEN = {300309, 200850}, 300317
_EMOJI = {Signal.SEEN: "OK", Signal.JOINED: "JIAYI", Signal.DONE: "DONE", Signal.FAILED: "CrossMark"}
_IMAGES = {"image/jpeg", "image/png", "image/webp", "image/gif", "image/bmp", "image/tiff", "image/x-icon"}
_IMAGE_BYTES = 10 << 20
_FILE_TYPES = {
    ".pdf": "pdf",
    ".doc": "doc",
    ".docx": "doc",
    ".xls": "xls",
    ".xlsx": "xls",
    ".ppt": "ppt",
    ".pptx": "ppt",
}


class Feishu(Adapter):
    """One custom app.

    Args:
        domain: ``https://open.feishu.cn`` or, for Lark, ``https://open.larksuite.com``.
        streaming: show text as it is written, with CardKit; needs the scopes ``cardkit:card:write`` and ``…:read``. Without it cards are replaced.
    """

    caps: Caps = Caps(
        "feishu",
        edit_every=0.5,
        post_every=0.25,
        buttons=20,
        signals=frozenset(_EMOJI),
        file_in=100 << 20,
        file_out=30 << 20,
        key_window=3600.0,
        ack_seconds=3.0,
    )

    def __init__(
        self, app_id: str, app_secret: str, *, domain: str = "https://open.feishu.cn", streaming: bool = False
    ) -> None:
        self._app_id, self._domain, self._streaming = app_id, domain, streaming
        self._api = FeishuApi(domain, app_id, app_secret)
        self._me = ""
        self._notices: dict[str, asyncio.Future[str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def identify(self) -> Me:
        bot = (await self._api.call("GET", "/bot/v3/info"))["bot"]
        self._me = bot["open_id"]
        return Me(self._me, bot.get("app_name", ""), link=self.link)

    @property
    def link(self) -> str:
        """The address where a person begins a chat; empty for a domain that is not Feishu's."""
        applinks = self._domain.replace("//open.", "//applink.")
        return f"{applinks}/client/bot/open?appId={self._app_id}" if applinks != self._domain else ""

    async def listen(self, accept: Accept, cursor: str, connected: Callable[[], None]) -> None:
        if not self._me:
            await self.identify()
        url, service, every = await self._api.connection()
        assembly = Assembly()
        async with socket(url) as link:
            connected()
            async for batch in _batches(link, FeishuFrame(service, CONTROL, {"type": "ping"}).dump(), every):
                received = [one for raw in batch if (one := self._read(raw, assembly))]
                await self._take(link, received, accept)

    def _read(self, raw: bytes | str, assembly: Assembly) -> tuple[FeishuFrame, Sequence[Event]] | None:
        """Return a frame that shall be acknowledged and its events."""
        try:
            frame = FeishuFrame.load(raw if isinstance(raw, bytes) else raw.encode())
            whole = None if frame.method == CONTROL else assembly.add(frame)
            event = None if whole is None else feishu_events.opened(whole)
        except ValueError as error:
            logger.warning("A frame of Feishu was passed over: %s.", error)
            return None
        return None if event is None else (frame, understood(self._events, event, "Feishu"))

    def _events(self, event: Mapping[str, Any]) -> list[Event]:
        found = feishu_events.read(event, self._me)
        return [found] if found else []

    async def _take(
        self, link: ClientConnection, received: Sequence[tuple[FeishuFrame, Sequence[Event]]], accept: Accept
    ) -> None:
        events = [event for _, found in received for event in found]
        clicks = [event.click_id for event in events if isinstance(event, Click)]
        notices = {click_id: asyncio.get_running_loop().create_future() for click_id in clicks}
        self._notices |= notices  # before they are accepted: the notice may come at once
        try:
            if events:
                await accept(events, None)
        except BaseException:
            for click_id in clicks:
                self._notices.pop(click_id, None)
            raise
        for frame, found in received:
            if found and isinstance(found[0], Click):
                click_id = found[0].click_id
                task = asyncio.create_task(self._acknowledge_click(link, frame, click_id, notices[click_id]))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            else:
                await link.send(frame.answer(b'{"code":200}').dump())

    async def _acknowledge_click(
        self, link: ClientConnection, frame: FeishuFrame, click_id: str, waiting: asyncio.Future[str]
    ) -> None:
        answer: dict[str, Any] = {"code": 200}
        try:
            async with asyncio.timeout(_TOAST_WAIT):
                if notice := await waiting:
                    toast = json.dumps({"toast": {"type": "info", "content": notice}})
                    answer["data"] = base64.b64encode(toast.encode()).decode()
        except TimeoutError:
            pass  # the notice will come as a message
        finally:
            self._notices.pop(click_id, None)
        with suppress(ConnectionClosed):  # the click is stored; Feishu shows the person an error of its own
            await link.send(frame.answer(json.dumps(answer).encode()).dump())

    async def answered(self, click: Click, notice: str) -> None:
        waiting = self._notices.get(click.click_id)
        if waiting and not waiting.done():
            waiting.set_result(notice)
        elif notice and (person := click.wake.get("open_id")):
            content = _json({"text": notice})
            message = {"receive_id": person, "msg_type": "text", "content": content, "uuid": click.click_id[:50]}
            await self._api.call("POST", "/im/v1/messages", params={"receive_id_type": "open_id"}, json=message)

    async def post(self, place: Place, part: Part, key: str, wake: Mapping[str, Any]) -> Ref:
        is_streaming = self._streaming and not part.is_final and not part.buttons
        sent = await self._send(place, "interactive", card_of(place, part, is_streaming=is_streaming), key)
        if not is_streaming:
            return sent
        # Asked of the message, since a card made beforehand would be another one when the key is used again.
        found = await self._api.call(
            "POST", "/cardkit/v1/cards/id_convert", repeatable=True, json={"message_id": sent["id"]}
        )
        return {**sent, "card": found["data"]["card_id"], "is_streaming": True}

    async def _send(self, place: Place, kind: str, content: Mapping[str, Any], key: str) -> dict[str, Any]:
        message: dict[str, Any] = {"msg_type": kind, "content": _json(content), "uuid": key}
        if place.topic:
            path = f"/im/v1/messages/{place.topic}/reply"
            sent = await self._api.call("POST", path, json={**message, "reply_in_thread": True})
        else:
            to = {"receive_id_type": "chat_id"}
            sent = await self._api.call(
                "POST", "/im/v1/messages", params=to, json={**message, "receive_id": place.chat}
            )
        return {"id": sent["data"]["message_id"]}

    async def edit(self, place: Place, ref: Ref, part: Part, seq: int) -> Ref:
        if "card" in ref:
            return await self._edit_card(place, ref, part, seq)
        content = {"content": _json(card_of(place, part))}
        await self._api.call("PATCH", f"/im/v1/messages/{ref['id']}", repeatable=True, json=content)
        return ref

    async def _edit_card(self, place: Place, ref: Ref, part: Part, seq: int) -> Ref:
        """An edit is at most two calls, and each has a sequence number of its own, greater than all before."""
        path, first, second = f"/cardkit/v1/cards/{ref['card']}", 2 * seq + 1, 2 * seq + 2
        if ref["is_streaming"] and not part.is_final and not part.buttons:
            text = {"content": part.text, "sequence": first}
            if await self._change("PUT", f"{path}/elements/text/content", text) not in _STREAM_CLOSED:
                return ref
        elif ref["is_streaming"]:  # a click cannot change a card that still streams
            settings = {"settings": json.dumps({"config": {"streaming_mode": False}}), "sequence": first}
            await self._change("PATCH", f"{path}/settings", settings)
        card = {"type": "card_json", "data": _json(card_of(place, part, card=ref["card"]))}
        await self._change("PUT", path, {"card": card, "sequence": second})
        return {**ref, "is_streaming": False}

    async def _change(self, method: str, path: str, body: Mapping[str, Any]) -> int:
        """Return the code: 0, that the stream was closed, or that this change, or a later one, has been made."""
        tolerated = _STREAM_CLOSED | {_OVERTAKEN}
        return (await self._api.call(method, path, repeatable=True, tolerated=tolerated, json=body))["code"]

    async def upload(self, place: Place, file: OutFile, key: str, wake: Mapping[str, Any]) -> Ref:
        allowed(file.name, file.size, self.caps.file_out)
        if file.mime in _IMAGES and file.size <= _IMAGE_BYTES:
            image = ({"image_type": "message"}, "image", file)
            kept = await self._api.call("POST", "/im/v1/images", repeatable=True, form=image)
            return await self._send(place, "image", {"image_key": kept["data"]["image_key"]}, key)
        kind = _FILE_TYPES.get(PurePosixPath(file.name).suffix.lower(), "stream")
        form = ({"file_type": kind, "file_name": name_of(file)}, "file", file)
        kept = await self._api.call("POST", "/im/v1/files", repeatable=True, form=form)
        return await self._send(place, "file", {"file_key": kept["data"]["file_key"]}, key)

    def fetch(self, file: FileRef) -> AsyncIterator[bytes]:
        limit = self.caps.file_in
        allowed(file.name, file.size, limit)
        path = f"/im/v1/messages/{file.key['message']}/resources/{file.key['file']}"
        return limited(self._api.download(path, {"type": file.key["type"]}), file.name, limit)

    async def signal(self, place: Place, message_id: str, signal: Signal, wake: Mapping[str, Any]) -> None:
        reaction = {"reaction_type": {"emoji_type": _EMOJI[signal]}}
        await self._api.call("POST", f"/im/v1/messages/{message_id}/reactions", repeatable=True, json=reaction)

    async def aclose(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await self._api.aclose()


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False)  # the limits count bytes


async def _batches(link: ClientConnection, ping: bytes, every: float) -> AsyncIterator[list[bytes | str]]:
    """Yield what has arrived, all at once, and keep the link alive. Raises Unreachable when a ping is not answered."""
    loop = asyncio.get_running_loop()
    due, is_alive = loop.time(), True
    while True:
        try:
            async with asyncio.timeout_at(due):
                first = await link.recv()
        except TimeoutError:
            if not is_alive:
                link.transport.abort()  # no one is there to say good-bye to
                raise Unreachable("Feishu does not answer on this connection any more.") from None
            await link.send(ping)
            due, is_alive = loop.time() + every, False
            continue
        is_alive = True
        yield await and_behind(link, first)
