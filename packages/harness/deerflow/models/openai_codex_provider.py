"""OpenAI models through a ChatGPT sign-in: the Codex endpoint, which speaks a streamed Responses API."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelError,
    ModelInvalidRequestError,
    ModelRateLimitError,
    ModelTimeoutError,
)
from langchain_core.language_models import LanguageModelInput
from langchain_core.language_models.chat_models import agenerate_from_stream
from langchain_core.messages import AIMessageChunk, BaseMessage, SystemMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from pydantic import Field, SecretStr, model_validator

from deerflow.models.credentials import load_codex_credential
from deerflow.models.failures import model_error
from deerflow.models.openai import OpenAIChatModel
from deerflow.models.openai_chunks import TRANSPORT_ERRORS, TRANSPORT_TIMEOUTS
from deerflow.models.resilience import RetriedStreams

CODEX_BASE_URL = "https://chatgpt.com/backend-api/codex"
DEFAULT_INSTRUCTIONS = "You are a helpful assistant."
EFFORTS = ("low", "medium", "high", "xhigh")
NO_CREDENTIAL = "No Codex sign-in was found. Run `codex login`, or set CODEX_AUTH_PATH to its auth.json."
ERRORS_BY_CODE: Mapping[str, type[ModelError]] = {
    "rate_limit_exceeded": ModelRateLimitError,
    "usage_limit_reached": ModelRateLimitError,
    "insufficient_quota": ModelRateLimitError,
    "context_length_exceeded": ModelInvalidRequestError,
    "invalid_prompt": ModelInvalidRequestError,
    "invalid_request_error": ModelInvalidRequestError,
}


class CodexStreamCutError(ModelConnectionError, RuntimeError):
    """The stream ended without saying that the response is complete."""


class CodexChatModel(RetriedStreams, OpenAIChatModel):
    """OpenAI's Codex endpoint, with the sign-in that the Codex CLI left on this machine.

    Raises:
        ValueError: there is no sign-in (``auth.json``), and no ``access_token`` was given.
    """

    model_name: str = Field(default="gpt-5.4", alias="model")
    reasoning_effort: str | None = "medium"
    """``none`` switches reasoning off."""
    openai_api_base: str | None = Field(default=CODEX_BASE_URL, alias="base_url")
    originator: str = "codex_cli_rs"
    """The client kind that the endpoint expects for this kind of sign-in."""
    access_token: SecretStr = SecretStr("")
    account_id: str = ""
    openai_api_key: Any = Field(default=SecretStr("unused"), alias="api_key")
    """Each request brings the sign-in of its own moment."""
    use_responses_api: bool | None = True
    store: bool | None = False
    max_retries: int | None = 0

    @model_validator(mode="after")
    def _sign_in(self) -> Self:
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
    def lc_secrets(self) -> dict[str, str]:
        return {**super().lc_secrets, "access_token": "CODEX_ACCESS_TOKEN"}

    def _get_request_payload(
        self, input_: LanguageModelInput, *, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        messages = self._convert_input(input_).to_messages()
        rules = [message.text for message in messages if isinstance(message, SystemMessage) and message.text]
        rest = [message for message in messages if not isinstance(message, SystemMessage)]
        payload = super()._get_request_payload(rest, stop=stop, **kwargs)
        reasoning = payload.get("reasoning") or {"effort": "none"}
        headers = {"Authorization": f"Bearer {self.access_token.get_secret_value()}", "originator": self.originator}
        return {
            **payload,
            "instructions": "\n\n".join(rules) or DEFAULT_INSTRUCTIONS,
            "reasoning": reasoning if reasoning["effort"] == "none" else {"summary": "detailed", **reasoning},
            "extra_headers": headers | ({"ChatGPT-Account-ID": self.account_id} if self.account_id else {}),
            **({"tool_choice": payload.get("tool_choice") or "auto"} if payload.get("tools") else {}),
        }

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return await agenerate_from_stream(self._astream(messages, stop, **kwargs))

    async def _astream(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        try:
            async for chunk in super()._astream(messages, *args, **kwargs):
                yield chunk
        except ModelAuthenticationError:
            if not await asyncio.to_thread(self._reload_sign_in):
                raise
            async for chunk in super()._astream(messages, *args, **kwargs):
                yield chunk

    def _read(self, chunk: AIMessageChunk, *, has_calls: bool) -> bool:
        """Its text as text, its thoughts apart."""
        blocks = [block for block in chunk.content if isinstance(block, dict)]
        thoughts = "".join(map(_summary, blocks))
        chunk.content = "".join(block.get("text") or block.get("refusal") or "" for block in blocks)
        chunk.additional_kwargs = {"reasoning_content": thoughts} if thoughts else {}
        if chunk.chunk_position != "last":
            return False
        is_cut = chunk.response_metadata.get("status") == "incomplete"
        reason = "length" if is_cut else "tool_calls" if has_calls else "stop"
        chunk.response_metadata = {**chunk.response_metadata, "finish_reason": reason}
        return True

    @contextmanager
    def _checked(self) -> Iterator[None]:
        try:
            yield
        except TRANSPORT_TIMEOUTS as error:
            raise ModelTimeoutError(f"The Codex endpoint did not answer in time ({type(error).__name__}).") from error
        except TRANSPORT_ERRORS as error:
            raise ModelConnectionError(f"The connection to the Codex endpoint failed: {error}") from error
        except ValueError as error:  # the endpoint reports a failure inside the stream: LangChain keeps its words only
            found = re.match(r"(?:ResponseError\(code=')?(\w+)", str(error))
            code = found[1] if found else ""
            text = f"The Codex endpoint failed: {error}"
            raise model_error(ERRORS_BY_CODE.get(code, ModelAPIError), text, code=code) from error

    def _cut(self, kwargs: Mapping[str, Any]) -> Exception | None:
        return CodexStreamCutError("The Codex endpoint ended its stream before the response was complete. Try again.")

    def _reload_sign_in(self) -> bool:
        """Take over the sign-in on disk; False if there is none or it is the one already in use."""
        credential = load_codex_credential(os.environ, Path.home())
        if credential is None or credential.access_token == self.access_token.get_secret_value():
            return False
        self.access_token = SecretStr(credential.access_token)
        self.account_id = credential.account_id
        return True


def _summary(block: Mapping[str, Any]) -> str:
    """The thoughts in a block; a further part of them begins with an empty text of its own."""
    parts = block.get("summary") or ()
    return "".join(part.get("text") or ("\n\n" if part.get("index") else "") for part in parts)
