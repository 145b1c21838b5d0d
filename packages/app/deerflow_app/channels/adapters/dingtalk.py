"""DingTalk: messages over the stream; answers as an AI card if there is a template for it, else as messages that stay as they are."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

from deerflow.features.channels.types import (
    Accept,
    Adapter,
    Button,
    Caps,
    Click,
    Event,
    FileRef,
    Later,
    Me,
    OutFile,
    Part,
    Place,
    Ref,
    Refused,
)
from deerflow_app.channels.adapters import dingtalk_events
from deerflow_app.channels.adapters.dingtalk_api import DingTalkApi
from deerflow_app.channels.wire import allowed, burst, limited, name_of, socket, understood

logger = logging.getLogger(__name__)

_IMAGES = {"image/jpeg", "image/png", "image/gif", "image/bmp"}
_WRITING, _DONE = "2", "3"
_COLORS = {"": "gray", "primary": "blue", "danger": "red"}
_FLOW_CONTROL = 60.0
_PLAIN = Caps("dingtalk", edits=False, post_every=3.0, file_in=100 << 20, file_out=20 << 20, ack_seconds=3.0)
"""A robot may send 20 messages a minute into a group, and is silenced for ten minutes if it sends more."""
_CARDS = Caps(
    "dingtalk",
    edit_every=1.0,
    buttons=6,
    file_in=100 << 20,
    file_out=20 << 20,
    key_window=3600.0,
    ack_seconds=3.0,
)


class DingTalk(Adapter):
    """The robot of one app.

    Args:
        card_template_id: an AI card of the card platform with the variables ``content`` (Markdown, streamed) and ``buttons``.
        robot_code: of the robot; apps made inside a company have it equal to the client ID.
        ping_every: seconds between two pings; without an answer to one the link counts as dead.
    """

    def __init__(
        self,
        client_id: str,
        client_secret: str,
        *,
        card_template_id: str = "",
        robot_code: str = "",
        api: str = "https://api.dingtalk.com",
        oapi: str = "https://oapi.dingtalk.com",
        ping_every: float = 20.0,
    ) -> None:
        self.caps: Caps = _CARDS if card_template_id else _PLAIN
        self._template, self._robot, self._ping_every = card_template_id, robot_code or client_id, ping_every
        self._api = DingTalkApi(client_id, client_secret, api, oapi)

    async def identify(self) -> Me:
        await self._api.sign_in()
        return Me(self._robot, "DingTalk robot")

    async def listen(self, accept: Accept, cursor: str, connected: Callable[[], None]) -> None:
        url = await self._api.connection((dingtalk_events.MESSAGE, dingtalk_events.CLICK))
        every = self._ping_every
        async with socket(url, ping_interval=every, ping_timeout=every) as link:
            connected()
            while True:
                frames = [one for raw in await burst(link) if (one := _frame(raw))]
                events = [event for frame in frames for event in understood(_events, frame, "DingTalk")]
                if events:
                    await accept(events, None)
                for frame in frames:
                    if frame["type"] == "SYSTEM" and frame["headers"]["topic"] == "disconnect":
                        return  # said before DingTalk closes; what was read before it has been acknowledged
                    await link.send(_acknowledgement(frame))

    async def post(self, place: Place, part: Part, key: str, wake: Mapping[str, Any]) -> Ref:
        if not self._template:
            title = part.text.strip().partition("\n")[0].lstrip("#>-* ")[:40] or "DeerFlow"
            return await self._send(place, "sampleMarkdown", {"title": title, "text": part.text})
        is_group = not place.is_private
        space = f"dtv1.card//{'IM_GROUP' if is_group else 'IM_ROBOT'}.{place.chat}"
        where: dict[str, Any] = (
            {"imGroupOpenDeliverModel": {"robotCode": self._robot}, "imGroupOpenSpaceModel": {"supportForward": True}}
            if is_group
            else {
                "imRobotOpenDeliverModel": {"spaceType": "IM_ROBOT"},
                "imRobotOpenSpaceModel": {"supportForward": True},
            }
        )
        card = {
            "cardTemplateId": self._template,
            "outTrackId": key,
            "callbackType": "STREAM",
            "cardData": {"cardParamMap": _variables(place, part)},
            "openSpaceId": space,
            "userIdType": 1,
            **where,
        }
        made = await self._api.call("POST", "/v1.0/card/instances/createAndDeliver", card)
        for delivery in (made.get("result") or {}).get("deliverResults") or ():
            if not delivery.get("success", True):
                raise Refused(f"DingTalk did not deliver the card: {delivery.get('errorMsg', '')}.")
        return {"id": key, "is_card": True, "is_done": _is_done(part)}

    async def edit(self, place: Place, ref: Ref, part: Part, seq: int) -> Ref:
        if "is_card" not in ref:
            raise Refused("DingTalk cannot change a message. Set card_template_id to answer with cards.")
        if not ref["is_done"]:
            content = {
                "outTrackId": ref["id"],
                "guid": f"{ref['id']}-{seq}",
                "key": "content",
                "content": part.text,
                "isFull": True,
                "isFinalize": _is_done(part),
                "isError": False,
            }
            await self._api.call("PUT", "/v1.0/card/streaming", content, repeatable=True)
        if ref["is_done"] or _is_done(part):  # a stream ends once, and neither state nor buttons are part of it
            card = {
                "outTrackId": ref["id"],
                "cardData": {"cardParamMap": _variables(place, part)},
                "cardUpdateOptions": {"updateCardDataByKey": True},
            }
            await self._api.call("PUT", "/v1.0/card/instances", card, repeatable=True)
        return {**ref, "is_done": ref["is_done"] or _is_done(part)}

    async def _send(self, place: Place, kind: str, content: Mapping[str, Any]) -> Ref:
        message: dict[str, Any] = {"robotCode": self._robot, "msgKey": kind, "msgParam": _json(content)}
        if not place.is_private:
            body = {**message, "openConversationId": place.chat}
            sent = await self._api.call("POST", "/v1.0/robot/groupMessages/send", body)
            return {"id": sent.get("processQueryKey", "")}
        body = {**message, "userIds": [place.chat]}
        sent = await self._api.call("POST", "/v1.0/robot/oToMessages/batchSend", body)
        if sent.get("invalidStaffIdList"):
            raise Refused("DingTalk knows no such person in the company, or the robot is not visible to them.")
        if sent.get("flowControlledStaffIdList"):
            raise Later("DingTalk holds back messages to this person for a while.", _FLOW_CONTROL)
        return {"id": sent.get("processQueryKey", "")}

    async def upload(self, place: Place, file: OutFile, key: str, wake: Mapping[str, Any]) -> Ref:
        allowed(file.name, file.size, self.caps.file_out)
        media = await self._api.upload("image" if file.mime in _IMAGES else "file", file)
        if file.mime in _IMAGES:
            return await self._send(place, "sampleImageMsg", {"photoURL": media})
        name = name_of(file)
        suffix = PurePosixPath(name).suffix.lstrip(".").lower() or "file"
        return await self._send(place, "sampleFile", {"mediaId": media, "fileName": name, "fileType": suffix})

    def fetch(self, file: FileRef) -> AsyncIterator[bytes]:
        limit = self.caps.file_in
        allowed(file.name, file.size, limit)
        return limited(self._api.download(file.key["code"], self._robot), file.name, limit)

    async def answered(self, click: Click, notice: str) -> None:
        if notice:
            await self._send(Place(click.author.id, is_private=True), "sampleText", {"content": notice})

    async def aclose(self) -> None:
        await self._api.aclose()


def _frame(raw: bytes | str) -> dict[str, Any] | None:
    """Return a frame with its data, which DingTalk sends as JSON in a string."""
    try:
        frame = json.loads(raw)
        if all(
            isinstance(one, str) for one in (frame["type"], frame["headers"]["messageId"], frame["headers"]["topic"])
        ):
            return {**frame, "data": json.loads(frame.get("data") or "{}")}
    except (KeyError, TypeError, ValueError):
        pass
    logger.warning("A frame of DingTalk was passed over, since it cannot be read.")
    return None


def _events(frame: Mapping[str, Any]) -> list[Event]:
    topic, event = frame["headers"]["topic"], None
    if topic == dingtalk_events.CLICK:
        event = dingtalk_events.click(frame["data"], frame["headers"]["messageId"])
    elif topic == dingtalk_events.MESSAGE:
        event = dingtalk_events.message(frame["data"])
        if event is None:
            logger.info("A message was left out, since DingTalk names no member of the company as its author.")
    return [event] if event else []


def _acknowledgement(frame: Mapping[str, Any]) -> str:
    """A ping is answered with what it brought, an event with its status, a callback with an empty response."""
    data = {"SYSTEM": frame["data"], "EVENT": {"status": "SUCCESS"}}.get(frame["type"], {"response": None})
    headers = {"messageId": frame["headers"]["messageId"], "contentType": "application/json"}
    return json.dumps({"code": 200, "message": "OK", "headers": headers, "data": json.dumps(data)})


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False)  # the limits count bytes


def _is_done(part: Part) -> bool:
    """A card with buttons waits for a person, so it must not look as if it were still being written."""
    return part.is_final or bool(part.buttons)


def _variables(place: Place, part: Part) -> dict[str, str]:
    buttons = _json([_button(place, one) for one in part.buttons])
    return {"content": part.text, "buttons": buttons, "flowStatus": _DONE if _is_done(part) else _WRITING}


def _button(place: Place, button: Button) -> dict[str, Any]:
    params = {"key": button.key, "chat": place.chat, "private": str(place.is_private).lower()}
    event = {"type": "sendCardRequest", "params": {"actionId": button.key, "params": params}}
    return {"text": button.label, "color": _COLORS[button.style], "status": "normal", "event": event}
