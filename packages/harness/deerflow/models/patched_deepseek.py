"""DeepSeek, with its reasoning sent back."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_deepseek import ChatDeepSeek

from deerflow.models.openai import OpenAIWire


class PatchedChatDeepSeek(OpenAIWire, ChatDeepSeek):
    """``ChatDeepSeek`` that returns ``reasoning_content`` with each assistant message.

    DeepSeek refuses a thinking model's tool turns without it (https://api-docs.deepseek.com/guides/thinking_mode).
    """

    @classmethod
    def is_lc_serializable(cls) -> bool:
        return True

    def _wire_message(self, message: BaseMessage, wire: dict[str, Any]) -> dict[str, Any]:
        if isinstance(message, AIMessage):
            reasoning = message.additional_kwargs.get("reasoning_content")
            if reasoning is not None:
                wire["reasoning_content"] = reasoning
        return wire
