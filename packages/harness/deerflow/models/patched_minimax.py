"""MiniMax M2, with its thinking kept apart from its answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_openai import ChatOpenAI

from deerflow.models.openai import OpenAIWire

THINK = re.compile(r"<think>(.*?)(?:</think>\s*|\Z)", re.DOTALL)


class PatchedChatMiniMax(OpenAIWire, ChatOpenAI):
    """``ChatOpenAI`` that asks for ``reasoning_split`` and turns ``reasoning_details`` into ``reasoning_content``.

    The reasoning goes back with each assistant message, since M2 thinks on from it between tool calls
    (https://platform.minimax.io/docs/guides/text-m2-function-call). Thinking that comes inside of a whole answer, in
    ``<think>`` tags, is moved to the reasoning as well.
    """

    def _wire_message(self, message: BaseMessage, wire: dict[str, Any]) -> dict[str, Any]:
        if isinstance(message, AIMessage) and (reasoning := message.additional_kwargs.get("reasoning_content")):
            wire["reasoning_details"] = [{"type": "reasoning.text", "text": reasoning}]
        return wire

    def _adapt_payload(self, payload: dict[str, Any]) -> None:
        payload["extra_body"] = {**(payload.get("extra_body") or {}), "reasoning_split": True}

    def _own_fields(self, source: Mapping[str, Any]) -> dict[str, Any]:
        reasoning = _reasoning(source)
        return {"reasoning_content": reasoning} if reasoning else {}

    def _annotate(self, message: BaseMessage, answer: Mapping[str, Any]) -> None:
        parts = [_reasoning(answer).strip()]
        if isinstance(message.content, str) and "<think>" in message.content:
            parts += [thought.strip() for thought in THINK.findall(message.content)]
            message.content = THINK.sub("", message.content).strip()
        if merged := "\n\n".join(dict.fromkeys(part for part in parts if part)):
            message.additional_kwargs = {**message.additional_kwargs, "reasoning_content": merged}


def _reasoning(source: Mapping[str, Any]) -> str:
    details = source.get("reasoning_details")
    if isinstance(details, list):
        texts = [detail.get("text") for detail in details if isinstance(detail, dict)]
        if joined := "".join(text for text in texts if isinstance(text, str)):
            return joined
    reasoning = source.get("reasoning_content")
    return reasoning if isinstance(reasoning, str) else ""
