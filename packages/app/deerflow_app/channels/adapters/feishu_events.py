"""Events of Feishu as messages and clicks: pure functions over the JSON that the long connection brings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from deerflow.features.channels.types import Author, Click, Event, FileRef, Inbound, Place

MESSAGE, CLICK = "im.message.receive_v1", "card.action.trigger"
_MENTION = re.compile(r"@_(?:user_\d+|all)")
_NAMES = {"image": "image.png", "img": "image.png", "audio": "voice.opus", "media": "video.mp4"}


def opened(whole: bytes) -> Any:
    """Return an event with the content of its message, which Feishu sends as JSON in a string. Raises ValueError."""
    event = json.loads(whole)
    try:
        message = event["event"]["message"]
        message["content"] = json.loads(message["content"])
    except (KeyError, TypeError):
        pass  # no message, or one of an unknown shape
    return event


def read(event: Mapping[str, Any], me: str) -> Event | None:
    """Return the message or the click of an event, None for any other event.

    Args:
        me: the bot's open ID, to tell mentions of it from those of others.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: the event does not have the shape that Feishu documents.
    """
    kind = event["header"]["event_type"]
    if kind == MESSAGE:
        return _message(event["event"], me)
    if kind == CLICK:
        return _click(event["header"]["event_id"], event["event"])
    return None


def _message(event: Mapping[str, Any], me: str) -> Inbound | None:
    message, sender = event["message"], event["sender"]
    author = _author(sender["sender_id"] or {}, sender.get("tenant_key", ""), sender["sender_type"] != "user")
    if not author.id:
        return None
    mentions = {one["key"]: one for one in message.get("mentions") or ()}
    is_private = message["chat_type"] == "p2p"
    lines, files = _content(message["message_type"], message["content"], message["message_id"], mentions, me)
    return Inbound(
        message["message_id"],
        Place(message["chat_id"], _topic(message, is_private), is_private),
        author,
        datetime.fromtimestamp(int(message["create_time"]) / 1000, UTC),
        "\n".join(lines).strip(),
        files,
        is_mention=any(_is_me(one, me) for one in mentions.values()),
        reply_to=message.get("parent_id") or "",
    )


def _topic(message: Mapping[str, Any], is_private: bool) -> str:
    """Return the ID of the message that begins the conversation. In a group each message begins one, unless it belongs to one;
    a private chat is one conversation, unless the person opens a topic in it."""
    if is_private and not message.get("thread_id"):
        return ""
    return message.get("root_id") or message["message_id"]


def _author(ids: Mapping[str, Any], tenant: str, is_bot: bool) -> Author:
    """``union_id`` is the same for all apps of one developer; ``open_id`` means a person only within an app and a tenant."""
    if union := ids.get("union_id"):
        return Author(union, is_bot=is_bot)
    return Author(ids.get("open_id") or "", tenant, is_bot=is_bot)


def _is_me(mention: Mapping[str, Any], me: str) -> bool:
    return bool(me) and (mention.get("id") or {}).get("open_id") == me


def _content(
    kind: str, content: Mapping[str, Any], message_id: str, mentions: Mapping[str, Any], me: str
) -> tuple[list[str], list[FileRef]]:
    if kind == "text":
        return [_resolved(content["text"], mentions, me)], []
    if kind == "post":
        return _post(content, message_id, mentions, me)
    if file := _file(kind, content, message_id):
        return [], [file]
    return [f"[{kind}]"], []  # a sticker, a card, a contact: said, since it has no text of its own


def _resolved(text: str, mentions: Mapping[str, Any], me: str) -> str:
    def name(match: re.Match[str]) -> str:
        mention = mentions.get(match[0])
        if mention is None:
            return "@all" if match[0] == "@_all" else match[0]
        return "" if _is_me(mention, me) else f"@{_line(mention.get('name', ''))}"

    return _MENTION.sub(name, text)


def _line(name: str) -> str:
    return " ".join(name.split())


def _post(
    content: Mapping[str, Any], message_id: str, mentions: Mapping[str, Any], me: str
) -> tuple[list[str], list[FileRef]]:
    if "content" not in content:  # by language, as posts of apps are
        content = next(iter(content.values()))
    lines, files = [content["title"]] if content.get("title") else [], list[FileRef]()
    for paragraph in content["content"]:
        for element in paragraph:
            if file := _file(element["tag"], element, message_id):
                files.append(file)
        lines.append("".join(_texts(paragraph, mentions, me)))
    return lines, files


def _texts(paragraph: Any, mentions: Mapping[str, Any], me: str) -> Iterator[str]:
    for element in paragraph:
        tag, text = element["tag"], element.get("text", "")
        if tag == "a":
            yield f"[{text}]({element.get('href', '')})"
        elif tag == "at":
            key = element.get("user_id", "")
            yield _resolved(key, mentions, me) if key in mentions else f"@{_line(element.get('user_name', ''))}"
        elif tag == "code_block":
            yield f"```{element.get('language', '').lower()}\n{text}\n```"
        elif tag == "emotion":
            yield f":{element.get('emoji_type', '')}:"
        elif tag in ("text", "md"):
            yield _resolved(text, mentions, me)


def _file(kind: str, content: Mapping[str, Any], message_id: str) -> FileRef | None:
    if kind not in ("image", "img", "file", "audio", "media"):
        return None
    is_image = kind in ("image", "img")
    key = {"message": message_id, "file": content["image_key" if is_image else "file_key"]}
    return FileRef(
        content.get("file_name") or _NAMES.get(kind, "file"),
        key | {"type": "image" if is_image else "file"},
        mime={"audio": "audio/ogg", "media": "video/mp4"}.get(kind, ""),
        is_voice=kind == "audio",
    )


def _click(event_id: str, event: Mapping[str, Any]) -> Click | None:
    operator, value, context = event["operator"], event["action"].get("value"), event["context"]
    if not isinstance(value, Mapping) or "key" not in value:
        return None
    author = _author(operator, operator.get("tenant_key", ""), False)
    if not author.id:
        return None
    return Click(
        event_id,
        Place(context["open_chat_id"], value.get("topic", ""), bool(value.get("private"))),
        author,
        value["key"],
        _ref(context["open_message_id"], value.get("card", "")),
        {"open_id": operator.get("open_id", "")},
    )


def _ref(message_id: str, card: str) -> Mapping[str, Any]:
    return {"id": message_id, "card": card, "is_streaming": False} if card else {"id": message_id}
