"""Messages of Discord to ours and back. https://docs.discord.com/developers/resources/message"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from deerflow.features.channels.types import Author, Button, Click, Event, FileRef, Inbound, Part, Place

_WRITTEN = {0, 19}
"""Types of messages that a person wrote: plain ones and replies. All others are notes of Discord."""
_VOICE = 1 << 13
_COMPONENT = 3
_STYLES = {"": 2, "primary": 1, "danger": 4}
_IN_A_ROW = 5


def is_written(data: Mapping[str, Any], me: str) -> bool:
    """Return whether another account than ``me`` wrote this message."""
    return data["author"]["id"] != me and data.get("type", 0) in _WRITTEN


def replies_to(data: Mapping[str, Any], me: str) -> bool:
    return (data.get("referenced_message") or {}).get("author", {}).get("id") == me


def events(kind: str, data: Mapping[str, Any], me: str) -> list[Event]:
    """Return the event in a dispatch, if it is one of a person; its place is the channel alone."""
    place = Place(data.get("channel_id", ""), is_private=not data.get("guild_id"))
    if kind == "MESSAGE_CREATE" and is_written(data, me):
        return [inbound(data, place, me)]
    if kind == "INTERACTION_CREATE" and data["type"] == _COMPONENT:
        return [click(data, place)]
    return []


def inbound(data: Mapping[str, Any], place: Place, me: str) -> Inbound:
    # Not by `mentions`: it also holds the author of a message that is replied to.
    mention, content = re.compile(rf"<@!?{me}>"), data.get("content", "").strip()
    is_mention = replies_to(data, me) or bool(mention.search(content))
    if ours := mention.match(content):
        content = content[ours.end() :].lstrip()
    text = _named(content, data.get("mentions", []))
    others = [one["message"].get("content", "") for one in data.get("message_snapshots", [])]
    if not replies_to(data, me):
        others.append((data.get("referenced_message") or {}).get("content", ""))
    return Inbound(
        data["id"],
        place,
        _author(data["author"], data.get("member"), is_webhook=bool(data.get("webhook_id"))),
        datetime.fromisoformat(data["timestamp"]),
        text,
        files=[_file(data, one) for one in data.get("attachments", [])],
        is_mention=is_mention,
        reply_to=(data.get("message_reference") or {}).get("message_id") or "",
        quoted="\n\n".join(filter(None, others)),
        wake={"channel": data["channel_id"], "guild": data.get("guild_id") or "", "title": " ".join(text.split())[:80]},
    )


def click(data: Mapping[str, Any], place: Place) -> Click:
    member = data.get("member")
    return Click(
        data["id"],
        place,
        _author(member["user"] if member else data["user"], member),
        data["data"]["custom_id"],
        {"channel": data["channel_id"], "id": data["message"]["id"]},
        {"id": data["id"], "token": data["token"], "guild": data.get("guild_id") or ""},
    )


def body(part: Part) -> dict[str, Any]:
    """Return a message to send: it pings no one, whatever stands in it."""
    rows = [part.buttons[at : at + _IN_A_ROW] for at in range(0, len(part.buttons), _IN_A_ROW)]
    return {"content": part.text, "allowed_mentions": {"parse": []}, "components": [_row(row) for row in rows]}


def _row(buttons: Sequence[Button]) -> dict[str, Any]:
    return {
        "type": 1,
        "components": [
            {"type": 2, "style": _STYLES[one.style], "label": one.label[:80], "custom_id": one.key} for one in buttons
        ],
    }


def _author(user: Mapping[str, Any], member: Mapping[str, Any] | None, *, is_webhook: bool = False) -> Author:
    name = (member or {}).get("nick") or user.get("global_name") or user["username"]
    return Author(user["id"], name=name, is_bot=is_webhook or bool(user.get("bot")))


def _file(message: Mapping[str, Any], data: Mapping[str, Any]) -> FileRef:
    key = {"channel": message["channel_id"], "message": message["id"], "id": data["id"]}
    voice = bool(message.get("flags", 0) & _VOICE)
    return FileRef(data["filename"], key, data.get("size"), data.get("content_type") or "", is_voice=voice)


def _named(text: str, users: Sequence[Mapping[str, Any]]) -> str:
    """Write mentions of people as their names."""
    names = {user["id"]: user.get("global_name") or user["username"] for user in users}
    return re.sub(r"<@!?(\d+)>", lambda found: f"@{names[found[1]]}" if found[1] in names else found[0], text)
