"""Differences between vendors of OpenAI's protocol: one table, and the form of a message that all of them take."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import orjson

_CLAUDE_IDS = r"[A-Za-z0-9_-]{1,64}"
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
NO_NAME = "unknown_tool"
NO_ID = r"(?!)"
"""A pattern that no id has."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """Differences between a vendor's protocol and OpenAI's.

    Args:
        hosts: ends of its host names.
        models: pattern of model names that keep these rules at any host.
        call_ids: pattern of the ids of tool calls that it takes.
        needs_reasoning: messages with tool calls must carry ``reasoning_content``.
        needs_signature: the first call of a message must carry a thought signature.
        answers_results: an assistant's message must stand between tool results and a person's message.
        max_tokens: it has ``max_tokens`` only, not ``max_completion_tokens``.
    """

    hosts: tuple[str, ...] = ()
    models: str = r"(?!)"
    call_ids: str = r".+"
    needs_reasoning: bool = False
    needs_signature: bool = False
    answers_results: bool = False
    max_tokens: bool = False


PLAIN = Dialect()
DEEPSEEK = Dialect(("deepseek.com",), needs_reasoning=True, max_tokens=True)
DIALECTS = (
    DEEPSEEK,
    # https://docs.mistral.ai/capabilities/function_calling; its models' templates refuse the same at other hosts.
    Dialect(
        ("mistral.ai",),
        models=r"\b(?:mistral|ministral|magistral|devstral|codestral|mixtral|pixtral)",
        call_ids=r"[A-Za-z0-9]{9}",
        answers_results=True,
        max_tokens=True,
    ),
    # https://platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model
    Dialect(("moonshot.ai", "moonshot.cn", "kimi.com"), needs_reasoning=True, max_tokens=True),
    Dialect(("api.openai.com", "openai.azure.com"), call_ids=r".{1,40}"),
    Dialect(("anthropic.com", "openrouter.ai"), call_ids=_CLAUDE_IDS),
    Dialect(("googleapis.com",), models=r"(?:^|/)gemini-[3-9]", needs_signature=True),
    Dialect(("bigmodel.cn", "z.ai", "minimax.io", "minimaxi.com"), max_tokens=True),
)

SKIPPED_SIGNATURE = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""Google's stand-in for calls of other models (https://ai.google.dev/gemini-api/docs/thought-signatures)."""

TEXT_FIELDS = ("type", "text", "cache_control", "prompt_cache_breakpoint")

RESULTS_ANSWERED = {"role": "assistant", "content": "OK."}
"""Stands between tool results and a person's message where a vendor wants one."""


@lru_cache(maxsize=256)
def dialect_of(base_url: str, model: str) -> Dialect:
    """Return the dialect of a model at an address: the host decides, else the model's name."""
    host = host_of(base_url)
    for dialect in DIALECTS:
        if any(host == known or host.endswith(f".{known}") for known in dialect.hosts):
            return dialect
    return next((dialect for dialect in DIALECTS if re.search(dialect.models, model, re.IGNORECASE)), PLAIN)


def host_of(base_url: str) -> str:
    """Return the host of an address; OpenAI's own if there is none."""
    return urlsplit(base_url).hostname or "api.openai.com"


def legal_name(name: Any) -> str:
    """Return a tool's name as vendors take it: up to 64 letters, digits, ``_`` and ``-``."""
    name = name if isinstance(name, str) else ""
    return name if _TOOL_NAME.fullmatch(name) else _FOREIGN.sub("_", name)[:64] or NO_NAME


def call_id(id_: Any, pattern: str) -> str:
    """Return a call's id as a vendor takes it: its own, else nine letters and digits that follow from it."""
    id_ = str(id_ or "")
    if re.fullmatch(pattern, id_):
        return id_
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in hashlib.sha256(id_.encode()).digest()[:9])


def plain_content(content: Any, between: str = "\n") -> Any:
    """Return content as every vendor takes it: a text as one string, other content as a list of blocks.

    Args:
        between: what stands between two blocks of text; nothing between those of a model, which are one text.
    """
    if not isinstance(content, list):
        return content or ""
    blocks = [block for block in map(_block, content) if block is not None]
    if all(block.keys() == {"type", "text"} for block in blocks):
        return between.join(block["text"] for block in blocks)
    return blocks


def _block(block: Any) -> dict[str, Any] | None:
    if isinstance(block, str):
        block = {"type": "text", "text": block}
    if block.get("type") != "text":
        return block
    kept = {name: block[name] for name in TEXT_FIELDS if name in block}
    return kept if kept.get("text") else None


def plain_call(call: Mapping[str, Any], dialect: Dialect) -> dict[str, Any]:
    """Return a call with a legal name, an id that the vendor takes, and arguments that are a JSON object."""
    function: Mapping[str, Any] = call.get("function") or {}
    return {
        **call,
        "id": call_id(call.get("id"), dialect.call_ids),
        "function": {**function, "name": legal_name(function.get("name")), "arguments": _object(function)},
    }


def _object(function: Mapping[str, Any]) -> str:
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        return "{}"
    try:
        value = orjson.loads(arguments)
    except ValueError:  # also of halves of a surrogate pair, which are repaired later
        try:
            value = json.loads(arguments)
        except ValueError:
            value = None
    return arguments if isinstance(value, dict) else "{}"


def signed(calls: Sequence[dict[str, Any]]) -> None:
    """Give the first call a stand-in for the thought signature that another model's calls do not have."""
    if calls and not any("extra_content" in call or "thought_signature" in call for call in calls):
        calls[0]["extra_content"] = SKIPPED_SIGNATURE
