"""How much a model can read, and how much of that a request takes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata

from deerflow.config import AppConfig
from deerflow.config.discovery import providers

BYTES_PER_TOKEN = 4
"""About right for English and code, and one token for each Chinese character and a third."""
IMAGE_TOKENS = 1000
PER_MESSAGE = 4
ANSWER_SHARE = 8
"""A model without ``max_tokens`` keeps this part of its window (1/8) for the answer."""
MARGIN = 0.95
ESTIMATED = "usage_estimated"
"""Key in an answer's ``response_metadata``: the provider gave no figures, and its ``usage_metadata`` is our estimate."""

_LIMITS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r">\s*(\d[\d,_]{2,})",
        r"(?:context.{0,12}(?:length|window|size|limit)|maximum|\bmax\b|limit)[^\d]{0,40}(\d[\d,_]{2,})",
    )
)
"""Where refusals name the window, the surest first."""


class ContextWindows:
    """The windows of models, and how far estimates are from what providers count. Shared by all runs of a process."""

    def __init__(self) -> None:
        self._shipped = {preset.model: preset.context_window for each in providers() for preset in each.presets}
        self._learned: dict[str, int] = {}
        self._guessed: dict[str, int] = {}
        self._ratios: dict[str, float] = {}

    def window(self, model: BaseChatModel, config: AppConfig | None) -> int | None:
        """Tokens that ``model`` reads and writes in one call: as configured, shipped, or learned from an error; None: unknown."""
        name = model_id(model)
        entries = [entry for entry in config.models if entry.model == name] if config else []
        known = next((entry.context_window for entry in entries if entry.context_window), None)
        known = known or self._shipped.get(name) or (model.profile or {}).get("max_input_tokens")
        return min(filter(None, (known, self._learned.get(name))), default=None)

    def limit(self, model: BaseChatModel, config: AppConfig | None, *, sure: bool = False) -> int | None:
        """Tokens that a request may hold, so that the answer has room; None: unknown.

        Args:
            sure: leave out what is only guessed from a refusal without a number.
        """
        window, guess = self.window(model, config), None if sure else self._guessed.get(model_id(model))
        window = min(filter(None, (window, guess)), default=None)
        if window is None:
            return None
        asked = getattr(model, "max_tokens", None) or window // ANSWER_SHARE
        return int((window - min(asked, window // 4)) * MARGIN)

    def counted(self, model: BaseChatModel, estimate: int) -> int:
        """``estimate`` as this model's provider would count it."""
        return round(estimate * self._ratios.get(model_id(model), 1.0))

    def calibrate(self, model: BaseChatModel, estimate: int, answer: BaseMessage | None) -> None:
        """Learn from an answer how many tokens the request really had."""
        usage = answer.usage_metadata if isinstance(answer, AIMessage) else None
        if usage and usage["input_tokens"] > 0 and estimate > 0:
            self._ratios[model_id(model)] = min(4.0, max(0.5, usage["input_tokens"] / estimate))

    def learn(self, model: BaseChatModel, refusal: str, size: int) -> None:
        """Learn a window from a provider's words; guess it from the refused size where they hold no number to believe."""
        found = next((match for each in _LIMITS if (match := each.search(refusal))), None)
        number = int(re.sub(r"[,_]", "", found[1])) if found else 0
        if 512 <= number < size * 2:
            self._learned[model_id(model)] = number
        else:
            self._guessed[model_id(model)] = size * 4 // 5


def model_id(model: BaseChatModel) -> str:
    """The provider's name of a model."""
    return str(getattr(model, "model_name", None) or getattr(model, "model", None) or model.get_name())


def estimate(message: BaseMessage) -> int:
    """About how many tokens a message takes in a request."""
    return PER_MESSAGE + _size(message) // BYTES_PER_TOKEN


def _size(message: BaseMessage) -> int:
    size = _bytes(message.content)
    if isinstance(message, AIMessage):
        size += sum(_bytes(call["name"]) + _bytes(call["args"]) for call in message.tool_calls)
        size += _bytes(message.additional_kwargs.get("reasoning_content") or "")
    elif isinstance(message, ToolMessage):
        size += _bytes(message.additional_kwargs.get("note") or "")
    return size


def has_figures(answer: AIMessage) -> bool:
    """Whether the provider says what an answer took. Zeros are no figures, except for an answer that holds nothing."""
    used = answer.usage_metadata
    return bool(used and used["input_tokens"] and (used["output_tokens"] or not _size(answer)))


def estimate_usage(answer: AIMessage, sent: int) -> None:
    """Give an answer the usage that its provider left out, marked as estimated.

    Args:
        sent: tokens of the request, as estimated.
    """
    used = answer.usage_metadata or UsageMetadata(input_tokens=0, output_tokens=0, total_tokens=0)
    sent, received = used["input_tokens"] or sent, used["output_tokens"] or -(-_size(answer) // BYTES_PER_TOKEN)
    counted = {"input_tokens": sent, "output_tokens": received, "total_tokens": sent + received}
    answer.usage_metadata = UsageMetadata(**{**used, **counted})
    answer.response_metadata[ESTIMATED] = True


def streamed_bytes(chunk: AIMessageChunk) -> int:
    """How much a piece of an answer holds: text, thoughts and arguments of calls."""
    parts = (chunk.content, chunk.additional_kwargs.get("reasoning_content"))
    size = sum([_bytes(part) for part in parts if part])
    for call in chunk.tool_call_chunks:
        size += _bytes(call["args"] or "")
    return size


def _bytes(content: Any) -> int:
    if isinstance(content, str):
        return len(content) if content.isascii() else len(content.encode("utf-8", "replace"))
    if isinstance(content, list):
        return sum(_bytes(block) for block in content)
    if isinstance(content, Mapping) and "image" in str(content.get("type")):
        return IMAGE_TOKENS * BYTES_PER_TOKEN
    for key in ("text", "thinking") if isinstance(content, Mapping) else ():
        if isinstance(content.get(key), str):
            return _bytes(content[key])
    return len(json.dumps(content, default=str))
