"""Shaping of an Anthropic Messages request: pure functions from payload to payload.

Inputs are never changed in place: tools and message blocks are shared with the history and with other calls.
Sources: Anthropic's documentation of prompt caching, extended thinking and message roles.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from deerflow.models.reminders import is_reminder

MAX_CACHE_MARKERS = 4
CACHE_MARKER: Mapping[str, str] = {"type": "ephemeral"}
CACHEABLE_BLOCKS = frozenset({"text", "image", "document", "tool_use", "tool_result"})
MIN_THINKING_BUDGET = 1024
DEFAULT_MAX_TOKENS = 8192

Payload = dict[str, Any]


def place_system_messages(messages: Sequence[BaseMessage], *, in_place: bool) -> list[BaseMessage]:
    """Messages in which system messages stand only where the API takes them.

    Leading ones become the system prompt. A later one stays if the model supports it (``in_place``) and it stands
    between a user turn and an assistant turn or the end; otherwise it becomes a marked user message, since hoisting
    it would change the prompt's prefix and with it everything that is cached.
    """
    placed: list[BaseMessage] = []
    leading = True
    for index, message in enumerate(messages):
        if not isinstance(message, SystemMessage):
            leading = False
            placed.append(message)
        elif leading or (in_place and _may_stand_here(messages, index)):
            placed.append(message)
        else:
            note = f"<system_note>\n{message.text}\n</system_note>"
            placed.append(HumanMessage(content=note, name=message.name, id=message.id))
    return placed


def with_thinking(payload: Payload, *, auto_budget: bool) -> Payload:
    """The payload with a thinking setting that the API accepts: a budget, no conflicting sampling, a fitting history."""
    payload = {**payload, "messages": [_without_unsigned_thinking(message) for message in payload["messages"]]}
    thinking = payload.get("thinking")
    kind = thinking.get("type") if isinstance(thinking, Mapping) else None
    if not isinstance(thinking, Mapping) or kind not in ("enabled", "adaptive"):
        return payload
    if kind == "enabled" and _continues_without_thinking(payload["messages"]):
        return {key: value for key, value in payload.items() if key != "thinking"}
    if kind == "enabled" and auto_budget and not thinking.get("budget_tokens"):
        budget = int(0.8 * (payload.get("max_tokens") or DEFAULT_MAX_TOKENS))
        payload["thinking"] = {**thinking, "budget_tokens": max(MIN_THINKING_BUDGET, budget)}
    return _without_sampling(payload)


def with_cache_markers(payload: Payload, *, last_messages: int, reminder_blocks: int = 0) -> Payload:
    """The payload with up to four cache markers; apart from them equal parts keep equal bytes between requests.

    Marked are the last tool, the end of the system prompt, and the ends of the newest user turns: the newest one is
    written to the cache, the one before is where the previous request wrote to.

    Args:
        last_messages: how many user turns may be marked.
        reminder_blocks: blocks at the very end that hold for this call only and are not worth caching.
    """
    if _has_marker(payload):
        return payload
    marked = {**payload, "messages": [_with_blocks(message) for message in payload["messages"]]}
    left = MAX_CACHE_MARKERS
    if tools := payload.get("tools"):
        marked["tools"] = [*tools[:-1], {**tools[-1], "cache_control": dict(CACHE_MARKER)}]
        left -= 1
    if system := _marked_system(payload.get("system")):
        marked["system"] = system
        left -= 1
    skip = reminder_blocks
    left = min(left, last_messages)
    for index in range(len(marked["messages"]) - 1, -1, -1):
        if left <= 0:
            break
        message = marked["messages"][index]
        if message["role"] != "user":
            continue
        content = _marked_at_end(message["content"], skip)
        skip = 0
        if content is not None:
            marked["messages"][index] = {**message, "content": content}
            left -= 1
    return marked


def without_cache_control(payload: Payload) -> Payload:
    """The payload without any cache marker."""

    def clean(value: Any) -> Any:
        if isinstance(value, list):
            return [clean(item) for item in value]
        if not isinstance(value, dict):
            return value
        return {key: item if key == "input" else clean(item) for key, item in value.items() if key != "cache_control"}

    kept = {key: value for key, value in payload.items() if key != "cache_control"}
    return {key: clean(value) if key in ("messages", "system", "tools") else value for key, value in kept.items()}


def with_first_system_text(payload: Payload, text: str) -> Payload:
    """The payload whose system prompt starts with the block ``text``, exactly once."""
    system = payload.get("system") or []
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else list(system)
    rest = [block for block in blocks if block.get("text") != text]
    return {**payload, "system": [{"type": "text", "text": text}, *rest]}


def count_reminder_blocks(messages: Sequence[BaseMessage]) -> int:
    """Content blocks of the reminders at the very end."""
    reminders = itertools.takewhile(is_reminder, reversed(messages[1:]))
    return sum(1 if isinstance(message.content, str) else len(message.content) for message in reminders)


def _may_stand_here(messages: Sequence[BaseMessage], index: int) -> bool:
    before = next((m for m in reversed(messages[:index]) if not isinstance(m, SystemMessage)), None)
    after = next((m for m in messages[index + 1 :] if not isinstance(m, SystemMessage)), None)
    return isinstance(before, HumanMessage | ToolMessage) and (after is None or isinstance(after, AIMessage))


def _without_unsigned_thinking(message: Payload) -> Payload:
    # Thoughts of another provider, or of a stream that was cut, carry no signature and would be refused.
    content = message["content"]
    if message["role"] != "assistant" or not isinstance(content, list):
        return message
    kept = [block for block in content if block.get("type") != "thinking" or block.get("signature")]
    if len(kept) == len(content):
        return message
    return {**message, "content": kept or [{"type": "text", "text": "(no answer)"}]}


def _continues_without_thinking(messages: Sequence[Payload]) -> bool:
    # Within one tool loop the API wants the assistant's turn to begin with its thoughts. It cannot have any if
    # another model, or this one without thinking, began the loop.
    last = messages[-1] if messages else {"content": ""}
    if not any(block.get("type") == "tool_result" for block in last["content"] if isinstance(block, dict)):
        return False
    turn = next((message for message in reversed(messages) if message["role"] == "assistant"), None)
    first = turn["content"][0] if turn and turn["content"] else {}
    return not (isinstance(first, dict) and first.get("type") in ("thinking", "redacted_thinking"))


def _without_sampling(payload: Payload) -> Payload:
    # Thinking excludes top_k and any temperature but 1. Newer SDKs take both in extra_body only.
    kept = {key: value for key, value in payload.items() if key not in ("temperature", "top_k")}
    extra = kept.get("extra_body")
    if isinstance(extra, Mapping):
        extra = {key: value for key, value in extra.items() if key not in ("temperature", "top_k")}
        kept = {**{key: value for key, value in kept.items() if key != "extra_body"}, **_given("extra_body", extra)}
    return kept


def _given(key: str, value: Any) -> Payload:
    return {key: value} if value else {}


def _has_marker(payload: Payload) -> bool:
    if "cache_control" in payload:
        return True
    system = payload.get("system")
    places = [payload.get("tools") or [], system if isinstance(system, list) else []]
    places += [message["content"] for message in payload["messages"] if isinstance(message["content"], list)]
    return any("cache_control" in block for blocks in places for block in blocks if isinstance(block, dict))


def _with_blocks(message: Payload) -> Payload:
    # A text that is a string in one request and a block in the next would be another prefix.
    content = message["content"]
    if not isinstance(content, str) or not content:
        return message
    return {**message, "content": [{"type": "text", "text": content}]}


def _marked_system(system: object) -> list[Payload] | None:
    if isinstance(system, str):
        return [{"type": "text", "text": system, "cache_control": dict(CACHE_MARKER)}] if system else None
    if not isinstance(system, list):
        return None
    return _marked_at_end([block for block in system if block.get("type") == "text"], 0)


def _marked_at_end(content: object, skip: int) -> list[Payload] | None:
    """``content`` with a marker on its last cacheable block, the last ``skip`` left out; None if there is none."""
    if not isinstance(content, list):
        return None
    for index in range(len(content) - 1 - skip, -1, -1):
        block = content[index]
        if block.get("type") in CACHEABLE_BLOCKS and block.get("text") != "":
            return [*content[:index], {**block, "cache_control": dict(CACHE_MARKER)}, *content[index + 1 :]]
    return None
