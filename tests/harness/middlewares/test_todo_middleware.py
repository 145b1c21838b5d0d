from __future__ import annotations

from typing import Any

import pytest
from bench.scripted_openai import Empty, HttpError, Text, ToolCalls
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool

from deerflow.agents.middlewares.base import is_error
from deerflow.agents.middlewares.clarification_middleware import ClarificationMiddleware
from deerflow.agents.middlewares.dangling_tool_call_middleware import DanglingToolCallMiddleware
from deerflow.agents.middlewares.llm_error_handling_middleware import LLMErrorHandlingMiddleware
from deerflow.agents.middlewares.loop_detection_middleware import LoopDetectionMiddleware
from deerflow.agents.middlewares.todo_middleware import TODO_PROMPT, TodoMiddleware
from deerflow.tools.clarification import ask_clarification_tool


@tool
def step(n: int) -> str:
    """Step."""
    return f"did {n}"


def todos(*statuses: str) -> tuple[str, dict[str, Any]]:
    return "write_todos", {"todos": [{"content": f"item {i}", "status": s} for i, s in enumerate(statuses)]}


async def no_sleep(seconds: float) -> None:
    return None


def chain(**settings: Any) -> list[Any]:
    return [
        DanglingToolCallMiddleware(),
        LLMErrorHandlingMiddleware(sleep=no_sleep),
        TodoMiddleware(**settings),
        LoopDetectionMiddleware(),
        ClarificationMiddleware(),
    ]


def opened(start, **settings: Any):
    return start(*chain(**settings), tools=[step, ask_clarification_tool])


async def test_the_tool_stores_the_list_and_says_how_far_it_is(start, endpoint) -> None:
    endpoint.script(ToolCalls(todos("completed", "completed")), Text("done"))
    talk = opened(start)
    messages = await talk.say("go")
    assert (await talk.state())["todos"] == todos("completed", "completed")[1]["todos"]
    assert messages[2].content == "Updated todo list: 2 of 2 completed."
    assert messages[2].name == "write_todos"


async def test_a_model_that_stops_too_early_is_asked_on_in_the_same_step(start, endpoint) -> None:
    endpoint.script(
        ToolCalls(todos("completed", "in_progress", "pending")),
        Text("all done!"),
        ToolCalls(("step", {"n": 1})),
        ToolCalls(todos("completed", "completed", "completed")),
        Text("now it is done"),
    )
    talk = opened(start)
    messages = await talk.say("go")
    reminder = talk.tail(2)
    assert "todo list is not finished" in reminder
    assert "- [in_progress] item 1\n- [pending] item 2" in reminder
    assert "item 0" not in reminder
    assert [m.content for m in messages if m.type == "ai"] == ["", "all done!", "", "", "now it is done"]
    assert not any(m.type == "human" for m in messages[1:]), "reminders never enter the thread"


async def test_one_reminder_per_turn_and_another_in_the_next(start, endpoint) -> None:
    endpoint.script(ToolCalls(todos("pending")), Text("a"), ToolCalls(("step", {"n": 1})), Text("b"))
    talk = opened(start)
    assert (await talk.say("go"))[-1].content == "b"
    assert endpoint.unused == 0
    endpoint.script(ToolCalls(todos("pending")), Text("d"), Text("e"))
    assert (await talk.say("more"))[-1].content == "e"
    assert endpoint.unused == 0


async def test_a_plan_that_waits_for_the_person_is_not_nagged(start, endpoint) -> None:
    endpoint.script(ToolCalls(todos("completed", "waiting", "pending")), Text("Shall I go on?"))
    talk = opened(start)
    assert (await talk.say("go"))[-1].content == "Shall I go on?"
    assert len(endpoint.requests) == 2 and (await talk.state())["todos"][1]["status"] == "waiting"


async def test_todos_of_an_earlier_turn_do_not_nag(start, endpoint) -> None:
    """W-55"""
    endpoint.script(ToolCalls(todos("pending")), Text("a"), Text("b"), Text("the weather is fine"))
    talk = opened(start)
    await talk.say("go")
    assert (await talk.say("how is the weather?"))[-1].content == "the weather is fine"
    assert len(endpoint.requests) == 4
    assert talk.request()[-1]["content"] == "how is the weather?"


async def test_a_finished_list_does_not_nag(start, endpoint) -> None:
    endpoint.script(ToolCalls(todos("completed")), Text("done"))
    await opened(start).say("go")
    assert len(endpoint.requests) == 2


async def test_a_question_to_the_user_is_not_nagged(start, endpoint) -> None:
    endpoint.script(
        ToolCalls(todos("pending")),
        ToolCalls(("ask_clarification", {"question": "Q?", "clarification_type": "missing_info"})),
    )
    messages = await opened(start).say("go")
    assert messages[-1].content == "❓ Q?"
    assert len(endpoint.requests) == 2


async def test_a_failing_model_is_not_driven_on(start, endpoint) -> None:
    """W-10"""
    endpoint.script(ToolCalls(todos("pending")), HttpError(401))
    messages = await opened(start).say("go")
    assert is_error(messages[-1])
    assert len(endpoint.requests) == 2


async def test_a_loop_stop_is_not_undone(start, endpoint) -> None:
    """W-10"""
    endpoint.script(ToolCalls(todos("pending")), *[ToolCalls(("step", {"n": 1}))] * 5, Text("I give up"))
    messages = await opened(start).say("go")
    assert messages[-1].content == "I give up"
    assert len(endpoint.requests) == 7


@pytest.mark.parametrize("reply", [HttpError(500), HttpError(400), Empty()])
async def test_a_reminder_that_fails_leaves_the_answer_as_it_is(start, endpoint, reply) -> None:
    endpoint.script(ToolCalls(todos("pending")), Text("my answer"), reply)
    messages = await opened(start).say("go")
    assert messages[-1].content == "my answer"
    assert endpoint.unused == 0


async def test_of_parallel_lists_only_the_first_is_executed(start, endpoint) -> None:
    endpoint.script(ToolCalls(todos("completed"), todos("completed", "completed"), ("step", {"n": 1})), Text("done"))
    talk = opened(start)
    messages = await talk.say("go")
    assert len((await talk.state())["todos"]) == 1
    by_id = {m.tool_call_id: m for m in messages if isinstance(m, ToolMessage)}
    first, second, third = (by_id[call["id"]] for call in messages[1].tool_calls)
    assert (first.status, second.status, third.content) == ("success", "error", "did 1")
    assert "one write_todos call at a time" in second.content


async def test_a_list_that_was_not_touched_for_long_is_shown_again_once(start, endpoint) -> None:
    endpoint.script(
        ToolCalls(todos("in_progress", "completed")),
        *[ToolCalls(("step", {"n": n})) for n in range(4)],
        ToolCalls(todos("completed")),
        Text("x"),
    )
    talk = opened(start, remind_after=3)
    await talk.say("go")
    shown = ["Your todo list at this moment" in talk.tail(i) for i in range(len(endpoint.requests))]
    assert shown == [False, False, False, False, True, False, False]
    assert "- [in_progress] item 0\n- [completed] item 1" in talk.tail(4)


async def test_two_answers_in_a_row_are_separated_in_later_requests_by_the_same_bytes(start, endpoint) -> None:
    endpoint.script(ToolCalls(todos("pending")), Text("a"), Text("b"), Text("d"), Text("e"))
    talk = opened(start)
    await talk.say("go")
    await talk.say("one")
    await talk.say("two")
    assert [m["role"] for m in talk.request(-2)] == ["user", "assistant", "tool", *["assistant", "user"] * 2]
    assert talk.request(-1)[: len(talk.request(-2))] == talk.request(-2)


def test_the_prompt_is_fixed_text_about_the_tool() -> None:
    assert "write_todos" in TODO_PROMPT
    assert TODO_PROMPT.startswith("<todo_list_system>")
