"""Try calls of providers again, and say when an endpoint rests."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractContextManager, aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk
from pydantic import Field
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from deerflow.models.endpoint import Endpoint
from deerflow.models.failures import classify, keeping
from deerflow.models.messages import spoilers

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel as _Model
else:
    # Only the fields below: a mixin that brought the model's along would undo what its sibling made of them.
    from pydantic import BaseModel as _Model
from deerflow.models.call_gate import CallGates
from deerflow.models.circuit_breaker import CircuitBreakers

T = TypeVar("T")

MAX_RETRY_AFTER_SECONDS = 60.0
"""A provider that wants minutes is out of quota: the caller may take another model instead."""


class RetriedStreams(_Model):
    """Mixin for a chat model whose SDK retries nothing, to stand before its class.

    A stream is opened again on failure until its first chunk with content. Empty leading ones (a provider's "message
    starts") are held back, so they neither count nor appear twice. Arguments that are broken at its end stay broken.
    """

    retry_max_attempts: int = Field(default=3, ge=1)
    """Calls in all. The SDK's own retries are off."""
    retry_base_delay: float = Field(default=2.0, ge=0)
    """Seconds before the second attempt; doubles each time. ``Retry-After`` wins."""

    @abstractmethod
    def _read(self, chunk: AIMessageChunk, *, has_calls: bool) -> bool:
        """Make of a chunk, in place, what the caller gets. Whether it is the answer's last one."""

    @abstractmethod
    def _checked(self) -> AbstractContextManager[None]:
        """Around the reading of a stream. Raises what :func:`classify` understands."""

    @abstractmethod
    def _cut(self, kwargs: Mapping[str, Any]) -> Exception | None:
        """What a stream means that ended without a last chunk."""

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        opened = super()._astream

        async def attempt() -> AsyncGenerator[ChatGenerationChunk]:
            arguments, is_complete, streamed = defaultdict[int, str](str), False, list[ChatGenerationChunk]()
            with self._checked(), keeping(streamed):
                async for chunk in opened(messages, stop, **kwargs):
                    message = chunk.message
                    assert isinstance(message, AIMessageChunk)
                    for call in message.tool_call_chunks:
                        if call["index"] is not None:
                            arguments[call["index"]] += call["args"] or ""
                    streamed.append(chunk)
                    if self._read(message, has_calls=bool(arguments)):
                        is_complete = True
                        if calls := [tool_call_chunk(args=text, index=at) for at, text in spoilers(arguments).items()]:
                            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=calls))
                    yield chunk
            if not is_complete and (error := self._cut(kwargs)):
                raise error

        async def begin() -> tuple[list[ChatGenerationChunk], AsyncGenerator[ChatGenerationChunk]]:
            stream, held = attempt(), list[ChatGenerationChunk]()
            async for chunk in stream:
                held.append(chunk)
                if not _is_empty(chunk):
                    break
            return held, stream

        held, stream = await self._retrying()(begin)
        async with aclosing(_after(held, stream)) as chunks:
            async for chunk in chunks:
                if run_manager:
                    await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk

    def _retrying(self) -> AsyncRetrying:
        """Waits as ``Retry-After`` says where the provider states it, else with exponential backoff and jitter."""

        def seconds(state: RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            asked = classify(error).retry_after if error else None
            backoff = self.retry_base_delay * 2 ** (state.attempt_number - 1) * random.uniform(1, 1.2)
            return backoff if asked is None else asked

        return AsyncRetrying(
            stop=stop_after_attempt(self.retry_max_attempts),
            wait=seconds,
            retry=retry_if_exception(_is_worth_it),
            reraise=True,
        )


async def _after(held: list[T], stream: AsyncGenerator[T]) -> AsyncGenerator[T]:
    async with aclosing(stream):
        for item in held:
            yield item
        async for item in stream:
            yield item


def _is_worth_it(error: BaseException) -> bool:
    failure = classify(error)
    return failure.retriable and (failure.retry_after or 0) <= MAX_RETRY_AFTER_SECONDS


def _is_empty(chunk: ChatGenerationChunk) -> bool:
    message = chunk.message
    assert isinstance(message, AIMessageChunk)
    said = message.content or message.tool_call_chunks or message.additional_kwargs
    return not (said or message.chunk_position or message.response_metadata.get("stop_reason"))


@dataclass(frozen=True, slots=True)
class Rest:
    """The reason for which an endpoint is not called for now, and for how many seconds."""

    reason: Annotated[
        Literal["circuit_open", "busy"],
        Field(description="It failed several times in a row, or its provider asked to wait."),
    ]
    seconds: Annotated[float, Field(description="Until it is called again, or until a test of it that succeeds.")]


def rest_of(endpoint: Endpoint, breakers: CircuitBreakers, gates: CallGates) -> Rest | None:
    """Return the rest of an endpoint; None if it is called."""
    if seconds := gates.gate(endpoint).held:
        return Rest("busy", seconds)
    seconds = breakers.breaker(endpoint).rests_for
    return Rest("circuit_open", seconds) if seconds else None


def wake(endpoint: Endpoint, breakers: CircuitBreakers, gates: CallGates) -> None:
    """End the rest of an endpoint, which has just answered."""
    gates.gate(endpoint).release()
    breakers.breaker(endpoint).report(True)
