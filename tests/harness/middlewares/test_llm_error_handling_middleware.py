from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from bench.scripted_openai import Cut, Delay, Empty, HttpError, Text, ToolCalls
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_core.tools import tool
from langgraph.errors import GraphBubbleUp, NodeCancelledError

from deerflow.agents.middlewares.base import is_error
from deerflow.agents.middlewares.dangling_tool_call_middleware import DanglingToolCallMiddleware
from deerflow.agents.middlewares.llm_error_handling_middleware import LLMErrorHandlingMiddleware
from deerflow.models.call_gate import CallGates
from deerflow.models.circuit_breaker import CircuitBreakers
from deerflow.models.endpoint import Endpoint, endpoint_of
from deerflow.models.openai import OpenAIChatModel
from deerflow.models.resilience import rest_of, wake


class Sleeper:
    def __init__(self) -> None:
        self.waits: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture
def sleeper() -> Sleeper:
    return Sleeper()


def handling(sleeper: Sleeper, **settings: Any) -> LLMErrorHandlingMiddleware:
    return LLMErrorHandlingMiddleware(**{"sleep": sleeper, "jitter": lambda: 0.0, **settings})


def kind_of(message: Any) -> str:
    assert is_error(message)
    assert message.response_metadata["finish_reason"] == "error"
    assert message.additional_kwargs["error"]["message"] == message.content
    return message.additional_kwargs["error"]["kind"]


async def test_a_busy_provider_is_asked_again_and_the_client_hears_of_it(start, endpoint, sleeper) -> None:
    endpoint.script(HttpError(503, "服务器繁忙"), HttpError(429), Text("here I am"))
    talk = start(handling(sleeper))
    assert (await talk.say("hi"))[-1].content == "here I am"
    assert sleeper.waits == [1, 2]
    first, second = talk.events_of("llm_retry")
    assert {"attempt": 2, "max_attempts": 3, "wait_ms": 1000, "reason": "busy"}.items() <= first.items()
    assert (second["attempt"], second["wait_ms"]) == (3, 2000)
    assert first["message"] == "scripted-model is busy. Trying again."


async def test_addresses_of_the_operators_network_are_for_the_log_alone(start, endpoint, sleeper) -> None:
    endpoint.script(*[HttpError(500, "no route to http://vllm-7.internal:8000/v1, nor 10.1.2.3:8000")] * 3)
    talk = start(handling(sleeper))
    shown = (await talk.say("hi"))[-1].content + "".join(e["message"] for e in talk.events_of("llm_retry"))
    assert "no route to [address], nor [address]" in shown and not re.search(r"vllm|10\.1|8000", shown)


async def test_after_the_last_attempt_an_honest_error_ends_the_run(start, endpoint, sleeper) -> None:
    endpoint.script(*[HttpError(500)] * 3)
    talk = start(handling(sleeper))
    messages = await talk.say("hi")
    assert kind_of(messages[-1]) == "transient"
    assert "temporarily unavailable" in messages[-1].content
    assert len(sleeper.waits) == 2
    assert len(endpoint.requests) == 3
    assert await talk.finished()


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (
            HttpError(401, "Incorrect API key provided: sk-abcdef123456"),
            "auth",
            "check OPENAI_API_KEY or models[].api_key",
        ),
        (HttpError(403), "auth", "rejected the API key"),
        (HttpError(429, {"error": {"message": "no money", "code": "insufficient_quota"}}), "quota", "billing"),
        (HttpError(404, "no such model"), "model_not_found", "models[].model"),
        (
            HttpError(400, {"error": {"message": "maximum context length is 10", "code": "context_length_exceeded"}}),
            "context_length",
            "too long",
        ),
        (HttpError(400, "bad request"), "generic", "bad request"),
    ],
)
async def test_what_waiting_cannot_help_is_told_at_once(start, endpoint, sleeper, reply, kind, words) -> None:
    endpoint.script(reply)
    message = (await start(handling(sleeper)).say("hi"))[-1]
    assert kind_of(message) == kind
    assert words in message.content
    assert "abcdef" not in message.content
    assert sleeper.waits == []
    assert len(endpoint.requests) == 1


async def test_no_network_says_so(start, sleeper, chat_model) -> None:
    talk = start(handling(sleeper), model=chat_model(base_url="http://127.0.0.1:9/v1"))
    message = (await talk.say("hi"))[-1]
    assert kind_of(message) == "network"
    assert "Check the network" in message.content


async def test_a_stream_cut_in_the_middle_is_asked_again(start, endpoint, sleeper) -> None:
    endpoint.script(Cut(3, "half an answer that never ends"), Text("the whole answer"), Text("ok"))
    talk = start(handling(sleeper), model=OpenAIChatModel(model="m", api_key="k", base_url=endpoint.base_url))
    messages = await talk.say("hi")
    assert [m.content for m in messages] == ["hi", "half an answer ", "the whole answer"]
    assert [m.additional_kwargs.get("broke_off") for m in messages] == [None, True, None]
    assert talk.events_of("llm_retry")[0]["reason"] == "broken_off"
    await talk.say("and on")
    assert [m["content"] for m in talk.request()] == ["hi", "the whole answer", "and on"]


async def test_each_half_stays_and_the_last_one_carries_the_error(start, endpoint, sleeper, chat_model) -> None:
    endpoint.script(*[Cut(3, "half an answer that never ends")] * 3, HttpError(401))
    model = OpenAIChatModel(model="m", api_key="k", base_url=endpoint.base_url)
    talk = start(handling(sleeper, fallbacks=[chat_model("other")]), model=model)
    said = (await talk.say("hi"))[1:]
    assert [m.content for m in said] == ["half an answer "] * 3 and len({m.id for m in said}) == 3
    assert said[-1].additional_kwargs["error"]["kind"] == "broken_off"
    assert [m.additional_kwargs.get("broke_off") for m in said] == [True, True, None]


async def test_the_providers_wait_is_honoured(start, endpoint, sleeper) -> None:
    endpoint.script(
        HttpError(429, headers={"Retry-After": "20"}), HttpError(429, headers={"Retry-After": "30"}), Text("ok")
    )
    await start(handling(sleeper, retry_after_cap_ms=30_000)).say("hi")
    assert sleeper.waits == [20, 30]


async def test_a_wait_beyond_the_cap_ends_at_once_and_says_until_when(start, endpoint, sleeper) -> None:
    endpoint.script(HttpError(429, headers={"Retry-After": "5400"}))
    message = (await start(handling(sleeper)).say("hi"))[-1]
    assert kind_of(message) == "busy"
    assert re.search(
        r"takes requests again (on \d+ \w+ )?at \d\d:\d\d UTC, in 1 h 30 min: try again then", message.content
    )
    assert "several attempts" not in message.content
    assert sleeper.waits == []
    assert len(endpoint.requests) == 1


async def test_a_stream_that_keeps_breaking_is_not_called_a_missing_connection(start, endpoint, sleeper) -> None:
    endpoint.script(*[Cut(3, "half an answer that never ends")] * 3)
    talk = start(handling(sleeper), model=OpenAIChatModel(model="m", api_key="k", base_url=endpoint.base_url))
    message = (await talk.say("hi"))[-1]
    error = message.additional_kwargs["error"]
    assert is_error(message)
    assert error["kind"] == "broken_off"
    assert "broke off, also when it was asked again" in error["message"]
    assert "no connection" not in error["message"]
    assert message.content == "half an answer "  # what the person has read stays
    assert message.id.startswith("lc_run--")


async def test_an_answer_that_broke_off_can_be_continued(start, endpoint, sleeper) -> None:
    endpoint.script(*[Cut(3, "half an answer that never ends")] * 3, Text("the rest"))
    talk = start(handling(sleeper), model=OpenAIChatModel(model="m", api_key="k", base_url=endpoint.base_url))
    await talk.say("hi")
    assert (await talk.say("continue"))[-1].content == "the rest"
    assert [m["content"] for m in talk.request()] == ["hi", "half an answer ", "continue"]


@pytest.mark.parametrize("further", [HttpError(500), HttpError(503), HttpError(401)])
async def test_attempts_that_say_nothing_do_not_take_the_half_answer_away(start, endpoint, sleeper, further) -> None:
    endpoint.script(Cut(3, "half an answer that never ends"), further, further)
    talk = start(
        handling(sleeper), model=OpenAIChatModel(model="m", api_key="k", base_url=endpoint.base_url, max_retries=0)
    )
    streamed = dict[str, str]()
    turn = {"messages": [HumanMessage("hi")]}
    async for chunk, _ in talk.graph.astream(turn, talk.config, context=talk.context, stream_mode="messages"):
        if isinstance(chunk, AIMessageChunk):
            streamed[chunk.id] = streamed.get(chunk.id, "") + chunk.text
    message = (await talk.messages())[-1]
    assert message.content == "half an answer " == streamed[message.id]  # the same message for who has read it
    assert message.additional_kwargs["error"]["kind"] == ("auth" if further.status == 401 else "broken_off")


@pytest.mark.parametrize("reason", ["error", "network_error"])
async def test_an_answer_that_the_provider_broke_off_is_asked_for_again(start, endpoint, sleeper, reason: str) -> None:
    cut = Text("half an answer", finish_reason=reason)
    endpoint.script(cut, Text("the whole answer"), cut, cut, cut)
    talk = start(handling(sleeper))
    assert [m.content for m in await talk.say("hi")] == ["hi", "half an answer", "the whole answer"]
    message = (await talk.say("more"))[-1]
    assert message.content == "half an answer"
    assert message.additional_kwargs["error"]["kind"] == "broken_off"


@pytest.mark.parametrize("reason", ["content_filter", "refusal", "sensitive", "RECITATION", "risk_control"])
async def test_half_a_refusal_is_not_sent_again(start, endpoint, sleeper, reason: str) -> None:
    endpoint.script(Text("I was about to", finish_reason=reason), Text("fine"))
    talk = start(handling(sleeper))
    assert (await talk.say("hi"))[-1].content == "I was about to"
    await talk.say("something else")
    assert [m["content"] for m in talk.request()] == ["hi", "something else"]


async def test_a_silent_model_is_named_as_such_with_the_setting(start, endpoint, sleeper) -> None:
    endpoint.script(*[Delay(2, Text("too late"))] * 2, Delay(0, Text("a word and then nothing"), between=2))
    model = OpenAIChatModel(model="m", api_key="k", base_url=endpoint.base_url, timeout=0.3, max_retries=0)
    message = (await start(handling(sleeper), model=model).say("hi"))[-1]
    assert kind_of(message) == "transient"
    assert "it sent nothing for 0.3 seconds (models[].timeout in config.yaml)" in message.content
    assert len(endpoint.requests) == 3


async def test_what_helps_against_an_overlong_conversation_is_there_to_be_done(start, endpoint, sleeper) -> None:
    endpoint.script(HttpError(400, {"error": {"message": "too long", "code": "context_length_exceeded"}}))
    message = (await start(handling(sleeper)).say("hi"))[-1]
    for way in ("larger context window", "earlier message", "new thread"):
        assert way in message.content
    assert "summarization" not in message.content


async def test_our_own_wait_is_capped_and_spread(start, endpoint, sleeper) -> None:
    endpoint.script(*[HttpError(500)] * 5, Text("ok"))
    await start(handling(sleeper, retry_max_attempts=6, jitter=lambda: 1.0)).say("hi")
    assert sleeper.waits == [1.25, 2.5, 5, 8, 8]


async def test_fallback_models_answer_when_the_first_fails(start, endpoint, sleeper, chat_model) -> None:
    endpoint.script(HttpError(401), HttpError(404), Text("from the second fallback"))
    talk = start(handling(sleeper, fallbacks=[chat_model("one"), chat_model("two")]))
    assert (await talk.say("hi"))[-1].content == "from the second fallback"
    assert [r["model"] for r in endpoint.requests] == ["scripted-model", "one", "two"]
    assert [e["message"] for e in talk.events_of("llm_retry")] == [
        f"Switching to the fallback model {name}." for name in ("one", "two")
    ]
    assert [e["fallback"] for e in talk.events_of("llm_retry")] == ["one", "two"]


async def test_when_all_models_fail_the_first_failure_is_explained_and_the_others_named(
    start, endpoint, sleeper, chat_model
) -> None:
    endpoint.script(HttpError(401, "bad key"), HttpError(404, "unknown model"))
    message = (await start(handling(sleeper, fallbacks=[chat_model("one")])).say("hi"))[-1]
    assert kind_of(message) == "auth"
    assert "The fallback model one failed as well" in message.content


async def test_the_circuit_is_shared_by_all_runs_and_agents(start, endpoint, sleeper) -> None:
    breakers = CircuitBreakers(failure_threshold=2)
    endpoint.script(*[HttpError(500)] * 6, Text("never asked"))
    for _ in range(2):
        await start(handling(sleeper, breakers=breakers)).say("hi")
    message = (await start(handling(sleeper, breakers=breakers)).say("hi"))[-1]
    assert kind_of(message) == "circuit_open"
    assert len(endpoint.requests) == 6


async def test_an_open_circuit_does_not_stop_other_models(start, endpoint, sleeper, chat_model) -> None:
    breakers = CircuitBreakers(failure_threshold=1)
    endpoint.script(*[HttpError(500)] * 3, Text("a"), Text("b"))
    fallback = chat_model("other")
    talk = start(handling(sleeper, breakers=breakers, fallbacks=[fallback]))
    assert (await talk.say("1"))[-1].content == "a"
    assert (await talk.say("2"))[-1].content == "b"
    assert endpoint.requests[-1]["model"] == "other"


async def test_a_fallback_at_the_same_address_and_key_does_not_wait_for_the_first(
    start, endpoint, sleeper, chat_model
) -> None:
    gates = CallGates()
    endpoint.script(HttpError(429, headers={"Retry-After": "5400"}), Text("a"), Text("b"))
    talk = start(handling(sleeper, gates=gates, fallbacks=[chat_model("other")]))
    assert [(await talk.say(text))[-1].content for text in ("1", "2")] == ["a", "b"]
    assert [request["model"] for request in endpoint.requests] == ["scripted-model", "other", "other"]


async def test_another_key_has_its_own_circuit_and_waits(start, endpoint, sleeper) -> None:
    gates, breakers = CallGates(), CircuitBreakers(failure_threshold=1)
    own, another = (
        OpenAIChatModel(model="m", api_key=key, base_url=endpoint.base_url, max_retries=0) for key in ("a", "b")
    )
    endpoint.script(*[HttpError(500)] * 3, Text("fine"))
    for model, kind in ((own, "transient"), (own, "circuit_open")):
        talk = start(handling(sleeper, gates=gates, breakers=breakers), model=model)
        assert kind_of((await talk.say("hi"))[-1]) == kind
    rest = rest_of(endpoint_of(own), breakers, gates)
    assert rest is not None and rest.reason == "circuit_open" and 0 < rest.seconds <= 60
    assert rest_of(endpoint_of(another), breakers, gates) is None
    talk = start(handling(sleeper, gates=gates, breakers=breakers), model=another)
    assert (await talk.say("hi"))[-1].content == "fine"


async def test_a_model_that_is_woken_is_asked_at_once(start, endpoint, sleeper, chat_model) -> None:
    gates, breakers, model = CallGates(), CircuitBreakers(failure_threshold=1), chat_model()
    endpoint.script(*[HttpError(500)] * 3, Text("fine"), HttpError(429, headers={"Retry-After": "5400"}), Text("again"))
    talk = start(handling(sleeper, gates=gates, breakers=breakers), model=model)
    for kind, reason, content in (("transient", "circuit_open", "fine"), ("busy", "busy", "again")):
        assert kind_of((await talk.say("hi"))[-1]) == kind
        rest = rest_of(endpoint_of(model), breakers, gates)
        assert rest is not None and rest.reason == reason
        wake(endpoint_of(model), breakers, gates)
        assert rest_of(endpoint_of(model), breakers, gates) is None
        assert (await talk.say("hi"))[-1].content == content


@pytest.mark.parametrize("status", [400, 401, 404])
async def test_errors_about_the_request_never_open_the_circuit(start, endpoint, sleeper, status) -> None:
    breakers = CircuitBreakers(failure_threshold=1)
    endpoint.script(HttpError(status), Text("ok"))
    await start(handling(sleeper, breakers=breakers)).say("hi")
    assert (await start(handling(sleeper, breakers=breakers)).say("hi"))[-1].content == "ok"


@pytest.mark.parametrize("outcome", ["not retriable", "bubble up", "cancelled"])
async def test_a_probe_is_freed_however_it_ends(start, endpoint, sleeper, outcome) -> None:
    """W-8: such a probe left the circuit closed to everybody for ever."""
    clock = [0.0]
    breakers = CircuitBreakers(failure_threshold=1, recovery_timeout=60, clock=lambda: clock[0])
    endpoint.script(*[HttpError(500)] * 3)
    await start(handling(sleeper, breakers=breakers)).say("hi")
    clock[0] = 60

    class Interrupting(AgentMiddleware):
        async def awrap_model_call(self, request, handler) -> Any:
            if outcome == "bubble up":
                raise GraphBubbleUp
            raise asyncio.CancelledError

    probing = start(handling(sleeper, breakers=breakers), *([] if outcome == "not retriable" else [Interrupting()]))
    if outcome == "not retriable":
        endpoint.script(HttpError(401))
        assert kind_of((await probing.say("probe"))[-1]) == "auth"
    else:
        with pytest.raises((GraphBubbleUp, NodeCancelledError)):
            await probing.graph.ainvoke({"messages": [("user", "probe")]}, probing.config, context=probing.context)
    endpoint.script(Text("recovered"))
    assert (await start(handling(sleeper, breakers=breakers)).say("hi"))[-1].content == "recovered"


async def test_an_empty_answer_is_asked_for_once_more(start, endpoint, sleeper) -> None:
    endpoint.script(Empty(), Text("sorry, here it is"))
    talk = start(handling(sleeper))
    assert [m.content for m in await talk.say("hi")] == ["hi", "sorry, here it is"]
    assert "Your last answer was empty" in talk.tail()


@pytest.mark.parametrize("blank", [Empty(), Text("  \n"), Text("", reasoning="thinking and nothing else")])
async def test_empty_answers_are_asked_for_three_times_more_and_then_an_error(start, endpoint, sleeper, blank) -> None:
    endpoint.script(*[blank] * 4)
    message = (await start(handling(sleeper)).say("hi"))[-1]
    assert kind_of(message) == "empty_answer"
    assert len(endpoint.requests) == 4
    endpoint.script(*[blank] * 3, Text("at last"))
    assert (await start(handling(sleeper)).say("again"))[-1].content == "at last"
    assert str(endpoint.requests[-1]["messages"]).count("Your last answer was empty") == 1


async def test_an_answer_that_the_provider_filtered_says_so(start, endpoint, sleeper) -> None:
    endpoint.script(Text("", finish_reason="content_filter"))
    assert kind_of((await start(handling(sleeper)).say("hi"))[-1]) == "content_filter"
    assert len(endpoint.requests) == 1


async def test_thinking_that_used_up_the_output_names_the_setting(start, endpoint, sleeper) -> None:
    blank = Text("", reasoning="hmm", finish_reason="length")
    endpoint.script(blank, blank)
    assert "max_tokens" in (await start(handling(sleeper)).say("hi"))[-1].content


async def test_a_former_failure_is_not_part_of_later_requests(start, endpoint, sleeper) -> None:
    endpoint.script(HttpError(401), Text("fine"))
    talk = start(DanglingToolCallMiddleware(), handling(sleeper))
    await talk.say("hi")
    await talk.say("again")
    assert [m["content"] for m in talk.request()] == ["hi", "again"]
    assert len(await talk.messages()) == 4, "the thread keeps it"


async def test_a_failure_after_tools_keeps_what_they_did(start, endpoint, sleeper) -> None:
    @tool
    def work() -> str:
        """Work."""
        return "done"

    endpoint.script(ToolCalls(("work", {})), HttpError(401), Text("summary"))
    talk = start(DanglingToolCallMiddleware(), handling(sleeper), tools=[work])
    assert kind_of((await talk.say("hi"))[-1]) == "auth"
    assert (await talk.say("go on"))[-1].content == "summary"
    assert [m["role"] for m in talk.request()] == ["user", "assistant", "tool", "user"]


async def test_cancelling_while_waiting_ends_at_once(start, endpoint) -> None:
    waiting = asyncio.Event()

    async def forever(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    endpoint.script(HttpError(500))
    task = asyncio.create_task(start(LLMErrorHandlingMiddleware(sleep=forever)).say("hi"))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_the_synchronous_graph_retries_as_well(start, endpoint, sleeper, blockbuster) -> None:
    blockbuster.deactivate()  # a synchronous graph blocks its own thread, that is what it is for
    endpoint.script(HttpError(500), Text("ok"))
    talk = start(handling(sleeper))
    state = talk.graph.invoke({"messages": [("user", "hi")]}, talk.config, context=talk.context)
    assert state["messages"][-1].content == "ok"


async def test_a_refusal_of_one_run_holds_the_others_back(start, endpoint) -> None:
    held, asked = asyncio.Event(), asyncio.Event()

    async def sleeper(seconds: float) -> None:
        asked.set()
        await held.wait()

    now = [0.0]
    gates = CallGates(lambda: now[0])
    endpoint.script(HttpError(429, headers={"Retry-After": "20"}), *(Text("ok") for _ in range(9)))

    def conversation(number: int) -> Any:
        chain = LLMErrorHandlingMiddleware(gates=gates, sleep=sleeper)
        talk = start(chain)
        talk.config["configurable"]["thread_id"] = f"t{number}"
        return talk

    first = asyncio.create_task(conversation(0).say("hi"))
    await asked.wait()
    others = [asyncio.create_task(conversation(number).say("hi")) for number in range(1, 9)]
    gate = next(gate for key, gate in gates._gates[asyncio.get_running_loop()].items() if isinstance(key, Endpoint))
    while gate._first_in_line._waiters is None or len(gate._first_in_line._waiters) < 7:
        await asyncio.sleep(0)
    assert len(endpoint.requests) == 1, "nobody asks while the provider wants to be left alone"
    now[0] += 20
    held.set()
    gate._changed.set()
    answers = await asyncio.gather(first, *others)
    assert [messages[-1].text for messages in answers] == ["ok"] * 9
    assert len(endpoint.requests) == 10


async def test_a_long_wait_that_a_provider_asks_for_is_told_to_all_at_once(start, endpoint) -> None:
    gates = CallGates()
    endpoint.script(HttpError(429, headers={"Retry-After": "5400"}))
    for _ in range(3):
        messages = await start(LLMErrorHandlingMiddleware(gates=gates)).say("hi")
        assert messages[-1].additional_kwargs["error"]["kind"] == "busy"
    assert len(endpoint.requests) == 1
