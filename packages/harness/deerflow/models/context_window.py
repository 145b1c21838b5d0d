"""How much a model can read, and how much of that a request takes."""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata

from deerflow.config import AppConfig
from deerflow.config.discovery import providers
from deerflow.models.endpoint import Endpoint, endpoint_of, model_id

BYTES_PER_TOKEN = 4
"""About right for English and code, and one token for each Chinese character and a third."""
MOST_TOKENS = 1_000_000_000
"""A provider that says more, or less than none, does not say what an answer took."""
IMAGE_TOKENS = 1000
PER_MESSAGE = 4
ANSWER_SHARE = 8
"""A model without ``max_tokens`` keeps this part of its window (1/8) for the answer."""
MARGIN = 0.95
ESTIMATED = "usage_estimated"
"""Key in an answer's ``response_metadata``: the provider gave no figures, and its ``usage_metadata`` is our estimate."""

GUESS_SECONDS = 600.0
"""Seconds for which a window is believed to be smaller than the configuration states, or than all that is known: a proxy or a gateway in
trouble refuses what the model takes again later."""
ANSWERS = 15
"""Answers whose figures say how far estimates are off: their median, so that a wrong figure among them changes nothing."""

_LIMITS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r">\s*(\d[\d,_]{2,})",
        r"(?:context.{0,12}(?:length|window|size|limit)|maximum|\bmax\b|limit)[^\d]{0,40}(\d[\d,_]{2,})",
    )
)
"""Where refusals name the window, the surest first."""
_OF_TOKENS = re.compile(r"token|context|上下文|长度", re.IGNORECASE)
_OF_RATES = re.compile(r"per (?:minute|hour|day)|\b[rt]p[md]\b|/min", re.IGNORECASE)


@dataclass(slots=True)
class _Known:
    """The window of one endpoint, as its answers and refusals show it."""

    named: int | None = None
    """In a refusal, as a number."""
    guessed: int | None = None
    at: float = 0.0
    """Seconds: of the refusal."""
    passed: int = 0
    """Tokens of the largest request that was answered."""
    ratios: deque[float] = field(default_factory=lambda: deque((1.0, 1.0), maxlen=ANSWERS))
    ratio: float = 1.0


class ContextWindows:
    """The windows of models, and how far estimates are from what providers count. Shared by all runs of a process.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shipped = {preset.model: preset.context_window for each in providers() for preset in each.presets}
        self._known = defaultdict[Endpoint, _Known](_Known)

    def window(self, model: BaseChatModel, config: AppConfig | None) -> int | None:
        """Tokens that ``model`` reads and writes in one call: as configured, shipped, or learned from an error; None: unknown."""
        name, known = model_id(model), self._known[endpoint_of(model)]
        entries = [entry for entry in config.models if entry.model == name] if config else []
        stated = next((entry.context_window for entry in entries if entry.context_window), None)
        stated = stated or self._shipped.get(name) or (model.profile or {}).get("max_input_tokens")
        named = known.named if stated is None or self._is_fresh(known) else None
        return min(filter(None, (stated, named)), default=None)

    def limit(self, model: BaseChatModel, config: AppConfig | None, *, sure: bool = False) -> int | None:
        """Tokens that a request may hold, so that the answer has room; None: unknown.

        Args:
            sure: leave out what is only guessed from a refusal without a number.
        """
        window, known = self.window(model, config), self._known[endpoint_of(model)]
        guess = None if sure or not self._is_fresh(known) else known.guessed
        window = min(filter(None, (window, guess)), default=None)
        if window is None:
            return None
        asked = getattr(model, "max_tokens", None) or window // ANSWER_SHARE
        return int((window - min(asked, window // 4)) * MARGIN)

    def counted(self, model: BaseChatModel, estimate: int) -> int:
        """``estimate`` as this model's provider would count it."""
        return round(estimate * self._known[endpoint_of(model)].ratio)

    def passed(self, model: BaseChatModel, estimate: int, answer: BaseMessage | None) -> None:
        """Learn from an answer how many tokens its request really had, and that so many are not too many."""
        known = self._known[endpoint_of(model)]
        usage = answer.usage_metadata if isinstance(answer, AIMessage) else None
        if usage and usage["input_tokens"] > 0 and estimate > 0:
            known.ratios.append(min(4.0, max(0.5, usage["input_tokens"] / estimate)))
            known.ratio = median(known.ratios)
        size = round(estimate * known.ratio)
        known.passed = max(known.passed, size)
        known.named = None if size > (known.named or size) else known.named
        known.guessed = None if size > (known.guessed or size) else known.guessed

    def refused(self, model: BaseChatModel, words: str, size: int, fixed: int) -> None:
        """Learn a window from a provider's words about tokens; guess it from the refused size where they hold no number to believe.

        It is never below what was answered before, or what every request holds.

        Args:
            size: counted tokens of the request.
            fixed: counted tokens of what every request holds: the system prompt and the tools.
        """
        if not _OF_TOKENS.search(words) or _OF_RATES.search(words):
            return
        known = self._known[endpoint_of(model)]
        found = next((match for each in _LIMITS if (match := each.search(words))), None)
        number = int(re.sub(r"[,_]", "", found[1])) if found else 0
        least = max(known.passed, fixed * 4 // 3)
        known.at = self._clock()
        if 512 <= number < size * 2:
            known.named = max(number, least)
        else:
            known.guessed = max(size * 4 // 5, least)

    def _is_fresh(self, known: _Known) -> bool:
        return self._clock() - known.at < GUESS_SECONDS


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
    """Whether the provider says what an answer took. Zeros are no figures, except for an answer that holds nothing, and neither is
    what no answer takes."""
    used = answer.usage_metadata
    if used and not all(_is_plausible(used[name]) for name in ("input_tokens", "output_tokens")):
        answer.usage_metadata = used = None
    return bool(used and used["input_tokens"] and (used["output_tokens"] or not _size(answer)))


def _is_plausible(tokens: Any) -> bool:
    return isinstance(tokens, int) and 0 <= tokens <= MOST_TOKENS


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
