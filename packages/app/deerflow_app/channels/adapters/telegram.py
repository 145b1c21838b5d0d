"""Telegram: Bot API over long polling. https://core.telegram.org/bots/api"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from deerflow.features.channels.types import (
    STOP,
    Accept,
    Author,
    Caps,
    Click,
    Displaced,
    Event,
    FileRef,
    Inbound,
    Me,
    Misconfigured,
    OutFile,
    Part,
    Place,
    Ref,
    Refused,
    Signal,
    SignedOut,
)
from deerflow_app.channels.wire import Http, allowed, limited, multipart, understood

CAPS = Caps(
    dialect="telegram",
    edit_every=3.0,  # a group takes 20 messages a minute, edits among them
    buttons=100,
    signals=frozenset(Signal),
    file_in=20_000_000,
    file_out=50_000_000,
)
PHOTO, CAPTION = 10_000_000, 1_024
_UPDATES = ["message", "callback_query", "stopped_message_generation"]
_REACTIONS = {Signal.SEEN: "👀", Signal.JOINED: "✍", Signal.DONE: "👌", Signal.FAILED: "💔"}
_FILES = {"photo": "photo.jpg", "document": "file", "audio": "audio.mp3", "voice": "voice.ogg"}
_FILES |= {"video": "video.mp4", "video_note": "video.mp4"}


class Telegram:
    """A bot.

    Args:
        poll: seconds for which Telegram holds a poll open.
        patience: seconds beyond ``poll`` after which a poll without an answer counts as dead.
    """

    def __init__(
        self, token: str, *, base_url: str = "https://api.telegram.org", poll: float = 25.0, patience: float = 10.0
    ) -> None:
        self.caps = CAPS
        self._files = f"/file/bot{token}/"
        self._methods = f"/bot{token}/"
        self._http = Http(base_url, secrets=[token])
        self._poll = poll
        self._patience = patience
        self._me: Mapping[str, Any] = {}

    async def aclose(self) -> None:
        await self._http.aclose()

    async def identify(self) -> Me:
        self._me = await self._call("getMe", repeatable=True)
        name = self._me["username"]
        return Me(str(self._me["id"]), name, link=f"https://t.me/{name}")

    async def listen(self, accept: Accept, cursor: str, connected: Callable[[], None]) -> None:
        if not self._me:
            await self.identify()
        wait = 0.0
        while True:
            # A poll confirms what lies before its offset, so the offset is that of the last stored update and never a guess:
            # after a quiet week ids start anew, and lower.
            updates = await self._call(
                "getUpdates",
                repeatable=True,
                timeout=wait + self._patience,
                json={"offset": int(cursor or 0), "timeout": int(wait), "limit": 100, "allowed_updates": _UPDATES},
            )
            if wait == 0.0:
                connected()
                wait = self._poll
            if updates or not cursor:
                events = [event for update in updates for event in understood(self._events, update, "Telegram")]
                cursor = str(updates[-1]["update_id"] + 1) if updates else "0"
                await accept(events, cursor)

    async def post(self, place: Place, part: Part, key: str, wake: Mapping[str, Any]) -> Ref:
        body = {**_target(place, wake), **_shown(part)}
        return _ref(await self._call("sendMessage", json=body))

    async def edit(self, place: Place, ref: Ref, part: Part, seq: int) -> Ref:
        body = {"chat_id": ref["chat"], "message_id": ref["message"], **_shown(part)}
        try:
            await self._call("editMessageText", repeatable=True, json=body)
        except Refused as refused:
            if "message is not modified" not in str(refused):
                raise
        return ref

    async def upload(self, place: Place, file: OutFile, key: str, wake: Mapping[str, Any]) -> Ref:
        allowed(file.name, file.size, self.caps.file_out)
        if file.mime in ("image/jpeg", "image/png") and file.size <= PHOTO:
            with suppress(Refused):  # its sides are too long, say; as a document everything may be sent
                return await self._send("sendPhoto", "photo", place, file, wake)
        return await self._send("sendDocument", "document", place, file, wake)

    async def _send(self, method: str, field: str, place: Place, file: OutFile, wake: Mapping[str, Any]) -> Ref:
        fields = {
            key: value if isinstance(value, str) else json.dumps(value) for key, value in _target(place, wake).items()
        }
        if file.caption:
            fields["caption"] = _clipped(file.caption, CAPTION)
        return _ref(await self._call(method, timeout=300.0, **multipart(fields, field, file)))

    async def fetch(self, file: FileRef) -> AsyncIterator[bytes]:
        allowed(file.name, file.size, self.caps.file_in)
        found = await self._call("getFile", repeatable=True, json={"file_id": file.key["file_id"]})
        async with self._http.stream(self._files + found["file_path"]) as answer:
            async for piece in limited(answer.aiter_bytes(), file.name, self.caps.file_in):
                yield piece

    async def signal(self, place: Place, message_id: str, signal: Signal, wake: Mapping[str, Any]) -> None:
        if signal is Signal.WORKING:
            await self._call("sendChatAction", repeatable=True, json={**_target(place, {}), "action": "typing"})
            return
        reaction, message = [{"type": "emoji", "emoji": _REACTIONS[signal]}], int(message_id.rpartition(":")[2])
        body = {"chat_id": place.chat, "message_id": message, "reaction": reaction}
        await self._call("setMessageReaction", repeatable=True, json=body)

    async def answered(self, click: Click, notice: str) -> None:
        if "query" not in click.wake:  # Telegram's own Stop
            return
        body = {"callback_query_id": click.wake["query"], "text": _clipped(notice, 200), "show_alert": bool(notice)}
        with suppress(Refused):  # the click is so old that its button spins no more
            await self._call("answerCallbackQuery", repeatable=True, json=body)

    async def missed(self, place: Place, since: datetime) -> Sequence[Event]:
        return ()  # Telegram keeps what was not confirmed for 24 hours

    async def _call(self, method: str, *, repeatable: bool = False, **more: Any) -> Any:
        answer = await self._http.json("POST", self._methods + method, repeatable=repeatable, **more)
        if answer.get("ok") is True:
            return answer["result"]
        code, why = answer.get("error_code"), str(answer.get("description", "no reason given"))
        if code in (401, 404):
            raise SignedOut(f"Telegram does not know this token any more ({why}). Enter one from @BotFather.")
        if code == 409 and "webhook" in why:
            raise Misconfigured("A webhook of another program receives the messages. Remove it (deleteWebhook).")
        if code == 409:
            raise Displaced("Another program polls with this bot's token.")
        raise Refused(f"Telegram refused {method}: {why}.")

    def _events(self, update: Mapping[str, Any]) -> Sequence[Event]:
        if (message := update.get("message")) is not None:
            return self._message(message)
        if (query := update.get("callback_query")) is not None and "message" in query and "data" in query:
            message = query["message"]
            author, wake = _author(query["from"]), {"query": query["id"]}
            return [Click(query["id"], _place(message), author, query["data"], _ref(message), wake)]
        if (stopped := update.get("stopped_message_generation")) is not None:
            # Drafts exist in private chats only, so the chat is the person.
            place, author = _place(stopped), Author(str(stopped["chat"]["id"]))
            return [Click(f"update:{update['update_id']}", place, author, STOP, {"draft": stopped["draft_id"]})]
        return ()

    def _message(self, message: Mapping[str, Any]) -> Sequence[Event]:
        said = str(message.get("text") or message.get("caption") or message.get("sticker", {}).get("emoji") or "")
        text, is_named = self._without_us(said, message.get("entities") or message.get("caption_entities") or ())
        files = list(_files(message))
        if not text and not files and not is_named:
            return ()  # someone joined, a title changed, a poll
        replied = message.get("reply_to_message") or {}
        if "forum_topic_created" in replied:
            replied = {}  # everything in a topic "replies" to the topic
        is_ours = replied.get("from", {}).get("id") == self._me["id"]
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

    def _without_us(self, said: str, entities: Sequence[Mapping[str, Any]]) -> tuple[str, bool]:
        """Return the text without our mention at its start, and with no ``@`` of ours at its command; and whether it names us."""
        units, handle, is_named = said.encode("utf-16-le"), f"@{self._me['username']}".lower(), False
        for entity in sorted(entities, key=lambda entity: -entity["offset"]):
            start, end = 2 * entity["offset"], 2 * (entity["offset"] + entity["length"])
            named = units[start:end].decode("utf-16-le", "replace").lower()
            match entity["type"]:
                case "mention" if named == handle:
                    cut = start
                case "text_mention" if entity["user"]["id"] == self._me["id"]:
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


def _target(place: Place, wake: Mapping[str, Any]) -> dict[str, Any]:
    """Return where a message goes: in a group it replies, so that answers and questions form a chain."""
    target: dict[str, Any] = {"chat_id": place.chat}
    if place.topic:
        target["message_thread_id"] = int(place.topic)
    if "message" in wake and not place.is_private:
        target["reply_parameters"] = {"message_id": wake["message"], "allow_sending_without_reply": True}
    return target


def _shown(part: Part) -> dict[str, Any]:
    keyboard = [[{"text": button.label, "callback_data": button.key}] for button in part.buttons]
    return {
        "text": part.text,
        "parse_mode": "HTML",
        "link_preview_options": {"is_disabled": True},
        "reply_markup": {"inline_keyboard": keyboard},
    }


def _ref(message: Mapping[str, Any]) -> Ref:
    chat, number = message["chat"]["id"], message["message_id"]
    return {"id": f"{chat}:{number}", "chat": chat, "message": number}


def _clipped(text: str, limit: int) -> str:
    """Return the beginning of a text, in UTF-16 units as Telegram counts them."""
    units = text.encode("utf-16-le")
    return text if len(units) <= 2 * limit else units[: 2 * (limit - 1)].decode("utf-16-le", "ignore") + "…"
