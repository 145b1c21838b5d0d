"""MiniMax M2, with its thinking kept apart from its answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import openai
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI

from deerflow.models.openai_answers import annotate, annotate_chunk, answers_of, delta_of
from deerflow.models.openai_wire import OpenAIWire

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

    def _get_request_payload(
        self, input_: LanguageModelInput, *, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        payload = super()._get_request_payload(input_, stop=stop, **kwargs)
        payload["extra_body"] = {**(payload.get("extra_body") or {}), "reasoning_split": True}
        return payload

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], default_chunk_class: type, base_generation_info: dict[str, Any] | None
    ) -> ChatGenerationChunk | None:
        generation = super()._convert_chunk_to_generation_chunk(chunk, default_chunk_class, base_generation_info)
        reasoning = _reasoning(delta_of(chunk))
        return annotate_chunk(generation, {"reasoning_content": reasoning} if reasoning else {})

    def _create_chat_result(
        self, response: dict[str, Any] | openai.BaseModel, generation_info: dict[str, Any] | None = None
    ) -> ChatResult:
        result = super()._create_chat_result(response, generation_info)
        for generation, answer in zip(result.generations, answers_of(response), strict=False):
            _move_thinking(generation.message, _reasoning(answer))
        return result


def _reasoning(source: Mapping[str, Any]) -> str:
    details = source.get("reasoning_details")
    if isinstance(details, list):
        texts = [detail.get("text") for detail in details if isinstance(detail, dict)]
        if joined := "".join(text for text in texts if isinstance(text, str)):
            return joined
    reasoning = source.get("reasoning_content")
    return reasoning if isinstance(reasoning, str) else ""


def _move_thinking(message: BaseMessage, reasoning: str) -> None:
    parts = [reasoning.strip()]
    if isinstance(message.content, str) and "<think>" in message.content:
        parts += [thought.strip() for thought in THINK.findall(message.content)]
        message.content = THINK.sub("", message.content).strip()
    if merged := "\n\n".join(dict.fromkeys(part for part in parts if part)):
        annotate(message, {"reasoning_content": merged})
