"""All of them together, in the chain's order, over several turns of one thread."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from bench.scripted_openai import Cut, Empty, HttpError, RawToolCall, Text, ToolCalls
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from PIL import Image

from deerflow.agents.middlewares.clarification_middleware import ClarificationMiddleware
from deerflow.agents.middlewares.dangling_tool_call_middleware import DanglingToolCallMiddleware
from deerflow.agents.middlewares.llm_error_handling_middleware import LLMErrorHandlingMiddleware
from deerflow.agents.middlewares.loop_detection_middleware import LoopDetectionMiddleware
from deerflow.agents.middlewares.sandbox_audit_middleware import SandboxAuditMiddleware
from deerflow.agents.middlewares.todo_middleware import TodoMiddleware
from deerflow.agents.middlewares.token_usage_middleware import TokenUsageMiddleware
from deerflow.agents.middlewares.tool_error_handling_middleware import ToolErrorHandlingMiddleware
from deerflow.agents.middlewares.view_image_middleware import ViewImageMiddleware
from deerflow.context import RunContext
from deerflow.sandbox.converters import Converters
from deerflow.tools.clarification import ask_clarification_tool
from deerflow.tools.images import view_image_tool


@pytest.fixture
def context(context: RunContext, converters: Converters) -> RunContext:
    return replace(context, machine=replace(context.machine, converters=converters))


@tool
def bash(command: str) -> str:
    """Run."""
    return f"ran {command}"


async def no_sleep(seconds: float) -> None:
    return None


def opened(start) -> Any:
    chain = [
        DanglingToolCallMiddleware(),
        LLMErrorHandlingMiddleware(sleep=no_sleep),
        SandboxAuditMiddleware(),
        ToolErrorHandlingMiddleware(),
        TodoMiddleware(),
        TokenUsageMiddleware(),
        ViewImageMiddleware(),
        LoopDetectionMiddleware(),
        ClarificationMiddleware(),
    ]
    return start(*chain, tools=[bash, ask_clarification_tool, view_image_tool])


LS = ToolCalls(("bash", {"command": "ls"}))
PLAN = ToolCalls(("write_todos", {"todos": [{"content": "look", "status": "in_progress"}]}))
REMINDERS = {"loop_warning", "todo_reminder", "todo_completion_reminder", "empty_answer_reminder"}


def lasting(request: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A request without the reminders at its tail."""
    end = len(request)
    while request[end - 1].get("name") in REMINDERS:
        end -= 1
    return request[:end]


def without_images(messages: list[dict[str, Any]]) -> list[Any]:
    return [message.get("name") if message.get("name") == "viewed_images" else message for message in messages]


async def test_a_stormy_thread_keeps_the_beginning_of_its_prompt_and_ends_every_turn(
    start, endpoint, workspace
) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (2, 2), "red").save(buffer, "PNG")
    (workspace.workspace / "a.png").write_bytes(buffer.getvalue())
    talk = opened(start)
    turns = [
        [
            HttpError(503),
            PLAN,
            Cut(),
            RawToolCall("bash", '{"command": broken}'),
            LS,
            Text("done?"),
            Text("yes"),
        ],
        [
            ToolCalls(
                ("view_image", {"image_path": "/mnt/user-data/workspace/a.png"}), ("bash", {"command": "rm -rf /"})
            ),
            Text("red"),
        ],
        [LS, LS, LS, LS, LS, Text("it is a loop")],
        [
            LS,
            ToolCalls(
                ("bash", {"command": "x"}),
                ("ask_clarification", {"question": "Which?", "clarification_type": "missing_info"}),
            ),
        ],
        [Empty(), Text("back again")],
        [ToolCalls(("nosuch", {})), HttpError(401)],
        [Text("bye")],
    ]
    for number, replies in enumerate(turns):
        endpoint.script(*replies)
        messages = await talk.say(f"turn {number}")
        assert endpoint.unused == 0, number
        assert await talk.finished(), number
        assert not (isinstance(messages[-1], AIMessage) and messages[-1].tool_calls)
    changed = 0
    for before, after in zip(endpoint.requests, endpoint.requests[1:], strict=False):
        kept = lasting(before["messages"])
        then = after["messages"][: len(kept)]
        changed += then != kept
        assert without_images(then) == without_images(kept)
        assert after["tools"] == before["tools"]
    assert changed == 1  # the image leaves
    assert not any(m.name in REMINDERS for m in await talk.messages())
    assert sum(m.type == "human" for m in await talk.messages()) == len(turns)


async def test_an_interrupted_thread_goes_on(start, endpoint) -> None:
    """The process died between the call and its result."""
    talk = opened(start)
    calls = [{"name": "bash", "args": {"command": "ls"}, "id": "lost"}]
    await talk.graph.aupdate_state(
        talk.config, {"messages": [("user", "go"), AIMessage("", tool_calls=calls)]}, as_node="tools"
    )
    endpoint.script(Text("I see that it was interrupted"))
    assert (await talk.say("and?"))[-1].content == "I see that it was interrupted"
    assert "interrupted" in talk.request()[2]["content"]


async def test_every_model_call_is_accounted_once(start, endpoint) -> None:
    endpoint.script(PLAN, Text("a"), Text("b"), *[LS] * 5, Text("d"))
    talk = opened(start)
    await talk.say("one")
    await talk.say("two")
    assert len(talk.events_of("token_usage")) == len(endpoint.requests) == 9
