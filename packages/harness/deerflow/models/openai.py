"""Chat completions without the detours: what LangChain hands over is wire-shaped already, so it is posted as it is.

``openai``'s ``chat.completions.create`` walks the whole history at every call and builds a pydantic object per chunk;
LangChain converts every message and every tool schema again at every call. Together that is most of a run's CPU. Here
each message is serialised once, each tool converted once, and chunks stay dictionaries. Keys, retries, time-outs,
proxies and error classes remain the ``openai`` client's: the request goes through its public ``post``.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

import httpx2
import openai
import orjson
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    InvalidToolCall,
    ToolMessage,
)
from langchain_core.messages.tool import invalid_tool_call
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableBinding
from langchain_core.tools import BaseTool
from langchain_openai import ChatOpenAI
from langchain_openai.chat_models._client_utils import (
    _DEFAULT_CONNECTION_LIMITS,
    _AsyncHttpxClientWrapper,
    _default_socket_options,
    _proxy_env_detected,
    _SyncHttpxClientWrapper,
)
from langchain_openai.chat_models.base import (
    OpenAIContextOverflowError,
    _handle_openai_api_error,
    _handle_openai_bad_request,
    _use_responses_api,
)
from openai.resources.chat.completions import Completions
from openai.types.chat import ChatCompletion
from pydantic import BaseModel, PrivateAttr, model_validator

from deerflow.event_loop import LoopTurns
from deerflow.models.deltas import HAS_FIELDS, SIGNATURES, Deltas, repair_surrogates, signature_of, text_id
from deerflow.models.derived import Derived
from deerflow.models.dialects import (
    PLAIN,
    RESULTS_ANSWERED,
    Dialect,
    call_id,
    dialect_of,
    host_of,
    plain_call,
    plain_content,
    signed,
)
from deerflow.models.failures import keeping
from deerflow.models.openai_chunks import aread_chunks, readable
from deerflow.models.thoughts import REASONED_BY, separate, settle_thoughts
from deerflow.models.tls import provider_tls

if TYPE_CHECKING:
    from langchain_openai.chat_models.base import BaseChatOpenAI as _Model
else:
    # Only private attributes here: a mixin that brought the fields along would undo what its sibling made of them.
    _Model = BaseModel

PATH = "/chat/completions"
USAGE = "stream_options"
"""Parameter that asks for the usage of a stream; some servers refuse it."""
SILENCE = httpx2.Timeout(60.0, connect=30.0)
"""How long to wait for the first byte of a stream, and for each further one, unless ``timeout`` says otherwise."""
WHOLE_ANSWER = httpx2.Timeout(600.0, connect=30.0)
"""For an answer that is not streamed: nothing comes before its end. OpenAI's own default."""
CHUNK_TIMEOUT = 120.0
"""Seconds without a chunk in a stream that is kept open with comments; LangChain's own default."""
PARAMETERS = frozenset(inspect.signature(Completions.create).parameters) - {"self"}
OWN_CLIENTS = frozenset({"http_client", "http_async_client", "http_socket_options", "openai_proxy"})
"""Settings that say how to connect."""
_LONG_FRAGMENT = 256
"""Characters of arguments in one chunk."""
RETURNED_FORMS = ("reasoning_details", "reasoning", "reasoning_content")
"""Fields in which vendors send thoughts; of those that came, the first goes back."""
POST_OPTIONS: Mapping[str, str] = {"extra_headers": "headers", "extra_query": "params", "timeout": "timeout"}
"""Parameters that do not go into the body, by their names as options of the ``openai`` client's ``post``."""


class OpenAIWire(_Model):
    """Mixin for ``ChatOpenAI`` and its kin, to stand before them: ``class Model(OpenAIWire, ChatOpenAI)``.

    The Responses API, ``response_format``, response headers, Azure and injected clients take the parent's way.
    """

    _message_bytes: Derived[bytes] = PrivateAttr(default_factory=Derived[bytes])
    _wire_tools: Derived[dict[str, Any]] = PrivateAttr(default_factory=Derived[dict[str, Any]])
    """Converted tools."""

    _turns: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopTurns] = PrivateAttr(default_factory=WeakKeyDictionary)
    """Of answers that begin: a provider that was stuck lets hundreds go at once."""

    _refuses_usage: bool = PrivateAttr(default=False)
    """Set once the server has refused to send the usage of a stream."""

    @classmethod
    def get_lc_namespace(cls) -> list[str]:
        """Where LangChain's ``load`` finds the class; the parent would name itself."""
        return cls.__module__.split(".")

    @model_validator(mode="before")
    @classmethod
    def _own_connections(cls, values: dict[str, Any]) -> dict[str, Any]:
        """A connection pool per model, and a time-out for every call.

        LangChain shares an asynchronous HTTP client between all models of a URL, whatever event loop they run on, and a
        connection of a loop that has ended cannot be used again. A ``Timeout`` object, other than a number, keeps it from
        sharing. Without any time-out a silent server would hold a run for ever.
        """
        given = values.get("timeout", values.get("request_timeout"))
        if given is None or isinstance(given, int | float):
            values = {**values, "timeout": SILENCE if given is None else httpx2.Timeout(given)}
            if given is not None:  # who waits longer for a byte waits longer for a chunk, too
                values.setdefault("stream_chunk_timeout", max(given, CHUNK_TIMEOUT))
        if not values.keys() & OWN_CLIENTS and not os.environ.get("OPENAI_PROXY"):
            values = {**values, **_http_clients()}
        return values

    def unknown_settings(self) -> list[str]:
        """Return settings that are no parameters of chat completions, which no request could be made with."""
        return [] if self._asks_for_responses({}) else sorted(self.model_kwargs.keys() - PARAMETERS)

    def _use_responses_api(self, payload: dict[str, Any]) -> bool:
        """As the parent, but at the address of others a name that looks like one of OpenAI's models decides nothing."""
        host = host_of(self.openai_api_base or "")
        if self.use_responses_api is not None or f".{host}".endswith((".api.openai.com", ".openai.azure.com")):
            return super()._use_responses_api(payload)
        asked = (self.context_management, self.include, self.reasoning, self.truncation)
        is_asked = self.output_version == "responses/v1" or self.use_previous_response_id
        return is_asked or any(one is not None for one in asked) or _use_responses_api(payload)

    # --- a vendor's dialect ---------------------------------------------------------------------------------------

    dialect: ClassVar[Dialect | None] = None
    """Of a class that is made for one vendor, where neither address nor model name one."""
    returns_unmarked: ClassVar[bool] = False
    """Send thoughts back whose message does not name the model that had them, as those of earlier versions do not."""

    @property
    def _source(self) -> str:
        """The host and model that answer: thoughts go back to those that had them alone."""
        return f"{host_of(self.openai_api_base or '')} {self.model_name}"

    @property
    def _spoken(self) -> Dialect:
        known = dialect_of(self.openai_api_base or "", self.model_name)
        return known if known is not PLAIN else self.dialect or PLAIN

    def _wire_message(self, message: BaseMessage, wire: dict[str, Any]) -> dict[str, Any]:
        """Return a message as this vendor takes it. ``wire`` is LangChain's form and may be changed in place."""
        spoken = self._spoken
        wire.pop("name", None)
        wire["content"] = plain_content(wire.get("content"), "" if isinstance(message, AIMessage) else "\n")
        if isinstance(message, ToolMessage):
            wire["tool_call_id"] = call_id(message.tool_call_id, spoken.call_ids)
        elif isinstance(message, AIMessage):
            if isinstance(wire["content"], str):
                wire["content"] = separate(wire["content"]).answer
            if calls := wire.pop("tool_calls", None):
                wire["tool_calls"] = [plain_call(call, spoken) for call in calls]
            self._return_thoughts(message, wire)
        return wire

    def _return_thoughts(self, message: AIMessage, wire: dict[str, Any]) -> None:
        """Send back what the model thought, in the form in which it came."""
        kwargs, calls = message.additional_kwargs, wire.get("tool_calls") or []
        if kwargs.get(REASONED_BY, self._source if self.returns_unmarked else None) == self._source:
            if form := next(filter(kwargs.get, RETURNED_FORMS), None):
                wire[form] = kwargs[form]
            signatures, raw = kwargs.get(SIGNATURES) or {}, kwargs.get("tool_calls") or []
            for index, (call, lc_call) in enumerate(zip(calls, message.tool_calls or raw, strict=False)):
                call.update(signature_of(_raw_call(raw, message.tool_calls, index) or {}))
                call.update(signatures.get(lc_call.get("id")) or signatures.get(f"#{index}") or {})
        if calls and self._spoken.needs_reasoning:
            wire.setdefault("reasoning_content", kwargs.get("reasoning_content") or "")
        if calls and self._spoken.needs_signature:
            signed(calls)

    def _adapt_payload(self, payload: dict[str, Any]) -> None:
        """Change a request's parameters to what this vendor knows."""
        if self._spoken.max_tokens and (limit := payload.pop("max_completion_tokens", None)) is not None:
            payload["max_tokens"] = limit

    def _get_request_payload(
        self, input_: LanguageModelInput, *, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        payload = super()._get_request_payload(input_, stop=stop, **kwargs)
        if "messages" in payload:
            messages = self._convert_input(input_).to_messages()
            payload["messages"] = [
                self._wire_message(message, wire) for message, wire in zip(messages, payload["messages"], strict=True)
            ]
        self._adapt_payload(payload)
        return payload

    def _keep(self, message: BaseMessage, kept: dict[str, Any]) -> None:
        """Keep a vendor's own fields with a message."""
        fields = dict(kept)
        if (has_fields := fields.pop(HAS_FIELDS, None)) is not None:
            fields[REASONED_BY] = self._source if has_fields else ""
        message.additional_kwargs = {**message.additional_kwargs, **fields}

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], default_chunk_class: type, base_generation_info: dict[str, Any] | None
    ) -> ChatGenerationChunk | None:
        long_arguments = _take_long_arguments(chunk)
        generation = super()._convert_chunk_to_generation_chunk(chunk, default_chunk_class, base_generation_info)
        if generation is None:
            return None
        delta = chunk["choices"][0]["delta"] if chunk.get("choices") else None
        if delta and (kept := delta.get("kept")):
            self._keep(generation.message, kept)
        if any(long_arguments) and isinstance(generation.message, AIMessageChunk):
            for call, text in zip(generation.message.tool_call_chunks, long_arguments, strict=False):
                call["args"] = text or call["args"]
        return generation

    def _create_chat_result(
        self, response: dict[str, Any] | openai.BaseModel, generation_info: dict[str, Any] | None = None
    ) -> ChatResult:
        result = super()._create_chat_result(response, generation_info)
        document: dict[str, Any] = (
            response if isinstance(response, dict) else response.to_dict(mode="json", warnings=False)
        )
        for generation, choice in zip(result.generations, document.get("choices") or [], strict=False):
            answer, deltas = dict(choice["message"]), Deltas(streamed=False)
            deltas.read(answer)
            deltas.close(answer)
            if answer.get("kept"):
                self._keep(generation.message, answer["kept"])
            if isinstance(answer.get("content"), str):
                generation.message.content = answer["content"]
            settle_thoughts(generation.message)
        return result

    # --- calls ----------------------------------------------------------------------------------------------------

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        *,
        stream_usage: bool | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        if not self._posts_itself(kwargs):
            if not self._asks_for_responses(kwargs):  # that API always sends the usage, and refuses the parameter
                kwargs = {**kwargs, "stream_usage": stream_usage}
            async for chunk in super()._astream(messages, stop, run_manager, **kwargs):
                yield chunk
            return
        if not self._refuses_usage and self._should_stream_usage(stream_usage, **kwargs):
            kwargs = {**kwargs, USAGE: {"include_usage": True}}
        chunk_class: type = AIMessageChunk
        streamed: list[ChatGenerationChunk] = []
        with provider_errors(), keeping(streamed):
            try:
                response = await self._opened(messages, stop, kwargs)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                if USAGE not in kwargs or not re.search("stream_?options|include_?usage", str(error), re.IGNORECASE):
                    raise
                self._refuses_usage = True
                without = {key: value for key, value in kwargs.items() if key != USAGE}
                response = await self._opened(messages, stop, without)
            turns = self._turns.setdefault(asyncio.get_running_loop(), LoopTurns())
            raw_chunks = aread_chunks(response, turns, timeout=self.stream_chunk_timeout, model_name=self.model_name)
            async with aclosing(raw_chunks):
                async for raw in raw_chunks:
                    with readable(response.request, raw):
                        chunk = self._convert_chunk_to_generation_chunk(raw, chunk_class, {})
                    if chunk is None:
                        continue
                    chunk_class = chunk.message.__class__
                    streamed.append(chunk)
                    if run_manager:
                        logprobs = (chunk.generation_info or {}).get("logprobs")
                        await run_manager.on_llm_new_token(chunk.text, chunk=chunk, logprobs=logprobs)
                    yield chunk

    async def _opened(
        self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]
    ) -> httpx2.Response:
        body, options = self._wire_request(messages, stop, {**kwargs, "stream": True})
        return await self._post(cast_to=httpx2.Response, content=body, options=options, stream=True)

    async def _post(self, **request: Any) -> Any:
        """Post to the chat completions. An address without a path is tried with ``/v1`` too, and keeps it where that is known."""
        client = self.root_async_client
        try:
            return await client.post(PATH, **request)
        except openai.NotFoundError as error:
            typed = client.base_url
            if typed.path.strip("/"):
                raise
            client.base_url = typed.copy_with(path="/v1")
            try:
                return await client.post(PATH, **request)
            except openai.NotFoundError:
                client.base_url = typed
            raise error from None

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        kwargs = self._patient(kwargs)
        if not self._posts_itself(kwargs):
            return await super()._agenerate(messages, stop, run_manager, **kwargs)
        body, options = self._wire_request(messages, stop, {**kwargs, "stream": False})
        with provider_errors():
            completion = await self._post(cast_to=ChatCompletion, content=body, options=options)
        return self._result_of(completion)

    def _patient(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        return {"timeout": WHOLE_ANSWER, **kwargs} if self.request_timeout == SILENCE else kwargs

    def _result_of(self, completion: ChatCompletion) -> ChatResult:
        """LangChain's result. Calls whose arguments are JSON, but no object, would fail the whole of it."""
        for choice in completion.choices or []:
            for call in (choice.message and choice.message.tool_calls) or []:
                call.id = text_id(call.id)
        refused = [_take_malformed_calls(choice.message) for choice in completion.choices or []]
        result = self._create_chat_result(completion)
        for generation, calls in zip(result.generations, refused, strict=False):
            if calls and isinstance(generation.message, AIMessage):
                generation.message.invalid_tool_calls = [*generation.message.invalid_tool_calls, *calls]
        return result

    # --- the request ----------------------------------------------------------------------------------------------

    def _posts_itself(self, kwargs: dict[str, Any]) -> bool:
        client = self.root_async_client
        if not isinstance(client, openai.AsyncOpenAI) or isinstance(client, openai.AsyncAzureOpenAI):
            return False
        if "response_format" in kwargs or "response_format" in self.model_kwargs:
            return False
        if self.include_response_headers or self._uses_gateway:
            return False
        return not self._asks_for_responses(kwargs)

    def _asks_for_responses(self, kwargs: dict[str, Any]) -> bool:
        return self._use_responses_api({**self._default_params, **kwargs})

    def _wire_request(
        self, messages: Sequence[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any]
    ) -> tuple[bytes, dict[str, Any]]:
        """The body and the options of ``post``.

        Bytes are joined: equal messages have equal bytes, so a longer history begins with the shorter one's.
        """
        keys = [(self.model_name, message_key(message)) for message in messages]
        parts: list[Any] = list(map(self._message_bytes.get, messages, keys))
        missing = [index for index, part in enumerate(parts) if part is None]
        payload = self._get_request_payload([messages[index] for index in missing], stop=stop, **kwargs)
        for index, wire in zip(missing, payload.pop("messages"), strict=True):
            part = parts[index] = to_json(wire)
            self._message_bytes.put(messages[index], keys[index], part)
        options: dict[str, Any] = {"security": {"bearer_auth": True}}
        for name, option in POST_OPTIONS.items():
            if (value := payload.pop(name, None)) is not None:
                options[option] = value
        extra_body = payload.pop("extra_body", None) or {}
        if unknown := payload.keys() - PARAMETERS:
            raise TypeError(
                f"{', '.join(sorted(unknown))}: no such parameter of chat completions (model {self.model_name}). "
                "Put what only your provider knows under `extra_body`."
            )
        values = {
            name: value for name, value in payload.items() if not isinstance(value, openai.NotGiven | openai.Omit)
        }
        start = to_json({**values, **extra_body})[:-1]
        if self._spoken.answers_results:
            parts = _with_results_answered(parts, messages)
        return start + b',"messages":[' + b",".join(parts) + b"]}", options

    # --- tools ----------------------------------------------------------------------------------------------------

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        strict: bool | None = None,
        response_format: Any = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools as the parent does, but convert each of them only once in the life of the model."""
        if response_format:
            return super().bind_tools(tools, strict=strict, response_format=response_format, **kwargs)
        return super().bind_tools([self._wire_tool(tool, strict) for tool in tools], strict=strict, **kwargs)

    def _wire_tool(self, tool: Any, strict: bool | None) -> dict[str, Any]:
        if isinstance(tool, dict):
            return tool
        key: tuple[object, ...] = (strict,)
        if isinstance(tool, BaseTool):  # which is converted again when it has changed
            key += (tool.name, tool.description, id(tool.args_schema), repr(tool.extras), repr(tool.metadata))
        known = self._wire_tools.get(tool, key)
        if known is None:
            bound = super().bind_tools([tool], strict=strict)
            assert isinstance(bound, RunnableBinding)
            known = bound.kwargs["tools"][0]
            self._wire_tools.put(tool, key, known)
        return known


class OpenAIChatModel(OpenAIWire, ChatOpenAI):
    """``ChatOpenAI`` with the same fields and answers, at a fraction of its cost per call."""


def _http_clients() -> dict[str, Any]:
    """Return the clients that ``ChatOpenAI`` would make: kept alive by the kernel, or through the proxy of the machine."""
    verify, options = provider_tls(), () if _proxy_env_detected() else _default_socket_options()
    kept: dict[str, Any] = {"verify": verify, "socket_options": options, "limits": _DEFAULT_CONNECTION_LIMITS}
    sync: dict[str, Any] = {"transport": httpx2.HTTPTransport(**kept)} if options else {"verify": verify}
    asynchronous: dict[str, Any] = {"transport": httpx2.AsyncHTTPTransport(**kept)} if options else {"verify": verify}
    return {
        "http_client": _SyncHttpxClientWrapper(**sync),
        "http_async_client": _AsyncHttpxClientWrapper(**asynchronous),
        "http_socket_options": (),  # else it would warn that ours hide a proxy
    }


@contextmanager
def provider_errors() -> Iterator[None]:
    """Raise the ``openai`` client's errors as LangChain's subclasses of them, as the parent does."""
    try:
        yield
    except openai.BadRequestError as error:
        # LangChain looks for the code in the text, where openai 3 no longer puts it; vLLM and DeepSeek have no code.
        if error.code == "context_length_exceeded" or "maximum context length" in error.message:
            raise OpenAIContextOverflowError(error.message, response=error.response, body=error.body) from error
        _handle_openai_bad_request(error)
    except openai.APIError as error:
        _handle_openai_api_error(error)


def _with_results_answered(parts: Sequence[bytes], messages: Sequence[BaseMessage]) -> list[bytes]:
    between, joined = to_json(RESULTS_ANSWERED), list[bytes]()
    for index, (part, message) in enumerate(zip(parts, messages, strict=True)):
        if index and isinstance(message, HumanMessage) and isinstance(messages[index - 1], ToolMessage):
            joined.append(between)
        joined.append(part)
    return joined


def _raw_call(
    raw_calls: Sequence[Mapping[str, Any]], calls: Sequence[Mapping[str, Any]], index: int
) -> Mapping[str, Any] | None:
    """The raw form of ``calls[index]``: the one with its id, else the one in its place that no other call claims."""
    if index >= len(calls):
        return raw_calls[index] if index < len(raw_calls) else None
    for raw in raw_calls:
        if raw.get("id") and raw.get("id") == calls[index].get("id"):
            return raw
    if index >= len(raw_calls) or any(raw_calls[index].get("id") == call.get("id") for call in calls):
        return None
    return raw_calls[index]


def _take_malformed_calls(message: Any) -> list[InvalidToolCall]:
    """Take the calls out of a message whose arguments are JSON, but not an object."""
    calls = (message and message.tool_calls) or []
    malformed = [call for call in calls if _is_no_object(getattr(getattr(call, "function", None), "arguments", None))]
    if malformed:
        message.tool_calls = [call for call in calls if call not in malformed]
    error = "The arguments must be a JSON object."
    return [
        invalid_tool_call(name=call.function.name, args=call.function.arguments, id=call.id, error=error)
        for call in malformed
    ]


def _take_long_arguments(chunk: Mapping[str, Any]) -> list[str]:
    """Take long fragments of arguments out of a chunk: a text for each of its calls, empty where nothing was taken.

    LangChain tries to complete each fragment to JSON, in a time that grows with the square of its length: 16 s for 60 kB.
    """
    delta = (chunk.get("choices") or [{}])[0].get("delta") or {}
    taken: list[str] = []
    for call in delta.get("tool_calls") or ():
        function = call.get("function") or {}
        text = function.get("arguments") or ""
        is_long = len(text) > _LONG_FRAGMENT and not _is_json(text)
        taken.append(text if is_long else "")
        if is_long:
            function["arguments"] = ""
    return taken


def _is_json(text: str) -> bool:
    try:
        json.loads(text, strict=False)
    except ValueError:
        return False
    return True


def _is_no_object(arguments: Any) -> bool:
    if not isinstance(arguments, str) or arguments.lstrip().startswith("{"):
        return False
    try:
        return not isinstance(json.loads(arguments), dict)
    except json.JSONDecodeError:
        return False


# what is kept ---------------------------------------------------------------------------------------------------------


def message_key(message: BaseMessage) -> Hashable:
    """Everything of a message that can reach the wire, by value: equal keys mean equal JSON, whatever the ids say."""
    extra = message.additional_kwargs
    if isinstance(message, AIMessage):
        rest: Hashable = (freeze(message.tool_calls), freeze(message.invalid_tool_calls))
    elif isinstance(message, ToolMessage):
        rest = message.tool_call_id
    elif isinstance(message, ChatMessage):
        rest = message.role
    else:
        rest = None
    content = message.content
    return (
        type(message),
        content if type(content) is str else freeze(content),
        message.name,
        freeze(extra) if extra else None,
        rest,
    )


def freeze(value: Any) -> Hashable:
    """A hashable stand-in for a JSON value that tells apart what JSON tells apart: ``1``, ``1.0`` and ``True``, key order.

    Strings stand for themselves: their hash is computed once in their life, even for an image of megabytes.
    """
    kind = type(value)
    if kind is str or value is None:
        return value
    if kind is dict:
        return (dict, *[(key, item if type(item) is str else freeze(item)) for key, item in value.items()])
    if kind is list or kind is tuple:
        return (list, *[item if type(item) is str else freeze(item) for item in value])
    return kind, repr(value)


def to_json(value: Any) -> bytes:
    """Compact JSON. What UTF-8 cannot carry (half of a surrogate pair, from a broken source) becomes U+FFFD."""
    try:
        encoded = orjson.dumps(value, default=_refused, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_refused)
        return repair_surrogates(text).encode()
    return bytes(memoryview(encoded))  # a copy of its size: what orjson returns holds 4 KiB, however short it is


def _refused(value: Any) -> Any:
    raise TypeError(f"A {type(value).__name__} cannot be sent to a model as JSON: {value!r:.200}")
