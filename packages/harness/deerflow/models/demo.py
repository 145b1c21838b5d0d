"""A chat model without a provider: a scripted demonstration that works with real tools. No key, no network."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import LanguageModelInput
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, PrivateAttr

from deerflow.models.demo_script import Reply, Sources, next_reply
from deerflow.models.demo_texts import LABEL

CHARACTERS_PER_TOKEN = 4
MAX_CHUNKS_PER_CALL = 60


def _read_sources() -> Sources:
    here = Path(__file__)
    analysis = here.with_name("demo_analysis.py").read_text(encoding="utf-8")
    return Sources(analysis, here.with_name("demo_chart.py").read_text(encoding="utf-8"))


class DemoChatModel(BaseChatModel):
    """Plans, runs real commands in the real sandbox, writes and presents a real file, and says that it is scripted.

    Its answers are a pure function of the messages and the bound tools.
    """

    model: str = "demo"
    chunk_delay: float = Field(default=0.008, ge=0)
    """Seconds between two chunks of a stream."""

    _sources: Sources = PrivateAttr(default_factory=_read_sources)

    @property
    def _llm_type(self) -> str:
        return LABEL

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": self.model}

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | bool | Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Tools by whose schemas calls are made. ``tool_choice`` does not change the script."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        reply = next_reply(messages, kwargs.get("tools") or (), self._sources)
        message = AIMessage(
            content=reply.text,
            tool_calls=list(reply.calls),
            response_metadata=self._metadata(reply),
            usage_metadata=_usage(messages, reply),
        )
        return ChatResult(generations=[ChatGeneration(message=message)], llm_output={"model_name": self.model})

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in self._chunks(messages, kwargs):
            time.sleep(self.chunk_delay)
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._chunks(messages, kwargs):
            await asyncio.sleep(self.chunk_delay)
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    def _chunks(self, messages: Sequence[BaseMessage], kwargs: Mapping[str, Any]) -> Iterator[ChatGenerationChunk]:
        reply = next_reply(messages, kwargs.get("tools") or (), self._sources)
        for piece in re.findall(r"\S+\s*|\s+", reply.text):
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
        for index, call in enumerate(reply.calls):
            yield from _call_chunks(index, call)
        last = AIMessageChunk(
            content="",
            response_metadata=self._metadata(reply),
            usage_metadata=_usage(messages, reply),
            chunk_position="last",
        )
        yield ChatGenerationChunk(message=last)

    def _metadata(self, reply: Reply) -> dict[str, Any]:
        reason = "tool_calls" if reply.calls else "stop"
        return {"model_name": self.model, "model_provider": "demo", "finish_reason": reason}


def _call_chunks(index: int, call: ToolCall) -> Iterator[ChatGenerationChunk]:
    arguments = json.dumps(call["args"], ensure_ascii=False)
    size = max(24, len(arguments) // MAX_CHUNKS_PER_CALL + 1)
    head = tool_call_chunk(name=call["name"], args="", id=call["id"], index=index)
    pieces = [arguments[at : at + size] for at in range(0, len(arguments), size)]
    for chunk in (head, *(tool_call_chunk(args=piece, index=index) for piece in pieces)):
        yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[chunk]))


def _usage(messages: Sequence[BaseMessage], reply: Reply) -> UsageMetadata:
    """An estimate: nothing is counted or paid."""
    sent = sum(len(message.text) for message in messages) // CHARACTERS_PER_TOKEN
    said = len(reply.text) + sum(len(json.dumps(call["args"])) for call in reply.calls)
    received = said // CHARACTERS_PER_TOKEN
    return UsageMetadata(input_tokens=sent, output_tokens=received, total_tokens=sent + received)
