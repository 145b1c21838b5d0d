"""WeCom (Enterprise WeChat): an AI bot on a long connection. https://developer.work.weixin.qq.com/document/path/101463"""

from __future__ import annotations

import asyncio
import hashlib
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from email.message import Message
from typing import Any
from urllib.parse import unquote

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CBC

from deerflow.features.channels.types import (
    Accept,
    Adapter,
    Caps,
    ChannelError,
    Click,
    Event,
    FileRef,
    Inbound,
    Me,
    OutFile,
    Part,
    Place,
    Ref,
    Refused,
    Uncertain,
)
from deerflow_app.channels.adapters.wecom_events import UNNAMED, card_of, events_of
from deerflow_app.channels.adapters.wecom_link import Ended, Frame, WeComLink
from deerflow_app.channels.ciphers import decrypted, md5_of
from deerflow_app.channels.wire import Http, allowed, limited, name_of, understood, whole

CAPS = Caps(
    dialect="wecom",
    post_every=2.0,  # 30 messages a minute in one chat
    buttons=6,
    file_in=100_000_000,
    file_out=20 << 20,
    replays=False,
)
IMAGE = 2 << 20
PIECE = 512 << 10
PRESSED = 4.5
"""Seconds for which a click allows to change its card; WeCom names five."""


class WeCom(Adapter):
    """A bot.

    An answer hangs on the callback of the message that it answers, as a stream that can be changed for some minutes and until it is
    finished. What belongs to no callback, or to one that is too old, is a message of its own, which can never be changed. Buttons are a
    message of their own below a finished text: a card beside a stream is not shown on a long connection, and one below progress could
    never be taken away.

    Args:
        working_message: stands in a placeholder that has no text of its own.
        ping_every, patience: see :class:`WeComLink`.
    """

    def __init__(
        self,
        bot_id: str,
        secret: str,
        *,
        url: str = "wss://openws.work.weixin.qq.com",
        working_message: str = "Working on it...",
        ping_every: float = 30.0,
        patience: float = 5.0,
    ) -> None:
        self.caps = CAPS
        self._bot_id = bot_id
        self._working_message = working_message
        self._http = Http("")
        self._link = WeComLink(url, bot_id, secret, ping_every=ping_every, patience=patience)
        self._frames: deque[Frame] = deque()
        self._arrived = asyncio.Event()
        self._ended: deque[str] = deque(maxlen=1000)
        self._silent: deque[str] = deque(maxlen=1000)
        self._worded: deque[tuple[str, str]] = deque(maxlen=1000)
        self._pressed: tuple[str, str, float] = ("", "", 0.0)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def identify(self) -> Me:
        await self._link.check()
        return Me(self._bot_id, "WeCom bot")

    async def listen(self, accept: Accept, cursor: str, connected: Callable[[], None]) -> None:
        tasks = [
            asyncio.create_task(self._store(accept)),
            asyncio.create_task(self._link.run(self._take, connected)),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _take(self, frame: Frame) -> None:
        self._frames.append(frame)
        self._arrived.set()

    async def _store(self, accept: Accept) -> None:
        """Hand on what has arrived. What is not accepted stays first in the row: WeCom does not deliver it again."""
        while True:
            while self._frames:
                frames = [self._frames[index] for index in range(min(100, len(self._frames)))]
                events = [await self._named(one) for frame in frames for one in understood(events_of, frame, "WeCom")]
                if events:
                    await accept(events, None)
                for _ in frames:
                    self._frames.popleft()
            self._arrived.clear()
            await self._arrived.wait()

    async def post(self, place: Place, part: Part, key: str, wake: Mapping[str, Any]) -> Ref:
        req_id, stream = str(wake.get("req_id", "")), f"df-{key}"
        ref: dict[str, Any] = {"id": stream}
        if (stream, _shown(part)) not in self._worded:
            if await self._respond(req_id, {"msgtype": "stream", "stream": self._stream(stream, part)}):
                ref |= {"req_id": req_id, "stream": stream, "shown": _shown(part)}
            else:
                await self._send(place, {"msgtype": "markdown", "markdown": {"content": part.text}})
        return {**ref, **await self._carded(place, part, stream)}

    async def edit(self, place: Place, ref: Ref, part: Part, seq: int) -> Ref:
        """Change a stream, or a card that was just pressed. Raises Refused if neither is possible any more, and Uncertain without
        an acknowledgement: a stream that ended meanwhile may show the text already."""
        shown = _shown(part)
        if shown and ref.get("shown") == shown:
            return ref
        if await self._updated(str(ref.get("task", "")), part):
            return {**ref, "shown": shown}
        if (stream := ref.get("stream")) and not ref["shown"]:
            body = {"msgtype": "stream", "stream": self._stream(stream, part)}
            if (stream, shown) in self._worded or await self._respond(ref["req_id"], body):
                return {**ref, "shown": shown, **await self._carded(place, part, stream)}
        raise Refused("WeCom no longer lets this message be changed.")

    async def upload(self, place: Place, file: OutFile, key: str, wake: Mapping[str, Any]) -> Ref:
        allowed(file.name, file.size, self.caps.file_out)
        kind = "image" if file.mime in ("image/png", "image/jpeg") and file.size <= IMAGE else "file"
        begin = {
            "type": kind,
            "filename": name_of(file),
            "total_size": file.size,
            "total_chunks": -(-file.size // PIECE),
            "md5": await md5_of(file),
        }
        upload_id = (await self._link.call("aibot_upload_media_init", begin, repeatable=True))["upload_id"]
        number = 0
        async for piece in _even(whole(file), PIECE):
            body = {"upload_id": upload_id, "chunk_index": number, "base64_data": b64encode(piece).decode()}
            await self._link.call("aibot_upload_media_chunk", body, repeatable=True)
            number += 1
        made = await self._link.call("aibot_upload_media_finish", {"upload_id": upload_id}, repeatable=True)
        if file.caption:
            await self.post(place, Part(file.caption), f"{key}-c", wake)
        said = {"msgtype": kind, kind: {"media_id": made["media_id"]}}
        if not await self._respond(str(wake.get("req_id", "")), said):
            await self._send(place, said)
        return {"id": made["media_id"]}

    async def fetch(self, file: FileRef) -> AsyncIterator[bytes]:
        allowed(file.name, file.size, self.caps.file_in)
        async with self._http.stream(file.key["url"]) as answer:
            pieces = answer.aiter_bytes()
            if file.key["aes_key"]:
                secret = b64decode(file.key["aes_key"] + "==")
                pieces = decrypted(pieces, Cipher(AES256(secret), CBC(secret[:16])), 32)
            async for piece in limited(pieces, file.name, self.caps.file_in):
                yield piece

    async def answered(self, click: Click, notice: str) -> None:
        """Remember the click, since its card can be changed for a moment; a notice takes its place for the clicker alone."""
        self._pressed = (click.ref["task"], click.wake["req_id"], asyncio.get_running_loop().time())
        if notice:
            await self._updated(click.ref["task"], Part(notice), [click.author.id])

    async def _named(self, event: Event) -> Event:
        """Return a message with the names of its files, which only the answers at their addresses tell."""
        if not isinstance(event, Inbound) or all(file.name != UNNAMED for file in event.files):
            return event
        return replace(event, files=[await self._name(file) if file.name == UNNAMED else file for file in event.files])

    async def _name(self, file: FileRef) -> FileRef:
        try:
            async with self._http.stream(file.key["url"], headers={"range": "bytes=0-0"}) as answer:
                head = Message()
                head["content-disposition"] = said = answer.headers.get("content-disposition", "")
                name = head.get_filename("")
                return replace(file, name=(name if "filename*" in said else unquote(name)) or file.name)
        except ChannelError:
            return file  # fetching it will say why

    async def _respond(self, req_id: str, body: Mapping[str, Any]) -> bool:
        """Answer a callback. Return False if it takes no answers any more."""
        if not req_id or req_id in self._ended:
            return False
        try:
            await self._link.call("aibot_respond_msg", body, req_id=req_id)
        except Ended:
            self._ended.append(req_id)
            return False
        except Uncertain:
            (self._ended if req_id in self._silent else self._silent).append(req_id)  # twice is once too often
            raise
        return True

    async def _send(self, place: Place, body: Mapping[str, Any]) -> None:
        chat = {"chatid": place.chat, "chat_type": 1 if place.is_private else 2}
        await self._link.call("aibot_send_msg", {**chat, **body})

    async def _carded(self, place: Place, part: Part, stream: str) -> Ref:
        """Send the buttons of a finished text, and return the name of their card. Another try sends the card alone."""
        if not (part.is_final and part.buttons):
            return {}
        self._worded.append((stream, _shown(part)))
        await self._send(place, {"msgtype": "template_card", "template_card": card_of(part, stream)})
        return {"task": stream}

    async def _updated(self, task: str, part: Part, people: Sequence[str] = ()) -> bool:
        """Change a card that was pressed a moment ago, for all or for some. Return False if it is too late."""
        pressed, req_id, moment = self._pressed
        if not task or task != pressed or asyncio.get_running_loop().time() - moment > PRESSED:
            return False
        body = {"response_type": "update_template_card", "template_card": card_of(part, task)}
        try:
            limits = {"userids": list(people)} if people else {}
            await self._link.call("aibot_respond_update_msg", {**body, **limits}, req_id=req_id)
        except (Ended, Refused):
            return False
        return True

    def _stream(self, stream: str, part: Part) -> dict[str, Any]:
        content = part.text if part.is_final or part.text.strip(" .…") else self._working_message
        return {"id": stream, "finish": part.is_final, "content": content}


def _shown(part: Part) -> str:
    """Return a mark of what a finished message shows; nothing while it is not finished."""
    return hashlib.sha256(part.text.encode()).hexdigest()[:16] if part.is_final else ""


async def _even(pieces: AsyncIterator[bytes], size: int) -> AsyncIterator[bytes]:
    """Yield the same bytes in pieces of ``size``."""
    kept = bytearray()
    async for piece in pieces:
        kept += piece
        while len(kept) >= size:
            yield bytes(kept[:size])
            del kept[:size]
    if kept:
        yield bytes(kept)
