"""Slack in the contract suite of channels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.contracts.channels.case import Case, Said, Shown
from tests.support.channels.double import Fault, Operation
from tests.support.channels.slack_double import ANN, BEN, BENS, CHANNEL, PRIVATE, ROBOT, TEAM, US, SlackDouble

from deerflow.features.channels.types import Adapter, Ref
from deerflow_app.channels.adapters.slack import Slack


class SlackCase(Case):
    name = "slack"
    limit = 13_200
    secrets = ("xoxb-1-secretbot", "xapp-1-secretapp", "secretticket")
    # A file is fetched from a web server that knows no errors of the API.
    exempt = frozenset({(Operation.FETCH, fault) for fault in (Fault.REFUSED, Fault.SIGNED_OUT, Fault.GARBAGE)})
    has_cursor = False
    can_displace = False
    can_find = True

    def __init__(self) -> None:
        self.double: SlackDouble = SlackDouble()
        self._roots: dict[str, str] = {}

    def adapter(self) -> Adapter:
        return Slack(self.double.bot_token, self.double.app_token, base_url=self.double.api, ping=0.2, pong=0.2)

    async def say(self, said: Said) -> str:
        text = said.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        event: dict[str, Any] = {"text": f"<@{US}> {text}" if said.mentions_us else text}
        event |= {"user_profile": {"display_name": said.name}, "user": BEN if said.by_ben else ANN}
        if said.topic:
            event |= {"thread_ts": self._roots.setdefault(said.topic, self.double.ts())}
        if said.replies_to is not None:
            event |= {"thread_ts": said.replies_to["ts"], "parent_user_id": US}
        if said.is_bot:
            event |= {"user": ROBOT, "bot_id": "B2", "subtype": "bot_message"}
        if said.files:
            ((name, content),) = said.files
            number = f"F{len(self.double.files)}IN"
            self.double.files[number] = content
            url = f"{self.double.http}/files-pri/{number}/download/x"
            event |= {"subtype": "file_share"}
            event["files"] = [
                {
                    "id": number,
                    "name": name,
                    "size": len(content),
                    "mimetype": "application/octet-stream",
                    "url_private": url,
                }
            ]
        private = BENS if said.by_ben else PRIVATE
        sent = await self.double.write(private if said.is_private else CHANNEL, **event)
        return f"{TEAM}:{sent['channel']}:{sent['ts']}"

    async def repeat(self) -> None:
        await self.double.push(self.double.history[-1])

    async def babble(self) -> None:
        await self.double.deliver("events_api", {"type": "event_callback", "event": {"type": "message", "user": ANN}})

    async def press(self, ref: Ref, key: str, *, by_ben: bool = False) -> None:
        await self.double.press(ref["channel"], ref["ts"], key, BEN if by_ben else ANN)

    def shown(self) -> Sequence[Shown]:
        return [_shown(channel, ts, message) for (channel, ts), message in self.double.messages.items()]

    def received(self) -> Sequence[tuple[str, bytes]]:
        return self.double.uploads

    def notices(self) -> Sequence[str]:
        return [notice["text"] for notice in self.double.notices]

    def signals(self) -> int:
        return len(self.double.reactions)


def _shown(channel: str, ts: str, message: dict[str, Any]) -> Shown:
    blocks = message.get("blocks") or []
    blocks = json.loads(blocks) if isinstance(blocks, str) else blocks
    text = "\n".join(block["text"]["text"] for block in blocks if block["type"] == "section")
    keys = tuple(button["value"] for block in blocks for button in block.get("elements", ()))
    return Shown(text, keys, {"channel": channel, "ts": ts})


CASE = SlackCase
