"""Events of what Telegram delivers. ``me``: the bot's own account, as ``getMe`` returns it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from deerflow.features.channels.types import STOP, Author, Click, Event, FileRef, Inbound, Place, Ref

_FILES = {"photo": "photo.jpg", "document": "file", "audio": "audio.mp3", "voice": "voice.ogg"}
_FILES |= {"video": "video.mp4", "video_note": "video.mp4"}


def events(update: Mapping[str, Any], me: Mapping[str, Any]) -> Sequence[Event]:
    """Return what an update says to us."""
    if (message := update.get("message")) is not None:
        return _message(message, me)
    if (query := update.get("callback_query")) is not None and "message" in query and "data" in query:
        message = query["message"]
        author, wake = _author(query["from"]), {"query": query["id"]}
        return [Click(query["id"], _place(message), author, query["data"], ref_of(message), wake)]
    if (stopped := update.get("stopped_message_generation")) is not None:
        # Drafts exist in private chats only, so the chat is the person.
        place, author = _place(stopped), Author(str(stopped["chat"]["id"]))
        return [Click(f"update:{update['update_id']}", place, author, STOP, {"draft": stopped["draft_id"]})]
    return ()


def _message(message: Mapping[str, Any], me: Mapping[str, Any]) -> Sequence[Event]:
    said = str(message.get("text") or message.get("caption") or message.get("sticker", {}).get("emoji") or "")
    text, is_named = _without_us(me, said, message.get("entities") or message.get("caption_entities") or ())
    files = list(_files(message))
    if not text and not files and not is_named:
        return ()  # someone joined, a title changed, a poll
    replied = message.get("reply_to_message") or {}
    if "forum_topic_created" in replied:
        replied = {}  # everything in a topic "replies" to the topic
    is_ours = replied.get("from", {}).get("id") == me["id"]
    quoted = "" if is_ours else str(replied.get("text") or replied.get("caption") or "")
    quoted = str(message.get("quote", {}).get("text") or quoted)
    if "forward_origin" in message:
        quoted, text = f"{quoted}\n{text}".strip(), ""
    chat = message["chat"]["id"]
    wake = {
        "message": message["message_id"],
        "album": message.get("media_group_id"),
        "root": message.get("message_thread_id"),
    }
    return [
        Inbound(
            message_id=f"{chat}:{message['message_id']}",
            place=_place(message),
            author=_author(message["from"], is_bot="sender_chat" in message),
            sent_at=datetime.fromtimestamp(message["date"], UTC),
            text=text,
            files=files,
            is_mention=is_named or is_ours,
            reply_to=f"{chat}:{replied['message_id']}" if replied else "",
            quoted=quoted,
            wake={key: value for key, value in wake.items() if value is not None},
        )
    ]


def _without_us(me: Mapping[str, Any], said: str, entities: Sequence[Mapping[str, Any]]) -> tuple[str, bool]:
    """Return the text without our mention at its start, and with no ``@`` of ours at its command; and whether it names us."""
    units, handle, is_named = said.encode("utf-16-le"), f"@{me['username']}".lower(), False
    for entity in sorted(entities, key=lambda entity: -entity["offset"]):
        start, end = 2 * entity["offset"], 2 * (entity["offset"] + entity["length"])
        named = units[start:end].decode("utf-16-le", "replace").lower()
        match entity["type"]:
            case "mention" if named == handle:
                cut = start
            case "text_mention" if entity["user"]["id"] == me["id"]:
                cut = start
            case "bot_command" if named.endswith(handle):
                cut = end - 2 * len(handle)
            case _:
                continue
        is_named = True
        if not units[:cut].decode("utf-16-le", "replace").strip() or entity["type"] == "bot_command":
            units = units[:cut] + units[end:]
    return units.decode("utf-16-le", "replace").strip(), is_named


def _place(message: Mapping[str, Any]) -> Place:
    chat = message["chat"]
    topic = message.get("message_thread_id") if message.get("is_topic_message") else None
    name = str(chat.get("title") or chat.get("first_name") or "")
    return Place(str(chat["id"]), str(topic or ""), chat["type"] == "private", name)


def _author(user: Mapping[str, Any], is_bot: bool = False) -> Author:
    name = f"{user.get('first_name', '')} {user.get('last_name', '')}".strip() or user.get("username", "")
    return Author(str(user["id"]), name=str(name), is_bot=is_bot or user.get("is_bot") is True)


def _files(message: Mapping[str, Any]) -> Iterator[FileRef]:
    if photos := message.get("photo"):
        message = {**message, "photo": {"mime_type": "image/jpeg", **max(photos, key=lambda one: one["width"])}}
    for kind, name in _FILES.items():
        if found := message.get(kind):
            key, name = {"file_id": found["file_id"]}, str(found.get("file_name") or name)
            yield FileRef(name, key, found.get("file_size"), str(found.get("mime_type", "")), kind == "voice")


def ref_of(message: Mapping[str, Any]) -> Ref:
    chat, number = message["chat"]["id"], message["message_id"]
    return {"id": f"{chat}:{number}", "chat": chat, "message": number}
