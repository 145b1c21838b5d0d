"""A request costs what is new in it, and is never anything but what was asked."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import gc
import itertools
import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import httpx2
import openai
import orjson
import pytest
from bench.scripted_openai import Delay, HttpError, RawToolCall, ScriptedOpenAI, Text, ToolCalls
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableBinding
from langchain_core.tools import StructuredTool
from langchain_core.utils.json import parse_partial_json
from langchain_openai import StreamChunkTimeoutError
from tests.harness.models.openai_family.adapters import PROVIDERS, builder
from tests.harness.models.openai_family.contract import HELLO, WAYS, Provider, ask, bash, read_file, tool_turn

from deerflow.models.messages import as_written, spoiler
from deerflow.models.openai import OpenAIChatModel, freeze, message_key, to_json

build = builder(OpenAIChatModel)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, -0.0, 1.0, 2.5]) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


def tools_of(model: Any, *tools: Any, **kwargs: Any) -> list[dict[str, Any]]:
    bound = model.bind_tools(list(tools), **kwargs)
    assert isinstance(bound, RunnableBinding)
    return bound.kwargs["tools"]


def named(name: str, description: str = "Do it.") -> StructuredTool:
    return StructuredTool.from_function(lambda text: text, name=name, description=description)


@pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS)
async def test_a_longer_history_begins_with_the_bytes_of_the_shorter_one(
    endpoint: ScriptedOpenAI, provider: Provider
) -> None:
    model = provider.build(endpoint)
    history: list[BaseMessage] = [SystemMessage("Be brief. 🎉"), HumanMessage([{"type": "text", "text": "Hi"}])]
    for number in range(8):
        endpoint.script(Text("ok"))
        await model.bind_tools([bash, read_file]).ainvoke(copy.deepcopy(history))
        history += tool_turn(number)
    for shorter, longer in itertools.pairwise(endpoint.raw_requests):
        assert longer.startswith(shorter.removesuffix(b"]}") + b",")


@given(JSON, JSON)
def test_equal_keys_mean_equal_bytes(first: Any, second: Any) -> None:
    assert (freeze(first) == freeze(second)) == (orjson.dumps(first) == orjson.dumps(second))


def test_keys_tell_messages_apart_by_all_that_is_sent() -> None:
    call = {"name": "f", "args": {"n": 1}, "id": "c"}
    messages = [
        HumanMessage("a", id="1"),
        HumanMessage("b", id="1"),
        HumanMessage("a", name="ann"),
        HumanMessage(["a"]),
        SystemMessage("a"),
        AIMessage("a"),
        AIMessage("a", tool_calls=[call]),
        AIMessage("a", tool_calls=[{**call, "args": {"n": 1.0}}]),
        AIMessage("a", tool_calls=[{**call, "args": {"n": True}}]),
        AIMessage("a", tool_calls=[{**call, "id": "d"}]),
        AIMessage("a", additional_kwargs={"reasoning_content": "r"}),
    ]
    assert len({message_key(message) for message in messages}) == len(messages)
    assert message_key(HumanMessage("a", id="1")) == message_key(HumanMessage("a", id="2"))


async def test_a_message_changed_in_place_is_sent_anew(endpoint: ScriptedOpenAI) -> None:
    model = build(endpoint)
    message = AIMessage("", tool_calls=[{"name": "bash", "args": {"command": ["a"]}, "id": "c"}])
    for _ in range(2):
        endpoint.script(Text("ok"))
        await model.ainvoke([*HELLO, message])
        message.tool_calls[0]["args"]["command"].append("b")
    sent = [request["messages"][1]["tool_calls"][0]["function"]["arguments"] for request in endpoint.requests]
    assert [json.loads(arguments) for arguments in sent] == [{"command": ["a"]}, {"command": ["a", "b"]}]


async def test_messages_are_serialized_once_and_go_when_nobody_holds_them(endpoint: ScriptedOpenAI) -> None:
    model = build(endpoint)
    endpoint.script(Text("ok"), Text("ok"))
    messages = [SystemMessage("rules"), HumanMessage("hello")]
    await model.ainvoke(messages)
    parts = [part for _, _, part in model._message_bytes._made.values()]
    await model.ainvoke([*messages, AIMessage("ok")])
    again = [part for _, _, part in model._message_bytes._made.values()]
    assert len(parts) == 2
    assert len(copy.deepcopy(model._message_bytes)) == 0
    assert all(one is other for one, other in zip(parts, again, strict=False))
    del messages
    gc.collect()
    assert len(model._message_bytes) == 0


async def test_a_copied_model_does_not_inherit_what_another_name_says(endpoint: ScriptedOpenAI) -> None:
    model = build(endpoint)
    endpoint.script(Text("ok"), Text("ok"))
    messages = [SystemMessage("rules"), *HELLO]
    await model.ainvoke(messages)
    await model.model_copy(update={"model_name": "o3-mini"}).ainvoke(messages)
    assert [request["messages"][0]["role"] for request in endpoint.requests] == ["system", "developer"]


def test_a_tool_is_converted_once() -> None:
    model = OpenAIChatModel(model="m", api_key="k")
    tool = named("one")
    first, again = tools_of(model, tool), tools_of(model, bash, tool)
    assert again[1] is first[0]


def test_tools_are_converted_anew_when_they_or_the_wish_changes() -> None:
    model = OpenAIChatModel(model="m", api_key="k")
    tool = named("one", "Old.")
    assert tools_of(model, tool)[0]["function"]["description"] == "Old."
    tool.description = "New."
    assert tools_of(model, tool)[0]["function"]["description"] == "New."
    assert "strict" not in tools_of(model, tool)[0]["function"]
    assert tools_of(model, tool, strict=True)[0]["function"]["strict"] is True


def test_tools_that_come_and_go_are_not_kept_for_ever() -> None:
    model = OpenAIChatModel(model="m", api_key="k")
    for number in range(20):
        assert tools_of(model, named(f"tool_{number}"))[0]["function"]["name"] == f"tool_{number}"
    gc.collect()
    assert len(model._wire_tools) == 0


async def test_an_unknown_parameter_is_refused_with_advice(endpoint: ScriptedOpenAI) -> None:
    with pytest.raises(TypeError, match=r"temprature.*`extra_body`"):
        await build(endpoint, model_kwargs={"temprature": 1}).ainvoke(HELLO)
    assert endpoint.requests == []


async def test_extra_body_wins_over_parameters(endpoint: ScriptedOpenAI) -> None:
    endpoint.script(Text("ok"))
    await build(endpoint, temperature=0.1, extra_body={"temperature": 0.9, "top_k": 3}).ainvoke(HELLO)
    request = endpoint.requests[0]
    assert (request["temperature"], request["top_k"], "extra_body" in request) == (0.9, 3, False)


@pytest.mark.parametrize("way", WAYS)
async def test_a_slow_server_is_a_timeout(endpoint: ScriptedOpenAI, way: str) -> None:
    endpoint.script(Delay(30, Text("late")))
    with pytest.raises(openai.APITimeoutError):
        await ask(build(endpoint, timeout=0.2, max_retries=0), HELLO, way)


def test_a_stream_may_be_silent_for_a_minute_and_a_whole_answer_for_ten() -> None:
    model = OpenAIChatModel(model="m", api_key="k")
    assert model.root_async_client.timeout == httpx2.Timeout(60, connect=30)
    assert model._patient({}) == {"timeout": httpx2.Timeout(600, connect=30)}
    assert OpenAIChatModel(model="m", api_key="k", timeout=300).stream_chunk_timeout == 300
    assert OpenAIChatModel(model="m", api_key="k", timeout=300)._patient({}) == {}


async def test_a_stream_that_falls_silent_is_given_up(endpoint: ScriptedOpenAI) -> None:
    endpoint.script(Delay(0.0, Text("one two three"), between=30))
    with pytest.raises(StreamChunkTimeoutError, match="stream_chunk_timeout"):
        await ask(build(endpoint, stream_chunk_timeout=0.3), HELLO, "astream")


@pytest.mark.parametrize("way", WAYS)
async def test_nobody_listening_is_a_connection_error(way: str) -> None:
    model = OpenAIChatModel(model="m", api_key="k", base_url="http://127.0.0.1:9/v1", max_retries=0)
    with pytest.raises(openai.APIConnectionError):
        await ask(model, HELLO, way)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "error",
    [
        {"message": "too long", "code": "context_length_exceeded", "type": "invalid_request_error"},
        {"message": "This model's maximum context length is 8192 tokens.", "code": 400, "type": "BadRequestError"},
    ],
    ids=["openai", "vllm"],
)
async def test_an_overlong_prompt_is_recognised(endpoint: ScriptedOpenAI, way: str, error: dict[str, Any]) -> None:
    endpoint.script(HttpError(400, {"error": error}))
    with pytest.raises(ContextOverflowError):
        await ask(build(endpoint), HELLO, way)


@pytest.mark.parametrize("way", WAYS)
async def test_arguments_that_are_no_object_are_an_invalid_call(endpoint: ScriptedOpenAI, way: str) -> None:
    endpoint.script(RawToolCall("bash", "[1, 2]"))
    answer = await ask(build(endpoint), HELLO, way)
    assert [(call["name"], call["args"]) for call in answer.invalid_tool_calls] == [("bash", "[1, 2]")]
    assert answer.tool_calls == []


async def test_many_calls_may_share_a_model(endpoint: ScriptedOpenAI) -> None:
    model = build(endpoint)
    for number in range(24):
        endpoint.script(Text(f"answer {number}"), key=f"n{number}")
    questions = [[SystemMessage("rules"), HumanMessage(f"key:n{number}")] for number in range(24)]
    answers = await asyncio.gather(*[model.ainvoke(question) for question in questions])
    assert [answer.text for answer in answers] == [f"answer {number}" for number in range(24)]


async def test_an_injected_client_is_respected() -> None:
    class Client:
        def __init__(self) -> None:
            self.asked: list[dict[str, Any]] = []

        async def create(self, **payload: Any) -> Any:
            self.asked.append(payload)
            raise openai.APIConnectionError(request=None)  # type: ignore[arg-type]

    client = Client()
    model = OpenAIChatModel(model="m", api_key="k", async_client=client)
    with pytest.raises(openai.APIConnectionError):
        async for _ in model.astream(HELLO):
            pass
    assert client.asked[0]["messages"] == [{"role": "user", "content": "Hello"}]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({1: "a"}, b'{"1":"a"}'),
        ("\ud83d\ude00\ud83d!", '"😀\ufffd!"'.encode()),
        (2**70, str(2**70).encode()),
        ({"b": 1, "a": [True, None, 1.5]}, b'{"b":1,"a":[true,null,1.5]}'),
    ],
)
def test_json_is_compact_and_always_utf8(value: Any, expected: bytes) -> None:
    assert to_json(value) == expected


def test_short_json_takes_little_memory() -> None:
    tracemalloc.start()
    try:
        kept = [to_json({"number": number}) for number in range(1000)]
        assert tracemalloc.get_traced_memory()[0] < 200_000
    finally:
        tracemalloc.stop()
    assert len(kept) == 1000


def test_what_is_no_json_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="A complex cannot be sent"):
        to_json({"x": 1j})


@pytest.mark.parametrize("status", [400, 422])
async def test_a_server_that_refuses_the_usage_of_a_stream_is_asked_without_it_from_then_on(
    endpoint: ScriptedOpenAI, status: int
) -> None:
    endpoint.script(HttpError(status, "Unrecognized request argument supplied: stream_options"), Text("ok"), Text("2"))
    model = build(endpoint, stream_usage=True)
    for said in ("ok", "2"):
        assert (await ask(model, HELLO, "astream")).text == said
    assert ["stream_options" in request for request in endpoint.requests] == [True, False, False]
    endpoint.script(HttpError(400, "stream_options must be set"))
    with pytest.raises(openai.BadRequestError):
        await ask(model, HELLO, "astream")
    assert len(endpoint.requests) == 4, "there is nothing left to leave out"


async def socks5(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Relay one connection as a SOCKS proxy does (RFC 1928, without authentication)."""
    _, count = await reader.readexactly(2)
    await reader.readexactly(count)
    writer.write(b"\5\0")
    *_, kind = await reader.readexactly(4)
    host = await reader.readexactly(4 if kind == 1 else (await reader.readexactly(1))[0])
    port = int.from_bytes(await reader.readexactly(2))
    name = ".".join(map(str, host)) if kind == 1 else host.decode()
    inner_reader, inner_writer = await asyncio.open_connection(name, port)
    writer.write(b"\5\0\0\1" + bytes(6))

    async def relay(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            sink.write(data)
        sink.close()

    await asyncio.gather(relay(reader, inner_writer), relay(inner_reader, writer))


async def test_a_socks_proxy_of_the_environment_is_used(
    endpoint: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[int] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        used.append(1)
        await socks5(reader, writer)

    server = await asyncio.start_server(proxy, "127.0.0.1", 0)
    async with server:
        monkeypatch.setenv("ALL_PROXY", f"socks5://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        monkeypatch.setenv("NO_PROXY", "")
        endpoint.script(Text("through"))
        model = build(endpoint)
        assert (await ask(model, HELLO, "astream")).text == "through"
        await model.root_async_client.close()
    assert used


@pytest.mark.parametrize("way", ["ainvoke", "astream"])
async def test_an_address_without_a_path_is_tried_with_v1(endpoint: ScriptedOpenAI, way: str) -> None:
    model = build(endpoint, base_url=endpoint.base_url.removesuffix("/v1"))
    endpoint.script(Text("here"), Text("again"))
    assert [(await ask(model, way, HELLO)).text for _ in range(2)] == ["here", "again"]
    assert str(model.root_async_client.base_url) == f"{endpoint.base_url}/"


async def test_an_address_that_knows_no_completions_at_all_is_not_found_as_it_was_typed(
    endpoint: ScriptedOpenAI,
) -> None:
    endpoint.script(HttpError(404, "no such model"))
    model = build(endpoint, base_url=endpoint.base_url.removesuffix("/v1"))
    with pytest.raises(openai.NotFoundError, match="POST /chat/completions"):
        await model.ainvoke(HELLO)
    assert str(model.root_async_client.base_url) == endpoint.base_url.removesuffix("/v1")


BROKEN = '{"path": "page.html", "content": "<p class="wide">' + "word " * 60_000


@pytest.mark.parametrize(
    "arguments", [json.dumps({"content": "line\n" * 60_000}), BROKEN, BROKEN + '"}', BROKEN + "\\"]
)
async def test_long_arguments_take_no_quarter_of_an_hour(endpoint: ScriptedOpenAI, arguments: str) -> None:
    """However they come, and also when they are broken."""
    endpoint.script(ToolCalls(RawToolCall("write_file", arguments)))
    merged = await build(endpoint, streaming=True).ainvoke(HELLO)
    if not arguments.startswith(BROKEN):
        assert merged.tool_calls[0]["args"] == json.loads(arguments)
    else:
        assert not merged.tool_calls
        assert as_written(merged.invalid_tool_calls[0]["args"] or "") == arguments


@given(st.text(alphabet='{}[]"\\,: a\n', max_size=40))
def test_broken_arguments_stay_broken(text: str) -> None:
    is_sound = isinstance(object_in(json.loads, text or "{}"), dict)
    assert isinstance(object_in(parse_partial_json, (text or "{}") + spoiler(text)), dict) == is_sound


def object_in(parse: Callable[..., Any], text: str) -> Any:
    with contextlib.suppress(ValueError):
        return parse(text, strict=False)
