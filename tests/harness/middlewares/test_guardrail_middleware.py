"""Calls that are allowed, refused, or decided by the person, in a real graph over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from bench.scripted_openai import Text, ToolCalls
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.errors import GraphInterrupt
from langgraph.types import Command

from deerflow.agents.middlewares.tool_error_handling_middleware import ToolErrorHandlingMiddleware
from deerflow.config.schema import GuardrailsConfig
from deerflow.features.guardrails.middleware import guardrail_of
from deerflow.guardrails import (
    AllowlistProvider,
    GuardrailDecision,
    GuardrailMiddleware,  # pyright: ignore[reportAttributeAccessIssue]
    GuardrailProvider,
    GuardrailReason,
    GuardrailRequest,
)

MADE: list[str] = []


@tool
def send(to: str, text: str = "") -> str:
    """Send a message."""
    MADE.append(f"{to}:{text}")
    return f"sent to {to}"


@tool
def look() -> str:
    """Look."""
    MADE.append("look")
    return "seen"


@pytest.fixture(autouse=True)
def nothing_made() -> None:
    MADE.clear()


class Spy:
    """A provider that remembers what it was asked."""

    name = "spy"

    def __init__(self, *answers: GuardrailDecision | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[GuardrailRequest] = []

    def evaluate(self, request: GuardrailRequest) -> GuardrailDecision:
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def aevaluate(self, request: GuardrailRequest) -> GuardrailDecision:
        return self.evaluate(request)


DENY = GuardrailDecision(False, [GuardrailReason("oap.limit_exceeded", "too much")], policy_id="p")
ASK = AllowlistProvider(ask_tools=["send"])


def opened(start, provider: GuardrailProvider, **options: Any) -> Any:
    return start(GuardrailMiddleware(provider, **options), ToolErrorHandlingMiddleware(), tools=[send, look])


async def asked(talk: Any, text: str = "go") -> list[Any]:
    """What the turn waits for."""
    await talk.graph.ainvoke({"messages": [HumanMessage(text)]}, talk.config, context=talk.context)
    return list((await talk.graph.aget_state(talk.config)).interrupts)


async def answered(talk: Any, *answers: tuple[Any, Any]) -> list[ToolMessage]:
    resume = {interrupt.id: {"decisions": [decision]} for interrupt, decision in answers}
    await talk.graph.ainvoke(Command(resume=resume), talk.config, context=talk.context)
    return [message for message in await talk.messages() if isinstance(message, ToolMessage)]


async def test_the_provider_knows_what_is_called_by_whom(start, endpoint) -> None:
    spy = Spy(GuardrailDecision(True))
    endpoint.script(ToolCalls(("send", {"to": "a"})), Text("ok"))
    await opened(start, spy, passport="pass-1").say("go")
    [request] = spy.asked
    assert (request.tool_name, request.tool_input) == ("send", {"to": "a"})
    assert (request.agent_id, request.thread_id, request.user_id) == ("pass-1", "thread-1", "alice")
    assert request.timestamp.endswith("+00:00") and not request.is_subagent
    assert MADE == ["a:"]


async def test_a_refused_call_is_not_made_and_says_why(start, endpoint) -> None:
    endpoint.script(ToolCalls(("send", {"to": "a"})), Text("ok"))
    talk = opened(start, Spy(DENY))
    result = next(message for message in await talk.say("go") if isinstance(message, ToolMessage))
    assert result.status == "error" and "'send' was not made: too much (oap.limit_exceeded)" in result.text
    assert result.additional_kwargs["cause"] == {"code": "denied", "detail": "too much"}
    assert MADE == []
    [event] = talk.events_of("guardrail")
    assert (event["tool"], event["decision"], event["policy_id"]) == ("send", "deny", "p")


@pytest.mark.parametrize(("fail_closed", "made"), [(True, []), (False, ["a:"])])
async def test_a_provider_that_fails_denies_unless_configured_otherwise(start, endpoint, fail_closed, made) -> None:
    endpoint.script(ToolCalls(("send", {"to": "a"})), Text("ok"))
    talk = opened(start, Spy(RuntimeError("down")), fail_closed=fail_closed)
    result = next(message for message in await talk.say("go") if isinstance(message, ToolMessage))
    assert MADE == made
    assert ("oap.evaluator_error" in result.text) == fail_closed


async def test_a_reason_that_is_missing_has_a_text_of_its_own(start, endpoint) -> None:
    endpoint.script(ToolCalls(("send", {"to": "a"})), Text("ok"))
    said = await opened(start, Spy(GuardrailDecision(False))).say("go")
    assert "blocked by guardrail policy (oap.denied)" in said[2].text


@pytest.mark.parametrize(
    ("lists", "allowed"),
    [
        ({}, True),
        ({"allowed_tools": []}, False),
        ({"allowed_tools": ["send"]}, True),
        ({"allowed_tools": ["look"]}, False),
        ({"denied_tools": ["send"]}, False),
        ({"allowed_tools": ["send"], "denied_tools": ["send"]}, False),
    ],
)
async def test_lists_of_tools(lists, allowed) -> None:
    provider = AllowlistProvider(**lists)
    assert isinstance(provider, GuardrailProvider)
    request = GuardrailRequest("send", {})
    assert provider.evaluate(request).allow == (await provider.aevaluate(request)).allow == allowed
    assert provider.evaluate(request).reasons[0].code == ("oap.allowed" if allowed else "oap.tool_not_allowed")


async def test_each_call_waits_for_its_own_decision_and_its_siblings_run_once(start, endpoint) -> None:
    calls = [("send", {"to": name}) for name in "abcd"]
    endpoint.script(ToolCalls(calls[0], ("look", {}), *calls[1:]), Text("all done"))
    talk = opened(start, ASK)
    waiting = await asked(talk)
    assert MADE == ["look"] and len(waiting) == 4
    assert waiting[0].value["action_requests"] == [
        {"name": "send", "args": {"to": "a"}, "description": "the tool 'send' needs your approval"}
    ]
    assert waiting[0].value["reason"] == "deerflow.ask"
    assert waiting[0].value["review_configs"][0]["allowed_decisions"] == ["approve", "edit", "reject", "respond"]
    await answered(talk, (waiting[3], {"type": "approve"}))
    assert MADE == ["look", "d:"]
    results = await answered(
        talk,
        (waiting[1], {"type": "reject", "message": "not to b"}),
        (waiting[0], {"type": "edit", "edited_action": {"name": "send", "args": {"to": "z", "text": "hi"}}}),
        (waiting[2], {"type": "respond", "message": "c knows already"}),
    )
    assert MADE == ["look", "d:", "z:hi"]
    by_id = {message.tool_call_id[-1]: message for message in results}
    assert by_id["0"].text == "sent to z"
    assert by_id["0"].additional_kwargs["decision"] == {"type": "edit", "args": {"to": "z", "text": "hi"}}
    assert by_id["3"].additional_kwargs["decision"] == {"type": "respond", "message": "c knows already"}
    assert "rejected this call" in by_id["2"].text and "not to b" in by_id["2"].text and by_id["2"].status == "error"
    assert (
        by_id["3"].text == "The user answered instead of the call, which was not made:\nc knows already"
        and by_id["4"].text == "sent to d"
    )
    assert 'changed the arguments of this call before it was made: {"to": "z", "text": "hi"}' in str(talk.request())
    assert (await talk.messages())[-1].text == "all done"


async def test_an_edited_call_is_judged_again(start, endpoint) -> None:
    ask = GuardrailDecision(False, ask=True)
    endpoint.script(ToolCalls(("send", {"to": "a"})), Text("ok"))
    talk = opened(start, Spy(ask, ask, DENY))
    [waiting] = await asked(talk)
    edit = {"type": "edit", "edited_action": {"name": "send", "args": {"to": "z"}}}
    [result] = await answered(talk, (waiting, edit))
    assert MADE == [] and "too much" in result.text


@pytest.mark.parametrize(
    "answer",
    [
        None,
        True,
        "yes",
        {"decisions": []},
        {"decisions": [{"type": "approve"}, {"type": "approve"}]},
        {"decisions": [{"type": "perhaps"}]},
        {"decisions": [{"type": "edit"}]},
        {"decisions": [{"type": "edit", "edited_action": {"name": "look", "args": {}}}]},
    ],
)
async def test_an_answer_that_cannot_be_read_decides_nothing(start, endpoint, answer) -> None:
    endpoint.script(ToolCalls(("send", {"to": "a"})), Text("ok"))
    talk = opened(start, ASK)
    [waiting] = await asked(talk)
    await talk.graph.ainvoke(Command(resume={waiting.id: answer}), talk.config, context=talk.context)
    [again] = (await talk.graph.aget_state(talk.config)).interrupts
    assert again.value["error"] and MADE == []
    await answered(talk, (again, {"type": "approve"}))
    assert MADE == ["a:"]


async def test_interrupts_of_a_provider_pass(start, endpoint) -> None:
    endpoint.script(ToolCalls(("send", {"to": "a"})), Text("ok"))
    talk = opened(start, Spy(GraphInterrupt([])))
    await talk.graph.ainvoke({"messages": [HumanMessage("go")]}, talk.config, context=talk.context)
    assert MADE == []


class Framed:
    name = "framed"

    def __init__(self, framework: str, limit: int = 1) -> None:
        self.framework, self.limit = framework, limit

    evaluate = aevaluate = Spy.evaluate


class Mute:
    name = "mute"


def test_the_configured_provider_is_built() -> None:
    here = f"{__name__}:Framed"
    config = GuardrailsConfig.model_validate({"enabled": True, "passport": "p", "provider": {"use": here}})
    made = guardrail_of(config)
    assert isinstance(made.provider, Framed) and made.provider.framework == "deerflow" and made.passport == "p"


@pytest.mark.parametrize(
    ("provider", "said"),
    [
        ({"use": f"{__name__}:Framed", "config": {"colour": 1}}, "guardrails.provider.config does not fit"),
        ({"use": f"{__name__}:Mute"}, "has no name, evaluate and aevaluate"),
    ],
)
def test_a_guardrail_that_cannot_work_is_an_error(provider, said) -> None:
    with pytest.raises(ValueError, match=said):
        guardrail_of(GuardrailsConfig.model_validate({"enabled": True, "provider": provider}))
