"""Retries, circuit breaker, fallback models, and an honest message when nothing helped."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from operator import is_

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.errors import GraphBubbleUp

from deerflow.agents.middlewares.base import (
    BROKE_OFF,
    ERROR,
    Middleware,
    ModelHandler,
    ModelResult,
    Request,
    cut_off,
    emit,
    end_of,
    error_message,
    is_empty,
    is_error,
    last_ai,
    messages_of,
    model_entry,
    reminder,
    with_messages,
)
from deerflow.agents.transcript import MessageMemo, Transcript
from deerflow.context import RunContext
from deerflow.models.call_gate import CallGate, CallGates
from deerflow.models.circuit_breaker import CircuitBreakers
from deerflow.models.endpoint import endpoint_of, model_id
from deerflow.models.failures import BrokenAnswerError, ErrorKind, Failure, classify, explain, model_error

logger = logging.getLogger(__name__)

EMPTY_ANSWER_REPEATS = 3
EMPTY_ANSWER_REMINDER = "Your last answer was empty. If the work is done, tell the user the result in a few sentences; otherwise continue with it."
_OUTCOMES = {
    ErrorKind.BUSY: "is busy",
    ErrorKind.BROKEN_OFF: "broke off its answer",
    ErrorKind.NETWORK: "cannot be reached",
}
OUTPUT_LIMIT = "the output limit was used up before the answer began: raise models[].max_tokens."


class LLMErrorHandlingMiddleware(Middleware):
    """Never lets a provider's failure escape as an exception: the run ends with a message marked as an error.

    That message has ``additional_kwargs["error"] = {"kind", "message"}`` and ``finish_reason`` "error". It is no answer:
    runs that end with it have failed, memory does not learn from it, later requests leave it out. What an answer said until it
    broke off stays in the thread, in front of what the next attempt says.

    Args:
        breakers, gates: shared by all runs; None = one of its own.
        fallbacks: models to try, in order, when the first one fails for good.
        retry_max_attempts: calls per model, the first one included.
        retry_base_delay_ms: before the second attempt; doubles with each further one.
        retry_cap_delay_ms: the longest wait of our own.
        retry_after_cap_ms: the longest wait that a provider may ask for with ``Retry-After``; beyond it the person is told
            until when.
        sleep: waits seconds.
        jitter: between 0 and 1: how much of a quarter of the wait is added, so that runs do not come back together.
    """

    def __init__(
        self,
        *,
        breakers: CircuitBreakers | None = None,
        gates: CallGates | None = None,
        fallbacks: Sequence[BaseChatModel] = (),
        retry_max_attempts: int = 3,
        retry_base_delay_ms: int = 1000,
        retry_cap_delay_ms: int = 8000,
        retry_after_cap_ms: int = 60_000,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        super().__init__()
        self.breakers = breakers or CircuitBreakers()
        self.gates = gates or CallGates()
        self.fallbacks = tuple(fallbacks)
        self.retry_max_attempts = retry_max_attempts
        self.retry_base_delay_ms = retry_base_delay_ms
        self.retry_cap_delay_ms = retry_cap_delay_ms
        self.retry_after_cap_ms = retry_after_cap_ms
        self._lasting = MessageMemo(_lasting)
        self._sleep = sleep
        self._jitter = jitter

    def compile(self, transcript: Transcript, context: RunContext | None) -> Transcript:
        """Earlier failures, half refusals and halves behind which the model spoke again are not part of the conversation."""
        kept = [self._lasting(message) for message in transcript.messages]
        if all(map(is_, kept, transcript.messages)):
            return transcript
        return transcript.with_messages(message for message in kept if message is not None)

    async def awrap_model_call(self, request: Request, handler: ModelHandler) -> ModelResult:
        failures: list[tuple[BaseChatModel, Failure]] = []
        halves: list[Failure] = []
        for model in (request.model, *self.fallbacks):
            if failures:
                name = model_id(model)
                notice = f"Switching to the fallback model {name}."
                _emit_retry(request, failures[-1][1], notice, fallback=name, attempt=1, max_attempts=1, wait_ms=0)
            asked = request if model is request.model else request.override(model=model)
            outcome = await self._ask(asked, handler, halves)
            if not isinstance(outcome, Failure):
                return _with_halves(outcome, halves)
            failures.append((model, outcome))
        last = halves.pop() if halves else None
        return _with_halves(_error_message(failures, last), halves)

    async def _ask(self, request: Request, handler: ModelHandler, halves: list[Failure]) -> ModelResult | Failure:
        """One model, as often as it makes sense. Answers that broke off are added to ``halves``."""
        endpoint = endpoint_of(request.model)
        gate = self.gates.gate(endpoint)
        is_probe = gate.held * 1000 > self.retry_after_cap_ms
        if is_probe and not gate.may_probe():
            return Failure(ErrorKind.BUSY, retry_after=gate.held)
        breaker = self.breakers.breaker(endpoint)
        if not breaker.admit():
            return Failure(ErrorKind.CIRCUIT_OPEN)
        is_available = None
        try:
            account = self.gates.gate(endpoint.account)
            outcome = await self._retry(request, handler, gate, account, halves, has_waited=is_probe)
            if is_probe and not isinstance(outcome, Failure):
                gate.release()
            if not isinstance(outcome, Failure) or outcome.retriable:
                is_available = not isinstance(outcome, Failure)
            return outcome
        finally:
            breaker.report(is_available)

    async def _retry(
        self,
        request: Request,
        handler: ModelHandler,
        gate: CallGate,
        account: CallGate,
        halves: list[Failure],
        *,
        has_waited: bool,
    ) -> ModelResult | Failure:
        number, limits, known = 1, _limits(request), len(halves)
        while True:
            try:
                async with gate.call(has_waited=has_waited or number > 1), account.call(*limits):
                    return await _ask_for_words(request, handler)
            except GraphBubbleUp:
                raise
            except Exception as error:
                failure = classify(error)
                halves += [failure] if failure.said else []
                # With a traceback only where the error may be ours.
                unexpected = failure.kind is ErrorKind.GENERIC and failure.status is None
                text = "Model call failed (%s, attempt %d): %s"
                logger.warning(text, failure.kind, number, failure.detail, exc_info=unexpected)
            if failure.kind is ErrorKind.BUSY:
                gate.hold(self._delay_ms(failure, number) / 1000)
            is_late = failure.retry_after is not None and failure.retry_after * 1000 > self.retry_after_cap_ms
            if not failure.retriable or is_late or number >= self.retry_max_attempts:
                has_half = len(halves) > known and failure.retriable
                return replace(failure, kind=ErrorKind.BROKEN_OFF) if has_half else failure
            wait_ms = self._delay_ms(failure, number)
            notice = f"{model_id(request.model)} {_OUTCOMES.get(failure.kind, 'did not answer')}. Trying again."
            number += 1
            _emit_retry(request, failure, notice, attempt=number, max_attempts=self.retry_max_attempts, wait_ms=wait_ms)
            await self._sleep(wait_ms / 1000)

    def _delay_ms(self, failure: Failure, number: int) -> int:
        if failure.retry_after is not None:
            return round(failure.retry_after * 1000)
        backoff = self.retry_base_delay_ms * 2 ** (number - 1)
        return round(min(backoff * (1 + self._jitter() / 4), self.retry_cap_delay_ms))


def _with_halves(result: ModelResult, halves: Sequence[Failure]) -> ModelResult:
    """Return ``result`` behind the answers that broke off before it: they stand before the reader already."""
    if not halves:
        return result
    said = [AIMessage(half.said, id=half.message_id, additional_kwargs={BROKE_OFF: True}) for half in halves]
    return with_messages(result, [*said, *messages_of(result)])


async def _ask_for_words(request: Request, handler: ModelHandler) -> ModelResult | Failure:
    """Ask, and up to three times more while the answer is empty; once more if the output limit was used up by thoughts."""
    again = request.override(messages=[*request.messages, reminder("empty_answer_reminder", EMPTY_ANSWER_REMINDER)])
    for attempt in range(1 + EMPTY_ANSWER_REPEATS):
        result = await handler(again if attempt else request)
        message = last_ai(result)
        if message is not None and not is_error(message) and cut_off(message) == "error":
            raise model_error(
                BrokenAnswerError, f"it ended with the reason {end_of(message)!r}", said=(message.text, message.id)
            )
        if message is None or not is_empty(message):
            return result
        refusal = message.additional_kwargs.get("refusal")
        if refusal or cut_off(message) == "content_filter":
            return Failure(ErrorKind.CONTENT_FILTER, str(refusal or ""))
        if attempt and cut_off(message) == "length":
            return Failure(ErrorKind.EMPTY_ANSWER, OUTPUT_LIMIT)
    return Failure(ErrorKind.EMPTY_ANSWER)


def _is_half_refusal(message: AnyMessage) -> bool:
    """Return whether a provider's filter cut this answer: it would cut the next one, too, if it read it again."""
    return isinstance(message, AIMessage) and not message.tool_calls and cut_off(message) == "content_filter"


def _lasting(message: AnyMessage) -> AnyMessage | None:
    """Return what later requests hold of a message; None: nothing."""
    if _is_half_refusal(message) or BROKE_OFF in message.additional_kwargs:
        return None
    if not is_error(message):
        return message
    if message.content == message.additional_kwargs[ERROR].get("message"):
        return None
    return AIMessage(message.content, id=message.id)


def _emit_retry(request: Request, failure: Failure, message: str, **facts: str | int) -> None:
    """``facts``: what a page needs to word the notice itself."""
    emit(request.runtime, {"type": "llm_retry", **facts, "reason": failure.kind.value, "message": message})


def _error_message(failures: Sequence[tuple[BaseChatModel, Failure]], half: Failure | None) -> AIMessage:
    """The first failure is the one to explain; fallbacks are named with their own. ``half``: the last answer that broke off."""
    model, failure = failures[0]
    text = explain(failure, model=model_id(model), provider=_provider(model))
    for fallback, other in failures[1:]:
        text += f"\nThe fallback model {model_id(fallback)} failed as well ({other.kind.value}{': ' + other.public_detail if other.detail else ''})."
    said, message_id = (half.said, half.message_id) if half else ("", None)
    return error_message(failure.kind.value, text, said, message_id)


def _provider(model: BaseChatModel) -> str:
    return str(model._get_ls_params().get("ls_provider") or model._llm_type)


def _limits(request: Request) -> tuple[int | None, int | None]:
    """How many calls at once and per minute."""
    entry = model_entry(request)
    return (entry.max_concurrent_calls, entry.calls_per_minute) if entry else (None, None)
