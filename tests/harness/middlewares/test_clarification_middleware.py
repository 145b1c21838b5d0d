from __future__ import annotations

import json
from typing import Any

import pytest
from bench.scripted_openai import RawChunks, RawToolCall, Text, ToolCalls
from langchain.agents.middleware import AgentMiddleware, ModelResponse
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from deerflow.agents.factory import assemble
from deerflow.agents.middlewares.clarification_middleware import ClarificationMiddleware
from deerflow.agents.middlewares.dangling_tool_call_middleware import DanglingToolCallMiddleware
from deerflow.agents.middlewares.tool_error_handling_middleware import ToolErrorHandlingMiddleware
from deerflow.tools.clarification import ask_clarification_tool, clarification_message, clarification_text

QUESTION = ("ask_clarification", {"question": "Which file?", "clarification_type": "missing_info"})

executed: list[str] = []


@tool
def note(text: str) -> str:
    """Note."""
    executed.append(text)
    return "noted"


@pytest.fixture(autouse=True)
def _nothing_executed() -> None:
    executed.clear()


def chain() -> list[Any]:
    return [DanglingToolCallMiddleware(), ToolErrorHandlingMiddleware(), ClarificationMiddleware()]


TOOLS = [note, ask_clarification_tool]


async def test_a_question_alone_ends_the_turn_with_its_text(start, endpoint) -> None:
    endpoint.script(ToolCalls(QUESTION))
    talk = start(*chain(), tools=TOOLS)
    _human, ai, question = await talk.say("do it")
    assert len(endpoint.requests) == 1
    assert await talk.finished()
    assert isinstance(question, ToolMessage)
    assert (question.name, question.content) == ("ask_clarification", "❓ Which file?")
    assert question.id == f"clarification:{ai.tool_calls[0]['id']}"


@pytest.mark.parametrize("position", [0, 1, 2])
async def test_a_question_ends_the_turn_also_with_parallel_calls_and_none_of_them_runs(
    start, endpoint, position
) -> None:
    calls = [("note", {"text": "a"}), ("note", {"text": "b"})]
    calls.insert(position, QUESTION)
    endpoint.script(ToolCalls(*calls))
    talk = start(*chain(), tools=TOOLS)
    messages = await talk.say("do it")
    assert await talk.finished()
    assert executed == []
    assert len(endpoint.requests) == 1
    results = [m for m in messages if isinstance(m, ToolMessage)]
    assert len(results) == 3
    assert [m.status for m in results if m.name == "note"] == ["error", "error"]
    assert "question has to be answered" in results[1 if position == 0 else 0].content


async def test_the_next_turn_goes_on_with_the_answer(start, endpoint) -> None:
    endpoint.script(ToolCalls(QUESTION, ("note", {"text": "a"})), ToolCalls(("note", {"text": "b"})), Text("done"))
    talk = start(*chain(), tools=TOOLS)
    await talk.say("do it")
    messages = await talk.say("a.txt")
    assert executed == ["b"]
    assert messages[-1].content == "done"
    assert [m["role"] for m in talk.request(1)] == ["user", "assistant", "tool", "tool", "user"]


async def test_two_questions_are_both_shown(start, endpoint) -> None:
    endpoint.script(
        ToolCalls(QUESTION, ("ask_clarification", {"question": "When?", "clarification_type": "suggestion"}))
    )
    talk = start(*chain(), tools=TOOLS)
    messages = await talk.say("do it")
    assert [m.content for m in messages[2:]] == ["❓ Which file?", "💡 When?"]


@pytest.mark.parametrize("arguments", ["{broken", "[1, 2]", '"text', "{}"])
async def test_a_question_that_cannot_be_read_is_asked_again(start, endpoint, arguments) -> None:
    endpoint.script(
        ToolCalls(RawToolCall("ask_clarification", arguments), ("note", {"text": "a"})), ToolCalls(QUESTION)
    )
    talk = start(*chain(), tools=TOOLS)
    messages = await talk.say("do it")
    assert messages[-1].content == "❓ Which file?"
    assert executed == ["a"]


async def test_a_question_next_to_broken_json_ends_the_turn(start, endpoint) -> None:
    endpoint.script(ToolCalls(RawToolCall("note", "{broken"), QUESTION), Text("go"))
    talk = start(*chain(), tools=TOOLS)
    messages = await talk.say("do it")
    assert len(endpoint.requests) == 1
    assert {m.name for m in messages if isinstance(m, ToolMessage)} == {"note", "ask_clarification"}
    assert (await talk.say("x"))[-1].content == "go"


async def test_it_works_under_a_foreign_middleware_that_wraps_the_model(start, endpoint) -> None:
    class Foreign(AgentMiddleware):
        async def awrap_model_call(self, request, handler) -> Any:
            response = await handler(request)
            assert isinstance(response, ModelResponse)
            return response

    endpoint.script(ToolCalls(QUESTION, ("note", {"text": "a"})))
    talk = start(DanglingToolCallMiddleware(), Foreign(), ClarificationMiddleware(), tools=TOOLS)
    await talk.say("do it")
    assert await talk.finished()
    assert executed == []


async def test_without_the_middleware_the_tool_itself_ends_the_turn(start, endpoint) -> None:
    endpoint.script(ToolCalls(QUESTION))
    talk = start(tools=TOOLS)
    messages = await talk.say("do it")
    assert messages[-1].content == "❓ Which file?"
    assert messages[-1].id == f"clarification:{messages[1].tool_calls[0]['id']}"


async def test_other_calls_pass(start, endpoint) -> None:
    endpoint.script(ToolCalls(("note", {"text": "a"})), Text("done"))
    talk = start(*chain(), tools=TOOLS)
    assert [m.content for m in await talk.say("x")] == ["x", "", "noted", "done"]


async def test_calls_without_ids_are_answered_under_ids_of_their_own(start, endpoint) -> None:
    class NoIds(AgentMiddleware):
        async def awrap_model_call(self, request, handler) -> Any:
            calls = [{"name": name, "args": args, "id": None} for name, args in (QUESTION, ("note", {"text": "a"}))]
            return AIMessage(content="", tool_calls=calls)

    talk = start(*chain(), NoIds(), tools=TOOLS)
    messages = await talk.say("do it")
    assert [m.tool_call_id for m in messages[2:]] == [call["id"] for call in messages[1].tool_calls]
    assert all(call["id"] for call in messages[1].tool_calls)


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ([{"label": "PDF", "description": "to print"}, {"value": 2}], ["  1. PDF – to print", "  2. 2"]),
        (["a", "b"], ["  1. a", "  2. b"]),
        ('["a", "b"]', ["  1. a", "  2. b"]),
        ('"a"', ["  1. a"]),
        ("5", ["  1. 5"]),
        ("plain text", ["  1. plain text"]),
        (["a", 2, None], ["  1. a", "  2. 2", "  3. None"]),
        (None, []),
        ([], []),
        ("", []),
        ("null", []),
    ],
)
def test_options_come_in_many_forms(options: Any, lines: list[str]) -> None:
    text = clarification_text({"question": "Q?", "clarification_type": "approach_choice", "options": options})
    assert text == "\n".join(["🔀 Q?", *([""] if lines else []), *lines])


def test_the_context_stands_before_the_question() -> None:
    text = clarification_text(
        {"question": "Sure?", "clarification_type": "risk_confirmation", "context": "This deletes all."}
    )
    assert text == "⚠️ This deletes all.\n\nSure?"


@pytest.mark.parametrize("type_", [None, "", "unknown"])
def test_an_unknown_type_has_the_question_mark(type_: Any) -> None:
    assert clarification_text({"question": "Q", "clarification_type": type_}).startswith("❓")


def test_a_repeated_call_has_the_same_message_id_also_without_a_call_id() -> None:
    args = {"question": "Q"}
    assert clarification_message(args, None).id == clarification_message(args, None).id
    assert clarification_message(args, "c1").id == "clarification:c1"


async def test_a_question_never_replaces_that_of_an_earlier_turn_when_a_provider_counts_its_calls_anew(
    start, endpoint
) -> None:
    call = {"id": "call_0", "type": "function", "function": {"name": QUESTION[0], "arguments": json.dumps(QUESTION[1])}}
    chunk = {"choices": [{"index": 0, "delta": {"role": "assistant", "tool_calls": [{"index": 0, **call}]}}]}
    done = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    talk = start(*chain(), tools=TOOLS)
    for text in ("one", "two"):
        endpoint.script(RawChunks([chunk, done]))
        await talk.say(text)
    messages = await talk.messages()
    assert [message.type for message in messages] == ["human", "ai", "tool"] * 2
    assert messages[2].id == "clarification:call_0" != messages[5].id


class Afterwards(AgentMiddleware[Any, Any, Any]):
    """Somebody's own middleware with a node behind the model's."""

    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return None


async def test_a_question_ends_the_turn_whatever_else_comes_after_the_model(endpoint, context) -> None:
    endpoint.script(ToolCalls(QUESTION), Text("not asked for"))
    model = ChatOpenAI(model="m", base_url=endpoint.base_url, api_key=SecretStr("k"))
    agent = assemble(model, TOOLS, [*chain(), Afterwards()], system_prompt=None)
    state = await agent.ainvoke({"messages": [HumanMessage("do it")]}, context=context)
    assert len(endpoint.requests) == 1 and isinstance(state["messages"][-1], ToolMessage)
