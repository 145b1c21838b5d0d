"""Answers and sockets that go on, over real sockets: they end with what was shown for them."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets
from bench.scripted_openai import Delay, ScriptedOpenAI, Text
from sqlalchemy import text
from tests.app.gateway.conftest import Gateway, listening, settings_for

from deerflow.config import ConfigSource, Paths
from deerflow.runs.protocol_stream import ProtocolStreams
from deerflow.runtime import Runtime
from deerflow.storage.database import Database
from deerflow_app.gateway.http import streaming
from deerflow_app.gateway.routes import events

LONG = Delay(0, Text(chunks=["word "] * 2000), between=0.05)
Revoke = Callable[[], Awaitable[object]]


@pytest.fixture
async def house(tmp_path: Path, scripted: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Gateway]:
    """A gateway that looks at credentials whenever something is sent."""
    monkeypatch.setattr("deerflow_app.gateway.app.RECHECK_SECONDS", 0.05)
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr(streaming, "KEEP_ALIVE_SECONDS", 0.05)
    model = {"name": "m", "use": "langchain_openai:ChatOpenAI", "model": "x", "base_url": scripted.base_url}
    overrides = {"models": [{**model, "api_key": "k"}], "title": {"enabled": False}, "runs": {"drain_seconds": 0}}
    runtime = await asyncio.to_thread(Runtime, ConfigSource(cwd=tmp_path, overrides=overrides), Paths(tmp_path))
    async with listening(settings_for(tmp_path), runtime) as gateway:
        await gateway.populate()
        yield gateway


async def signed_in(house: Gateway) -> tuple[httpx.AsyncClient, Revoke]:
    client = await house.sign_in("user@example.org")
    again = httpx.AsyncClient(base_url=house.url, cookies=client.cookies, headers=client.headers)
    return client, lambda: _closing(again, again.post("/api/v1/auth/logout"))


async def with_token(house: Gateway) -> tuple[httpx.AsyncClient, Revoke]:
    client = await house.token(house.user, "read", "write")
    [token] = (await house.user.get("/api/v1/auth/tokens")).json()["tokens"]
    return client, lambda: house.user.delete(f"/api/v1/auth/tokens/{token['id']}")


async def deleted(house: Gateway) -> tuple[httpx.AsyncClient, Revoke]:
    me = (await house.user.get("/api/v1/auth/me")).json()
    return house.user, lambda: house.admin.delete(f"/api/v1/users/{me['id']}")


async def _closing(client: httpx.AsyncClient, work: Awaitable[object]) -> None:
    async with client:
        await work


async def started(client: httpx.AsyncClient, scripted: ScriptedOpenAI, how: str) -> tuple[str, dict[str, Any]]:
    scripted.script(LONG)
    body = {"input": {"messages": [{"role": "user", "content": "go"}]}, "stream_mode": ["messages-tuple"]}
    thread_id = (await client.post("/api/threads", json={})).json()["thread_id"]
    return f"/api/threads/{thread_id}/runs/{how}", body


@pytest.mark.parametrize("show", [signed_in, with_token, deleted])
async def test_a_stream_ends_when_what_was_shown_for_it_is_revoked(
    house: Gateway, scripted: ScriptedOpenAI, show: Callable[[Gateway], Awaitable[tuple[httpx.AsyncClient, Revoke]]]
) -> None:
    client, revoke = await show(house)
    url, body = await started(client, scripted, "stream")
    async with asyncio.timeout(60), client.stream("POST", url, json=body) as answer:
        assert answer.status_code == 200
        lines = answer.aiter_lines()
        while "word" not in await anext(lines):
            pass
        assert getattr(await revoke(), "is_success", True)
        rest = [line async for line in lines]
    assert "event: end" not in rest
    assert (await client.get("/api/v1/auth/me")).status_code == 401


@pytest.mark.parametrize("path", ["/api/events", "/api/threads/{}/stream/events"])
async def test_a_stream_that_only_beats_ends_as_well(
    house: Gateway, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ProtocolStreams.open.__kwdefaults__ or {}, "heartbeat", 0.05)
    client, revoke = await with_token(house)
    thread_id = (await client.post("/api/threads", json={})).json()["thread_id"]
    how: dict[str, Any] = {"method": "POST", "json": {"channels": ["values"]}} if "{}" in path else {"method": "GET"}
    async with asyncio.timeout(60), client.stream(url=path.format(thread_id), **how) as answer:
        beats = answer.aiter_lines()
        assert await anext(beats) == ": heartbeat"
        await revoke()
        assert [line async for line in beats if line.startswith("data:")] == []


@pytest.mark.parametrize("everywhere", [False, True])
async def test_a_silent_stream_ends_when_another_process_ends_the_session(
    house: Gateway, everywhere: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 3600)
    client, _ = await signed_in(house)
    user_id = (await client.get("/api/v1/auth/me")).json()["id"]
    async with asyncio.timeout(60), client.stream("GET", "/api/events") as answer:
        beats = answer.aiter_lines()
        assert await anext(beats) == ": heartbeat"
        statement = "DELETE FROM sessions WHERE user_id = :id"
        if everywhere:
            statement = "UPDATE users SET token_version = token_version + 1 WHERE id = :id"
        database = Database(house.runtime.database.location)
        await database.write(lambda connection: connection.execute(text(statement), {"id": user_id}))
        await database.aclose()
        assert [line async for line in beats if line.startswith("data:")] == []


async def test_who_waits_for_a_run_is_sent_away(house: Gateway, scripted: ScriptedOpenAI) -> None:
    client, revoke = await signed_in(house)
    url, body = await started(client, scripted, "wait")
    async with asyncio.timeout(60), client.stream("POST", url, json=body) as answer:
        pieces = answer.aiter_bytes()
        await anext(pieces)
        await revoke()
        assert b"".join([piece async for piece in pieces]).strip() == b""


async def test_an_idle_socket_is_closed(house: Gateway) -> None:
    client, revoke = await with_token(house)
    url = house.url.replace("http", "ws") + f"/api/threads/{uuid.uuid4()}/stream/events"
    shown = {"authorization": client.headers["authorization"]}
    async with asyncio.timeout(60), websockets.connect(url, additional_headers=shown) as socket:
        await socket.send('{"id": 1, "method": "subscription.subscribe", "params": {"channels": ["values"]}}')
        assert "subscription_id" in str(await socket.recv())
        await revoke()
        with pytest.raises(websockets.ConnectionClosed):
            await socket.recv()
        assert socket.close_code == 1008


async def test_what_holds_goes_on(house: Gateway, scripted: ScriptedOpenAI) -> None:
    client, _ = await with_token(house)
    url, body = await started(client, scripted, "stream")
    async with asyncio.timeout(60), client.stream("POST", url, json=body) as answer:
        seen = 0
        async for line in answer.aiter_lines():
            seen += "word" in line
            if seen == 20:
                break
    assert seen == 20
