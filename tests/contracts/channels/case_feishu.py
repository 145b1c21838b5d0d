"""Feishu in the contract of channels."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tests.contracts.channels.case import Case, Said, Shown
from tests.support.channels.feishu_double import ANN, BEN, BENS, BOT, CARD_BYTES, CHAT, GROUP, FeishuDouble, Message

from deerflow.features.channels.types import Part, Place, Ref
from deerflow_app.channels.adapters.feishu import Feishu
from deerflow_app.channels.adapters.feishu_card import card_of


class FeishuCase(Case):
    name = "feishu"
    limit = CARD_BYTES - len(json.dumps(card_of(Place(""), Part(""))))
    secrets = ("app-secret", "access-key", "ticket-1", "Bearer")
    has_cursor = False
    can_displace = False  # fifty links may stand at once
    has_replies = False  # an event does not say whose message it replies to

    def __init__(self) -> None:
        self.double = FeishuDouble()
        self._topics: dict[str, str] = {}

    def adapter(self) -> Feishu:
        return Feishu("cli_1", "app-secret", domain=self.double.http)

    async def say(self, said: Said) -> str:
        private = BENS if said.by_ben else CHAT
        where = {"chat_type": "p2p" if said.is_private else "group", "chat_id": private if said.is_private else GROUP}
        if said.by_ben:
            where |= {"ids": {"open_id": "ou_ben", "union_id": BEN}}
        if root := self._topics.get(said.topic):
            where |= {"root_id": root, "parent_id": root, "thread_id": f"omt_{said.topic}"}
        if said.is_bot:
            where |= {"sender_type": "app", "ids": {"open_id": "ou_other_bot"}}
        text, kind, content = said.text, "text", {}
        if said.mentions_us:
            text = f"@_user_1 {text}"
            where["mentions"] = [{"key": "@_user_1", "id": {"open_id": BOT}, "name": "Deer"}]
        content = {"text": text}
        if said.files:
            kind, content = "post", {"title": "", "content": [[{"tag": "text", "text": text}]]}
            for name, data in said.files:
                key = f"file_in{len(self.double.files)}"
                self.double.files[key] = data
                content["content"].append([{"tag": "media", "file_key": key, "file_name": name}])
        message_id = await self.double.write(content, kind, **where)
        self._topics.setdefault(said.topic, message_id) if said.topic else None
        return message_id

    async def repeat(self) -> None:
        await self.double.deliver("im.message.receive_v1", self.double.said[-1])

    async def babble(self) -> None:
        await self.double.deliver("im.message.receive_v1", {"message": ["?"], "sender": None})
        await self.double.deliver("im.chat.updated_v1", {})
        for link in self.double.links:
            await link.send(b"\xff\x00no frame")
            await link.send("text")

    async def press(self, ref: Ref, key: str, *, by_ben: bool = False) -> None:
        message = next(one for one in self.double.messages if one.id == ref["id"])
        await self.double.press(message, key, BEN if by_ben else ANN)

    def _said(self) -> list[Message]:
        return [one for one in self.double.messages if one.kind == "interactive"]

    def shown(self) -> Sequence[Shown]:
        return [Shown(self.double.text(one), tuple(self.double.buttons(one)), {"id": one.id}) for one in self._said()]

    def received(self) -> Sequence[tuple[str, bytes]]:
        keys = [one.content.get("file_key") or one.content.get("image_key") for one in self.double.messages]
        return [self.double.kept[key] for key in keys if key]

    def notices(self) -> Sequence[str]:
        direct = [one.content["text"] for one in self.double.messages if one.kind == "text"]
        return self.double.toasts() + direct

    def signals(self) -> int:
        return len(self.double.reactions)


CASE = FeishuCase
