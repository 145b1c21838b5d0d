"""Callbacks of a WeCom bot as events, and the card whose buttons call back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from deerflow.features.channels.types import Author, Click, Event, FileRef, Inbound, Part, Place

DONE = "done"
"""The key of the button that an answered card keeps; a click on it says nothing."""
UNNAMED = "file"
_MENTION = re.compile(r"@\S+\s+")
_NAMES = {"image": "image.jpg", "video": "video.mp4", "file": UNNAMED}


def events_of(frame: Mapping[str, Any]) -> Sequence[Event]:
    """Return the message or the click of a callback, or nothing if it is neither."""
    body, wake = frame["body"], {"req_id": str(frame["headers"]["req_id"])}
    if frame["cmd"] == "aibot_msg_callback":
        return _message(body, wake)
    if body["event"]["eventtype"] != "template_card_event":
        return ()
    card = body["event"]["template_card_event"]
    if card["event_key"] == DONE:
        return ()
    return [Click(str(body["msgid"]), _place(body), _author(body), card["event_key"], {"task": card["task_id"]}, wake)]


def _message(body: Mapping[str, Any], wake: Mapping[str, Any]) -> Sequence[Event]:
    place = _place(body)
    texts, files = _content(body)
    if not texts and not files:
        return ()  # of a kind that says nothing to us
    text = "\n".join(texts)
    message = Inbound(
        message_id=str(body["msgid"]),
        place=place,
        author=_author(body),
        sent_at=datetime.fromtimestamp(int(body["create_time"]), UTC) if "create_time" in body else datetime.now(UTC),
        text=text.strip() if place.is_private else _MENTION.sub("", text.lstrip(), count=1).strip(),
        files=files,
        is_mention=not place.is_private,  # of a group, a bot hears nothing else
        quoted="\n".join(_content(body["quote"])[0]) if body.get("quote") else "",
        wake=wake,
    )
    return [message]


def _place(body: Mapping[str, Any]) -> Place:
    is_private = body.get("chattype") != "group"
    return Place(str(body["from"]["userid"] if is_private else body["chatid"]), is_private=is_private)


def _author(body: Mapping[str, Any]) -> Author:
    person = body["from"]
    return Author(str(person["userid"]), str(person.get("corpid") or ""), str(person["userid"]))


def _content(body: Mapping[str, Any]) -> tuple[list[str], list[FileRef]]:
    texts: list[str] = []
    files: list[FileRef] = []
    for item in _items(body):
        kind = item["msgtype"]
        if kind in ("text", "voice"):  # WeCom sends of a voice message what it understood
            texts.append(str(item[kind]["content"]))
        elif kind in _NAMES:
            found = item[kind]
            key = {"url": found["url"], "aes_key": found.get("aeskey") or ""}
            files.append(FileRef(_NAMES[kind], key, mime="image/jpeg" if kind == "image" else ""))
    return texts, files


def _items(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if body["msgtype"] == "mixed":
        yield from body["mixed"]["msg_item"]
    else:
        yield body


def card_of(part: Part, task: str) -> dict[str, Any]:
    styles = {"": 2, "primary": 1, "danger": 3}
    buttons = [{"text": one.label, "style": styles[one.style], "key": one.key} for one in part.buttons]
    # A question stands whole in the message above. Of a decision, the last paragraph says who has taken it.
    text = part.text if buttons else part.text.rpartition("\n\n")[2]
    return {
        "card_type": "button_interaction",
        "main_title": {"title": "Your decision" if buttons else "Decided"},
        "sub_title_text": text if len(text) <= 110 else f"{text[:109]}…",
        "button_list": buttons or [{"text": "OK", "style": 2, "key": DONE}],
        "task_id": task,
    }
