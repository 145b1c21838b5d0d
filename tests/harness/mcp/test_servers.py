"""Sessions with real servers, over all transports, killed and hung in the middle."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.shared.memory import create_client_server_memory_streams
from tests.harness.mcp.conftest import World, free_port, on_host

from deerflow.config import AppConfig, ExtensionsConfig
from deerflow.config.env import MissingEnv
from deerflow.config.schema import McpServerConfig
from deerflow.features.mcp.server import McpServer


@pytest.mark.parametrize("kind", ["stdio", "http", "sse"])
async def test_a_server_is_reached_over_every_transport(world: World, start: Callable[..., str], kind: str) -> None:
    entry = on_host() if kind == "stdio" else {"type": kind, "url": await asyncio.to_thread(start, kind)}
    assert "s_echo" in await world.tools({"s": entry})
    assert (await world.call("s_echo", text="hello")).content == "hello"
    assert (await world.state("s"))["state"] == "ready"


async def test_a_killed_server_comes_back_and_its_call_says_so(world: World) -> None:
    await world.tools({"s": on_host()})
    died = await world.call("s_die")
    assert died.status == "error"
    assert "s" in died.content
    assert (await world.call("s_echo", text="again")).content == "again"


async def test_a_server_that_does_not_answer_costs_its_call_alone(world: World) -> None:
    await world.tools({"s": on_host(timeout=0.5)})
    late, echo = await asyncio.gather(world.call("s_hang"), world.call("s_echo", text="meanwhile"))
    assert "did not answer within 0.5 seconds" in late.content
    assert echo.content == "meanwhile"


async def test_a_cancelled_call_leaves_the_server_usable(world: World) -> None:
    await world.tools({"s": on_host()})
    call = asyncio.ensure_future(world.call("s_hang"))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await world.call("s_echo", text="still here")).content == "still here"


async def test_a_program_that_is_frozen_is_started_anew(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deerflow.features.mcp.server.OPEN_SECONDS", 3.0)
    await world.tools({"s": on_host(timeout=0.2)})
    before = (await world.state("s"))["since"]
    assert (await world.call("s_freeze")).status == "error"

    async def started_anew() -> bool:
        state = await world.state("s")
        return state["state"] == "ready" and state["since"] != before

    await world.until(started_anew)
    assert (await world.call("s_echo", text="back")).content == "back"


async def test_an_http_server_that_was_away_is_found_again(world: World, start: Callable[..., str]) -> None:
    port = free_port()
    await world.tools({"s": {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"}})
    assert (await world.state("s"))["state"] == "failed"
    await asyncio.to_thread(start, "http", port)

    async def is_ready() -> bool:
        return (await world.state("s"))["state"] == "ready"

    await world.until(is_ready)
    assert (await world.call("s_echo", text="found")).content == "found"


async def test_a_dead_server_costs_its_own_tools_only_and_says_why(world: World) -> None:
    tools = await world.tools(
        {
            "gone": {"command": "/no/such/program", "isolation": "host"},
            "odd": {"type": "carrier-pigeon"},
            "s": on_host(),
        }
    )
    assert {name.partition("_")[0] for name in tools} == {"s"}
    assert "/no/such/program" in (await world.state("gone"))["error"]
    assert "carrier-pigeon" in (await world.state("odd"))["error"]


async def test_a_page_can_word_why_a_program_does_not_work(world: World) -> None:
    said = {"command": "sh", "args": ["-c", "echo no key is set >&2; exit 3"], "isolation": "host"}
    await world.tools({"ends": said, "gone": {"command": "/no/such/program", "isolation": "host"}})
    ends, gone = await world.state("ends"), await world.state("gone")
    assert (ends["reason"], ends["values"]) == ("ended", {"said": "no key is set"})
    assert ends["error"].endswith("no key is set")
    assert (gone["reason"], gone["values"]) == ("not_found", {"program": "/no/such/program"})
    assert gone["error"] == "/no/such/program was not found"


async def test_a_missing_variable_is_named(world: World) -> None:
    world.config = AppConfig.model_validate(
        {
            "extensions": ExtensionsConfig.model_validate(
                {"mcpServers": {"s": on_host(env={"A": MissingEnv("$LOST", ("LOST",))})}}
            )
        }
    )
    assert await world.tools() == {}
    assert "LOST" in (await world.state("s"))["error"]


async def test_a_changed_entry_restarts_its_server_and_no_other(world: World) -> None:
    both = {"a": on_host(), "b": on_host()}
    await world.tools(both)
    pids = [(await world.call(f"{name}_environment")).content.split()[0] for name in both]
    await world.tools({"a": both["a"], "b": on_host(env={"SECRET": "new"}), "c": on_host()})
    after = [(await world.call(f"{name}_environment")).content.split() for name in both]
    assert after[0][0] == pids[0]
    assert after[1][0] != pids[1]
    assert after[1][1] == "secret=new"
    assert "a_echo" not in await world.tools({"b": on_host()})


async def test_a_restart_that_is_asked_for_opens_a_new_session(world: World) -> None:
    await world.tools({"s": on_host()})
    before = (await world.call("s_environment")).content
    await world.servers.restart("s")
    assert (await world.call("s_environment")).content.split()[0] != before.split()[0]


@pytest.mark.parametrize("kind", ["stdio", "http"])
async def test_a_list_of_tools_that_changes_is_read_again(world: World, start: Callable[..., str], kind: str) -> None:
    entry = on_host() if kind == "stdio" else {"type": kind, "url": await asyncio.to_thread(start, kind)}
    await world.tools({"s": entry})
    await world.call("s_grow")

    async def has_grown() -> bool:
        return "s_fresh" in await world.tools()

    await world.until(has_grown)
    assert (await world.call("s_fresh")).content == "fresh"


async def test_what_a_server_writes_to_its_log_can_be_read(world: World) -> None:
    await world.tools({"s": on_host()})
    assert "the server speaks to its log" in world.servers.log("s")


async def test_servers_that_hang_do_not_keep_a_run_waiting(
    world: World, start: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty servers, three of them dead, which will be given up in ten minutes."""
    monkeypatch.setattr("deerflow.features.mcp.server.OPEN_SECONDS", 600.0)
    monkeypatch.setattr("deerflow.features.mcp.servers.FIRST_SECONDS", 2.0)
    live = {"type": "http", "url": await asyncio.to_thread(start, "http")}
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        hanging = {"type": "http", "url": f"http://127.0.0.1:{silent.getsockname()[1]}/mcp"}
        tools = await world.tools({f"dead{n}": hanging for n in range(3)} | {f"s{n}": live for n in range(17)})

        async def all_live() -> bool:
            return len({name.partition("_")[0] for name in await world.tools()}) == 17

        assert tools
        await world.until(all_live)
        assert (await world.state("dead0"))["state"] == "starting"


async def test_a_server_ends_when_it_is_told_to_although_its_session_fails_meanwhile() -> None:
    @asynccontextmanager
    async def breaks(_: object) -> AsyncIterator[Any]:
        async with create_client_server_memory_streams() as (client, _server):
            try:
                yield client
            finally:
                raise OSError("broken pipe")

    server = asyncio.create_task(McpServer("s", McpServerConfig(command="x"), breaks).run())
    await asyncio.sleep(0.05)
    server.cancel()
    await asyncio.wait({server}, timeout=5)
    assert server.done()


async def test_a_call_to_a_server_that_is_taken_away_gets_an_error_and_is_not_cancelled(world: World) -> None:
    await world.tools({"s": on_host()})
    call = asyncio.ensure_future(world.call("s_hang"))
    while not any(one.server.calls for one in world.servers._running.values()):
        await asyncio.sleep(0.01)
    await world.tools({})
    failed = await call
    assert failed.status == "error" and "ended before it answered" in failed.content
