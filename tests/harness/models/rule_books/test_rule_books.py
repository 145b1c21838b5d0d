"""A thread with all that threads hold goes through every vendor's rules."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import openai
import pytest
from bench.rule_books import (
    ANTHROPIC_RULES,
    BY_HOST,
    DEEPSEEK,
    GEMINI,
    GROQ,
    MINIMAX,
    MISTRAL,
    OPENROUTER,
    RULE_BOOKS,
    RuleBook,
)
from bench.scripted_openai import RawChunks, ScriptedOpenAI, Text
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from tests.harness.models.openai_family.contract import PIXEL

from deerflow.agents.middlewares.base import fuse
from deerflow.agents.middlewares.dangling_tool_call_middleware import DanglingToolCallMiddleware
from deerflow.agents.middlewares.llm_error_handling_middleware import LLMErrorHandlingMiddleware
from deerflow.agents.middlewares.tool_calls_middleware import ToolOrderMiddleware
from deerflow.agents.middlewares.tool_error_handling_middleware import ToolErrorHandlingMiddleware
from deerflow.agents.thread_state import ThreadState
from deerflow.context import RunContext
from deerflow.models.openai import OpenAIChatModel

RULES = [(book, number) for book in RULE_BOOKS for number in range(len(book.rules))]
MODELS = {GROQ.name: "llama-4", GEMINI.name: "gemini-3-pro"}
SIGNATURE = {"google": {"thought_signature": "c2ln"}}
DETAIL = {"type": "reasoning.text", "text": "hm", "format": "anthropic-claude-v1", "index": 0, "id": None}
THOUGHTS: dict[str, dict[str, Any]] = {
    "openai": {},
    "groq": {"content": "<think>hm</think>"},
    "mistral": {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
    "minimax": {"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
    "openrouter": {"reasoning": "hm", "reasoning_details": [{**DETAIL, "signature": "sig"}]},
    "anthropic": {},
    "gemini": {},
    "vllm": {"reasoning": "hm"},
    "ollama": {"reasoning": "hm"},
}
"""Fields in which each vendor sends thoughts; the others as ``reasoning_content``."""

ran: list[str] = []


@tool
def bash(command: str) -> str:
    """Run. The first of two takes longer."""
    if command == "one":
        time.sleep(0.02)
    ran.append(command)
    return f"ran {command}"


@pytest.fixture
def endpoint() -> Iterator[ScriptedOpenAI]:
    with ScriptedOpenAI() as server:
        server.rule_books = BY_HOST
        ran.clear()
        yield server


async def model_at(endpoint: ScriptedOpenAI, host: str, name: str, **settings: Any) -> OpenAIChatModel:
    """Return a model at a vendor's address, which the endpoint stands for as a proxy."""
    common = {"api_key": "k", "openai_proxy": f"http://{endpoint.host}:{endpoint.port}", "max_retries": 0}
    build = partial(OpenAIChatModel, model=name, base_url=f"http://{host}/v1", **common, **settings)
    return await asyncio.to_thread(build)  # reads certificates


def streamed(*deltas: dict[str, Any], end: str = "stop") -> RawChunks:
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": end})
    return RawChunks([{"id": "1", "object": "chat.completion.chunk", "choices": [choice]} for choice in choices])


def call(id_: str, command: str, name: str = "bash", **fields: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": f'{{"command": "{command}"}}'}
    return {"index": 0, "id": id_, "type": "function", "function": function, **fields}


async def no_sleep(seconds: float) -> None:
    return None


class Thread:
    """One thread whose turns may go to different models."""

    def __init__(self) -> None:
        self.saver = InMemorySaver()
        self.config: Any = {"configurable": {"thread_id": "t"}}
        self.graph: Any = None

    def switch(self, model: OpenAIChatModel) -> None:
        chain = [
            ToolOrderMiddleware(),  # without it the two commands of one answer run at once, in threads
            DanglingToolCallMiddleware(),
            LLMErrorHandlingMiddleware(sleep=no_sleep),
            ToolErrorHandlingMiddleware(),
        ]
        self.graph = create_agent(
            model,
            [bash],
            system_prompt="Be brief.",
            middleware=fuse(chain),
            state_schema=ThreadState,
            context_schema=RunContext,
            checkpointer=self.saver,
        )

    async def say(self, content: Any) -> str:
        message = HumanMessage(content, name="ann")
        async for _ in self.graph.astream({"messages": [message]}, self.config, stream_mode=["messages"]):
            pass
        return (await self.messages())[-1].text

    async def messages(self) -> list[Any]:
        return (await self.graph.aget_state(self.config)).values["messages"]

    async def add(self, *messages: Any) -> None:
        """Leave the thread as an interruption leaves it."""
        await self.graph.aupdate_state(self.config, {"messages": list(messages)}, as_node="model")


@pytest.mark.parametrize(("book", "number"), RULES, ids=[f"{book.name}-{number}" for book, number in RULES])
def test_each_rule_refuses_its_example(book: RuleBook, number: int) -> None:
    rule = book.rules[number]
    body = {"model": "llama", "messages": list(rule.example), "max_completion_tokens": 1}
    assert rule.check(body)
    assert rule.document.startswith("https://")
    assert book.refusal(body) is not None


@pytest.mark.parametrize("book", RULE_BOOKS, ids=[book.name for book in RULE_BOOKS])
async def test_a_thread_of_five_turns_keeps_every_rule(endpoint: ScriptedOpenAI, book: RuleBook) -> None:
    thinks = THOUGHTS.get(book.name, {"reasoning_content": "hm"})
    thinking = [thinks] if thinks else []
    signed = {"extra_content": SIGNATURE} if book is GEMINI else {}
    thread = Thread()
    # A stranger began it: its ids, its thoughts, its names, two calls with one index.
    thread.switch(await model_at(endpoint, "other.example", "stranger"))
    foreign = [call("functions.bash:0", "one"), call("functions.bash:1", "two"), call("x", "three", "functions.bash")]
    endpoint.script(
        streamed({"reasoning_content": "foreign thoughts"}, *[{"tool_calls": [one]} for one in foreign]),
        streamed({"content": "first"}),
    )
    assert await thread.say("begin") == "first"
    assert ran == ["one", "two"]

    thread.switch(await model_at(endpoint, book.host, MODELS.get(book.name, "m"), max_tokens=100))
    endpoint.script(
        streamed(*thinking, {"tool_calls": [call("call_12345", "four", **signed)]}, end="tool_calls"),
        streamed(*thinking, {"content": "second"}),
        streamed({"tool_calls": [call("call_12345", "five", "bash<|channel|>commentary", **signed)]}, end="tool_calls"),
        streamed({"content": "third"}),
        streamed({"content": "fourth"}),
        streamed({"content": "fifth"}),
    )
    assert await thread.say(["go on", {"type": "text", "text": "please", "extra": 1}]) == "second"
    assert (
        await thread.say([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": PIXEL}}])
        == "third"
    )
    asked = AIMessage("", tool_calls=[{"name": "bash", "args": {}, "id": "cut"}])
    await thread.add(asked)
    assert await thread.say("still there?") == "fourth"
    asked = AIMessage("", tool_calls=[{"name": "bash", "args": {}, "id": "done"}])
    await thread.add(asked, ToolMessage("ok", tool_call_id="done"))
    assert await thread.say("and now") == "fifth"

    assert endpoint.refusals == []
    assert endpoint.unused == 0
    last = endpoint.requests[-1]["messages"]
    assert b"foreign thoughts" not in endpoint.raw_requests[-1] or book is DEEPSEEK
    assert b"<think>" not in endpoint.raw_requests[-1]
    kept = [
        message for message in await thread.messages() if isinstance(message, AIMessage) and message.text == "second"
    ]
    assert kept[0].additional_kwargs.get("reasoning_content") == ("hm" if thinks else None)
    returned = next(message for message in last if message["role"] == "assistant" and message["content"] == "second")
    if book in (MINIMAX, OPENROUTER):
        assert returned["reasoning_details"] == thinks["reasoning_details"]
    assert ("reasoning" in returned) is (book.name in ("vllm", "ollama"))
    if book is GEMINI:
        assert [m["tool_calls"][0]["extra_content"] for m in last if m.get("tool_calls")][1] == SIGNATURE
    if book is MISTRAL:
        assert endpoint.requests[-1]["max_tokens"] == 100
    names = {c["function"]["name"] for m in last for c in m.get("tool_calls") or ()}
    assert names == {"bash", "functions_bash", "bash__channel__commentary"}
    came = {c["name"] for m in await thread.messages() if isinstance(m, AIMessage) for c in m.tool_calls}
    assert came == {"bash", "functions.bash", "bash<|channel|>commentary"}


@pytest.mark.parametrize("book", RULE_BOOKS, ids=[book.name for book in RULE_BOOKS])
async def test_a_longer_history_keeps_the_bytes_of_the_shorter_one(endpoint: ScriptedOpenAI, book: RuleBook) -> None:
    """Ids and all else that is translated stay the same over turns."""
    model = await model_at(endpoint, book.host, "m")
    history: list[Any] = [HumanMessage("hi", name="ann")]
    for number in range(3):
        endpoint.script(Text("ok"))
        await model.ainvoke(history)
        history.append(AIMessage("", tool_calls=[{"name": "a.b", "args": {"n": number}, "id": f"id.{number}"}]))
        history.append(ToolMessage("ok", tool_call_id=f"id.{number}"))
    first, second, third = endpoint.raw_requests
    assert second.startswith(first.removesuffix(b"]}") + b",")
    assert third.startswith(second.removesuffix(b"]}") + b",")


async def test_the_endpoint_refuses_by_the_book_of_the_host(endpoint: ScriptedOpenAI) -> None:
    settings: dict[str, Any] = {"openai_proxy": f"http://{endpoint.host}:{endpoint.port}", "max_retries": 0}
    build = partial(ChatOpenAI, model="m", api_key="k", base_url="http://api.groq.com/v1", **settings)
    model = await asyncio.to_thread(build)  # LangChain's own, which sends our names
    with pytest.raises(openai.BadRequestError, match="property 'name' is unsupported"):
        await model.ainvoke([HumanMessage("hi", name="ann")])
    assert len(endpoint.refusals) == 1


def test_the_rules_of_claude_hold_behind_a_gateway() -> None:
    assert OPENROUTER.rules is ANTHROPIC_RULES
