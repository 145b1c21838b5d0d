"""DingTalk with AI cards in the contract of channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.contracts.channels.case import Case, Said, Shown
from tests.support.channels.dingtalk_double import ANN, BEN, GROUP, MESSAGE, PARAM_BYTES, DingTalkDouble

from deerflow.features.channels.types import Ref
from deerflow_app.channels.adapters.dingtalk import DingTalk


class DingTalkCase(Case):
    name = "dingtalk"
    limit = PARAM_BYTES
    secrets = ("client-secret", "ticket%2B1", "access-0")
    has_cursor = False
    hears_all = False
    has_topics = False
    has_replies = False  # a reply to a card does not name it
    has_signals = False
    can_displace = False

    def __init__(self) -> None:
        self.double = DingTalkDouble()

    def adapter(self, **more: Any) -> DingTalk:
        more = {"card_template_id": "template.schema", **more}
        http = self.double.http
        return DingTalk("client-1", "client-secret", api=http, oapi=http, ping_every=0.2, **more)

    async def say(self, said: Said) -> str:
        if said.is_bot:
            return "never delivered to robots"
        more: dict[str, Any] = {"senderNick": said.name}
        if said.by_ben:
            more |= {"senderStaffId": BEN, "senderId": "$:LWCP_v1:$ben", "conversationId": "cid-ben"}
        if not said.is_private:
            more |= {"conversationType": "2", "conversationId": GROUP, "isInAtList": said.mentions_us}
        if said.replies_to:
            more |= {"originalProcessQueryKey": said.replies_to["id"]}
        if said.files:
            pieces: list[dict[str, Any]] = [{"text": said.text}]
            for name, data in said.files:
                code = f"code{len(self.double.files)}"
                self.double.files[code] = data
                pieces.append({"type": "file", "downloadCode": code, "fileName": name})
            more |= {"msgtype": "richText", "content": {"richText": pieces}}
        return await self.double.write(said.text, **more)

    async def repeat(self) -> None:
        await self.double.deliver(MESSAGE, self.double.said[-1])

    async def babble(self) -> None:
        await self.double.deliver(MESSAGE, {"senderStaffId": "x", "text": None})
        await self.double.deliver("/v1.0/unknown", {})
        for link in self.double.links:
            await link.send("no frame")
            await link.send(b'{"type": [], "headers": {}}')

    async def press(self, ref: Ref, key: str, *, by_ben: bool = False) -> None:
        await self.double.press(ref["id"], key, BEN if by_ben else ANN)

    def shown(self) -> Sequence[Shown]:
        cards = self.double.cards.items()
        return [Shown(card.values["content"], DingTalkDouble.keys(card), {"id": number}) for number, card in cards]

    def received(self) -> Sequence[tuple[str, bytes]]:
        kinds = ("sampleFile", "sampleImageMsg")
        files = [params for kind, params, _ in self.double.sent if kind in kinds]
        kept = [(one, self.double.kept[one.get("mediaId") or one["photoURL"]]) for one in files]
        return [(one.get("fileName") or name, data) for one, (name, data) in kept]

    def notices(self) -> Sequence[str]:
        return [params["content"] for kind, params, _ in self.double.sent if kind == "sampleText"]


CASE = DingTalkCase
