"""Servers that ask in the middle of a call: the run waits, the call stays open, and is made once."""
# ruff: noqa: F811 - fixtures of other modules

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from mcp_types import ElicitRequestFormParams, ElicitRequestURLParams
from tests.harness.mcp.conftest import on_host
from tests.harness.mcp.test_turns_with_servers import client_of, file, result  # noqa: F401

from deerflow import DeerFlowClient
from deerflow.features.mcp import questions


async def answer(client: DeerFlowClient, given: dict[str, Any]) -> str:
    waiting = (await client.athread_state("t"))["interrupts"]
    async for _ in client.aresume("t", answers={waiting[0]["id"]: given}):
        pass
    return (await client.athread_state("t"))["values"]["messages"][-1]["content"]


async def asked(client: DeerFlowClient) -> dict[str, Any]:
    (waiting,) = (await client.athread_state("t"))["interrupts"]
    return waiting["value"]


OLD = {"OLD_PROTOCOL": "1"}


def shop(**more: Any) -> dict[str, Any]:
    """A server that asks by a request of its own."""
    return on_host(**{**more, "env": {**OLD, **more.get("env", {})}})


@pytest.fixture(params=["stdio", "http", "sse"])
async def entry(
    request: pytest.FixtureRequest, start: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    monkeypatch.setenv("OLD_PROTOCOL", "1")
    if request.param == "stdio":
        return shop()
    return {"type": request.param, "url": await asyncio.to_thread(start, request.param)}


async def test_what_a_server_asks_waits_for_the_person_and_the_call_is_made_once(
    endpoint: ScriptedOpenAI,
    tmp_path: Path,
    file: Path,
    entry: dict[str, Any],
) -> None:
    file.write_text(json.dumps({"mcpServers": {"shop": entry}}))
    endpoint.script(ToolCalls(("shop_order", {"what": "tea"})), Text("Ordered."))
    async with await client_of(endpoint, tmp_path) as client:
        await client.achat("Order tea.", thread_id="t")
        question = await asked(client)
        assert question["action_requests"][0] == {
            "name": "shop_order",
            "args": {"size": "small", "count": 1, "note": ""},
            "description": "shop asks: How much tea?",
        }
        assert question["elicitation"]["requested_schema"]["properties"]["size"]["enum"] == ["small", "large"]
        await answer(client, {"action": "accept", "content": {"size": "huge"}})
        assert "huge" in (await asked(client))["error"]
        edited = {"name": "shop_order", "args": {"size": "large", "count": 3, "note": ""}}
        await answer(client, {"decisions": [{"type": "edit", "edited_action": edited}]})
        assert "In whose name" in (await asked(client))["elicitation"]["message"]
        await answer(client, {"action": "accept", "content": {"name": "Ada"}})
    assert "3 large tea for Ada, 1 calls" in result(endpoint.requests[-1])


@pytest.mark.parametrize("kind", ["stdio", "http"])
async def test_the_newest_protocol_asks_by_an_answer_that_wants_more(
    endpoint: ScriptedOpenAI,
    tmp_path: Path,
    file: Path,
    start: Callable[..., str],
    kind: str,
) -> None:
    entry = on_host() if kind == "stdio" else {"type": "http", "url": await asyncio.to_thread(start, "http")}
    file.write_text(json.dumps({"mcpServers": {"shop": entry}}))
    endpoint.script(ToolCalls(("shop_book", {"what": "tea"}), ("shop_book", {"what": "lunch"})), Text("Booked."))
    async with await client_of(endpoint, tmp_path) as client:
        await client.achat("Book tea and lunch.", thread_id="t")
        waiting = (await client.athread_state("t"))["interrupts"]
        when = {"tea": "5", "lunch": "1"}
        answers = {
            one["id"]: {"action": "accept", "content": {"name": when[what]}}
            for one in waiting
            for what in when
            if f"When is {what}?" in one["value"]["elicitation"]["message"]
        }
        async for _ in client.aresume("t", answers=answers):
            pass
    results = [message["content"] for message in endpoint.requests[-1]["messages"] if message["role"] == "tool"]
    assert "accept {'name': '5'} kept" in results[0], "each question belongs to its call"
    assert "accept {'name': '1'} kept" in results[1]


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        ({"action": "decline"}, "decline, 1 calls"),
        ({"action": "cancel"}, "cancel, 1 calls"),
        ({"decisions": [{"type": "reject"}]}, "decline, 1 calls"),
    ],
)
async def test_a_person_may_decline_or_cancel(
    endpoint: ScriptedOpenAI,
    tmp_path: Path,
    file: Path,
    given: dict[str, Any],
    outcome: str,
) -> None:
    file.write_text(json.dumps({"mcpServers": {"shop": shop()}}))
    endpoint.script(ToolCalls(("shop_order", {"what": "tea"})), Text("Not ordered."))
    async with await client_of(endpoint, tmp_path) as client:
        await client.achat("Order tea.", thread_id="t")
        await answer(client, given)
    assert outcome in result(endpoint.requests[-1])


async def test_a_call_that_asks_for_approval_and_then_asks_itself_is_made_once(
    endpoint: ScriptedOpenAI,
    tmp_path: Path,
    file: Path,
) -> None:
    file.write_text(json.dumps({"mcpServers": {"shop": shop(tools={"order": {"policy": "ask"}})}}))
    endpoint.script(ToolCalls(("shop_order", {"what": "tea"})), Text("Ordered."))
    async with await client_of(endpoint, tmp_path) as client:
        await client.achat("Order tea.", thread_id="t")
        assert "elicitation" not in await asked(client)
        await answer(client, {"decisions": [{"type": "approve"}]})
        await answer(client, {"action": "accept", "content": {}})
        await answer(client, {"action": "accept", "content": {"name": "Ada"}})
    assert "1 small tea for Ada, 1 calls" in result(endpoint.requests[-1])


async def test_a_call_that_is_open_no_more_is_not_repeated(
    endpoint: ScriptedOpenAI,
    tmp_path: Path,
    file: Path,
) -> None:
    made = tmp_path / "made"
    file.write_text(json.dumps({"mcpServers": {"shop": shop(env={"MARKS": str(made)})}}))
    endpoint.script(ToolCalls(("shop_order", {"what": "tea"})), Text("I will check."))
    async with await client_of(endpoint, tmp_path) as client:
        await client.achat("Order tea.", thread_id="t")
    async with await client_of(endpoint, tmp_path) as client:
        await answer(client, {"action": "accept", "content": {}})
        assert (await client.athread_state("t"))["interrupts"] == []
    assert "was not repeated" in result(endpoint.requests[-1])
    assert await asyncio.to_thread(made.read_text) == "tea\n"


async def test_the_time_that_a_person_takes_counts_for_no_timeout_and_ends(
    endpoint: ScriptedOpenAI,
    tmp_path: Path,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file.write_text(json.dumps({"mcpServers": {"shop": shop(timeout=1)}}))
    endpoint.script(ToolCalls(("shop_order", {"what": "tea"})), Text("Ordered."))
    endpoint.script(ToolCalls(("shop_order", {"what": "milk"})), Text("Too late."))
    async with await client_of(endpoint, tmp_path) as client:
        await client.achat("Order tea.", thread_id="t")
        await asyncio.sleep(2)
        await answer(client, {"action": "accept", "content": {}})
        await answer(client, {"action": "accept", "content": {"name": "Ada"}})
        assert "for Ada" in result(endpoint.requests[-1])
        monkeypatch.setattr(questions, "ASK_SECONDS", 0.2)
        await client.achat("Order milk.", thread_id="t")
        await answer(client, {"decisions": [{"type": "approve"}]})  # the shop has brought text into the thread
        await asyncio.sleep(1)
        await answer(client, {"action": "accept", "content": {}})
        assert "was not repeated" in result(endpoint.requests[-1])


async def test_a_run_without_a_person_declines(endpoint: ScriptedOpenAI, tmp_path: Path, file: Path) -> None:
    file.write_text(json.dumps({"mcpServers": {"shop": shop()}}))
    endpoint.script(ToolCalls(("shop_order", {"what": "tea"})), Text("Not ordered."))
    async with await client_of(endpoint, tmp_path, unattended=True) as client:
        assert await client.achat("Order tea.", thread_id="t") == "Not ordered."
    assert "decline, 1 calls" in result(endpoint.requests[-1])


def test_what_is_asked_is_shown_without_what_could_mislead(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []

    def interrupt(value: Any) -> Any:
        shown.append(value)
        return {"action": "accept", "content": {"a": "x"}} if len(shown) < 3 else {"action": "cancel"}

    monkeypatch.setattr(questions, "interrupt", interrupt)
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "(x+)+$", "$ref": "https://evil.example", "minLength": 2}},
        "required": ["a", "b"],
    }
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
    form = ElicitRequestFormParams(message=f"Say\u202e {hidden}it" + "x" * 9000, requested_schema=schema)
    _, count = questions.answer_to("s", "s_t", "c1", form)
    asked = shown[0]["elicitation"]
    assert count == 3 and "too short" in shown[1]["error"]
    assert asked["requested_schema"]["properties"] == {"a": {"type": "string", "minLength": 2}}
    assert asked["requested_schema"]["required"] == ["a"]
    assert "\u202e" not in asked["message"] and hidden not in asked["message"] and len(asked["message"]) < 2100
    shown.clear()
    given, _ = questions.answer_to("s", "s_t", "c1", ElicitRequestURLParams(message="Pay", url="https://pay.example"))
    assert given.action == "accept" and given.content is None
    assert "https://pay.example" in shown[0]["action_requests"][0]["description"]
