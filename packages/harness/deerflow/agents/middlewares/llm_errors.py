"""What went wrong when a model was called, and what a person can do about it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any

DETAIL_LIMIT = 500


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
    CONTENT_FILTER = "content_filter"
    EMPTY_ANSWER = "empty_answer"
    GENERIC = "generic"


RETRIABLE = frozenset({ErrorKind.TRANSIENT, ErrorKind.BUSY, ErrorKind.NETWORK})

_STATUSES = {
    401: ErrorKind.AUTH,
    402: ErrorKind.QUOTA,
    403: ErrorKind.AUTH,
    404: ErrorKind.MODEL_NOT_FOUND,
    413: ErrorKind.CONTEXT_LENGTH,
    408: ErrorKind.TRANSIENT,
    409: ErrorKind.TRANSIENT,
    425: ErrorKind.TRANSIENT,
    429: ErrorKind.BUSY,
    500: ErrorKind.TRANSIENT,
    502: ErrorKind.TRANSIENT,
    503: ErrorKind.BUSY,
    504: ErrorKind.TRANSIENT,
    529: ErrorKind.BUSY,
}

_CODES = {
    "insufficient_quota": ErrorKind.QUOTA,
    "billing_hard_limit_reached": ErrorKind.QUOTA,
    "billing_not_active": ErrorKind.QUOTA,
    "billing_error": ErrorKind.QUOTA,
    "invalid_api_key": ErrorKind.AUTH,
    "authentication_error": ErrorKind.AUTH,
    "permission_error": ErrorKind.AUTH,
    "permission_denied": ErrorKind.AUTH,
    "context_length_exceeded": ErrorKind.CONTEXT_LENGTH,
    "string_above_max_length": ErrorKind.CONTEXT_LENGTH,
    "request_too_large": ErrorKind.CONTEXT_LENGTH,
    "content_filter": ErrorKind.CONTENT_FILTER,
    "content_policy_violation": ErrorKind.CONTENT_FILTER,
    "model_not_found": ErrorKind.MODEL_NOT_FOUND,
    "not_found_error": ErrorKind.MODEL_NOT_FOUND,
    "rate_limit_exceeded": ErrorKind.BUSY,
    "rate_limit_error": ErrorKind.BUSY,
    "overloaded_error": ErrorKind.BUSY,
    "server_error": ErrorKind.TRANSIENT,
    "api_error": ErrorKind.TRANSIENT,
    "internal_error": ErrorKind.TRANSIENT,
    "timeout_error": ErrorKind.TRANSIENT,
}
"""Error codes and types of OpenAI, Anthropic and those who copy them."""

_UNREACHABLE = frozenset(
    {"ConnectError", "ConnectionRefusedError", "gaierror", "ClientConnectorError", "APIConnectionError"}
)
_BROKEN_OFF = frozenset(
    {
        "APITimeoutError",
        "InternalServerError",
        "TimeoutException",
        "TimeoutError",
        "ReadError",
        "WriteError",
        "RemoteProtocolError",
        "ProtocolError",
        "IncompleteRead",
        "ConnectionError",
        "ClientPayloadError",
        "ServerDisconnectedError",
    }
)

_CONTEXT_WORDS = re.compile(
    r"context.{0,20}(length|window|size)|maximum context|prompt is too long|too many (input )?tokens|"
    r"(input|prompt|request).{0,40}(exceeds?|longer than).{0,60}(token|context|length)|上下文长度",
    re.IGNORECASE,
)
_BUSY_WORDS = re.compile(
    r"server (is )?busy|temporarily unavailable|try again later|please (re)?try( again)?|overloaded|high demand|rate.?limit|"
    r"too many requests|服务器繁忙|服务繁忙|负载较高|稍后重试|稍后再试|请重试",
    re.IGNORECASE,
)
_QUOTA_WORDS = re.compile(
    r"insufficient.{0,3}(quota|balance|credit)|\bquota\b|\bbilling\b|\bcredits?\b|payment|余额不足|欠费|额度|配额",
    re.IGNORECASE,
)
_AUTH_WORDS = re.compile(
    r"authentication|unauthori[sz]ed|invalid api key|incorrect api key|permission|forbidden|access denied|未授权|无权",
    re.IGNORECASE,
)
_NO_KEY_WORDS = re.compile(
    r"api[_ ]key.{0,60}(must be set|not set|missing|required)|could not resolve authentication", re.IGNORECASE
)
_SECRETS = re.compile(
    r"\b(?:sk|gsk|xai)-[A-Za-z0-9_\-]{6,}[A-Za-z0-9_\-*]*|(?i:bearer)\s+[A-Za-z0-9._\-]{8,}|AIza[A-Za-z0-9_\-]{10,}"
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed model call."""

    kind: ErrorKind
    detail: str = ""
    """The provider's words, cut and without keys."""
    status: int | None = None
    retry_after: float | None = None
    """Seconds the provider asks us to wait."""

    @property
    def retriable(self) -> bool:
        return self.kind in RETRIABLE


def classify(error: BaseException) -> Failure:
    """What ``error`` means: its status beats its code, its code its class, its class its words.

    An exception to the first: 429 with the code of an exhausted quota, and 400 with a code or words that say more.
    """
    status, codes, text = status_of(error), _codes_of(error), str(error)
    return Failure(_kind(error, status, codes, text), detail_of(error), status, retry_after(error))


def _kind(error: BaseException, status: int | None, codes: list[str], text: str) -> ErrorKind:
    coded = next((_CODES[code] for code in codes if code in _CODES), None)
    if status in _STATUSES:
        if status == 429 and coded is ErrorKind.QUOTA:
            return ErrorKind.QUOTA
        return _STATUSES[status]
    if status is not None and status >= 500:
        return ErrorKind.TRANSIENT
    if status is not None:
        return coded or _kind_of_refusal(text)
    return coded or _kind_of_class(error) or _kind_of_words(text)


def _kind_of_class(error: BaseException) -> ErrorKind | None:
    names = {cls.__name__ for cause in _causes(error) for cls in type(cause).__mro__}
    if names & _BROKEN_OFF:
        return (
            ErrorKind.TRANSIENT
            if not names & {"ConnectError", "gaierror", "ConnectionRefusedError"}
            else ErrorKind.NETWORK
        )
    return ErrorKind.NETWORK if names & _UNREACHABLE else None


def _kind_of_refusal(text: str) -> ErrorKind:
    """What a 400 means: busy words in it are not a reason to send the same again."""
    if _CONTEXT_WORDS.search(text):
        return ErrorKind.CONTEXT_LENGTH
    if "credit balance" in text.lower():
        return ErrorKind.QUOTA
    return ErrorKind.AUTH if "api key not valid" in text.lower() else ErrorKind.GENERIC


def _kind_of_words(text: str) -> ErrorKind:
    if _CONTEXT_WORDS.search(text):
        return ErrorKind.CONTEXT_LENGTH
    if _NO_KEY_WORDS.search(text):
        return ErrorKind.AUTH
    if _BUSY_WORDS.search(text):
        return ErrorKind.BUSY
    if _QUOTA_WORDS.search(text):
        return ErrorKind.QUOTA
    return ErrorKind.AUTH if _AUTH_WORDS.search(text) else ErrorKind.GENERIC


def status_of(error: BaseException) -> int | None:
    """The HTTP status of a refusal; None for errors in a stream that began well, and without a response."""
    response = getattr(error, "response", None)
    for value in (
        getattr(error, "status_code", None),
        getattr(error, "status", None),
        getattr(response, "status_code", None),
    ):
        if isinstance(value, int) and value >= 400:
            return value
    return None


def detail_of(error: BaseException) -> str:
    """The provider's own sentence where there is one, at most 500 characters, keys masked."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    message = inner.get("message") if isinstance(inner, Mapping) else None
    text = " ".join(str(message or error).split()) or type(error).__name__
    return _SECRETS.sub("[key]", text)[:DETAIL_LIMIT]


def retry_after(error: BaseException) -> float | None:
    """Seconds from ``Retry-After-Ms`` or ``Retry-After`` (seconds or an HTTP date, RFC 9110 §10.2.3)."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    if headers is None:
        return None
    milliseconds = _number(headers.get("retry-after-ms") or headers.get("Retry-After-Ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after") or headers.get("Retry-After")
    seconds = _number(value)
    return seconds if seconds is not None else _seconds_until(value)


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if 0 <= number < float("inf") else None


def _seconds_until(value: Any) -> float | None:
    try:
        when = parsedate_to_datetime(str(value))
    except (TypeError, ValueError):
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())


def _codes_of(error: BaseException) -> list[str]:
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    found = [getattr(error, "code", None), getattr(error, "error_code", None), getattr(error, "type", None)]
    if isinstance(inner, Mapping):
        found += [inner.get("code"), inner.get("type")]
    return [code.lower() for code in found if isinstance(code, str)]


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it came from: SDKs wrap the transport's errors."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)


_KEY_NAMES = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "google": "GOOGLE_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "moonshot": "MOONSHOT_API_KEY",
    "dashscope": "DASHSCOPE_API_KEY",
}


def explain(failure: Failure, *, model: str, provider: str) -> str:
    """What the user reads instead of an answer: what happened and what to do.

    Args:
        failure: what went wrong.
        model: the model's name as people know it.
        provider: the provider's identifier, e.g. ``openai``.
    """
    said = f" The provider said: {failure.detail}" if failure.detail else ""
    match failure.kind:
        case ErrorKind.AUTH:
            key = next(
                (name for part, name in _KEY_NAMES.items() if part in provider.lower()), "the provider's key variable"
            )
            return (
                f"The provider rejected the API key for {model}: check {key} or models[].api_key in config.yaml.{said}"
            )
        case ErrorKind.QUOTA:
            return f"The account behind {model} has no quota or credit left: check the plan and billing at the provider, or choose another model.{said}"
        case ErrorKind.NETWORK:
            return (
                f"{model} could not be reached: there is no connection to the provider. Check the network, a proxy, "
                f"and models[].base_url in config.yaml, then try again.{said}"
            )
        case ErrorKind.CONTEXT_LENGTH:
            return (
                f"The conversation is too long for {model}. Start a new thread, choose a model with a larger context window, "
                f"or lower summarization.trigger in config.yaml.{said}"
            )
        case ErrorKind.MODEL_NOT_FOUND:
            return f"The provider does not know the model or address of {model}: check models[].model and models[].base_url in config.yaml.{said}"
        case ErrorKind.CONTENT_FILTER:
            return f"The provider of {model} refused to answer for reasons of its content policy. Rephrase the request or choose another model.{said}"
        case ErrorKind.EMPTY_ANSWER:
            return f"{model} returned an empty answer, also when asked again. Try again, rephrase the request or choose another model.{said}"
        case ErrorKind.CIRCUIT_OPEN:
            return f"{model} is temporarily unavailable: it failed several times in a row, so it is left alone for a short while. Try again in a minute."
        case ErrorKind.TRANSIENT | ErrorKind.BUSY:
            wait = f" It asks to wait {failure.retry_after:.0f} seconds." if failure.retry_after else ""
            return f"{model} is temporarily unavailable, also after several attempts. Try again in a moment, or choose another model.{wait}{said}"
        case _:
            return f"The call of {model} failed.{said}"
