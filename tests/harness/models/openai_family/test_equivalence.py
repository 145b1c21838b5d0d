"""The fast way and LangChain's own way ask the same and hear the same."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from bench.scripted_openai import Empty, RawChunks, RawToolCall, ScriptedOpenAI, Text, ToolCalls
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langchain_deepseek import ChatDeepSeek
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel
from tests.harness.models.openai_family.adapters import PLAIN, builder
from tests.harness.models.openai_family.contract import HELLO, PIXEL, WAYS, ask, bash, read_file, tool_turn
from tests.support.scripted_responses import Response, ScriptedResponses, completed
from tests.support.scripted_sse import Body

from deerflow.models.dialects import plain_content
from deerflow.models.openai import OpenAIChatModel
from deerflow.models.patched_deepseek import PatchedChatDeepSeek
from deerflow.models.thoughts import REASONED_BY

FAST = builder(OpenAIChatModel)
RUN_ID = uuid.UUID(int=7)
USAGE = {
    "prompt_tokens": 30,
    "completion_tokens": 20,
    "total_tokens": 50,
    "prompt_tokens_details": {"cached_tokens": 10},
    "completion_tokens_details": {"reasoning_tokens": 5},
}
MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
}
REPLIES = {
    "text": Text("One two  three\n 四 🎉", usage=USAGE),
    "length": Text("cut short", finish_reason="length"),
    "empty": Empty(),
    "calls": ToolCalls(("bash", {"command": "ls"}), ("read_file", {"path": "/ä"}), text="Look:", usage=USAGE),
    "no arguments": ToolCalls(("bash", {})),
    "broken": RawToolCall("bash", '{"command": ["a", }'),
}

HISTORIES: dict[str, list[BaseMessage]] = {
    "hello": [*HELLO],
    "names": [SystemMessage("rules", name="sys"), HumanMessage("hi", name="ann"), AIMessage("yes", name="bot"), *HELLO],
    "tools": [SystemMessage("rules"), *HELLO, *tool_turn(1), *tool_turn(2), AIMessage("done"), HumanMessage("more")],
    "text and calls": [*HELLO, tool_turn(1)[0].model_copy(update={"content": "Let me see."}), tool_turn(1)[1]],
    "blocks": [
        HumanMessage(
            [
                "plain",
                {"type": "text", "text": "block", "extra": 1},
                {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}},
                {"type": "image", "source_type": "base64", "mime_type": "image/png", "data": "aGk="},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
            ]
        ),
        AIMessage([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "ok", "annotations": []}]),
        ToolMessage([{"type": "text", "text": "result", "index": 0}], tool_call_id="x", name="bash"),
    ],
    "invalid calls": [
        *HELLO,
        AIMessage(
            "",
            invalid_tool_calls=[{"name": "bash", "args": "{", "id": "c1", "error": "bad", "type": "invalid_tool_call"}],
        ),
        ToolMessage("no", tool_call_id="c1", status="error"),
    ],
    "raw calls": [
        *HELLO,
        AIMessage(
            "",
            additional_kwargs={
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{}"}, "x": 1}]
            },
        ),
        ToolMessage("", tool_call_id="c"),
    ],
    "roles": [
        ChatMessage("be kind", role="developer"),
        SystemMessage("s", additional_kwargs={"__openai_role__": "developer"}),
        *HELLO,
    ],
    "extra": [
        HumanMessage("hi", additional_kwargs={"files": [{"a": 1}], "n": 1.0, "b": True}),
        AIMessage("x", id="1", response_metadata={"a": 1}),
    ],
}

SETTINGS: dict[str, dict[str, Any]] = {
    "bare": {},
    "many": {
        "temperature": 0.3,
        "max_tokens": 100,
        "top_p": 0.5,
        "seed": 3,
        "n": 1,
        "stop": ["END"],
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
        "logit_bias": {50256: -100},
        "reasoning_effort": "low",
        "service_tier": "flex",
        "store": False,
        "model_kwargs": {"user": "me", "metadata": {"a": "b"}},
        "verbosity": "low",
    },
    "transport": {
        "extra_body": {"top_k": 5, "chat_template_kwargs": {"enable_thinking": False}, "seed": 9},
        "default_headers": {"X-Team": "deer"},
        "default_query": {"version": "1"},
        "model_kwargs": {"extra_headers": {"X-Call": "1"}, "extra_query": {"q": "2"}},
    },
    "o-series": {"model": "o3-mini"},
}


class Look(BaseModel):
    """Look at something."""

    where: str
    how: list[int] | None = None


def plain_function(a: int, b: str = "x") -> str:
    """Add things up.

    Args:
        a: first
        b: second
    """
    return b * a


MCP_LIKE = StructuredTool(
    name="mcp_echo",
    description="Echo.",
    args_schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    func=lambda **_: "",
    extras={"defer_loading": True},
)
TOOLS = [
    bash,
    read_file,
    Look,
    plain_function,
    MCP_LIKE,
    {"type": "function", "function": {"name": "raw", "parameters": {}}},
]


async def both(
    endpoint: ScriptedOpenAI,
    reply: Any,
    messages: list[BaseMessage],
    way: str,
    *,
    settings: dict[str, Any] | None = None,
    bind: Callable[[Any], Any] = lambda model: model,
    builders: tuple[Callable[..., BaseChatModel], ...] = (PLAIN, FAST),
) -> list[dict[str, Any]]:
    """Each side's answer as plain data."""
    answers = []
    for build in builders:
        endpoint.script(reply)
        model = bind(build(endpoint, **copy.deepcopy(settings or {})))
        answer = await ask(model, messages, way, config={"run_id": RUN_ID})
        answers.append(data_of(answer))
    return answers


def data_of(answer: AIMessage) -> dict[str, Any]:
    data = answer.model_dump()
    data["response_metadata"].pop("id", None)
    if data["type"] == "human":
        return data
    # The scripted endpoint numbers its calls across requests.
    for number, call in enumerate(
        [*data["tool_calls"], *data["invalid_tool_calls"], *data.get("tool_call_chunks", [])]
    ):
        call["id"] = str(number)
    return data


def sent(endpoint: ScriptedOpenAI) -> tuple[Any, Any]:
    # Ours gives every call a time-out, which the client tells the server.
    ignored = ("x-stainless-retry-count", "content-length", "x-stainless-raw-response", "x-stainless-read-timeout")
    headers = [{name: value for name, value in each.items() if name not in ignored} for each in endpoint.headers]
    first, second = zip(endpoint.requests, headers, strict=True)
    return first, second


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("reply", REPLIES)
async def test_equal_replies_give_equal_messages(endpoint: ScriptedOpenAI, way: str, reply: str) -> None:
    plain, fast = await both(endpoint, REPLIES[reply], HELLO, way)
    if way == "ainvoke":
        for answer in (plain, fast):
            for call in answer["tool_calls"] + answer["invalid_tool_calls"]:
                call["id"] = None
    assert fast == plain


def as_all_vendors_take_it(body: dict[str, Any]) -> dict[str, Any]:
    """A request without names, and with contents and arguments that no vendor refuses."""
    messages = copy.deepcopy(body["messages"])
    for message in messages:
        message.pop("name", None)
        message["content"] = plain_content(message["content"], "" if message["role"] == "assistant" else "\n")
        for call in message.get("tool_calls") or ():
            if call["function"]["arguments"] == "{":
                call["function"]["arguments"] = "{}"
    return {**body, "messages": messages}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("history", HISTORIES)
async def test_equal_histories_give_equal_requests(endpoint: ScriptedOpenAI, way: str, history: str) -> None:
    await both(endpoint, Text("ok"), HISTORIES[history], way)
    (plain, headers), fast = sent(endpoint)
    assert fast == (as_all_vendors_take_it(plain), headers)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("settings", SETTINGS)
async def test_equal_settings_give_equal_requests(endpoint: ScriptedOpenAI, way: str, settings: str) -> None:
    messages = [SystemMessage("rules"), *HELLO]
    await both(endpoint, Text("ok"), messages, way, settings=SETTINGS[settings])
    plain, fast = sent(endpoint)
    assert fast == plain


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"tool_choice": "any"},
        {"tool_choice": "bash"},
        {"tool_choice": True},
        {"tool_choice": {"type": "function", "function": {"name": "bash"}}},
        {"tool_choice": "none", "parallel_tool_calls": False},
        {"parallel_tool_calls": True},
    ],
    ids=str,
)
async def test_equal_tools_give_equal_requests(endpoint: ScriptedOpenAI, arguments: dict[str, Any]) -> None:
    await both(endpoint, Text("ok"), HELLO, "ainvoke", bind=lambda model: model.bind_tools(TOOLS, **arguments))
    plain, fast = sent(endpoint)
    assert fast == plain


@pytest.mark.parametrize("strict", [True, False])
async def test_strict_tools_give_equal_requests(endpoint: ScriptedOpenAI, strict: bool) -> None:
    await both(endpoint, Text("ok"), HELLO, "astream", bind=lambda m: m.bind_tools([bash, Look], strict=strict))
    plain, fast = sent(endpoint)
    assert fast == plain


@pytest.mark.parametrize("method", ["function_calling", "json_mode", "json_schema"])
async def test_structured_output_is_the_same(endpoint: ScriptedOpenAI, method: Any) -> None:
    reply = ToolCalls(("Look", {"where": "there"})) if method == "function_calling" else Text('{"where": "there"}')
    endpoint.script(reply, reply)
    answers = []
    for build in (PLAIN, FAST):
        model = build(endpoint).with_structured_output(Look, method=method)
        answers.append(await ask(model, HELLO, "ainvoke"))
    assert answers == [Look(where="there")] * 2
    plain, fast = sent(endpoint)
    assert fast == plain


@pytest.mark.parametrize("way", WAYS)
async def test_deepseek_stays_deepseek(endpoint: ScriptedOpenAI, way: str) -> None:
    reply = Text("42", reasoning="Let me think.", usage={**USAGE, "prompt_cache_hit_tokens": 8})
    messages = [
        *HELLO,
        AIMessage([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
        ToolMessage(["r"], tool_call_id="x"),
    ]
    builders = (builder(ChatDeepSeek), builder(PatchedChatDeepSeek))
    plain, fast = await both(endpoint, reply, messages, way, builders=builders)
    assert fast["additional_kwargs"].pop(REASONED_BY) == "127.0.0.1 scripted"
    assert fast == plain
    assert fast["additional_kwargs"]["reasoning_content"] == "Let me think."
    assert fast["response_metadata"]["model_provider"] == "deepseek"
    first, second = sent(endpoint)
    assert second == first


class Tokens(AsyncCallbackHandler):
    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    async def on_llm_new_token(self, token: Any, *, chunk: Any = None, **kwargs: Any) -> None:
        self.seen.append((token, chunk and chunk.message.model_dump()))


async def test_callbacks_hear_the_same_tokens(endpoint: ScriptedOpenAI) -> None:
    heard = []
    for build in (PLAIN, FAST):
        endpoint.script(REPLIES["text"])
        tokens = Tokens()
        async for _ in build(endpoint).astream(HELLO, config={"callbacks": [tokens], "run_id": RUN_ID}):
            pass
        heard.append(tokens.seen)
    assert heard[0] == heard[1]
    assert len(heard[0]) > 4


async def test_a_graph_streams_the_same_messages(endpoint: ScriptedOpenAI) -> None:
    async def streamed(model: BaseChatModel) -> list[Any]:
        async def call(state: MessagesState) -> dict[str, Any]:
            return {"messages": [await model.ainvoke(state["messages"], config={"run_id": RUN_ID})]}

        graph = StateGraph(MessagesState).add_node("model", call).add_edge(START, "model").compile()
        stream = graph.astream({"messages": HELLO}, stream_mode=["messages", "values"])
        parts: list[Any] = []
        async for mode, data in stream:
            parts.append(data[0].model_dump() if mode == "messages" else data_of(data["messages"][-1]))
        return parts[1:]  # the first is the input

    endpoint.script(REPLIES["text"], REPLIES["text"])
    plain, fast = [await streamed(build(endpoint)) for build in (PLAIN, FAST)]
    assert fast == plain
    assert len(fast) > 5
    assert fast[-1]["usage_metadata"]["total_tokens"] == 50


async def test_n_answers_are_the_same(endpoint: ScriptedOpenAI) -> None:
    choices = [
        {"index": i, "finish_reason": "stop", "message": {"role": "assistant", "content": f"answer {i}"}}
        for i in range(2)
    ]
    whole = RawChunks([{"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": choices}])
    endpoint.script(whole, whole)
    results = [await build(endpoint, n=2).agenerate([HELLO]) for build in (PLAIN, FAST)]
    plain, fast = [[generation.text for generation in result.generations[0]] for result in results]
    assert fast == plain == ["answer 0", "answer 1"]


async def test_log_probabilities_are_the_same(endpoint: ScriptedOpenAI) -> None:
    logprobs = {"content": [{"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}], "refusal": None}
    common = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    delta = {"index": 0, "delta": {"role": "assistant", "content": "a"}, "logprobs": logprobs, "finish_reason": None}
    last = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}
    reply = RawChunks([{**common, "choices": [choice]} for choice in (delta, last)])
    plain, fast = await both(endpoint, reply, HELLO, "astream", settings={"logprobs": True})
    assert fast == plain
    assert fast["response_metadata"]["logprobs"] == logprobs


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("build", [PLAIN, FAST])
async def test_the_responses_api_takes_the_parents_way(
    endpoint: ScriptedOpenAI, build: Callable[..., BaseChatModel], way: str
) -> None:
    # The scripted endpoint serves no Responses API: being asked there is enough.
    with pytest.raises(Exception, match="POST /v1/responses is not served"):
        await ask(build(endpoint, use_responses_api=True, max_retries=0), HELLO, way)
    assert endpoint.requests == []


@pytest.mark.parametrize("way", WAYS)
async def test_the_responses_api_answers_as_the_discovered_models_ask_it(way: str) -> None:
    with ScriptedResponses() as responses:
        body = Body({**completed([], "completed")["response"], "object": "response", "output": [MESSAGE]})
        responses.script(Response(text="Done.") if "stream" in way else body)
        model = OpenAIChatModel(
            model="gpt", api_key="key", base_url=responses.base_url, use_responses_api=True, stream_usage=True
        )
        answer = await ask(model, HELLO, way)
    assert answer.text == "Done."
    assert answer.usage_metadata and answer.usage_metadata["total_tokens"] == 120
    assert "stream_usage" not in responses.requests[0]


def test_a_model_is_serialised_without_its_key() -> None:
    for cls in (OpenAIChatModel, PatchedChatDeepSeek):
        data = dumpd(cls(model="m", api_key="top-secret", base_url="http://localhost/v1"))
        assert data["type"] == "constructor"
        assert data["id"] == [*cls.__module__.split("."), cls.__name__]
        assert "top-secret" not in str(data)
