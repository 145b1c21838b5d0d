"""Claude through the Anthropic API: prompt caching, thinking budgets, one layer of retries, OAuth sign-ins."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import anthropic
from langchain_anthropic import ChatAnthropic
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.exceptions import ModelAPIError, ModelConnectionError
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from pydantic import Field, SecretStr, model_validator
from tenacity import AsyncRetrying

from deerflow.models import claude_payload as shape
from deerflow.models.credentials import is_oauth_token, load_claude_credential
from deerflow.models.failures import model_error
from deerflow.models.resilience import RetriedStreams
from deerflow.models.tool_arguments import StreamedArguments

PLACEHOLDER_KEY = "your-anthropic-api-key"
OAUTH_BETAS = ("oauth-2025-04-20", "interleaved-thinking-2025-05-14")
RETRYABLE_STREAM_ERRORS = frozenset({"overloaded_error", "api_error", "rate_limit_error", "timeout_error"})
ALWAYS_THINKING = ("claude-fable-5", "claude-opus-5-5", "claude-sonnet-5-5")
WHOLE_ANSWER_SECONDS = 600.0
KEY_NAMES = ("anthropic_api_key", "api_key")


class ClaudeChatModel(RetriedStreams, ChatAnthropic):
    """Claude. ``max_retries``, if set instead of ``retry_max_attempts``, counts the calls after the first.

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
    default_request_timeout: float | None = Field(60, alias="timeout")
    """Seconds to wait for the first byte, and for each further one."""
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

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        call = super()._agenerate
        return await AsyncRetrying(**self._retry_policy())(call, messages, stop, run_manager, **self._patient(kwargs))

    def _patient(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Nothing comes of an answer that is not streamed before its end."""
        chosen = "default_request_timeout" in self.model_fields_set
        return kwargs if chosen else {"timeout": WHOLE_ANSWER_SECONDS, **kwargs}

    def _answer(self, kwargs: Mapping[str, Any]) -> _Answer:
        wanted = kwargs.get("stream_usage")
        return _Answer(self.stream_usage if wanted is None else wanted)


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


class _Answer:
    """One streamed answer: its broken arguments stay broken, and its failures say whether trying again may help."""

    def __init__(self, awaits_end: bool) -> None:
        self._awaits_end = awaits_end
        self._arguments = StreamedArguments()

    def read(self, chunk: ChatGenerationChunk) -> list[ChatGenerationChunk]:
        if isinstance(chunk.message, AIMessageChunk):
            self._arguments.add(chunk.message.tool_call_chunks)
        if not chunk.message.response_metadata.get("stop_reason"):
            return [chunk]
        self._awaits_end = False
        spoilers = self._arguments.spoilers()
        broken = ChatGenerationChunk(message=AIMessageChunk(content=[], tool_call_chunks=spoilers))
        return [broken, chunk] if spoilers else [chunk]

    @contextmanager
    def checked(self) -> Iterator[None]:
        """For the reading of the stream.

        Raises:
            ModelAPIError: the API reported a failure inside a stream that had begun.
            ModelConnectionError: the connection ended before the answer did.
        """
        try:
            yield
        except Exception as error:
            if isinstance(error, anthropic.APIStatusError) and error.response.status_code == 200:
                detail = _mapping(_mapping(error.body).get("error"))
                if (code := str(detail.get("type"))) in RETRYABLE_STREAM_ERRORS:
                    text = f"The Anthropic API broke off its answer ({code}): {detail.get('message')}"
                    raise model_error(ModelAPIError, text, code=code) from error
            if any(base.__name__ == "TimeoutException" for base in type(error).__mro__):
                raise  # silence, not a broken connection
            # The SDK lets its HTTP client's transport errors through while it streams; that client's package was renamed.
            if any(base.__name__ == "TransportError" for base in type(error).__mro__):
                text = f"The connection to the Anthropic API broke in the middle of an answer ({error!r})."
                raise ModelConnectionError(text) from error
            raise
        if self._awaits_end:
            raise ModelConnectionError(
                "The connection to the Anthropic API ended in the middle of an answer. Try again."
            )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
