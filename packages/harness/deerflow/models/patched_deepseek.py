"""DeepSeek, and others that want their ``reasoning_content`` back."""

from __future__ import annotations

from typing import ClassVar

from langchain_deepseek import ChatDeepSeek

from deerflow.models.dialects import DEEPSEEK, Dialect
from deerflow.models.openai import OpenAIWire


class PatchedChatDeepSeek(OpenAIWire, ChatDeepSeek):
    """``ChatDeepSeek`` that returns ``reasoning_content`` with each assistant message.

    DeepSeek refuses a thinking model's tool turns without it (https://api-docs.deepseek.com/guides/thinking_mode).
    """

    dialect: ClassVar[Dialect | None] = DEEPSEEK
    returns_unmarked: ClassVar[bool] = True

    @classmethod
    def is_lc_serializable(cls) -> bool:
        return True
