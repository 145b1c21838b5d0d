from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest

from deerflow.models.failures import ErrorKind, Failure, classify, explain


class ProviderError(Exception):
    def __init__(
        self,
        message: str = "",
        status: int | None = None,
        code: str | None = None,
        body: Any = None,
        headers: Any = None,
    ) -> None:
        super().__init__(message)
        self.status_code = status
        self.code = code
        self.body = body
        self.response = httpx.Response(status, headers=headers) if status else None


def named(name: str, *bases: type[Exception]) -> Exception:
    return type(name, bases or (Exception,), {})("broken")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        # W-21: a rate limit that mentions quota or billing is still a rate limit
        (ProviderError("You exceeded your current quota, check billing", 429), ErrorKind.BUSY),
        (ProviderError("no permission to exceed your credit rate", 429), ErrorKind.BUSY),
        (ProviderError("quota", 429, code="insufficient_quota"), ErrorKind.QUOTA),
        (ProviderError("q", 429, body={"error": {"type": "insufficient_quota"}}), ErrorKind.QUOTA),
        (ProviderError("payment", 500), ErrorKind.TRANSIENT),
        (ProviderError("unauthorized", 503), ErrorKind.BUSY),
        *[(ProviderError("x", s), ErrorKind.TRANSIENT) for s in (408, 409, 425, 500, 502, 504, 520)],
        *[(ProviderError("x", s), ErrorKind.BUSY) for s in (429, 503, 529)],
        (ProviderError("please try again", 401), ErrorKind.AUTH),
        (ProviderError("x", 403), ErrorKind.AUTH),
        (ProviderError("x", 402), ErrorKind.QUOTA),
        (ProviderError("x", 404), ErrorKind.MODEL_NOT_FOUND),
        (ProviderError("try again", 400), ErrorKind.GENERIC),
        (ProviderError("x", 400, code="context_length_exceeded"), ErrorKind.CONTEXT_LENGTH),
        (ProviderError("This model's maximum context length is 8192 tokens", 400), ErrorKind.CONTEXT_LENGTH),
        (ProviderError("prompt is too long: 210000 tokens > 200000 maximum", 400), ErrorKind.CONTEXT_LENGTH),
        (ProviderError("x", 413), ErrorKind.TOO_LARGE),
        (ProviderError("Request too large on tokens per minute (TPM): Limit 6000, Requested 7000", 413, code="rate_limit_exceeded"), ErrorKind.TOO_LARGE),
        (ProviderError("prompt is too long: 210000 tokens > 200000 maximum", 413), ErrorKind.CONTEXT_LENGTH),
        (ProviderError("Your credit balance is too low", 400), ErrorKind.QUOTA),
        (ProviderError("API key not valid", 400), ErrorKind.AUTH),
        # an error event in a stream that began with 200
        (ProviderError("Overloaded", 200, body={"type": "error", "error": {"type": "overloaded_error"}}), ErrorKind.BUSY),
        (ProviderError("x", body={"error": {"type": "server_error"}}), ErrorKind.TRANSIENT),
        *[
            (named(n), ErrorKind.TRANSIENT)
            for n in ("APITimeoutError", "InternalServerError", "ReadError", "RemoteProtocolError", "ReadTimeout")
            if n != "ReadTimeout"
        ],
        (httpx.ReadTimeout("t"), ErrorKind.TRANSIENT),
        (httpx.RemoteProtocolError("peer closed connection"), ErrorKind.TRANSIENT),
        (httpx.ConnectError("refused"), ErrorKind.NETWORK),
        (named("APIConnectionError"), ErrorKind.NETWORK),
        (TimeoutError(), ErrorKind.TRANSIENT),
        (ConnectionResetError(), ErrorKind.TRANSIENT),
        (ConnectionRefusedError(), ErrorKind.NETWORK),
        (ProviderError("服务器繁忙,请稍后重试"), ErrorKind.BUSY),
        (ProviderError("rate limit reached"), ErrorKind.BUSY),
        (ProviderError("billing problem"), ErrorKind.QUOTA),
        (ProviderError("余额不足"), ErrorKind.QUOTA),
        (ProviderError("Unauthorized"), ErrorKind.AUTH),
        (ProviderError("The api_key client option must be set"), ErrorKind.AUTH),
        (ValueError("what"), ErrorKind.GENERIC),
    ],
)  # fmt: skip
def test_an_error_is_classified(error: Exception, kind: ErrorKind) -> None:
    assert classify(error).kind is kind


def test_the_transports_error_behind_an_sdk_error_decides() -> None:
    error = named("APIConnectionError")
    error.__cause__ = httpx.ReadError("reset")
    assert classify(error).kind is ErrorKind.TRANSIENT


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"Retry-After-Ms": "1500", "Retry-After": "9"}, 1.5),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-1"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({}, None),
    ],
)
def test_the_wait_that_a_provider_asks_for_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert classify(ProviderError("x", 429, headers=headers)).retry_after == seconds


def test_the_wait_may_be_a_date() -> None:
    when = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert 25 < (classify(ProviderError("x", 429, headers={"Retry-After": when})).retry_after or 0) <= 30
    past = format_datetime(datetime.now(UTC) - timedelta(days=1), usegmt=True)
    assert classify(ProviderError("x", 429, headers={"Retry-After": past})).retry_after == 0


def test_keys_never_stand_in_the_detail_and_long_ones_are_cut() -> None:
    detail = classify(ProviderError("Incorrect API key provided: sk-proj-abcdef1234567890. " + "x" * 900, 401)).detail
    assert "abcdef" not in detail
    assert len(detail) <= 500


@pytest.mark.parametrize("kind", list(ErrorKind))
def test_every_failure_is_explained_with_the_models_name_and_a_remedy(kind: ErrorKind) -> None:
    text = explain(Failure(kind, "said so"), model="gpt-x", provider="openai")
    assert "gpt-x" in text
    if kind is not ErrorKind.GENERIC:
        assert any(word in text for word in ("check", "Check", "Try", "try", "Start", "Rephrase", "choose"))


@pytest.mark.parametrize("said", ["Internal error", "Internal error."])
def test_a_failure_in_mid_stream_is_told_in_sentences(said: str) -> None:
    text = explain(
        classify(ProviderError(said, body={"error": {"type": "server_error"}})), model="m", provider="openai"
    )
    assert text.endswith(": Internal error. Try again, or choose another model.")


def test_a_whole_day_of_waiting_is_said_with_its_date() -> None:
    text = explain(Failure(ErrorKind.BUSY, retry_after=86400), model="m", provider="openai")
    assert f"on {datetime.now(UTC) + timedelta(days=1):%d %B} at" in text


def test_a_rejected_key_names_the_variable_to_check() -> None:
    assert "check OPENAI_API_KEY or models[].api_key" in explain(Failure(ErrorKind.AUTH), model="m", provider="openai")
    assert "ANTHROPIC_API_KEY" in explain(Failure(ErrorKind.AUTH), model="m", provider="anthropic")
