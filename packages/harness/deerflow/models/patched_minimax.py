"""MiniMax M2, with its thinking kept apart from its answers."""

from __future__ import annotations

from typing import Any, ClassVar

from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI

from deerflow.models.openai import OpenAIWire


class PatchedChatMiniMax(OpenAIWire, ChatOpenAI):
    """``ChatOpenAI`` that asks for ``reasoning_split``.

    The ``reasoning_details`` go back with each assistant message, since M2 thinks on from them between tool calls
    (https://platform.minimax.io/docs/guides/text-m2-function-call).
    """

    returns_unmarked: ClassVar[bool] = True

    def _return_thoughts(self, message: AIMessage, wire: dict[str, Any]) -> None:
        super()._return_thoughts(message, wire)
        if text := wire.pop("reasoning_content", None):  # of an earlier version, which kept no details
            wire["reasoning_details"] = [{"type": "reasoning.text", "text": text}]

    def _adapt_payload(self, payload: dict[str, Any]) -> None:
        super()._adapt_payload(payload)
        payload["extra_body"] = {**(payload.get("extra_body") or {}), "reasoning_split": True}
