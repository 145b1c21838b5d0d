"""Trying provider calls again, circuit breakers that leave a failing provider alone for a while, and gates that limit its calls."""

from __future__ import annotations

import asyncio
import math
import random
import time
from abc import abstractmethod
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Hashable, Mapping
from contextlib import AbstractContextManager, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from weakref import WeakKeyDictionary

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

T = TypeVar("T")

LONGEST_HOLD, PROBE_EVERY = 6 * 3600.0, 60.0
"""Seconds for which a provider is believed that it wants no calls, and between two calls that look whether it still does."""
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

    @property
    def rests_for(self) -> float:
        """Seconds until the next call is admitted."""
        return max(0.0, self._open_until - self._clock()) if self._failures >= self._threshold else 0.0

    def report(self, is_available: bool | None) -> None:
        """The outcome of a call; None where it tells nothing about the provider, e.g. for a refused request."""
        self._is_probing = False
        if is_available:
            self._failures = 0
        elif is_available is False:
            self._failures += 1
            self._open_until = self._clock() + self._timeout


class CircuitBreakers:
    """One breaker per endpoint, shared by all runs: build it once and give it to every agent.

    Args:
        failure_threshold: exhausted calls in a row until a breaker opens.
        recovery_timeout: seconds until the first probe.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        *,
        failure_threshold: int = 5,
        recovery_timeout: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = (failure_threshold, recovery_timeout, clock)
        self._breakers: dict[Hashable, CircuitBreaker] = {}

    def breaker(self, key: Hashable) -> CircuitBreaker:
        return self._breakers.setdefault(key, CircuitBreaker(*self._settings))


class CallGate:
    """Admits calls to one provider in their order: so many at once and per minute, and none while the provider asks to wait.

    After such a refusal one call goes first, and each that succeeds lets twice as many go beside it.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._first_in_line, self._changed = asyncio.Lock(), asyncio.Event()
        self._active, self._width = 0, math.inf
        self._begun = deque[float]()
        self._held_until = self._probe_at = 0.0

    @property
    def held(self) -> float:
        """Seconds for which the provider wants no calls."""
        return max(0.0, self._held_until - self._clock())

    @asynccontextmanager
    async def call(
        self, at_once: int | None = None, per_minute: int | None = None, *, has_waited: bool = False
    ) -> AsyncGenerator[None]:
        """Wait for a place, and keep it for one call.

        Args:
            has_waited: the call was refused and has waited for as long as the provider asked.
        """
        async with self._first_in_line:
            while (seconds := self._wait(at_once, per_minute, has_waited)) > 0:
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if seconds == math.inf else seconds):
                        await self._changed.wait()
            self._active += 1
            self._begun.append(self._clock())
        try:
            yield
            self._width *= 2
        finally:
            self._active -= 1
            self._changed.set()

    def release(self) -> None:
        """The provider takes calls again."""
        self._held_until, self._width = 0.0, math.inf
        self._changed.set()

    def hold(self, seconds: float) -> None:
        """The provider refused a call since there were too many."""
        now = self._clock()
        self._held_until, self._width = max(self._held_until, now + min(seconds, LONGEST_HOLD)), 1.0
        self._probe_at = now + PROBE_EVERY
        self._changed.set()

    def may_probe(self) -> bool:
        """Return whether one call may look whether the provider still wants none. It may once a minute."""
        if self._clock() < self._probe_at:
            return False
        self._probe_at = self._clock() + PROBE_EVERY
        return True

    def _wait(self, at_once: int | None, per_minute: int | None, has_waited: bool) -> float:
        """Seconds until the next look; infinite: until a call ends."""
        now = self._clock()
        while self._begun and self._begun[0] <= now - 60:
            self._begun.popleft()
        if self._active >= min(at_once or math.inf, self._width):
            return math.inf
        if self.held and not has_waited:
            return self.held
        if per_minute is not None and len(self._begun) >= per_minute:
            return self._begun[-per_minute] + 60 - now
        return 0.0


class CallGates:
    """One gate per endpoint for its waits, and one per account for limits of calls, shared by all runs of an event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._gates: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, CallGate]] = WeakKeyDictionary()

    def gate(self, key: Hashable) -> CallGate:
        gates = self._gates.setdefault(asyncio.get_running_loop(), {})
        return gates.setdefault(key, CallGate(self._clock))


@dataclass(frozen=True, slots=True)
class Rest:
    """The reason for which an endpoint is not called for now, and for how many seconds."""

    reason: Literal["circuit_open", "busy"]
    seconds: float


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
