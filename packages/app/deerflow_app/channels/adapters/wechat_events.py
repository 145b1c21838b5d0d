"""Messages of WeChat as events."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from deerflow.features.channels.types import Author, Event, FileRef, Inbound, Place, Refused

TEXT, PICTURE, VOICE, FILE, VIDEO = 1, 2, 3, 4, 5
_MEDIA = {
    PICTURE: ("image_item", "image.jpg"),
    VOICE: ("voice_item", "voice.silk"),
    FILE: ("file_item", "file"),
    VIDEO: ("video_item", "video.mp4"),
}


def events_of(message: Mapping[str, Any]) -> Sequence[Event]:
    """Return a person's message as an event; what bots wrote, we among them, is none."""
    if message["message_type"] != 1:
        return ()
    texts: list[str] = []
    quotes: list[str] = []
    files: list[FileRef] = []
    for item in message.get("item_list") or ():
        texts += _texts(item)
        files += _files(item)
        if quoted := item.get("ref_msg"):
            quotes += [str(quoted.get("title") or ""), *_texts(quoted.get("message_item") or {})]
    if not texts and not files:
        return ()  # of a kind that says nothing to us
    sender, group = str(message["from_user_id"]), str(message.get("group_id") or "")
    moment = datetime.fromtimestamp(message["create_time_ms"] / 1000, UTC)
    return [
        Inbound(
            message_id=str(
                message.get("message_id") or f"{sender}:{message['create_time_ms']}:{message.get('seq', 0)}"
            ),
            place=Place(group or sender, is_private=not group),
            author=Author(sender, name=sender.partition("@")[0]),
            sent_at=moment,
            text="\n".join(texts),
            files=files,
            quoted="\n".join(quote for quote in quotes if quote),
            wake={"context_token": str(message.get("context_token") or "")},
        )
    ]


def _texts(item: Mapping[str, Any]) -> list[str]:
    if item.get("type") == TEXT:
        return [str(item["text_item"]["text"])]
    said = item["voice_item"].get("text") if item.get("type") == VOICE else None
    return [str(said)] if said else []  # of a voice message, what WeChat understood


def _files(item: Mapping[str, Any]) -> list[FileRef]:
    name, default = _MEDIA.get(item.get("type", 0), ("", ""))
    found = item.get(name) or {}
    media = found.get("media") or {}
    if not media.get("encrypt_query_param") or (item["type"] == VOICE and found.get("text")):
        return []
    key = {
        "query": str(media["encrypt_query_param"]),
        "aes_key": str(found.get("aeskey") or media.get("aes_key") or ""),
    }
    size = int(found["len"]) if str(found.get("len", "")).isdigit() else None
    return [FileRef(str(found.get("file_name") or default), key, size, is_voice=item["type"] == VOICE)]


def secret_of(key: str) -> bytes:
    """Return the 16 bytes of a key, which comes as hex, as base64 of its bytes, or as base64 of hex."""
    try:
        raw = bytes.fromhex(key) if len(key) == 32 else b64decode(key)
        return bytes.fromhex(raw.decode()) if len(raw) == 32 else raw
    except ValueError:
        raise Refused("The file's key cannot be read. Please send it again.") from None
