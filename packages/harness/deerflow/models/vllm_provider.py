"""vLLM's OpenAI-compatible server, with its reasoning kept."""

from __future__ import annotations

from typing import Any, ClassVar

from langchain_openai import ChatOpenAI

from deerflow.models.openai import OpenAIWire


class VllmChatModel(OpenAIWire, ChatOpenAI):
    """``ChatOpenAI`` for vLLM, with its name and its word for thinking."""

    returns_unmarked: ClassVar[bool] = True

    @property
    def _llm_type(self) -> str:
        return "vllm-openai-compatible"

    def _adapt_payload(self, payload: dict[str, Any]) -> None:
        super()._adapt_payload(payload)
        if isinstance(extra_body := payload.get("extra_body"), dict):
            payload["extra_body"] = _with_enable_thinking(extra_body)


def _with_enable_thinking(extra_body: dict[str, Any]) -> dict[str, Any]:
    """Older configurations say ``thinking`` for what the chat templates call ``enable_thinking``."""
    template = extra_body.get("chat_template_kwargs")
    if not isinstance(template, dict) or "thinking" not in template:
        return extra_body
    rest = {name: value for name, value in template.items() if name != "thinking"}
    return {**extra_body, "chat_template_kwargs": {"enable_thinking": template["thinking"], **rest}}
