"""WeCom in the contract suite of channels."""

from __future__ import annotations

from collections.abc import Sequence

from tests.contracts.channels.case import Case, Said, Shown
from tests.support.channels.double import Fault, Operation
from tests.support.channels.wecom_double import ANN, BEN, LIMIT, WeComDouble

from deerflow.features.channels.types import Adapter, Ref
from deerflow_app.channels.adapters.wecom import WeCom


class WeComCase(Case):
    name = "wecom"
    limit = LIMIT
    secrets = ("s3cret-of-bot",)
    exempt = frozenset(
        # A frame names no pause and knows no revoked secret; only the sign-in does. A finished message cannot be edited.
        {(one, fault) for one in Operation for fault in (Fault.LATER, Fault.SIGNED_OUT) if one is not Operation.FETCH}
        | {(Operation.FETCH, Fault.SIGNED_OUT)}
        | {(Operation.EDIT, fault) for fault in Fault}
    )
    has_cursor = False
    has_history = False
    hears_all = False
    has_topics = False
    has_replies = False
    has_signals = False

    def __init__(self) -> None:
        self.double: WeComDouble = WeComDouble()

    def adapter(self) -> Adapter:
        return WeCom(self.double.bot_id, self.double.secret, url=self.double.ws, ping_every=0.1, patience=0.4)

    async def say(self, said: Said) -> str:
        if said.is_bot:
            return "never"  # bots do not hear each other
        text = f"@Deer {said.text}" if said.mentions_us else said.text
        body: dict[str, object] = {"msgtype": "text", "text": {"content": text}}
        if said.files:
            ((name, content),) = said.files
            items = [body, {"msgtype": "file", "file": self.double.keep(name, content)}]
            body = {"msgtype": "mixed", "mixed": {"msg_item": items}}
        author = BEN if said.by_ben else ANN
        return (await self.double.write(body, is_private=said.is_private, author=author))["msgid"]

    async def repeat(self) -> None:
        await self.double.deliver("aibot_msg_callback", self.double.said[-1])

    async def babble(self) -> None:
        await self.double.deliver("aibot_event_callback", {"msgtype": "event", "event": None})
        await self.double.deliver("aibot_msg_callback", {"msgid": "m", "msgtype": "hologram", "from": []})

    async def press(self, ref: Ref, key: str, *, by_ben: bool = False) -> None:
        await self.double.press(ref["task"], key, author=BEN if by_ben else ANN)

    def shown(self) -> Sequence[Shown]:
        return [Shown(bubble.text, bubble.keys, {"task": bubble.task}) for bubble in self.double.bubbles]

    def received(self) -> Sequence[tuple[str, bytes]]:
        return self.double.received

    def notices(self) -> Sequence[str]:
        return self.double.notices

    async def displace(self) -> None:
        await self.double.displace()


CASE = WeComCase
