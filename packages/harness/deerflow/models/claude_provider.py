"""Claude through the Anthropic API: prompt caching, thinking budgets, one layer of retries, OAuth sign-ins."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn, Self

import anthropic
from langchain_anthropic import ChatAnthropic
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.exceptions import ModelAPIError, ModelConnectionError
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from pydantic import Field, SecretStr, model_validator
from tenacity import AsyncRetrying, Retrying

from deerflow.models import claude_payload as shape
from deerflow.models.credentials import is_oauth_token, load_claude_credential
from deerflow.models.resilience import aretry_stream, retry_policy, retry_stream
from deerflow.models.tool_arguments import StreamedArguments

PLACEHOLDER_KEY = "your-anthropic-api-key"
OAUTH_BETAS = ("oauth-2025-04-20", "interleaved-thinking-2025-05-14")
RETRYABLE_STREAM_ERRORS = frozenset({"overloaded_error", "api_error", "rate_limit_error", "timeout_error"})
ALWAYS_THINKING = ("claude-fable-5", "claude-opus-5-5", "claude-sonnet-5-5")
KEY_NAMES = ("anthropic_api_key", "api_key")


class ClaudeStreamError(ModelAPIError):
    """The API reported a failure inside a stream that had begun. ``code`` is Anthropic's error type."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"The Anthropic API broke off its answer ({code}): {message}")
        self.code = code


class ClaudeStreamInterruptedError(ModelConnectionError, ConnectionError):
    """The connection ended before the answer did."""


class ClaudeChatModel(ChatAnthropic):
    """Claude.

    The key comes from ``api_key``, else ``ANTHROPIC_API_KEY``, else a sign-in found by
    :func:`deerflow.models.credentials.load_claude_credential` (which reads files: construct off the event loop).

    Raises:
        ValueError: no key and no sign-in was found, or ``retry_max_attempts`` is below 1.
    """

    enable_prompt_caching: bool = True
    prompt_cache_size: int = Field(default=3, ge=0)
    """How many of the newest user turns may get a cache marker."""
    auto_thinking_budget: bool = True
    """Give thinking 80 % of ``max_tokens`` if it is enabled without a budget."""
    retry_max_attempts: int = Field(default=3, ge=1)
    """Calls in all. ``max_retries``, if set instead, counts those after the first; the SDK's own retries are off."""
    retry_base_delay: float = Field(default=2.0, ge=0)
    """Seconds before the second attempt; doubles each time. ``Retry-After`` wins."""
    auth_token: SecretStr | None = None
    """An OAuth or gateway token, sent as ``Authorization: Bearer`` in place of a key."""
    billing_header: str | None = None
    """Text to put first in the system prompt of OAuth requests. Only what the user sets: nothing is imitated."""

    @model_validator(mode="before")
    @classmethod
    def _resolve_settings(cls, values: dict[str, Any]) -> dict[str, Any]:
        # This class is the edge towards Anthropic, as its base class is: both look at the environment once, here.
        values = _with_credential(dict(values), os.environ, Path.home())
        values = _with_one_retry_layer(values)
        model = str(values.get("model") or values.get("model_name") or "")
        thinking = values.get("thinking")
        if model.startswith(ALWAYS_THINKING) and isinstance(thinking, Mapping) and thinking.get("type") == "disabled":
            values.pop("thinking")
        return values

    @model_validator(mode="after")
    def _prepare_client(self) -> Self:
        # Its first use imports modules and reads certificates, which must not happen on an event loop.
        _ = self._async_client
        return self

    @property
    def lc_secrets(self) -> dict[str, str]:
        return {**super().lc_secrets, "auth_token": "ANTHROPIC_AUTH_TOKEN"}

    @property
    def is_oauth(self) -> bool:
        """Whether requests are made in the name of a signed-in person instead of an API key."""
        return self.auth_token is not None and is_oauth_token(self.auth_token.get_secret_value())

    @cached_property
    def _client_params(self) -> dict[str, Any]:
        params = dict(super()._client_params)
        if self.auth_token is not None:
            params.pop("api_key", None)
            params["auth_token"] = self.auth_token.get_secret_value()
        return params

    def _get_request_payload(
        self, input_: LanguageModelInput, *, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        in_place = bool((self.profile or {}).get("mid_conversation_system_messages"))
        messages = shape.place_system_messages(self._convert_input(input_).to_messages(), in_place=in_place)
        payload = super()._get_request_payload(messages, stop=stop, **kwargs)
        payload = shape.with_thinking(payload, auto_budget=self.auto_thinking_budget)
        if self.is_oauth:
            payload = shape.without_cache_control(payload)
            return shape.with_first_system_text(payload, self.billing_header) if self.billing_header else payload
        if not self.enable_prompt_caching:
            return payload
        reminders = shape.count_reminder_blocks(messages)
        return shape.with_cache_markers(payload, last_messages=self.prompt_cache_size, reminder_blocks=reminders)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        call = super()._generate
        return Retrying(**self._retry_policy())(call, messages, stop, run_manager, **kwargs)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        call = super()._agenerate
        return await AsyncRetrying(**self._retry_policy())(call, messages, stop, run_manager, **kwargs)

    def _stream(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        opened = super()._stream

        def attempt() -> Generator[ChatGenerationChunk]:
            complete, arguments = False, StreamedArguments()
            try:
                for chunk in opened(messages, *args, **kwargs):
                    complete = complete or _is_last(chunk)
                    yield from _with_spoilers(chunk, arguments)
            except Exception as error:
                _raise_classified(error)
            self._require_complete(complete, kwargs)

        yield from retry_stream(attempt, self._retry_policy(), _is_empty)

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        opened = super()._astream

        async def attempt() -> AsyncGenerator[ChatGenerationChunk]:
            complete, arguments = False, StreamedArguments()
            try:
                async for chunk in opened(messages, *args, **kwargs):
                    complete = complete or _is_last(chunk)
                    for sent in _with_spoilers(chunk, arguments):
                        yield sent
            except Exception as error:
                _raise_classified(error)
            self._require_complete(complete, kwargs)

        async for chunk in aretry_stream(attempt, self._retry_policy(), _is_empty):
            yield chunk

    def _require_complete(self, complete: bool, kwargs: Mapping[str, Any]) -> None:
        wanted = kwargs.get("stream_usage")
        if not complete and (self.stream_usage if wanted is None else wanted):
            raise ClaudeStreamInterruptedError(
                "The connection to the Anthropic API ended in the middle of an answer. Try again."
            )

    def _retry_policy(self) -> dict[str, Any]:
        return retry_policy(self.retry_max_attempts, self.retry_base_delay)


def _with_credential(values: dict[str, Any], environ: Mapping[str, str], home: Path) -> dict[str, Any]:
    values.setdefault("billing_header", environ.get("ANTHROPIC_BILLING_HEADER") or None)
    key = next((_plain(values[name]) for name in KEY_NAMES if values.get(name)), "")
    if not _is_real(key):
        key = environ.get("ANTHROPIC_API_KEY", "").strip()
    for name in KEY_NAMES:
        values.pop(name, None)
    if not values.get("auth_token"):
        if is_oauth_token(key):
            values["auth_token"] = key
        elif _is_real(key):
            values["anthropic_api_key"] = key
        elif credential := load_claude_credential(environ, home):
            values["auth_token"] = credential.access_token
        elif not values.get("default_headers") and not environ.get("LANGSMITH_GATEWAY"):
            raise ValueError(
                "No Anthropic credential was found. Set ANTHROPIC_API_KEY, or `api_key` of the model in config.yaml."
            )
    if is_oauth_token(_plain(values.get("auth_token"))):
        values["betas"] = list(dict.fromkeys([*(values.get("betas") or []), *OAUTH_BETAS]))
    return values


def _with_one_retry_layer(values: dict[str, Any]) -> dict[str, Any]:
    retries = values.get("max_retries")
    if retries is not None and values.get("retry_max_attempts") is None:
        values["retry_max_attempts"] = max(0, int(retries)) + 1
    return {**values, "max_retries": 0}


def _plain(value: object) -> str:
    return (value.get_secret_value() if isinstance(value, SecretStr) else str(value or "")).strip()


def _is_real(key: str) -> bool:
    return bool(key) and key != PLACEHOLDER_KEY


def _is_last(chunk: ChatGenerationChunk) -> bool:
    return bool(chunk.message.response_metadata.get("stop_reason"))


def _with_spoilers(chunk: ChatGenerationChunk, arguments: StreamedArguments) -> list[ChatGenerationChunk]:
    if isinstance(chunk.message, AIMessageChunk):
        arguments.add(chunk.message.tool_call_chunks)
    if not _is_last(chunk) or not (spoilers := arguments.spoilers()):
        return [chunk]
    return [ChatGenerationChunk(message=AIMessageChunk(content=[], tool_call_chunks=spoilers)), chunk]


def _is_empty(chunk: ChatGenerationChunk) -> bool:
    message = chunk.message
    calls = isinstance(message, AIMessageChunk) and message.tool_call_chunks
    return not message.content and not calls and not _is_last(chunk)


def _raise_classified(error: Exception) -> NoReturn:
    """Raise ``error`` anew as one that says whether trying again may help, if it does not say so itself."""
    if isinstance(error, anthropic.APIStatusError) and error.response.status_code == 200:
        kind, text = _stream_error(error.body)
        if kind in RETRYABLE_STREAM_ERRORS:
            raise ClaudeStreamError(kind, text) from error
    # The SDK lets its HTTP client's transport errors through while it streams; that client's package was renamed.
    if any(base.__name__ == "TransportError" for base in type(error).__mro__):
        reason = f"{type(error).__name__}: {error}"
        raise ClaudeStreamInterruptedError(
            f"The connection to the Anthropic API broke in the middle of an answer ({reason})."
        ) from error
    raise error


def _stream_error(body: object) -> tuple[str, str]:
    detail = body.get("error") if isinstance(body, Mapping) else None
    if not isinstance(detail, Mapping):
        return "unknown", str(body)
    return str(detail.get("type")), str(detail.get("message"))
