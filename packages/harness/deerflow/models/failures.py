"""What went wrong when a model was called, and what a person can do about it: one table of kinds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any

from langchain_core.exceptions import ModelConnectionError, ModelError
from langchain_core.outputs import ChatGenerationChunk

from deerflow.security.addresses import without_inner_addresses

DETAIL_LIMIT = 500
READ_LIMIT = 16_000
"""Characters of an error that are looked at: a provider may send a page of any length."""


class ErrorKind(StrEnum):
    """Why a model call failed. The values stand in messages and events."""

    TRANSIENT = "transient"
    BUSY = "busy"
    NETWORK = "network"
    CIRCUIT_OPEN = "circuit_open"
    QUOTA = "quota"
    AUTH = "auth"
    MODEL_NOT_FOUND = "model_not_found"
    CONTEXT_LENGTH = "context_length"
    TOO_LARGE = "too_large"
    CONTENT_FILTER = "content_filter"
    EMPTY_ANSWER = "empty_answer"
    BROKEN_OFF = "broken_off"
    GENERIC = "generic"


@dataclass(frozen=True, slots=True)
class _FailureRow:
    """How a kind is recognised and explained.

    Args:
        explanation: for the user, with ``{model}``, ``{key}`` and ``{again}``.
        statuses: of HTTP.
        codes: error codes and types of OpenAI, Anthropic and those who copy them.
        refusal: words of a refused request (HTTP 4xx with no status of its own here).
        words: words of an error without a status.
    """

    explanation: str
    retriable: bool = False
    statuses: tuple[int, ...] = ()
    codes: tuple[str, ...] = ()
    refusal: str = r"(?!)"
    words: str = r"(?!)"


TOO_LARGE_CODE = "request_too_large"
_TOO_LONG = (
    r"context.{0,20}(length|window|size)|maximum context|prompt is too long|too many (input )?tokens|"
    r"(input|prompt|request).{0,40}(exceeds?|longer than).{0,60}(token|context|length)|上下文长度"
)
_AGAIN = "{model} is temporarily unavailable{again}, or choose another model."
_TABLE: Mapping[ErrorKind, _FailureRow] = {
    ErrorKind.CONTEXT_LENGTH: _FailureRow(
        "The conversation is too long for {model}. To go on, summarize it with /compact, choose a model with a larger context "
        "window, go back to an earlier message and continue from there, or start a new thread.",
        codes=("context_length_exceeded",),
        refusal=_TOO_LONG,
        words=_TOO_LONG,
    ),
    ErrorKind.TOO_LARGE: _FailureRow(
        "The request is too large for {model}, or for a proxy before it. Leave out pictures and long pastes, or summarize the "
        "conversation with /compact. If a new chat is refused as well, lower models[].max_tokens, or choose a model with a larger "
        "context window or a higher limit per minute.",
        statuses=(413,),
        codes=(TOO_LARGE_CODE, "string_above_max_length"),
    ),
    ErrorKind.BUSY: _FailureRow(
        _AGAIN,
        retriable=True,
        statuses=(429, 503, 529),
        codes=("rate_limit_exceeded", "rate_limit_error", "overloaded_error"),
        words=r"server (is )?busy|temporarily unavailable|try again later|please (re)?try( again)?|overloaded|high demand|"
        r"rate.?limit|too many requests|服务器繁忙|服务繁忙|负载较高|稍后重试|稍后再试|请重试",
    ),
    ErrorKind.QUOTA: _FailureRow(
        "The account behind {model} has no quota or credit left: check the plan and billing at the provider, or choose another model.",
        statuses=(402,),
        codes=("insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error"),
        refusal=r"credit balance",
        words=r"insufficient.{0,3}(quota|balance|credit)|\bquota\b|\bbilling\b|\bcredits?\b|payment|余额不足|欠费|额度|配额",
    ),
    ErrorKind.AUTH: _FailureRow(
        "The provider rejected the API key for {model}: check {key} or models[].api_key in config.yaml.",
        statuses=(401, 403),
        codes=("invalid_api_key", "authentication_error", "permission_error", "permission_denied"),
        refusal=r"api key not valid",
        words=r"authentication|unauthori[sz]ed|invalid api key|incorrect api key|permission|forbidden|access denied|未授权|无权|"
        r"api[_ ]key.{0,60}(must be set|not set|missing|required)",
    ),
    ErrorKind.MODEL_NOT_FOUND: _FailureRow(
        "The provider does not know the model or address of {model}: check models[].model and models[].base_url in config.yaml.",
        statuses=(404,),
        codes=("model_not_found", "not_found_error"),
    ),
    ErrorKind.CONTENT_FILTER: _FailureRow(
        "The provider of {model} refused to answer for reasons of its content policy. Rephrase the request or choose another model.",
        codes=("content_filter", "content_policy_violation"),
    ),
    ErrorKind.TRANSIENT: _FailureRow(
        _AGAIN,
        retriable=True,
        statuses=(408, 409, 425),
        codes=("server_error", "api_error", "internal_error", "timeout_error"),
    ),
    ErrorKind.NETWORK: _FailureRow(
        "{model} could not be reached: there is no connection to the provider. Check the network, a proxy, and "
        "models[].base_url in config.yaml, then try again.",
        retriable=True,
    ),
    ErrorKind.EMPTY_ANSWER: _FailureRow(
        "{model} returned an empty answer, also when asked again. Try again, rephrase the request or choose another model."
    ),
    ErrorKind.BROKEN_OFF: _FailureRow(
        'The answer of {model} broke off, also when it was asked again. What it said until then stands above: say "continue" to '
        "go on from there, or try again.",
        retriable=True,
    ),
    ErrorKind.CIRCUIT_OPEN: _FailureRow(
        "{model} is temporarily unavailable: it failed several times in a row, so it is left alone for a short while. "
        "Try again in a minute, or test it in the settings: runs call it again as soon as it answers."
    ),
    ErrorKind.GENERIC: _FailureRow("The call of {model} failed."),
}

_CLASSES = (
    (ErrorKind.NETWORK, {"ConnectError", "ConnectTimeout", "ConnectionRefusedError", "gaierror", "ClientConnectorError"}),
    (
        ErrorKind.TRANSIENT,
        {
            "BrokenStreamError", "APITimeoutError", "InternalServerError", "TimeoutException", "TimeoutError", "ReadError", "WriteError",
            "RemoteProtocolError", "ProtocolError", "IncompleteRead", "ConnectionError", "ClientPayloadError",
            "ServerDisconnectedError", "RecursionError",
        },
    ),
    (ErrorKind.NETWORK, {"APIConnectionError"}),
    (ErrorKind.TRANSIENT, {"ModelConnectionError", "ModelTimeoutError"}),
)  # fmt: skip
"""Names of exception classes, in the order in which they decide: SDKs wrap the transport's errors."""

_PICTURES = re.compile(r"image|picture|\bvision\b|multi-?modal|mmproj|图[片像]|视觉", re.IGNORECASE)
_SECRETS = re.compile(
    r"\b(?:sk|gsk|xai)-[A-Za-z0-9_\-]{6,}[A-Za-z0-9_\-*]*|(?i:bearer)\s+[A-Za-z0-9._\-]{8,}|AIza[A-Za-z0-9_\-]{10,}"
)
_PROVIDERS_WITH_KEYS = ("openai", "anthropic", "deepseek", "google", "openrouter", "moonshot", "dashscope")


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed model call."""

    kind: ErrorKind
    detail: str = ""
    """The provider's words, cut and without keys."""
    status: int | None = None
    retry_after: float | None = None
    """Seconds the provider asks us to wait."""
    said: str = ""
    """The text of the answer until it broke off."""
    message_id: str | None = None
    """Of that answer, as it was streamed."""

    @property
    def public_detail(self) -> str:
        """``detail`` without addresses of the operator's network, which are for the log."""
        return without_inner_addresses(self.detail)

    @property
    def retriable(self) -> bool:
        """Whether the same request may succeed later."""
        return _TABLE[self.kind].retriable


def classify(error: BaseException) -> Failure:
    """What ``error`` means: its status beats its code, its code its class, its class its words.

    Exceptions to the first: 429 with the code of an exhausted quota, 413 with words about the context, which else is about the
    size of a body, and 400 with a code or words that say more.
    """
    status, text = status_of(error), str(error)[:READ_LIMIT]
    codes = _codes_of(error)
    coded = next((kind for kind, row in _TABLE.items() if codes & set(row.codes)), None)
    if status is None:
        kind = coded or _kind_of_class(error) or _kind_of_words(text, "words")
    elif status == 429 and coded is ErrorKind.QUOTA:
        kind = coded
    elif status == 413 and _kind_of_words(text, "refusal") is ErrorKind.CONTEXT_LENGTH:
        kind = ErrorKind.CONTEXT_LENGTH
    else:
        kind = next((kind for kind, row in _TABLE.items() if status in row.statuses), None)
        kind = kind or (ErrorKind.TRANSIENT if status >= 500 else coded or _kind_of_words(text, "refusal"))
    said, message_id = next((vars(cause)["said"] for cause in _causes(error) if "said" in vars(cause)), ("", None))
    if said and kind in (ErrorKind.TRANSIENT, ErrorKind.NETWORK):
        kind = ErrorKind.BROKEN_OFF
    return Failure(kind, _detail_of(error), status, _retry_after(error), said, message_id)


def refuses_pictures(error: BaseException) -> bool:
    """Return whether a provider refuses a request for the pictures in it, by its words: there is no code for that."""
    names_them = status_of(error) in (400, 404, 415, 422, 500) and _PICTURES.search(str(error)[:READ_LIMIT]) is not None
    return names_them and classify(error).kind not in (ErrorKind.CONTEXT_LENGTH, ErrorKind.QUOTA, ErrorKind.AUTH)


@contextmanager
def keeping(streamed: Sequence[ChatGenerationChunk]) -> Iterator[None]:
    """Keep what a model said, and the id under which it was streamed, with the error that breaks its answer off."""
    try:
        yield
    except Exception as error:
        if (text := "".join(str(chunk.message.text) for chunk in streamed)).strip():
            vars(error).setdefault("said", (text, streamed[-1].message.id))
        raise


class BrokenAnswerError(ModelConnectionError):
    """The provider itself says that an answer broke off, by the reason of its end."""


def explain(failure: Failure, *, model: str, provider: str) -> str:
    """What the user reads instead of an answer: what happened and what to do.

    Args:
        failure: what went wrong.
        model: the model's name as people know it.
        provider: the provider's identifier, e.g. ``openai``.
    """
    if failure.kind is ErrorKind.TRANSIENT and failure.status is None and failure.detail:
        detail = failure.public_detail.rstrip(".")
        return (
            f"{model} did not finish its answer, also when asked again: {detail}. Try again, or choose another model."
        )
    known = next((name for name in _PROVIDERS_WITH_KEYS if name in provider.lower()), None)
    key = f"{known.upper()}_API_KEY" if known else "the provider's key variable"
    again = ", also after several attempts. Try again in a moment"
    if failure.retry_after:
        again = f". It takes requests again {_clock(failure.retry_after)}: try again then"
    text = _TABLE[failure.kind].explanation.format(model=model, key=key, again=again)
    return f"{text} The provider said: {failure.public_detail}" if failure.detail else text


def _clock(seconds: float) -> str:
    """``at 14:05 UTC, in 12 minutes``."""
    if seconds < 120:
        return f"in {seconds:.0f} seconds"
    now = datetime.now(UTC)
    when = now + timedelta(seconds=min(seconds, 366 * 86400))
    hours, minutes = divmod(round(seconds / 60), 60)
    wait = f"{hours} h {minutes:02} min" if hours else f"{minutes} minutes"
    return f"{'at' if when.date() == now.date() else f'on {when:%d %B} at'} {when:%H:%M} UTC, in {wait}"


def model_error(kind: type[ModelError], text: str, **facts: Any) -> ModelError:
    """LangChain's error with what :func:`classify` reads: ``code`` or ``response``."""
    error = kind(text)
    vars(error).update(facts)
    return error


def status_of(error: BaseException) -> int | None:
    """The HTTP status of a refusal; None for errors in a stream that began well, and without a response."""
    for holder, name in ((error, "status_code"), (error, "status"), (getattr(error, "response", None), "status_code")):
        value = getattr(holder, name, None)
        if isinstance(value, int) and value >= 400:
            return value
    return None


def _kind_of_class(error: BaseException) -> ErrorKind | None:
    names = {cls.__name__ for cause in _causes(error) for cls in type(cause).__mro__}
    return next((kind for kind, known in _CLASSES if names & known), None)


def _kind_of_words(text: str, column: str) -> ErrorKind:
    rows = ((kind, getattr(row, column)) for kind, row in _TABLE.items())
    return next((kind for kind, words in rows if re.search(words, text, re.IGNORECASE)), ErrorKind.GENERIC)


def body_of(error: BaseException) -> Mapping[str, Any]:
    """The provider's error object; empty if it sent none."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}


def _codes_of(error: BaseException) -> set[str]:
    body = body_of(error)
    found = [getattr(error, name, None) for name in ("code", "error_code", "type")]
    return {code.lower() for code in (*found, body.get("code"), body.get("type")) if isinstance(code, str)}


def _detail_of(error: BaseException) -> str:
    """The provider's own sentence where there is one, at most 500 characters, keys masked."""
    if (silence := _silence(error)) is not None:
        return f"it sent nothing for {silence:g} seconds (models[].timeout in config.yaml)."
    body = body_of(error)
    text = str(body.get("message") or body.get("detail") or error)[:READ_LIMIT]
    text = " ".join(text.split()) or type(error).__name__
    return _SECRETS.sub("[key]", text)[:DETAIL_LIMIT]


def _silence(error: BaseException) -> float | None:
    """Seconds after which the HTTP client gave up waiting for a byte."""
    if not any(base.__name__ in ("APITimeoutError", "ReadTimeout") for base in type(error).__mro__):
        return None
    try:
        request = error.request  # type: ignore[attr-defined]
    except (AttributeError, RuntimeError):
        return None
    return getattr(request, "extensions", {}).get("timeout", {}).get("read")


def _retry_after(error: BaseException) -> float | None:
    """Seconds from ``Retry-After-Ms`` or ``Retry-After`` (seconds or an HTTP date, RFC 9110 §10.2.3)."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    if (seconds := _number(value)) is not None:
        return seconds
    try:
        when = parsedate_to_datetime(str(value))
    except (TypeError, ValueError):
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if 0 <= number < float("inf") else None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it came from."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
