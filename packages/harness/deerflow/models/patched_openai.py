"""Gemini behind an OpenAI-compatible gateway, with its thought signatures sent back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_openai import ChatOpenAI

from deerflow.models.openai import OpenAIWire

KEPT = "thought_signatures"
"""Key in ``additional_kwargs``: call id (or ``#index``, where a delta has no id) to the fields to send back with the call."""


class PatchedChatOpenAI(OpenAIWire, ChatOpenAI):
    """``ChatOpenAI`` that returns the thought signatures of tool calls; Gemini 3 answers 400 without them.

    They come as ``thought_signature`` or ``thoughtSignature`` of a call, or in its ``extra_content`` as Google's own
    endpoint has it (https://ai.google.dev/gemini-api/docs/thought-signatures), and go back the same way. Histories in
    which LangChain kept the raw calls (``additional_kwargs["tool_calls"]``) are understood too.
    """

    def _wire_message(self, message: BaseMessage, wire: dict[str, Any]) -> dict[str, Any]:
        if isinstance(message, AIMessage) and (calls := wire.get("tool_calls")):
            raw_calls = message.additional_kwargs.get("tool_calls") or []
            kept = message.additional_kwargs.get(KEPT) or {}
            for index, call in enumerate(calls):
                call.update(_fields_of(_raw_call(raw_calls, calls, index)))
                call.update(kept.get(call.get("id")) or kept.get(f"#{index}") or {})
        return wire

    def _own_fields(self, source: Mapping[str, Any]) -> dict[str, Any]:
        found = {}
        for index, call in enumerate(source.get("tool_calls") or ()):
            if fields := _fields_of(call):
                found[call.get("id") or f"#{call.get('index', index)}"] = fields
        return {KEPT: found} if found else {}


def _fields_of(call: Mapping[str, Any] | None) -> dict[str, Any]:
    """What a call carries that must go back with it."""
    if not call:
        return {}
    fields: dict[str, Any] = {}
    if signature := call.get("thought_signature") or call.get("thoughtSignature"):
        fields["thought_signature"] = signature
    if extra_content := call.get("extra_content"):
        fields["extra_content"] = extra_content
    return fields


def _raw_call(
    raw_calls: Sequence[Mapping[str, Any]], calls: Sequence[Mapping[str, Any]], index: int
) -> Mapping[str, Any] | None:
    """The raw form of ``calls[index]``: the one with its id, else the one in its place that no other call claims."""
    for raw in raw_calls:
        if raw.get("id") and raw.get("id") == calls[index].get("id"):
            return raw
    if index >= len(raw_calls) or any(raw_calls[index].get("id") == call.get("id") for call in calls):
        return None
    return raw_calls[index]
