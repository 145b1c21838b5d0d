"""DeerFlow as an MCP server over HTTP: the official client over a real socket, with an API token."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.app.gateway.conftest import Gateway, WithRuntime

NOTE = "/mnt/user-data/outputs/note.txt"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}
JSON = {"accept": "application/json, text/event-stream"}


@asynccontextmanager
async def client_of(gateway: Gateway, owner: Any, **options: Any) -> AsyncIterator[Client]:
    token = (await gateway.token(owner, "read", "write")).headers["authorization"]
    http = await asyncio.to_thread(httpx2.AsyncClient, headers={"Authorization": token}, timeout=30)
    async with http, Client(streamable_http_client(f"{gateway.url}/mcp", http_client=http), **options) as client:
        yield client


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_gives_work_and_gets_what_was_made(
    with_runtime: WithRuntime, scripted: ScriptedOpenAI, mode: str
) -> None:
    scripted.script(ToolCalls(("write_file", {"path": NOTE, "content": "Roses."})), Text("Written."))
    async with with_runtime() as gateway, client_of(gateway, gateway.user, mode=mode) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names == {"run_task", "get_run", "list_files", "get_file", "search_chats"}
        done = (await client.call_tool("run_task", {"task": "A note about roses, please."})).structured_content
        assert (done["status"], done["answer"], done["error"]) == ("done", "Written.", None)
        thread = {"thread_id": done["thread_id"]}
        assert (await client.call_tool("list_files", thread)).structured_content == {NOTE: 6}
        assert (await client.call_tool("get_file", {**thread, "path": NOTE})).content[0].text == "Roses."
        found = await client.call_tool("search_chats", {"query": "roses"})
        assert done["thread_id"] in str(found.structured_content)
        missing = await client.call_tool("get_file", {**thread, "path": "/etc/passwd"})
        assert missing.is_error


async def test_a_task_that_takes_long_is_found_again_and_goes_on_in_its_thread(
    with_runtime: WithRuntime, scripted: ScriptedOpenAI
) -> None:
    scripted.script(Text("First."), Text("Second."))
    async with with_runtime() as gateway, client_of(gateway, gateway.user) as client:
        begun = (await client.call_tool("run_task", {"task": "One.", "wait_seconds": 0})).structured_content
        thread = {"thread_id": begun["thread_id"]}
        run = (await gateway.user.get(f"/api/threads/{begun['thread_id']}/runs")).json()[0]
        await gateway.user.get(f"/api/threads/{begun['thread_id']}/runs/{run['run_id']}/join")
        assert (await client.call_tool("get_run", thread)).structured_content["answer"] == "First."
        again = (await client.call_tool("run_task", {"task": "Two.", **thread})).structured_content
        assert (again["thread_id"], again["answer"]) == (begun["thread_id"], "Second.")


async def test_what_is_someone_elses_is_not_there_and_the_answer_says_so(
    with_runtime: WithRuntime, scripted: ScriptedOpenAI
) -> None:
    scripted.script(Text("Mine."))
    async with with_runtime() as gateway:
        async with client_of(gateway, gateway.user) as client:
            thread_id = (await client.call_tool("run_task", {"task": "Secret."})).structured_content["thread_id"]
        async with client_of(gateway, gateway.admin) as client:
            for tool, more in (
                ("get_run", {}),
                ("list_files", {}),
                ("get_file", {"path": NOTE}),
                ("run_task", {"task": "And?"}),
            ):
                answer = await client.call_tool(tool, {"thread_id": thread_id, **more})
                assert answer.is_error and f"no thread {thread_id}" in answer.content[0].text
            nothing = await client.call_tool("search_chats", {"query": "secret"})
            assert thread_id not in str(nothing.structured_content)


async def test_who_shows_no_token_or_a_wrong_one_is_told(with_runtime: WithRuntime) -> None:
    async with with_runtime() as gateway:
        for headers in ({}, {"authorization": "Bearer df_wrong"}):
            answer = await gateway.anonymous.post("/mcp", json=INITIALIZE, headers={**JSON, **headers})
            assert answer.status_code == 401
            assert "API token" in answer.json()["detail"] and answer.headers["www-authenticate"] == "Bearer"
        reader = await gateway.token(gateway.user, "read")
        work = {**INITIALIZE, "method": "tools/call", "params": {"name": "run_task", "arguments": {"task": "Hi"}}}
        refused = await reader.post("/mcp", json=work, headers=JSON)
        assert refused.status_code == 403 and "'write'" in refused.json()["detail"]
        assert (await reader.get("/mcp", headers=JSON)).status_code == 405


async def test_a_request_that_is_too_large_is_refused_however_it_is_sent(with_runtime: WithRuntime) -> None:
    async with with_runtime() as gateway:
        program = await gateway.token(gateway.user, "read", "write")
        limit = gateway.settings.max_body_bytes

        async def endless() -> AsyncIterator[bytes]:
            yield b'{"jsonrpc": "'
            for _ in range(limit // (1 << 16) + 1):
                yield b"x" * (1 << 16)

        headers = {**JSON, "content-type": "application/json"}
        announced = await program.post("/mcp", content=b"x" * (limit + 1), headers=headers)
        assert announced.status_code == 413
        assert (await program.post("/mcp", content=endless(), headers=headers)).status_code == 413
        escaped = json.dumps({**INITIALIZE, "params": {**INITIALIZE["params"], "_meta": {"name": "é" * 200}}})
        assert (await program.post("/mcp", content=escaped, headers=headers)).status_code == 200
