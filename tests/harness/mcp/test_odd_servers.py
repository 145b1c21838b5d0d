"""Servers beside the protocol: one odd message, tool or answer costs itself alone."""
# ruff: noqa: F811 - fixtures of other modules

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.harness.mcp import odd_server
from tests.harness.mcp.conftest import World
from tests.harness.mcp.test_turns_with_servers import client_of, file, result  # noqa: F401

from deerflow.config import AppConfig, Paths
from deerflow.context.run_options import RunOptions
from deerflow.features.mcp.questions import is_web_address
from deerflow.features.mcp.wire import ResponseLines
from deerflow.harness import Harness

STDIO: dict[str, Any] = {"command": sys.executable, "args": [odd_server.__file__], "isolation": "host"}


@pytest.fixture
def odd_http() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), odd_server.Http) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


async def test_arguments_arrive_whatever_they_are_called(world: World) -> None:
    tools = await world.tools({"s": STDIO})
    given = {name: name.upper() for name in odd_server.ARGUMENTS}
    assert json.loads((await world.call("s_say", **given)).content) == given
    synchronous = await asyncio.to_thread(
        tools["s_say"].invoke,
        {"type": "tool_call", "id": "c1", "name": "s_say", "args": {**given, "tool_runtime": None}},
    )
    assert json.loads(synchronous.content) == given


@pytest.mark.parametrize("kind", ["stdio", "/mcp", "/events"])
async def test_odd_tools_and_half_characters_cost_no_other_tool(world: World, odd_http: str, kind: str) -> None:
    tools = await world.tools({"s": STDIO if kind == "stdio" else {"type": "http", "url": odd_http + kind}})
    assert {f"s_{one['name']}" for one in odd_server.TOOLS if "name" in one} == set(tools)
    for name in ("empty", "none", "null", "odd"):
        assert (await world.call(f"s_{name}", x=1)).content == '{"x": 1}'
    assert (await world.call("s_half")).content == "half \ufffd emoji, whole \U0001f600, written \\ud83d"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", ""])
async def test_a_body_is_mended_wherever_its_pieces_are_cut(end: str) -> None:
    whole = f'data: {{"a": "\\ud83d \\ud83d\\ude00 \\\\ud83d"}}{end}: ping{end}'.encode() + b"\xe4"
    expected = f'data: {{"a": "\\ufffd \\ud83d\\ude00 \\\\ud83d"}}{end}: ping{end}\ufffd'
    for size in (1, 2, 3, 5, len(whole)):

        async def pieces(size: int = size) -> AsyncIterator[bytes]:
            for start in range(0, len(whole), size):
                yield whole[start : start + size]

        got = [piece async for piece in ResponseLines(httpx2.Response(200, content=pieces()))]
        assert b"".join(got).decode() == expected


SHOWN = {
    "/401": '401 Unauthorized: {"error":"invalid_token","error_description":"The API key is expired"}',
    "/403": "403 Forbidden: Access is only allowed from the office",
    "/429": "429 Too Many Requests: slow down",
    "/500": "500 Internal Server Error: ‹html›‹body›the database is down",
    "/html": "text/html",
}


async def test_a_refusal_over_http_is_shown_with_its_status_and_body(
    world: World, odd_http: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deerflow.features.mcp.server.FIRST_RETRY", 0.01)
    names = {f"{kind}{path}": (kind, path) for kind in ("http", "sse") for path in SHOWN}
    await world.tools({name: {"type": kind, "url": odd_http + path} for name, (kind, path) in names.items()})

    async def errors() -> dict[str, str]:
        return {one["name"]: one["error"] for one in await world.servers.states(world.config, world.provider)}

    first = await errors()
    assert "200 OK: ‹html›Login page" in first.pop("http/html")
    assert [name for name, error in first.items() if SHOWN[names[name][1]] not in error] == []

    async def all_retried() -> bool:
        return all(len(world.servers.log(name)) > 2 for name in first)

    await world.until(all_retried)
    after = await errors()
    assert {name: after[name] for name in first} == first, "it does not grow with each attempt"


async def test_a_call_that_is_refused_over_http_says_why(world: World, odd_http: str) -> None:
    await world.tools({"s": {"type": "http", "url": f"{odd_http}/calls"}})
    refused = await world.call("s_say")
    assert refused.status == "error" and "429 Too Many Requests: slow down" in refused.content
    assert (await world.state("s"))["state"] == "ready"


async def test_files_in_a_result_are_files_of_the_thread(world: World, tmp_path: Path) -> None:
    tools = await world.tools({"s": STDIO})
    config = AppConfig.model_validate({"sandbox": {"tool_image": {"enabled": False}}})
    harness = await asyncio.to_thread(Harness.build, config, Paths(tmp_path), ())
    context = await harness.run_context("t1", RunOptions())
    sandbox = await context.sandbox()
    runtime = SimpleNamespace(context=context, tool_call_id="c1")
    for name, ending in (("file", "Umsatz März.pdf"), ("bare", ".pdf"), ("sound", ".wav")):
        for _ in range(2):
            text = (await tools[f"s_{name}"].coroutine(runtime)).content
        path = text[text.index("/mnt/user-data") :].rstrip("]")
        assert path.startswith("/mnt/user-data/workspace/s/") and path.endswith(ending), text
        data, _ = await sandbox.read(path)
        assert data in (b"%PDF-1.4 odd", b"RIFF")
    assert len((await sandbox.list("/mnt/user-data/workspace/s"))[0]) == 3, "the same file is kept once"
    await harness.sandbox_provider.shutdown()


async def test_a_question_with_an_address_that_no_browser_should_open_is_declined(
    endpoint: ScriptedOpenAI, tmp_path: Path, file: Path
) -> None:
    file.write_text(json.dumps({"mcpServers": {"s": STDIO}}))
    endpoint.script(ToolCalls(("s_ask", {"url": "javascript:alert(1)//https://a.example"})), Text("Declined."))
    async with await client_of(endpoint, tmp_path) as client:
        await client.achat("Sign in.", thread_id="t")
        assert not (await client.athread_state("t"))["interrupts"]
    assert "decline" in result(endpoint.requests[-1])


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://pay.example/a?b#c", True),
        ("HTTP://pay.example", True),
        ("javascript:alert(1)", False),
        ("file:///etc/passwd", False),
        ("vscode://x/y", False),
        ("//pay.example", False),
        ("http://", False),
        ("http://[x", False),
        ("", False),
    ],
)
def test_only_addresses_of_the_web_are_shown(url: str, expected: bool) -> None:
    assert is_web_address(url) is expected
