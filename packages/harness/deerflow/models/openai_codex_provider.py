"""OpenAI models through a ChatGPT sign-in: the Codex endpoint, which speaks a streamed Responses API."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import httpx
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelError,
    ModelInvalidRequestError,
    ModelNotFoundError,
    ModelPermissionDeniedError,
    ModelRateLimitError,
    ModelTimeoutError,
)
from langchain_core.language_models import LanguageModelInput
from langchain_core.language_models.chat_models import BaseChatModel, agenerate_from_stream
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from pydantic import Field, PrivateAttr, SecretStr, model_validator

from deerflow.blocking import run_blocking
from deerflow.models.codex_responses import (
    ResponseReader,
    input_items,
    instructions_of,
    tool_choice_item,
    tool_item,
)
from deerflow.models.credentials import load_codex_credential
from deerflow.models.failures import model_error
from deerflow.models.resilience import aretry_stream, retry_policy

CODEX_BASE_URL = "https://chatgpt.com/backend-api/codex"
EFFORTS = ("low", "medium", "high", "xhigh")
NO_CREDENTIAL = "No Codex sign-in was found. Run `codex login`, or set CODEX_AUTH_PATH to its auth.json."

ERRORS_BY_STATUS: Mapping[int, type[ModelError]] = {
    400: ModelInvalidRequestError,
    401: ModelAuthenticationError,
    403: ModelPermissionDeniedError,
    404: ModelNotFoundError,
    422: ModelInvalidRequestError,
    429: ModelRateLimitError,
}


class CodexStreamCutError(ModelConnectionError, RuntimeError):
    """The stream ended without saying that the response is complete."""


class CodexChatModel(BaseChatModel):
    """OpenAI's Codex endpoint, with the sign-in that the Codex CLI left on this machine.

    Raises:
        ValueError: there is no sign-in (``auth.json``), and no ``access_token`` was given.
    """

    model: str = "gpt-5.4"
    reasoning_effort: str | None = "medium"
    """``none`` switches reasoning off."""
    retry_max_attempts: int = Field(default=3, ge=1)
    """Calls in all, until a stream has started."""
    retry_base_delay: float = Field(default=2.0, ge=0)
    """Seconds before the second attempt; doubles each time. ``Retry-After`` wins."""
    base_url: str = CODEX_BASE_URL
    timeout: float = 60
    """Seconds without any byte from the endpoint."""
    originator: str = "codex_cli_rs"
    """The client kind that the endpoint expects for this kind of sign-in."""
    access_token: SecretStr = SecretStr("")
    account_id: str = ""

    # Reads the certificates from disk, so it is made with the model and not on the event loop.
    _tls: ssl.SSLContext = PrivateAttr(default_factory=httpx.create_ssl_context)
    _async_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = PrivateAttr(
        default_factory=WeakKeyDictionary
    )

    @model_validator(mode="after")
    def _sign_in(self) -> CodexChatModel:
        # This class is the edge towards the sign-in: the environment and the file are read here and after a 401 only.
        if not self.access_token.get_secret_value() and not self._reload_sign_in():
            raise ValueError(NO_CREDENTIAL)
        return self

    @classmethod
    def adapt_settings(
        cls, settings: dict[str, Any], *, thinking_enabled: bool, reasoning_effort: str | None
    ) -> dict[str, Any]:
        """Constructor arguments for a run: the endpoint takes no ``max_tokens``, and effort is its thinking switch."""
        kept = {key: value for key, value in settings.items() if key != "max_tokens"}
        wishes = (reasoning_effort, settings.get("reasoning_effort"))
        effort = next((wish for wish in wishes if wish in EFFORTS), "medium")
        return {**kept, "reasoning_effort": effort if thinking_enabled else "none"}

    @property
    def _llm_type(self) -> str:
        return "codex-responses"

    @property
    def lc_secrets(self) -> dict[str, str]:
        return {"access_token": "CODEX_ACCESS_TOKEN"}

    @classmethod
    def is_lc_serializable(cls) -> bool:
        return True

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": self.model, "reasoning_effort": self.reasoning_effort, "base_url": self.base_url}

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | bool | Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        choice = tool_choice_item(tool_choice)
        return self.bind(
            tools=[tool_item(tool) for tool in tools], **({"tool_choice": choice} if choice else {}), **kwargs
        )

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        async def call() -> ChatResult:
            try:
                return await self._agenerate(messages, stop, None, **kwargs)
            finally:
                await self._async_client().aclose()

        return run_blocking(call())

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return _with_llm_output(await agenerate_from_stream(self._astream(messages, stop, None, **kwargs)))

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        body = self._body(messages, kwargs)

        async def attempt() -> AsyncGenerator[ChatGenerationChunk]:
            try:
                async for chunk in self._post(body):
                    yield chunk
            except ModelAuthenticationError:
                if not await asyncio.to_thread(self._reload_sign_in):
                    raise
                async for chunk in self._post(body):
                    yield chunk

        policy = retry_policy(self.retry_max_attempts, self.retry_base_delay)
        async for chunk in aretry_stream(attempt, policy, _is_empty):
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _post(self, body: dict[str, Any]) -> AsyncIterator[ChatGenerationChunk]:
        reader, url = ResponseReader(self.model), self.base_url.rstrip("/") + "/responses"
        try:
            async with self._async_client().stream("POST", url, json=body, headers=self._headers()) as response:
                if (status := response.status_code) >= 400:
                    await response.aread()
                    text = f"The Codex endpoint answered HTTP {status}: {response.text[:500]}"
                    raise model_error(ERRORS_BY_STATUS.get(status, ModelAPIError), text, response=response)
                async for received in response.aiter_bytes():
                    for chunk in reader.feed(received):
                        yield chunk
        except httpx.TimeoutException as error:
            raise ModelTimeoutError(f"The Codex endpoint did not answer in time ({type(error).__name__}).") from error
        except httpx.TransportError as error:
            raise ModelConnectionError(f"The connection to the Codex endpoint failed: {error}") from error
        if not reader.is_complete:
            raise CodexStreamCutError(
                "The Codex endpoint ended its stream before the response was complete. Try again."
            )

    def _async_client(self) -> httpx.AsyncClient:
        # One per event loop: a pooled connection belongs to the loop that opened it.
        loop = asyncio.get_running_loop()
        client = self._async_clients.get(loop)
        if client is None:
            client = self._async_clients[loop] = httpx.AsyncClient(timeout=self.timeout, verify=self._tls)
        return client

    def _headers(self) -> dict[str, str]:
        headers = {
            "Authorization": f"Bearer {self.access_token.get_secret_value()}",
            "Accept": "text/event-stream",
            "originator": self.originator,
        }
        return {**headers, "ChatGPT-Account-ID": self.account_id} if self.account_id else headers

    def _body(self, messages: list[BaseMessage], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        effort = kwargs.get("reasoning_effort") or self.reasoning_effort
        body: dict[str, Any] = {
            "model": self.model,
            "instructions": instructions_of(messages),
            "input": input_items(messages),
            "store": False,
            "stream": True,
            "reasoning": {"effort": "none"} if effort in (None, "none") else {"effort": effort, "summary": "detailed"},
        }
        if tools := kwargs.get("tools"):
            body |= {"tools": tools, "tool_choice": kwargs.get("tool_choice") or "auto"}
        return body

    def _reload_sign_in(self) -> bool:
        """Take over the sign-in on disk; False if there is none or it is the one already in use."""
        credential = load_codex_credential(os.environ, Path.home())
        if credential is None or credential.access_token == self.access_token.get_secret_value():
            return False
        self.access_token = SecretStr(credential.access_token)
        self.account_id = credential.account_id
        return True


def _is_empty(chunk: ChatGenerationChunk) -> bool:
    message = chunk.message
    assert isinstance(message, AIMessageChunk)
    return not (message.content or message.tool_call_chunks or message.additional_kwargs or message.chunk_position)


def _with_llm_output(result: ChatResult) -> ChatResult:
    message = result.generations[0].message
    assert isinstance(message, AIMessage)
    names = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens", "total_tokens": "total_tokens"}
    usage = message.usage_metadata or {}
    result.llm_output = {
        "model_name": message.response_metadata.get("model_name"),
        "token_usage": {name: usage[kept] for name, kept in names.items() if kept in usage},
    }
    return result
