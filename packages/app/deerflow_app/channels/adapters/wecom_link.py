"""The long connection to WeCom: JSON frames, of which each is acknowledged by one with the same request id."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from deerflow.features.channels.types import (
    ChannelError,
    Displaced,
    Later,
    Refused,
    SignedOut,
    Uncertain,
    Unreachable,
)
from deerflow_app.channels.wire import AFTER, socket

logger = logging.getLogger(__name__)
Frame = Mapping[str, Any]
_ENDED = {846605: "invalid req_id", 846608: "stream update expired"}
_BUSY = {-1, 45009, 45033}


class Ended(ChannelError):
    """A callback takes no more answers."""


class WeComLink:
    """One connection at a time: WeCom ends an older one of the same bot.

    Args:
        ping_every: seconds between two signs of life.
        patience: seconds for an acknowledgement, and for a link to come back.
    """

    def __init__(self, url: str, bot_id: str, secret: str, *, ping_every: float, patience: float) -> None:
        self._url = url
        self._sign_in = {"bot_id": bot_id, "secret": secret}
        self._ping_every = ping_every
        self._patience = patience
        self._link: ClientConnection | None = None
        self._up = asyncio.Event()
        self._waiting: dict[str, asyncio.Future[Frame]] = {}

    async def check(self) -> None:
        """Sign in, or use the link that stands, which a second one would end."""
        if self._link is not None:
            await self.call("ping", {}, req_id=f"identify_{uuid4().hex}", repeatable=True)
            return
        async with socket(self._url, ping_interval=None) as link:
            await self._subscribe(link, lambda _: None)

    async def run(self, arrived: Callable[[Frame], None], connected: Callable[[], None]) -> None:
        """Hand each callback on until the link has ended."""
        async with socket(self._url, ping_interval=None) as link:
            await self._subscribe(link, arrived)
            self._link = link
            self._up.set()
            connected()
            beat = asyncio.create_task(self._beat(link))
            try:
                async for raw in link:
                    self._take(_frame(raw), arrived)
            finally:
                self._link = None
                self._up.clear()
                beat.cancel()
                await asyncio.gather(beat, return_exceptions=True)
                for answer in self._waiting.values():
                    if not answer.done():
                        answer.set_exception(ConnectionError())

    async def call(self, cmd: str, body: Frame, *, req_id: str = "", repeatable: bool = False) -> Frame:
        """Send a frame and return the body of its acknowledgement.

        Args:
            req_id: of the callback that it answers.
            repeatable: doing it twice is as doing it once.

        Raises:
            Unreachable: there is no link, or no acknowledgement came and it is repeatable. Uncertain: no acknowledgement came.
            Ended: the callback is too old. Later and Refused, as WeCom says.
        """
        req_id = req_id or f"{cmd}_{uuid4().hex}"
        try:
            async with asyncio.timeout(self._patience):
                await self._up.wait()
                while (other := self._waiting.get(req_id)) is not None:
                    await asyncio.wait([other])
        except TimeoutError:
            raise Unreachable("There is no link to WeCom.") from None
        lost = Unreachable if repeatable else Uncertain
        answer = self._waiting[req_id] = asyncio.get_running_loop().create_future()
        try:
            await self._send(cmd, body, req_id)
            async with asyncio.timeout(self._patience):
                return _checked(await answer)
        except TimeoutError:
            raise lost("WeCom did not acknowledge in time.") from None
        except ConnectionError:
            raise lost("The link to WeCom ended before the acknowledgement.") from None
        finally:
            del self._waiting[req_id]

    async def _send(self, cmd: str, body: Frame, req_id: str) -> None:
        try:
            assert self._link is not None
            await self._link.send(json.dumps({"cmd": cmd, "headers": {"req_id": req_id}, "body": body}))
        except ConnectionClosed:
            raise Unreachable("The link to WeCom has ended.") from None

    async def _subscribe(self, link: ClientConnection, arrived: Callable[[Frame], None]) -> None:
        req_id = f"aibot_subscribe_{uuid4().hex}"
        await link.send(json.dumps({"cmd": "aibot_subscribe", "headers": {"req_id": req_id}, "body": self._sign_in}))
        try:
            async with asyncio.timeout(self._patience):
                while _request(frame := _frame(await link.recv())) != req_id:
                    self._take(frame, arrived)
        except TimeoutError:
            raise Unreachable("WeCom did not answer the sign-in.") from None
        try:
            _checked(frame)
        except Refused as refused:
            raise SignedOut(
                f"{refused} Copy the bot's ID and secret again from WeCom: Workbench, AI bots, API mode, long connection."
            ) from None

    def _take(self, frame: Frame, arrived: Callable[[Frame], None]) -> None:
        if "cmd" not in frame:
            answer = self._waiting.get(_request(frame))
            if answer is not None and not answer.done():
                answer.set_result(frame)
            return
        body = frame.get("body")
        event = body.get("event") if isinstance(body, dict) else None
        if isinstance(event, dict) and event.get("eventtype") == "disconnected_event":
            raise Displaced("Another program has connected with this bot's ID and secret.")
        arrived(frame)

    async def _beat(self, link: ClientConnection) -> None:
        while True:
            await asyncio.sleep(self._ping_every)
            try:
                await self.call("ping", {}, repeatable=True)
            except Unreachable as error:
                logger.info("The link to WeCom is silent: %s", error)
                link.transport.abort()
                return
            except ChannelError:
                pass  # it was answered, so the link lives


def _frame(raw: str | bytes) -> Frame:
    try:
        frame = json.loads(raw)
    except ValueError:
        frame = None
    if not isinstance(frame, dict):
        logger.warning("WeCom sent a frame that is no JSON object; it was passed over.")
        return {}
    return frame


def _request(frame: Frame) -> str:
    headers = frame.get("headers")
    return str(headers.get("req_id", "")) if isinstance(headers, dict) else ""


def _checked(frame: Frame) -> Frame:
    code, why = frame.get("errcode", 0), frame.get("errmsg", "")
    if code in _ENDED:
        raise Ended(_ENDED[code])
    if code in _BUSY:
        raise Later(f"WeCom asks for a pause ({code} {why}).", AFTER)
    if code:
        raise Refused(f"WeCom refused it: {code} {why}.")
    return frame.get("body") or {}
