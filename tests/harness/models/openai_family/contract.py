"""What every chat model adapter promises, whatever its provider speaks.

An adapter's test module defines two fixtures and a class::

    class TestMyModel(ChatModelContract):
        @pytest.fixture
        def endpoint(self): ...        # an Endpoint: a real HTTP server that plays scripted replies

        @pytest.fixture
        def provider(self): ...        # a Provider: how to build the model and read its requests
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pytest
from bench.scripted_openai import Cut, Delay, Empty, HttpError, RawToolCall, Text, ToolCalls
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

WAYS = ("ainvoke", "astream")
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Endpoint(Protocol):
    """A scripted server; ``bench.scripted_openai`` has the replies."""

    @property
    def requests(self) -> list[dict[str, Any]]: ...

    @property
    def raw_requests(self) -> list[bytes]: ...

    @property
    def records(self) -> Sequence[Any]: ...

    def script(self, *replies: Any, key: str | None = None) -> None: ...


@dataclass(frozen=True)
class Provider:
    """An adapter under test."""

    build: Callable[..., BaseChatModel]
    """``build(endpoint, **settings)``: a model that asks the endpoint, ``max_retries`` among the settings."""
    errors: Mapping[int, type[Exception]]
    """Exception class by status."""
    broken: type[Exception]
    """Exception class of a connection that breaks."""
    texts: Callable[[dict[str, Any]], list[tuple[str, str]]]
    """Role and text of each message of a request."""
    system: Callable[[dict[str, Any]], str]
    """The system prompt of a request."""
    images: Callable[[dict[str, Any]], list[str]]
    """URLs of the images of a request."""
    calls: Callable[..., Any] = ToolCalls
    """``calls(("bash", {...}), ...)``: the reply with which this provider's server calls tools."""
    broken_call: Any = field(default_factory=lambda: RawToolCall("bash", '{"command": "ls'))
    """A reply that calls a tool with arguments that break off."""
    reasoning_reply: Callable[[str, str], Any] | None = None
    """``reasoning_reply(reasoning, text)``, where reasoning is kept in ``additional_kwargs["reasoning_content"]``."""
    replayed: Callable[[dict[str, Any]], str | None] | None = None
    """The reasoning of a request's first assistant message, where it goes back to the server."""


@tool
def bash(command: str, timeout: int = 60) -> str:
    """Run a command in the sandbox."""
    return command


@tool
def read_file(path: str) -> str:
    """Read a file."""
    return path


async def ask(model: Any, messages: Sequence[BaseMessage], way: str, **kwargs: Any) -> AIMessage:
    """Ask in one of the two ways and return the whole answer."""
    if way == "ainvoke":
        return await model.ainvoke(list(messages), **kwargs)
    return _joined([chunk async for chunk in model.astream(list(messages), **kwargs)])


def _joined(chunks: list[AIMessageChunk]) -> AIMessageChunk:
    first, *rest = chunks
    return first + rest if rest else first


def named_args(message: AIMessage) -> list[tuple[str, dict[str, Any]]]:
    return [(call["name"], call["args"]) for call in message.tool_calls]


def tool_turn(number: int, *, output: str = "ok") -> list[BaseMessage]:
    """An assistant message that calls a tool, and the tool's result."""
    call = {"name": "bash", "args": {"command": f"echo {number}"}, "id": f"call_{number}"}
    return [
        AIMessage(content="", tool_calls=[call], id=f"answer-{number}"),
        ToolMessage(content=f"{output} {number}", tool_call_id=f"call_{number}", id=f"result-{number}"),
    ]


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait for something that another thread brings about; half a minute is more than any machine needs."""
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


HELLO = [HumanMessage("Hello")]


class ChatModelContract:
    """Run by each adapter against its own endpoint."""

    @pytest.mark.parametrize("way", WAYS)
    async def test_text_arrives_whole(self, endpoint: Endpoint, provider: Provider, way: str) -> None:
        endpoint.script(Text("One two three 四 🎉"))
        answer = await ask(provider.build(endpoint), HELLO, way)
        assert (answer.text, answer.tool_calls, answer.invalid_tool_calls) == ("One two three 四 🎉", [], [])

    async def test_text_is_streamed_in_pieces(self, endpoint: Endpoint, provider: Provider) -> None:
        endpoint.script(Text("One two three four"))
        pieces = [chunk.text async for chunk in provider.build(endpoint).astream(HELLO)]
        assert len([piece for piece in pieces if piece]) > 1
        assert "".join(pieces) == "One two three four"

    @pytest.mark.parametrize("way", WAYS)
    async def test_parallel_tool_calls_arrive_whole_and_in_order(
        self, endpoint: Endpoint, provider: Provider, way: str
    ) -> None:
        wanted = [
            ("bash", {"command": "echo '日本' && " + "x" * 200}),
            ("read_file", {"path": "/a b"}),
            ("bash", {"command": "ls"}),
        ]
        endpoint.script(provider.calls(*wanted))
        answer = await ask(provider.build(endpoint).bind_tools([bash, read_file]), HELLO, way)
        assert named_args(answer) == wanted
        assert len({call["id"] for call in answer.tool_calls}) == 3

    @pytest.mark.parametrize("way", WAYS)
    async def test_text_beside_a_tool_call_is_kept(self, endpoint: Endpoint, provider: Provider, way: str) -> None:
        endpoint.script(provider.calls(("bash", {"command": "ls"}), text="Let me look."))
        answer = await ask(provider.build(endpoint).bind_tools([bash]), HELLO, way)
        assert (answer.text, named_args(answer)) == ("Let me look.", [("bash", {"command": "ls"})])

    @pytest.mark.parametrize("way", WAYS)
    async def test_broken_arguments_are_an_invalid_tool_call(
        self, endpoint: Endpoint, provider: Provider, way: str
    ) -> None:
        endpoint.script(provider.broken_call)
        answer = await ask(provider.build(endpoint).bind_tools([bash]), HELLO, way)
        invalid = [call["name"] for call in answer.invalid_tool_calls]
        half_parsed = [call["args"] for call in answer.tool_calls]
        # LangChain completes broken JSON where it can while streaming; nothing may be lost silently.
        assert invalid == ["bash"] or half_parsed == [{"command": "ls"}]

    @pytest.mark.parametrize("way", WAYS)
    async def test_usage_is_counted_once(self, endpoint: Endpoint, provider: Provider, way: str) -> None:
        endpoint.script(Text("hi there", usage={"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}))
        usage = (await ask(provider.build(endpoint), HELLO, way)).usage_metadata
        assert usage is not None
        assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (11, 7, 18)

    @pytest.mark.parametrize("way", WAYS)
    async def test_an_empty_answer_is_an_empty_message(self, endpoint: Endpoint, provider: Provider, way: str) -> None:
        endpoint.script(Empty())
        answer = await ask(provider.build(endpoint), HELLO, way)
        assert (answer.text, answer.tool_calls) == ("", [])

    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
    async def test_an_error_has_its_class_and_its_message(
        self, endpoint: Endpoint, provider: Provider, way: str, status: int
    ) -> None:
        endpoint.script(HttpError(status, f"the reason for {status}"))
        with pytest.raises(provider.errors[status], match=f"the reason for {status}"):
            await ask(provider.build(endpoint, max_retries=0), HELLO, way)

    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("status", [429, 500])
    async def test_retries_are_bounded(self, endpoint: Endpoint, provider: Provider, way: str, status: int) -> None:
        endpoint.script(*[HttpError(status, headers={"retry-after-ms": "1", "retry-after": "0.001"})] * 5)
        with pytest.raises(provider.errors[status]):
            await ask(provider.build(endpoint, max_retries=2), HELLO, way)
        assert len(endpoint.requests) == 3

    @pytest.mark.parametrize("way", WAYS)
    async def test_a_retry_that_succeeds_is_an_answer(self, endpoint: Endpoint, provider: Provider, way: str) -> None:
        endpoint.script(HttpError(429, headers={"retry-after-ms": "1", "retry-after": "0.001"}), Text("at last"))
        assert (await ask(provider.build(endpoint, max_retries=1), HELLO, way)).text == "at last"
        assert endpoint.raw_requests[0] == endpoint.raw_requests[1]

    @pytest.mark.parametrize("way", WAYS)
    async def test_half_an_answer_is_an_error(self, endpoint: Endpoint, provider: Provider, way: str) -> None:
        endpoint.script(Cut(after_chunks=3))
        with pytest.raises(provider.broken):
            await ask(provider.build(endpoint, max_retries=0), HELLO, way)

    @pytest.mark.parametrize("way", WAYS)
    async def test_reasoning_is_kept_and_goes_back(self, endpoint: Endpoint, provider: Provider, way: str) -> None:
        if provider.reasoning_reply is None:
            pytest.skip("this provider promises no reasoning")
        endpoint.script(provider.reasoning_reply("Well,  let me\nthink.", "42"), Text("You are welcome."))
        model = provider.build(endpoint)
        answer = await ask(model, HELLO, way)
        assert answer.text == "42"
        assert answer.additional_kwargs["reasoning_content"] == "Well,  let me\nthink."
        await ask(model, [*HELLO, answer, HumanMessage("Thanks")], way)
        if provider.replayed is not None:
            assert provider.replayed(endpoint.requests[1]) == "Well,  let me\nthink."

    async def test_reasoning_goes_back_with_tool_calls(self, endpoint: Endpoint, provider: Provider) -> None:
        if provider.replayed is None:
            pytest.skip("this provider's reasoning stays here")
        endpoint.script(Text("done"))
        call, result = tool_turn(1)
        call.additional_kwargs["reasoning_content"] = "I need a shell."
        await provider.build(endpoint).bind_tools([bash]).ainvoke([*HELLO, call, result])
        assert provider.replayed(endpoint.requests[0]) == "I need a shell."

    async def test_the_system_message_comes_first(self, endpoint: Endpoint, provider: Provider) -> None:
        endpoint.script(Text("ok"))
        await provider.build(endpoint).ainvoke([SystemMessage("You are a tester."), *HELLO])
        assert provider.system(endpoint.requests[0]) == "You are a tester."
        assert [text for role, text in provider.texts(endpoint.requests[0]) if role == "user"] == ["Hello"]

    @pytest.mark.parametrize("way", WAYS)
    async def test_images_pass_through(self, endpoint: Endpoint, provider: Provider, way: str) -> None:
        endpoint.script(Text("a pixel"))
        content: list[Any] = [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": PIXEL}},
        ]
        await ask(provider.build(endpoint), [HumanMessage(content)], way)
        assert provider.images(endpoint.requests[0]) == [PIXEL]

    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize(
        "text", ["naïve 日本語 🎉👩‍👩‍👧", "\x00\x1b[31m\u2028\ufeff", '"\\"</tool_response>\r\n', "a" * 300_000]
    )
    async def test_any_text_reaches_the_server_unchanged(
        self, endpoint: Endpoint, provider: Provider, way: str, text: str
    ) -> None:
        endpoint.script(Text("ok"))
        await ask(provider.build(endpoint), [HumanMessage(text)], way)
        assert provider.texts(endpoint.requests[0]) == [("user", text)]

    @pytest.mark.parametrize("way", WAYS)
    async def test_broken_unicode_is_mended_and_does_not_crash(
        self, endpoint: Endpoint, provider: Provider, way: str
    ) -> None:
        endpoint.script(Text("ok"))
        history = [
            HumanMessage("half \ud83d, pair \ud83d\ude00"),
            *tool_turn(1, output="\udcff"),
            HumanMessage("go on"),
        ]
        await ask(provider.build(endpoint).bind_tools([bash]), history, way)
        assert provider.texts(endpoint.requests[0])[0] == ("user", "half \ufffd, pair 😀")

    @pytest.mark.parametrize("way", WAYS)
    async def test_cancelling_a_call_closes_the_connection(
        self, endpoint: Endpoint, provider: Provider, way: str
    ) -> None:
        endpoint.script(Delay(60, Text("too late")))
        call = asyncio.create_task(ask(provider.build(endpoint), HELLO, way))
        await eventually(lambda: len(endpoint.requests) == 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await eventually(lambda: endpoint.records[0].disconnected)

    async def test_cancelling_in_the_middle_of_a_stream_closes_the_connection(
        self, endpoint: Endpoint, provider: Provider
    ) -> None:
        endpoint.script(Delay(0.01, Text("a b c d e f g h"), between=0.5))
        started = asyncio.Event()

        async def read() -> None:
            async for _ in provider.build(endpoint).astream(HELLO):
                started.set()

        reading = asyncio.create_task(read())
        await started.wait()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await eventually(lambda: endpoint.records[0].disconnected)

    async def test_leaving_a_stream_closes_the_connection(self, endpoint: Endpoint, provider: Provider) -> None:
        endpoint.script(Delay(0.01, Text("a b c d e f g h"), between=0.3))
        stream: Any = provider.build(endpoint).astream(HELLO)
        async for _ in stream:
            break
        await stream.aclose()
        await eventually(lambda: endpoint.records[0].disconnected)

    @pytest.mark.parametrize("way", WAYS)
    async def test_concurrent_calls_do_not_mix(self, endpoint: Endpoint, provider: Provider, way: str) -> None:
        model = provider.build(endpoint)
        numbers = range(12)
        for number in numbers:
            endpoint.script(Delay(0.01, Text(f"answer to {number} in words"), between=0.001), key=f"n{number}")
        answers = await asyncio.gather(*[ask(model, [HumanMessage(f"key:n{n}")], way) for n in numbers])
        assert [answer.text for answer in answers] == [f"answer to {number} in words" for number in numbers]

    async def test_a_longer_history_begins_with_the_shorter_one(self, endpoint: Endpoint, provider: Provider) -> None:
        endpoint.script(*[Text("ok")] * 6)
        model = provider.build(endpoint)
        history: list[BaseMessage] = [SystemMessage("Be brief."), HumanMessage("Hello 🎉")]
        for number in range(6):
            await model.bind_tools([bash, read_file]).ainvoke(history)
            history += tool_turn(number)
        seen = [provider.texts(request) for request in endpoint.requests]
        for shorter, longer in itertools.pairwise(seen):
            assert longer[: len(shorter)] == shorter
        assert len({str(request.get("tools")) for request in endpoint.requests}) == 1

    async def test_equal_ids_do_not_hide_other_contents(self, endpoint: Endpoint, provider: Provider) -> None:
        endpoint.script(Text("ok"), Text("ok"))
        model = provider.build(endpoint)
        message = HumanMessage("first", id="same")
        await model.ainvoke([message])
        message.content = "second"
        await model.ainvoke([message])
        assert [provider.texts(request) for request in endpoint.requests] == [[("user", "first")], [("user", "second")]]
