"""Telegram in the contract suite of channels."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tests.contracts.channels.case import Case, Said, Shown
from tests.support.channels.telegram_double import ANN, BEN, GROUP, TelegramDouble

from deerflow.features.channels.types import Adapter, Ref
from deerflow_app.channels.adapters.telegram import Telegram


class TelegramCase(Case):
    name = "telegram"
    limit = 4096
    secrets = ("AAbbCC-dd_ee",)
    has_link = False
    can_find = True

    def __init__(self) -> None:
        self.double: TelegramDouble = TelegramDouble()

    def adapter(self) -> Adapter:
        return Telegram(self.double.token, base_url=self.double.http, poll=1.0, patience=0.4)

    async def say(self, said: Said) -> str:
        text, entities = said.text, []
        if said.mentions_us:
            entities.append({"type": "mention", "offset": 0, "length": len("@deer_bot")})
            text = f"@deer_bot {text}"
        message: dict[str, object] = {"text": text, "entities": entities}
        if said.topic:
            message |= {"message_thread_id": 100 + sum(said.topic.encode()), "is_topic_message": True}
        if said.replies_to is not None:
            message["reply_to_message"] = self.double.messages[said.replies_to["chat"], said.replies_to["message"]][
                "result"
            ]
        if said.files:
            ((name, content),) = said.files
            message["caption"] = message.pop("text")
            message["document"] = {**self.double.keep(content), "file_name": name}
        person = BEN if said.by_ben else ANN
        user = {"id": person, "first_name": said.name, "is_bot": said.is_bot}
        sent = self.double.write(person if said.is_private else GROUP, user, **message)
        return f"{sent['chat']['id']}:{sent['message_id']}"

    async def repeat(self) -> None:
        self.double.push(message=self.double.said[-1])

    async def babble(self) -> None:
        self.double.push(message={"message_id": "no number", "chat": None, "text": "x", "from": []})

    async def press(self, ref: Ref, key: str, *, by_ben: bool = False) -> None:
        self.double.press(ref["chat"], ref["message"], key, BEN if by_ben else ANN)

    def shown(self) -> Sequence[Shown]:
        return [
            Shown(
                found["result"]["text"],
                tuple(
                    button["callback_data"]
                    for row in (found["body"].get("reply_markup") or {}).get("inline_keyboard", ())
                    for button in row
                ),
                {"chat": chat, "message": message},
            )
            for (chat, message), found in self.double.messages.items()
            if "text" in found["result"]
        ]

    def received(self) -> Sequence[tuple[str, bytes]]:
        return self.double.uploads

    def notices(self) -> Sequence[str]:
        return [answer["text"] for answer in self.double.answers]

    def signals(self) -> int:
        return len(self.double.reactions)

    def text(self, length: int) -> str:
        return "<b>" + "🦌&amp;" * (length // 3) + "x" * (length % 3) + "</b>"

    async def silence(self) -> None:
        await self._polled()
        self.double.freezes += 1

    async def cut(self) -> None:
        await self._polled()
        self.double.cuts += 1

    async def _polled(self) -> None:
        while not self.double.waiting:
            await asyncio.sleep(0.01)


CASE = TelegramCase
