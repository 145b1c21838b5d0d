"""DingTalk without a card template in the contract of channels: messages stay as they were sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.contracts.channels.case import Shown
from tests.contracts.channels.case_dingtalk import DingTalkCase
from tests.support.channels.dingtalk_double import PARAM_BYTES

from deerflow_app.channels.adapters.dingtalk import DingTalk


class PlainDingTalkCase(DingTalkCase):
    name = "dingtalk_plain"
    limit = PARAM_BYTES - len(json.dumps({"title": "x" * 40, "text": ""}))
    has_replies = True
    has_clicks = False
    has_edits = False

    def adapter(self, **more: Any) -> DingTalk:
        return super().adapter(card_template_id="", **more)

    def shown(self) -> Sequence[Shown]:
        return [Shown(params["text"]) for kind, params, _ in self.double.sent if kind == "sampleMarkdown"]


CASE = PlainDingTalkCase
