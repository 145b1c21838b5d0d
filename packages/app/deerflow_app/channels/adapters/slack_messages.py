"""Slack's messages: events and clicks as ours, parts and buttons as Slack's. Pure functions beside the adapter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from deerflow.features.channels.types import Author, Click, Event, FileRef, Inbound, Me, Part, Place, Ref

SECTION = 3_000
NOTICE = 900
"""Characters of a message that a notification shows; 4,000 bytes are allowed."""
_WRITTEN = {"", "file_share", "thread_broadcast", "me_message"}
_ANGLE = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")


def events(envelope: Mapping[str, Any], me: Me) -> Sequence[Event]:
    """Return what an envelope of Socket Mode brings."""
    payload = envelope["payload"]
    match envelope["type"], payload.get("type"):
        case "events_api", "event_callback" if payload["event"]["type"] in ("message", "app_mention"):
            return written(payload["event"], payload["team_id"], me)
        case "interactive", "block_actions":
            return list(_clicks(payload, me))
    return ()


def written(event: Mapping[str, Any], team: str, me: Me) -> Sequence[Event]:
    """Return what a person wrote, nothing for a bot. ``message`` and ``app_mention`` both come for one text, under one id."""
    is_written = event.get("subtype", "") in _WRITTEN and "bot_id" not in event
    if not is_written or event.get("user") in (None, me.id):
        return ()
    channel, ts, said = event["channel"], event["ts"], str(event.get("text") or "").strip()
    root = event.get("thread_ts") or ts
    mention = re.compile(rf"<@{re.escape(me.id)}(\|[^>]*)?>")
    quoted = "\n".join(str(one.get("text") or one.get("fallback") or "") for one in event.get("attachments") or ())
    profile = event.get("user_profile") or {}
    name = str(profile.get("display_name") or profile.get("real_name") or "")
    return [
        Inbound(
            message_id=f"{team}:{channel}:{ts}",
            place=_place(channel, root, ts),
            author=Author(event["user"], str(event.get("user_team") or event.get("team") or team), name),
            sent_at=datetime.fromtimestamp(float(ts), UTC),
            text=_plain(mention.sub("", said, count=1) if mention.match(said) else said).strip(),
            files=[_file(one) for one in event.get("files") or () if one.get("mode") != "tombstone"],
            is_mention=mention.search(said) is not None or event.get("parent_user_id") == me.id,
            reply_to=f"{team}:{channel}:{root}" if root != ts else "",
            quoted=_plain(quoted),
            wake={"ts": ts},
        )
    ]


def _clicks(payload: Mapping[str, Any], me: Me) -> Iterator[Event]:
    channel, message, user = payload["channel"]["id"], payload["message"], payload["user"]
    place = _place(channel, message.get("thread_ts") or message["ts"], message["ts"])
    author = Author(user["id"], str(user.get("team_id") or me.workspace), str(user.get("name") or ""))
    for action in payload["actions"]:
        click = f"{channel}:{message['ts']}:{user['id']}:{action['action_ts']}"
        yield Click(click, place, author, action["value"], ref_of(me, channel, message["ts"]))


def ref_of(me: Me, channel: str, ts: str) -> Ref:
    return {"id": f"{me.workspace}:{channel}:{ts}", "channel": channel, "ts": ts}


def _place(channel: str, root: str, ts: str) -> Place:
    """Return the thread; in a private chat only one that a person opened, since the chat is the conversation."""
    is_private = channel.startswith("D")
    return Place(channel, "" if is_private and root == ts else root, is_private)


def _file(found: Mapping[str, Any]) -> FileRef:
    key = {"id": found["id"], "url": found.get("url_private_download") or found.get("url_private") or ""}
    is_voice = found.get("subtype") == "slack_audio"
    return FileRef(str(found.get("name") or "file"), key, found.get("size"), str(found.get("mimetype") or ""), is_voice)


def target(place: Place) -> dict[str, Any]:
    return {"channel": place.chat, **({"thread_ts": place.topic} if place.topic else {})}


def shown(part: Part) -> dict[str, Any]:
    """Return text and blocks; without its blocks, an edit would leave the buttons where they are."""
    blocks: list[dict[str, Any]] = [
        {"type": "section", "text": {"type": "mrkdwn", "text": piece}, "expand": True} for piece in _sections(part.text)
    ]
    buttons = [
        {
            "type": "button",
            "action_id": button.key,
            "value": button.key,
            "text": {"type": "plain_text", "text": button.label[:75]},
            **({"style": button.style} if button.style else {}),
        }
        for button in part.buttons
    ]
    if buttons:
        blocks.append({"type": "actions", "elements": buttons})
    return {"text": part.text[:NOTICE], "blocks": blocks, "unfurl_links": False, "unfurl_media": False}


def _sections(text: str) -> Iterator[str]:
    """Yield a text in pieces that fit a section; a code block that is cut goes on in the next."""
    while len(text) > SECTION:
        cut = text.rfind("\n", SECTION // 2, SECTION - 8)
        cut = cut if cut > 0 else SECTION - 8
        piece, text = text[:cut], text[cut:].removeprefix("\n")
        if piece.count("```") % 2:
            piece, text = f"{piece}\n```", f"```\n{text}"
        yield piece
    yield text


def _plain(text: str) -> str:
    """Return a text without Slack's own marks and escapes."""

    def read(found: re.Match[str]) -> str:
        sign, target, label = found.groups()
        if sign:
            return label if sign == "!" and label else f"{'#' if sign == '#' else '@'}{label or target}"
        return target if not label or target.endswith(label) else f"{label} ({target})"

    return _ANGLE.sub(read, text).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
