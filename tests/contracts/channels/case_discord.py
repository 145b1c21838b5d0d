"""Discord in the contract suite of channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.contracts.channels.case import Case, Said, Shown
from tests.support.channels.discord_double import ANN, BEN, BENS, CHANNEL, ME, PRIVATE, TOKEN, DiscordDouble

from deerflow.features.channels.types import Adapter, Ref
from deerflow_app.channels.adapters.discord import Discord


class DiscordCase(Case):
    name = "discord"
    limit = 2000
    secrets = (TOKEN,)
    can_displace = False

    def __init__(self) -> None:
        self.double: DiscordDouble = DiscordDouble()
        self.double.heartbeat_interval = 0.2
        self._threads: dict[str, str] = {}

    def adapter(self) -> Adapter:
        return Discord(TOKEN, base_url=self.double.http)

    async def say(self, said: Said) -> str:
        channel = (BENS if said.by_ben else PRIVATE) if said.is_private else CHANNEL
        if said.topic:
            channel = self._threads.get(said.topic) or self._thread(said.topic)
        more: dict[str, Any] = {"attachments": [self.double.attachment(name, data) for name, data in said.files]}
        if said.replies_to is not None:
            answered = self.double.found(said.replies_to["channel"], said.replies_to["id"])
            more |= {"type": 19, "referenced_message": answered, "message_reference": {"message_id": answered["id"]}}
        author = {**(BEN if said.by_ben else ANN), "global_name": said.name, "bot": said.is_bot}
        text = f"<@{ME['id']}> {said.text}" if said.mentions_us else said.text
        return (await self.double.say(text, channel=channel, author=author, **more))["id"]

    def _thread(self, topic: str) -> str:
        root = self.double.written(topic)["id"]
        self.double.open_thread(CHANNEL, root, topic)
        self._threads[topic] = root
        return root

    async def repeat(self) -> None:
        await self.double.repeat()

    async def babble(self) -> None:
        await self.double.deliver("MESSAGE_CREATE", {"id": 1, "author": [], "content": None})

    async def press(self, ref: Ref, key: str, *, by_ben: bool = False) -> None:
        await self.double.click(self.double.found(ref["channel"], ref["id"]), key, BEN if by_ben else ANN)

    def shown(self) -> Sequence[Shown]:
        return [
            Shown(
                one["content"],
                tuple(button["custom_id"] for row in one["components"] for button in row["components"]),
                {"channel": one["channel_id"], "id": one["id"]},
            )
            for one in self._ours()
            if not one["attachments"]
        ]

    def received(self) -> Sequence[tuple[str, bytes]]:
        attached = [file for one in self._ours() for file in one["attachments"]]
        return [(file["filename"], self.double.files[file["id"]]) for file in attached]

    def notices(self) -> Sequence[str]:
        return [one["data"]["content"] for one in self.double.callbacks.values() if one["type"] == 4]

    def signals(self) -> int:
        return len(self.double.reactions)

    def _ours(self) -> list[dict[str, Any]]:
        every = [one for messages in self.double.messages.values() for one in messages]
        return sorted((one for one in every if one["author"] == ME), key=lambda one: int(one["id"]))


CASE = DiscordCase
