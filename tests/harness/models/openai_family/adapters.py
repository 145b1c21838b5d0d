"""The adapters of OpenAI's family, as the contract wants to see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import openai
from bench.scripted_openai import RawChunks, ScriptedOpenAI, Text
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_openai import ChatOpenAI
from tests.harness.models.openai_family.contract import Provider

from deerflow.models.mindie_provider import MindIEChatModel, render_calls
from deerflow.models.openai import OpenAIChatModel
from deerflow.models.patched_deepseek import PatchedChatDeepSeek
from deerflow.models.patched_minimax import PatchedChatMiniMax
from deerflow.models.patched_openai import PatchedChatOpenAI
from deerflow.models.vllm_provider import VllmChatModel

ERRORS = {
    400: openai.BadRequestError,
    401: openai.AuthenticationError,
    404: openai.NotFoundError,
    429: openai.RateLimitError,
    500: openai.InternalServerError,
}


def builder(cls: type[Any], **defaults: Any) -> Callable[..., BaseChatModel]:
    def build(endpoint: ScriptedOpenAI, **settings: Any) -> BaseChatModel:
        common = {"model": "scripted", "api_key": "key", "base_url": endpoint.base_url, "stream_usage": True}
        return cls(**{**common, **defaults, **settings})

    return build


def texts(request: dict[str, Any]) -> list[tuple[str, str]]:
    return [(message["role"], text_of(message["content"])) for message in request["messages"]]


def text_of(content: Any) -> str:
    if isinstance(content, list):
        return "".join(block.get("text", "") for block in content)
    return content or ""


def system(request: dict[str, Any]) -> str:
    assert request["messages"][0]["role"] == "system"
    return text_of(request["messages"][0]["content"])


def images(request: dict[str, Any]) -> list[str]:
    contents = [message["content"] for message in request["messages"] if isinstance(message["content"], list)]
    return [block["image_url"]["url"] for content in contents for block in content if block["type"] == "image_url"]


def replayed_as(key: str) -> Callable[[dict[str, Any]], str | None]:
    def replayed(request: dict[str, Any]) -> str | None:
        return next(message.get(key) for message in request["messages"] if message["role"] == "assistant")

    return replayed


def replayed_details(request: dict[str, Any]) -> str | None:
    details: Any = replayed_as("reasoning_details")(request)
    return "".join(detail["text"] for detail in details)


def minimax_reply(reasoning: str, text: str) -> Callable[[dict[str, Any]], RawChunks]:
    """MiniMax's shape, whole or streamed as the request wants it."""

    def reply(request: dict[str, Any]) -> RawChunks:
        def details(part: str) -> list[dict[str, str]]:
            return [{"type": "reasoning.text", "text": part}]

        common = {"id": "1", "created": 1, "model": "MiniMax-M2"}
        if not request.get("stream"):
            message = {"role": "assistant", "content": text, "reasoning_details": details(reasoning)}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            return RawChunks([{**common, "object": "chat.completion", "choices": [choice]}])
        middle = len(reasoning) // 2
        deltas = [
            {"reasoning_details": details(reasoning[:middle])},
            {"reasoning_details": details(reasoning[middle:])},
        ]
        choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in [*deltas, {"content": text}]]
        choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
        return RawChunks([{**common, "object": "chat.completion.chunk", "choices": [choice]} for choice in choices])

    return reply


def xml_calls(*calls: tuple[str, dict[str, Any]], text: str = "") -> Text:
    rendered = render_calls([{"name": name, "args": args, "id": None} for name, args in calls])
    return Text(f"{text}\n{rendered}" if text else rendered)


def provider(cls: type[Any], **fields: Any) -> Provider:
    defaults = {"build": builder(cls), "errors": ERRORS, "broken": openai.APIConnectionError, "texts": texts}
    return Provider(**{**defaults, "system": system, "images": images, **fields})


PROVIDERS: dict[str, Provider] = {
    "openai": provider(OpenAIChatModel),
    "patched_openai": provider(PatchedChatOpenAI),
    "patched_deepseek": provider(
        PatchedChatDeepSeek,
        reasoning_reply=lambda reasoning, text: Text(text, reasoning=reasoning),
        replayed=replayed_as("reasoning_content"),
    ),
    "patched_minimax": provider(PatchedChatMiniMax, reasoning_reply=minimax_reply, replayed=replayed_details),
    "vllm": provider(
        VllmChatModel,
        reasoning_reply=lambda reasoning, text: Text(text, reasoning=reasoning, reasoning_field="reasoning"),
        replayed=lambda request: replayed_as("reasoning")(request) or replayed_as("reasoning_content")(request),
    ),
    "mindie": provider(
        MindIEChatModel,
        calls=xml_calls,
        broken_call=Text("<tool_call>\n<function=bash>\n<parameter=command>\nrm -rf /tmp/x"),
    ),
}

PLAIN = builder(ChatOpenAI)
