"""WeChat in the contract suite of channels."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tests.contracts.channels.case import Case, Said, Shown
from tests.support.channels.double import Fault, Operation
from tests.support.channels.wechat_double import ANN, BEN, LIMIT, TOKEN, WeChatDouble

from deerflow.features.channels.types import Adapter
from deerflow_app.channels.adapters.wechat import WeChat


class WeChatCase(Case):
    name = "wechat"
    limit = LIMIT
    secrets = (TOKEN,)
    exempt = frozenset(
        {
            (Operation.IDENTIFY, Fault.REFUSED),  # WeChat may know no settings of our own account
            (Operation.FETCH, Fault.SIGNED_OUT),  # the CDN knows no sign-in
        }
    )
    has_groups = False
    has_topics = False
    has_replies = False
    has_clicks = False
    has_edits = False
    has_link = False
    can_displace = False

    def __init__(self) -> None:
        self.double: WeChatDouble = WeChatDouble()

    def adapter(self) -> Adapter:
        address = self.double.http
        return WeChat(TOKEN, bot_id="b@im.bot", base_url=address, cdn_base_url=f"{address}/c2c", patience=0.4)

    async def say(self, said: Said) -> str:
        items: list[dict[str, object]] = [{"type": 1, "text_item": {"text": said.text}}]
        for name, content in said.files:
            items.append({"type": 4, "file_item": {"media": self.double.keep(content), "file_name": name}})
        return str(self.double.write(*items, author=BEN if said.by_ben else ANN)["message_id"])

    async def repeat(self) -> None:
        self.double.messages.append(self.double.messages[-1])

    async def babble(self) -> None:
        self.double.messages.append({"message_type": 1, "item_list": [7], "context_token": ""})

    def shown(self) -> Sequence[Shown]:
        return [Shown(message["item_list"][0]["text_item"]["text"]) for message in self.double.sent]

    def received(self) -> Sequence[tuple[str, bytes]]:
        return self.double.received

    def signals(self) -> int:
        return len(self.double.typing)

    async def silence(self) -> None:
        await self._poll()
        self.double.freezes += 1

    async def cut(self) -> None:
        await self._poll()
        self.double.cuts += 1

    async def _poll(self) -> None:
        """Wait until a poll waits: only such a one can be left without an answer."""
        polls = self.double.polls
        while polls == self.double.polls:
            await asyncio.sleep(0.01)


CASE = WeChatCase
