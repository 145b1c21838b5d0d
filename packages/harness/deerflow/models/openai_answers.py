"""What LangChain does not take from the answers of OpenAI's clones: fields of their own, and calls it cannot read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import openai
from langchain_core.messages import BaseMessage, InvalidToolCall
from langchain_core.messages.tool import invalid_tool_call
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from openai.types.chat import ChatCompletion


def delta_of(chunk: Mapping[str, Any]) -> Mapping[str, Any]:
    """The delta of a stream chunk's first choice; empty for chunks without one."""
    choices = chunk.get("choices") or (chunk.get("chunk") or {}).get("choices") or [{}]
    return choices[0].get("delta") or {}


def answers_of(response: Mapping[str, Any] | openai.BaseModel) -> list[Mapping[str, Any]]:
    """The messages of a completion with all their fields, a provider's own included, one per choice."""
    if isinstance(response, openai.BaseModel):
        choices = getattr(response, "choices", None) or []
        return [choice.message.to_dict(mode="json", warnings=False) for choice in choices]
    return [choice["message"] for choice in response.get("choices") or []]


def annotate(message: BaseMessage, values: Mapping[str, Any]) -> None:
    """Keep a provider's own fields with a message."""
    if values:
        message.additional_kwargs = {**message.additional_kwargs, **values}


def annotate_chunk(chunk: ChatGenerationChunk | None, values: Mapping[str, Any]) -> ChatGenerationChunk | None:
    if chunk is not None:
        annotate(chunk.message, values)
    return chunk


def annotate_result(result: ChatResult, values: list[dict[str, Any]]) -> ChatResult:
    for generation, fields in zip(result.generations, values, strict=False):
        annotate(generation.message, fields)
    return result


def take_malformed_calls(completion: ChatCompletion) -> list[list[InvalidToolCall]]:
    """Take the calls out of a completion whose arguments are JSON, but not an object; one list per choice."""
    taken: list[list[InvalidToolCall]] = []
    for choice in getattr(completion, "choices", None) or []:
        calls = (choice.message and choice.message.tool_calls) or []
        malformed = [call for call in calls if _is_no_object(_arguments(call))]
        if malformed:
            choice.message.tool_calls = [call for call in calls if call not in malformed]
        taken.append([_invalid(call) for call in malformed])
    return taken


def _arguments(call: Any) -> Any:
    return getattr(getattr(call, "function", None), "arguments", None)


def _is_no_object(arguments: Any) -> bool:
    if not isinstance(arguments, str) or arguments.lstrip().startswith("{"):
        return False
    try:
        return not isinstance(json.loads(arguments), dict)
    except json.JSONDecodeError:
        return False


def _invalid(call: Any) -> InvalidToolCall:
    arguments = _arguments(call)
    error = "The arguments must be a JSON object."
    return invalid_tool_call(name=call.function.name, args=arguments, id=call.id, error=error)
