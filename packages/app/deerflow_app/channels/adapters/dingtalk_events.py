"""Callbacks of DingTalk as messages and clicks: pure functions over the JSON that the stream brings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from deerflow.features.channels.types import Author, Click, FileRef, Inbound, Place

MESSAGE, CLICK = "/v1.0/im/bot/messages/get", "/v1.0/card/instances/callback"
_NAMES = {"picture": "image.png", "audio": "voice.amr", "video": "video.mp4"}


def message(data: Mapping[str, Any]) -> Inbound | None:
    """Return the message of a callback, or None if its author belongs to no company: such a person has no stable ID.

    Raises:
        KeyError, TypeError, ValueError: the callback does not have the shape that DingTalk documents.
    """
    staff = data.get("senderStaffId")
    if not staff:
        return None
    is_private = data["conversationType"] == "1"
    text, files = _content(data)
    quoted = _quoted(data.get("text") or {})
    return Inbound(
        data["msgId"],
        # Private messages are sent to a person, not to a conversation.
        Place(staff if is_private else data["conversationId"], "", is_private, _line(data.get("conversationTitle"))),
        Author(staff, data.get("senderCorpId") or "", _line(data.get("senderNick"))),
        datetime.fromtimestamp(int(data["createAt"]) / 1000, UTC),
        text.strip(),
        files,
        is_mention=bool(data.get("isInAtList") or data.get("originalProcessQueryKey")),
        reply_to=data.get("originalProcessQueryKey") or data.get("originalMsgId") or "",
        quoted=quoted,
    )


def click(data: Mapping[str, Any], frame_id: str) -> Click | None:
    """Return the click of a callback, None if the button is not one of ours."""
    content = data["content"]
    params = (json.loads(content) if isinstance(content, str) else content)["cardPrivateData"].get("params") or {}
    if "key" not in params or not data.get("userId"):
        return None
    is_private = str(params.get("private", "")).lower() == "true"  # templates make strings of values
    place = Place(data["userId"] if is_private else str(params.get("chat", "")), "", is_private)
    author = Author(data["userId"], data.get("corpId") or "")
    return Click(
        frame_id, place, author, str(params["key"]), {"id": data["outTrackId"], "is_card": True, "is_done": True}
    )


def _line(name: Any) -> str:
    return " ".join(str(name or "").split())


def _content(data: Mapping[str, Any]) -> tuple[str, list[FileRef]]:
    kind, content = data["msgtype"], data.get("content") or {}
    if kind == "text":
        return data["text"]["content"], []
    if kind == "richText":
        pieces = content["richText"]
        files = [one for piece in pieces for one in _files(piece.get("type", ""), piece)]
        return "".join(piece.get("text", "") for piece in pieces), files
    if kind == "audio" and content.get("recognition"):
        return content["recognition"], []  # DingTalk has already written it down
    if files := list(_files(kind, content)):
        return "", files
    return f"[{kind}]", []


def _files(kind: str, content: Mapping[str, Any]) -> Iterator[FileRef]:
    if code := content.get("downloadCode"):
        name = content.get("fileName") or _NAMES.get(kind, "file")
        yield FileRef(name, {"code": code}, is_voice=kind == "audio")


def _quoted(text: Mapping[str, Any]) -> str:
    """Return the text of the message that this one replies to."""
    content = (text.get("repliedMsg") or {}).get("content") or {}
    if not isinstance(content, Mapping):
        return str(content)
    pieces = content.get("richText")
    return "".join(one.get("text", "") for one in pieces) if pieces else str(content.get("text") or "")
