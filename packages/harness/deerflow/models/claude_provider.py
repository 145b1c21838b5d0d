"""Claude through the Anthropic API: prompt caching, thinking budgets, one layer of retries, OAuth sign-ins.

Requests are shaped by pure functions from payload to payload. Their inputs are never changed in place: tools and message
blocks are shared with the history and with other calls. Sources: Anthropic's documentation of prompt caching, extended
thinking and message roles.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import anthropic
from langchain_anthropic import ChatAnthropic
from langchain_anthropic._client_utils import _AsyncHttpxClientWrapper, _SyncHttpxClientWrapper
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.exceptions import ModelAPIError, ModelConnectionError
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatResult
from pydantic import Field, SecretStr, model_validator

from deerflow.models.credentials import is_oauth_token, load_claude_token
from deerflow.models.dialects import NO_ID, call_id, legal_name
from deerflow.models.failures import body_of, model_error
from deerflow.models.messages import is_reminder
from deerflow.models.resilience import RetriedStreams
from deerflow.models.tls import provider_tls

PLACEHOLDER_KEY = "your-anthropic-api-key"
OAUTH_BETAS = ("oauth-2025-04-20", "interleaved-thinking-2025-05-14")
RETRYABLE_STREAM_ERRORS = frozenset({"overloaded_error", "api_error", "rate_limit_error", "timeout_error"})
ALWAYS_THINKING = ("claude-fable-5", "claude-opus-5-5", "claude-sonnet-5-5")
WHOLE_ANSWER_SECONDS = 600.0
KEY_NAMES = ("anthropic_api_key", "api_key")
MAX_CACHE_MARKERS = 4
CACHE_MARKER: Mapping[str, str] = {"type": "ephemeral"}
CACHEABLE_BLOCKS = frozenset({"text", "image", "document", "tool_use", "tool_result"})
MIN_THINKING_BUDGET = 1024

Payload = dict[str, Any]


class ClaudeChatModel(RetriedStreams, ChatAnthropic):
    """Claude. ``max_retries``, if set instead of ``retry_max_attempts``, counts the calls after the first.

    The key comes from ``api_key``, else ``ANTHROPIC_API_KEY``, else a sign-in found by
    :func:`deerflow.models.credentials.load_claude_token` (which reads files: construct off the event loop).

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
        if (retries := values.get("max_retries")) is not None and values.get("retry_max_attempts") is None:
            values["retry_max_attempts"] = max(0, int(retries)) + 1
        values["max_retries"] = 0
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

    @cached_property
    def _client(self) -> anthropic.Client:
        return anthropic.Client(**self._client_params, http_client=_SyncHttpxClientWrapper(**self._http_params))

    @cached_property
    def _async_client(self) -> anthropic.AsyncClient:
        return anthropic.AsyncClient(**self._client_params, http_client=_AsyncHttpxClientWrapper(**self._http_params))

    @property
    def _http_params(self) -> dict[str, Any]:
        given = {"timeout": self._client_params.get("timeout"), "proxy": self.anthropic_proxy}
        return {"verify": provider_tls(), **{name: value for name, value in given.items() if value is not None}}

    def _get_request_payload(
        self, input_: LanguageModelInput, *, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        in_place = bool((self.profile or {}).get("mid_conversation_system_messages"))
        messages = place_system_messages(self._convert_input(input_).to_messages(), in_place=in_place)
        payload = super()._get_request_payload(messages, stop=stop, **kwargs)
        payload = with_legal_calls(payload)
        payload = with_thinking(payload, auto_budget=self.auto_thinking_budget)
        if self.is_oauth:
            payload = without_cache_control(payload)
            return with_first_system_text(payload, self.billing_header) if self.billing_header else payload
        if not self.enable_prompt_caching:
            return payload
        reminders = count_reminder_blocks(messages)
        return with_cache_markers(payload, last_messages=self.prompt_cache_size, reminder_blocks=reminders)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        call = super()._agenerate
        if "default_request_timeout" not in self.model_fields_set:  # nothing of it comes before its end
            kwargs = {"timeout": WHOLE_ANSWER_SECONDS, **kwargs}
        return await self._retrying()(call, messages, stop, run_manager, **kwargs)

    def _read(self, chunk: AIMessageChunk, *, has_calls: bool) -> bool:
        return bool(chunk.response_metadata.get("stop_reason"))

    @contextmanager
    def _checked(self) -> Iterator[None]:
        """For the reading of the stream.

        Raises:
            ModelAPIError: the API reported a failure inside a stream that had begun.
            ModelConnectionError: the connection broke.
        """
        try:
            yield
        except Exception as error:
            if isinstance(error, anthropic.APIStatusError) and error.response.status_code == 200:
                detail = body_of(error)
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

    def _cut(self, kwargs: Mapping[str, Any]) -> Exception | None:
        wanted = kwargs.get("stream_usage")
        if not (self.stream_usage if wanted is None else wanted):  # then no chunk says that it is the last one
            return None
        return ModelConnectionError("The connection to the Anthropic API ended in the middle of an answer. Try again.")


def _with_credential(values: dict[str, Any], environ: Mapping[str, str], home: Path) -> dict[str, Any]:
    values.setdefault("billing_header", environ.get("ANTHROPIC_BILLING_HEADER") or None)
    keys = [_plain(values.pop(name, None)) for name in KEY_NAMES] + [environ.get("ANTHROPIC_API_KEY", "").strip()]
    key = next((key for key in keys if key not in ("", PLACEHOLDER_KEY)), "")
    if not values.get("auth_token"):
        if is_oauth_token(key):
            values["auth_token"] = key
        elif key:
            values["anthropic_api_key"] = key
        elif token := load_claude_token(environ, home):
            values["auth_token"] = token
        elif not values.get("default_headers") and not environ.get("LANGSMITH_GATEWAY"):
            raise ValueError(
                "No Anthropic credential was found. Set ANTHROPIC_API_KEY, or `api_key` of the model in config.yaml."
            )
    if is_oauth_token(_plain(values.get("auth_token"))):
        values["betas"] = list(dict.fromkeys([*(values.get("betas") or []), *OAUTH_BETAS]))
    return values


def _plain(value: object) -> str:
    return (value.get_secret_value() if isinstance(value, SecretStr) else str(value or "")).strip()


# requests -------------------------------------------------------------------------------------------------------------


def place_system_messages(messages: Sequence[BaseMessage], *, in_place: bool) -> list[BaseMessage]:
    """Messages in which system messages stand only where the API takes them.

    Leading ones become the system prompt. A later one stays if the model supports it (``in_place``) and it stands
    between a user turn and an assistant turn or the end; otherwise it becomes a marked user message, since hoisting
    it would change the prompt's prefix and with it everything that is cached.
    """
    placed: list[BaseMessage] = []
    leading = True
    for index, message in enumerate(messages):
        if not isinstance(message, SystemMessage):
            leading = False
            placed.append(message)
        elif leading or (in_place and _may_stand_here(messages, index)):
            placed.append(message)
        else:
            note = f"<system_note>\n{message.text}\n</system_note>"
            placed.append(HumanMessage(content=note, name=message.name, id=message.id))
    return placed


def with_thinking(payload: Payload, *, auto_budget: bool) -> Payload:
    """The payload with a thinking setting that the API accepts: a budget, no conflicting sampling, a fitting history."""
    payload = {**payload, "messages": [_without_unsigned_thinking(message) for message in payload["messages"]]}
    thinking = payload.get("thinking") or {}
    kind = thinking.get("type")
    if kind not in ("enabled", "adaptive"):
        return payload
    if kind == "enabled" and _continues_without_thinking(payload["messages"]):
        return {key: value for key, value in payload.items() if key != "thinking"}
    if kind == "enabled" and auto_budget and not thinking.get("budget_tokens"):
        budget = int(0.8 * payload["max_tokens"])
        payload["thinking"] = {**thinking, "budget_tokens": max(MIN_THINKING_BUDGET, budget)}
    return _without_sampling(payload)


def with_cache_markers(payload: Payload, *, last_messages: int, reminder_blocks: int) -> Payload:
    """The payload with up to four cache markers; apart from them equal parts keep equal bytes between requests.

    Marked are the last tool, the end of the system prompt, and the ends of the newest user turns: the newest one is
    written to the cache, the one before is where the previous request wrote to.

    Args:
        last_messages: how many user turns may be marked.
        reminder_blocks: blocks at the very end that hold for this call only and are not worth caching.
    """
    if _has_marker(payload):
        return payload
    messages = [{**message, "content": _blocks(message["content"])} for message in payload["messages"]]
    marked = {**payload, "messages": messages}
    left = MAX_CACHE_MARKERS
    if tools := payload.get("tools"):
        marked["tools"] = [*tools[:-1], {**tools[-1], "cache_control": dict(CACHE_MARKER)}]
        left -= 1
    if system := _marked_at_end(_blocks(payload.get("system")), 0):
        marked["system"] = system
        left -= 1
    left = min(left, last_messages)
    for message in reversed(messages):
        if left > 0 and message["role"] == "user":
            if content := _marked_at_end(message["content"], reminder_blocks):
                message["content"] = content
                left -= 1
            reminder_blocks = 0
    return marked


def with_legal_calls(payload: Payload) -> Payload:
    """The payload whose calls have names that the API takes, and ids of their own: other providers use an id again and again."""
    taken: set[str] = set()
    renamed: dict[str, list[str]] = {}

    def legal(block: Any) -> Any:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "tool_use":
            id_ = block["id"] if block["id"] not in taken else call_id(f"{block['id']} {len(taken)}", NO_ID)
            taken.add(id_)
            renamed.setdefault(block["id"], []).append(id_)
            name = legal_name(block["name"])
            return block if (id_, name) == (block["id"], block["name"]) else {**block, "id": id_, "name": name}
        if kind == "tool_result" and (ids := renamed.get(block["tool_use_id"])):
            id_ = ids.pop(0)
            return block if id_ == block["tool_use_id"] else {**block, "tool_use_id": id_}
        return block

    messages: list[Payload] = []
    for message in payload["messages"]:
        if isinstance(content := message["content"], list):
            if message["role"] == "assistant":
                renamed.clear()
            message = {**message, "content": [legal(block) for block in content]}
        messages.append(message)
    return {**payload, "messages": messages}


def without_cache_control(payload: Payload) -> Payload:
    """The payload without any cache marker."""

    def clean(value: Any) -> Any:
        if isinstance(value, list):
            return [clean(item) for item in value]
        if not isinstance(value, dict):
            return value
        return {key: item if key == "input" else clean(item) for key, item in value.items() if key != "cache_control"}

    own = ("messages", "system", "tools")
    return {key: clean(value) if key in own else value for key, value in payload.items() if key != "cache_control"}


def with_first_system_text(payload: Payload, text: str) -> Payload:
    """The payload whose system prompt starts with the block ``text``, exactly once."""
    rest = [block for block in _blocks(payload.get("system")) or () if block.get("text") != text]
    return {**payload, "system": [{"type": "text", "text": text}, *rest]}


def count_reminder_blocks(messages: Sequence[BaseMessage]) -> int:
    """Content blocks of the reminders at the very end."""
    reminders = itertools.takewhile(is_reminder, reversed(messages[1:]))
    return sum(1 if isinstance(message.content, str) else len(message.content) for message in reminders)


def _may_stand_here(messages: Sequence[BaseMessage], index: int) -> bool:
    before = next((m for m in reversed(messages[:index]) if not isinstance(m, SystemMessage)), None)
    after = next((m for m in messages[index + 1 :] if not isinstance(m, SystemMessage)), None)
    return isinstance(before, HumanMessage | ToolMessage) and (after is None or isinstance(after, AIMessage))


def _without_unsigned_thinking(message: Payload) -> Payload:
    # Thoughts of another provider, or of a stream that was cut, carry no signature and would be refused.
    content = message["content"]
    if message["role"] != "assistant" or not isinstance(content, list):
        return message
    kept = [block for block in content if block.get("type") != "thinking" or block.get("signature")]
    if len(kept) == len(content):
        return message
    return {**message, "content": kept or [{"type": "text", "text": "(no answer)"}]}


def _continues_without_thinking(messages: Sequence[Payload]) -> bool:
    # Within one tool loop the API wants the assistant's turn to begin with its thoughts. It cannot have any if
    # another model, or this one without thinking, began the loop.
    last = messages[-1] if messages else {"content": ""}
    if not any(block.get("type") == "tool_result" for block in last["content"] if isinstance(block, dict)):
        return False
    turn = next((message for message in reversed(messages) if message["role"] == "assistant"), None)
    first = turn["content"][0] if turn and turn["content"] else {}
    return not (isinstance(first, dict) and first.get("type") in ("thinking", "redacted_thinking"))


def _without_sampling(payload: Payload) -> Payload:
    # Thinking excludes top_k and any temperature but 1. Newer SDKs take both in extra_body only.
    def without(settings: Mapping[str, Any]) -> Payload:
        return {key: value for key, value in settings.items() if key not in ("temperature", "top_k")}

    kept = without(payload)
    return {**kept, "extra_body": without(kept["extra_body"])} if kept.get("extra_body") else kept


def _has_marker(payload: Payload) -> bool:
    places = [payload.get("tools"), payload.get("system"), *(message["content"] for message in payload["messages"])]
    blocks = [block for place in places if isinstance(place, list) for block in place]
    return any("cache_control" in part for part in (payload, *blocks))


def _blocks(content: Any) -> Any:
    # A text that is a string in one request and a block in the next would be another prefix.
    return [{"type": "text", "text": content}] if content and isinstance(content, str) else content


def _marked_at_end(content: object, skip: int) -> list[Payload] | None:
    """``content`` with a marker on its last cacheable block, the last ``skip`` left out; None if there is none."""
    if not isinstance(content, list):
        return None
    for index in range(len(content) - 1 - skip, -1, -1):
        block = content[index]
        if block.get("type") in CACHEABLE_BLOCKS and block.get("text") != "":
            return [*content[:index], {**block, "cache_control": dict(CACHE_MARKER)}, *content[index + 1 :]]
    return None
