"""Chat models that keep the settings they were made with, for tests of whatever makes them."""

from __future__ import annotations

from typing import Any, Literal

from langchain_core.language_models.chat_models import SimpleChatModel
from langchain_core.messages import BaseMessage


class Silent(SimpleChatModel):
    """Answers with nothing, and declares nothing but the model."""

    model: str

    @property
    def _llm_type(self) -> str:
        return "silent"

    def _call(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> str:
        return ""


class Recorder(Silent):
    """Declares every setting that the factory's rules speak of."""

    api_key: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    extra_body: dict[str, Any] | None = None
    thinking: dict[str, Any] | None = None
    reasoning_effort: str | None = None
    stream_usage: bool = False
    max_retries: int = 2


class MindIEChatModel(Recorder):
    """Has the name to which a rule is tied."""


class Scaled(Silent):
    """Knows two efforts only."""

    reasoning_effort: Literal["low", "high"] | None = None


NOT_A_MODEL = object()
