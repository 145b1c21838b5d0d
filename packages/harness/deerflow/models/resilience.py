"""Trying provider calls again, and circuit breakers that leave a failing provider alone for a while."""

from __future__ import annotations

import random
import time
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, aclosing, closing
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from pydantic import Field
from tenacity import AsyncRetrying, RetryCallState, Retrying, retry_if_exception, stop_after_attempt

from deerflow.models.failures import classify

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel as _Model
else:
    # Only the fields below: a mixin that brought the model's along would undo what its sibling made of them.
    from pydantic import BaseModel as _Model

T = TypeVar("T")

MAX_RETRY_AFTER_SECONDS = 60.0
"""A provider that wants minutes is out of quota: the caller may take another model instead."""
FAILURE_THRESHOLD = 5
RECOVERY_TIMEOUT = 60.0
"""Seconds."""


class Answer(Protocol):
    """One attempt to read a streamed answer."""

    def read(self, chunk: ChatGenerationChunk) -> list[ChatGenerationChunk]:
        """What the caller gets for a chunk of the provider's."""
        ...

    def checked(self) -> AbstractContextManager[None]:
        """Around the reading of the stream. Raises what :func:`classify` understands."""
        ...


class RetriedStreams(_Model):
    """Mixin for a chat model whose SDK retries nothing, to stand before its class.

    A stream is opened again on failure until its first chunk with content. Empty leading ones (a provider's "message
    starts") are held back, so they neither count nor appear twice.
    """

    retry_max_attempts: int = Field(default=3, ge=1)
    """Calls in all. The SDK's own retries are off."""
    retry_base_delay: float = Field(default=2.0, ge=0)
    """Seconds before the second attempt; doubles each time. ``Retry-After`` wins."""

    @abstractmethod
    def _answer(self, kwargs: Mapping[str, Any]) -> Answer: ...

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        opened = super()._stream

        def attempt() -> Generator[ChatGenerationChunk]:
            answer = self._answer(kwargs)
            with answer.checked():
                for chunk in opened(messages, stop, **kwargs):
                    yield from answer.read(chunk)

        def begin() -> tuple[list[ChatGenerationChunk], Generator[ChatGenerationChunk]]:
            stream, held = attempt(), list[ChatGenerationChunk]()
            for chunk in stream:
                held.append(chunk)
                if not _is_empty(chunk):
                    break
            return held, stream

        held, stream = Retrying(**self._retry_policy())(begin)
        with closing(stream):
            for chunk in chain(held, stream):
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
        opened = super()._astream

        async def attempt() -> AsyncGenerator[ChatGenerationChunk]:
            answer = self._answer(kwargs)
            with answer.checked():
                async for chunk in opened(messages, stop, **kwargs):
                    for sent in answer.read(chunk):
                        yield sent

        async def begin() -> tuple[list[ChatGenerationChunk], AsyncGenerator[ChatGenerationChunk]]:
            stream, held = attempt(), list[ChatGenerationChunk]()
            async for chunk in stream:
                held.append(chunk)
                if not _is_empty(chunk):
                    break
            return held, stream

        held, stream = await AsyncRetrying(**self._retry_policy())(begin)
        async with aclosing(_after(held, stream)) as chunks:
            async for chunk in chunks:
                if run_manager:
                    await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk

    def _retry_policy(self) -> dict[str, Any]:
        """Arguments for tenacity: ``Retry-After`` where the provider states it, else exponential backoff with jitter."""

        def seconds(state: RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            asked = classify(error).retry_after if error else None
            backoff = self.retry_base_delay * 2 ** (state.attempt_number - 1) * random.uniform(1, 1.2)
            return backoff if asked is None else asked

        return {
            "stop": stop_after_attempt(self.retry_max_attempts),
            "wait": seconds,
            "retry": retry_if_exception(_is_worth_it),
            "reraise": True,
        }


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


class CircuitBreaker:
    """closed → (threshold failures in a row) → open → (timeout) → one probe → closed, or open again."""

    def __init__(self, threshold: int, timeout: float, clock: Callable[[], float]) -> None:
        self._threshold, self._timeout, self._clock = threshold, timeout, clock
        self._failures, self._open_until = 0, 0.0
        self._is_probing = False

    def admit(self) -> bool:
        """Whether the provider may be called now. Each admitted call must ``report``."""
        if self._failures < self._threshold:
            return True
        if self._is_probing or self._clock() < self._open_until:
            return False
        self._is_probing = True
        return True

    def report(self, is_available: bool | None) -> None:
        """The outcome of a call; None where it tells nothing about the provider, e.g. for a refused request."""
        self._is_probing = False
        if is_available:
            self._failures = 0
        elif is_available is False:
            self._failures += 1
            self._open_until = self._clock() + self._timeout


class CircuitBreakers:
    """One breaker per provider and model, shared by all runs: build it once and give it to every agent.

    Args:
        failure_threshold: exhausted calls in a row until a breaker opens.
        recovery_timeout: seconds until the first probe.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        *,
        failure_threshold: int = FAILURE_THRESHOLD,
        recovery_timeout: float = RECOVERY_TIMEOUT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = (failure_threshold, recovery_timeout, clock)
        self._breakers: dict[str, CircuitBreaker] = {}

    def breaker(self, key: str) -> CircuitBreaker:
        return self._breakers.setdefault(key, CircuitBreaker(*self._settings))
