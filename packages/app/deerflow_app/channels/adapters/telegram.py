"""Telegram: Bot API over long polling. https://core.telegram.org/bots/api"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from deerflow.features.channels.types import (
    Accept,
    Adapter,
    Caps,
    Click,
    Displaced,
    FileRef,
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
from deerflow_app.channels.adapters.telegram_messages import events, ref_of
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
NEAR = 8
"""So many numbers after a person's message are tried to find ours."""
_UPDATES = ["message", "callback_query", "stopped_message_generation"]
_REACTIONS = {Signal.SEEN: "👀", Signal.JOINED: "✍", Signal.DONE: "👌", Signal.FAILED: "💔"}


class Telegram(Adapter):
    """A bot.

    Args:
        poll: seconds for which Telegram holds a poll open.
        rich: messages have tables and headings of Telegram's own, which old clients do not show.
        patience: seconds beyond ``poll`` after which a poll without an answer counts as dead.
    """

    def __init__(
        self,
        token: str,
        *,
        base_url: str = "https://api.telegram.org",
        rich: bool = False,
        poll: float = 25.0,
        patience: float = 10.0,
    ) -> None:
        self.caps = replace(CAPS, dialect="telegram-rich") if rich else CAPS
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
        wait, read = 0.0, partial(events, me=self._me)
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
                found = [event for update in updates for event in understood(read, update, "Telegram")]
                cursor = str(updates[-1]["update_id"] + 1) if updates else "0"
                await accept(found, cursor)

    async def post(self, place: Place, part: Part, key: str, wake: Mapping[str, Any]) -> Ref:
        return ref_of(await self._show("sendMessage", part, _target(place, wake)))

    async def edit(self, place: Place, ref: Ref, part: Part, seq: int) -> Ref:
        try:
            where = {"chat_id": ref["chat"], "message_id": ref["message"]}
            await self._show("editMessageText", part, where, repeatable=True)
        except Refused as refused:
            if "message is not modified" not in str(refused):
                raise
        return ref

    async def _show(self, method: str, part: Part, where: dict[str, Any], *, repeatable: bool = False) -> Any:
        keyboard = [[{"text": button.label, "callback_data": button.key}] for button in part.buttons]
        where |= {"reply_markup": {"inline_keyboard": keyboard}}
        form = {"parse_mode": "HTML"}
        if self.caps.dialect != CAPS.dialect:
            rich = {"rich_message": {"markdown": part.text, "skip_entity_detection": True}}
            try:
                rich_method = method.replace("sendMessage", "sendRichMessage")
                return await self._call(rich_method, repeatable=repeatable, json={**where, **rich})
            except Refused as refused:
                if "message is not modified" in str(refused):
                    raise
                form = {}  # too many blocks, say; then people see the Markdown
        plain = {"text": part.text, **form, "link_preview_options": {"is_disabled": True}}
        return await self._call(method, repeatable=repeatable, json={**where, **plain})

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
        return ref_of(await self._call(method, timeout=300.0, **multipart(fields, field, file)))

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

    async def find(self, place: Place, since: datetime, known: Sequence[Ref], wake: Mapping[str, Any]) -> Ref | None:
        # A bot cannot read what it has sent, but it can edit its own messages alone, and their numbers follow the person's.
        taken = {ref.get("message") for ref in known if str(ref.get("chat")) == place.chat}
        first = wake["message"] + 1 if "message" in wake else 0
        for number in range(first, first + NEAR if first else 0):
            if number not in taken:
                ref = {"id": f"{place.chat}:{number}", "chat": int(place.chat), "message": number}
                with suppress(Refused):
                    return await self.edit(place, ref, Part("…"), 0)
        return None

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


def _target(place: Place, wake: Mapping[str, Any]) -> dict[str, Any]:
    """Return where a message goes: in a group it replies, so that answers and questions form a chain."""
    target: dict[str, Any] = {"chat_id": place.chat}
    if place.topic:
        target["message_thread_id"] = int(place.topic)
    if "message" in wake and not place.is_private:
        target["reply_parameters"] = {"message_id": wake["message"], "allow_sending_without_reply": True}
    return target


def _clipped(text: str, limit: int) -> str:
    """Return the beginning of a text, in UTF-16 units as Telegram counts them."""
    units = text.encode("utf-16-le")
    return text if len(units) <= 2 * limit else units[: 2 * (limit - 1)].decode("utf-16-le", "ignore") + "…"
