"""vLLM's OpenAI-compatible server, with its reasoning kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_openai import ChatOpenAI

from deerflow.models.openai import OpenAIWire


class VllmChatModel(OpenAIWire, ChatOpenAI):
    """``ChatOpenAI`` that keeps ``reasoning``: in results, in stream deltas, and in the requests that follow.

    It is kept under its own name and as ``reasoning_content``, where the rest of the world looks for it. Servers before
    0.12 say ``reasoning_content``, and get it back under that name.
    """

    @property
    def _llm_type(self) -> str:
        return "vllm-openai-compatible"

    def _wire_message(self, message: BaseMessage, wire: dict[str, Any]) -> dict[str, Any]:
        if isinstance(message, AIMessage):
            for name in ("reasoning", "reasoning_content"):
                if (reasoning := message.additional_kwargs.get(name)) is not None:
                    wire[name] = reasoning
                    break
        return wire

    def _adapt_payload(self, payload: dict[str, Any]) -> None:
        if isinstance(extra_body := payload.get("extra_body"), dict):
            payload["extra_body"] = _with_enable_thinking(extra_body)

    def _own_fields(self, source: Mapping[str, Any]) -> dict[str, Any]:
        if (reasoning := source.get("reasoning")) is not None:
            return {"reasoning": reasoning, "reasoning_content": reasoning}
        if (reasoning := source.get("reasoning_content")) is not None:
            return {"reasoning_content": reasoning}
        return {}


def _with_enable_thinking(extra_body: dict[str, Any]) -> dict[str, Any]:
    """Older configurations say ``thinking`` for what the chat templates call ``enable_thinking``."""
    template = extra_body.get("chat_template_kwargs")
    if not isinstance(template, dict) or "thinking" not in template:
        return extra_body
    rest = {name: value for name, value in template.items() if name != "thinking"}
    return {**extra_body, "chat_template_kwargs": {"enable_thinking": template["thinking"], **rest}}
