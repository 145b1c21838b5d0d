"""Servers that want tokens, with an endpoint that rotates them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.harness.mcp.conftest import World

from deerflow.config.env import MissingEnv
from deerflow.config.schema import McpServerConfig
from deerflow.features.mcp.servers import McpServers


def entry(url: str, **oauth: Any) -> dict[str, Any]:
    return {"type": "http", "url": url, "oauth": {"token_url": url.replace("/mcp", "/token"), **oauth}}


async def test_client_credentials_are_fetched_and_fetched_again_when_revoked(
    world: World, start: Callable[..., str]
) -> None:
    url = await asyncio.to_thread(start, "guarded")
    await world.tools({"s": entry(url, client_id="me", client_secret="hidden-secret")})
    assert (await world.call("s_echo", text="in")).content == "in"
    async with httpx.AsyncClient() as client:
        await client.post(url.replace("/mcp", "/revoke"))
    assert (await world.call("s_echo", text="again")).content == "again"


async def test_a_rotated_refresh_token_survives_a_restart_and_lies_encrypted(
    world: World, start: Callable[..., str], tmp_path: Path
) -> None:
    url = await asyncio.to_thread(start, "guarded")
    servers = {"s": entry(url, grant_type="refresh_token", refresh_token="refresh-0")}
    assert "s_echo" in await world.tools(servers)
    await world.servers.aclose()
    world.servers = McpServers(tmp_path / "mcp", tmp_path / "key")
    assert "s_echo" in await world.tools(servers), "the configured token was used up"
    kept = await asyncio.to_thread(lambda: [file.read_text() for file in (tmp_path / "mcp").glob("*/oauth")])
    assert len(kept) == 1 and "refresh" not in kept[0]
    await world.servers.aclose()
    world.servers = McpServers(tmp_path / "mcp", tmp_path / "other")
    assert await world.tools(servers) == {}
    error = (await world.state("s"))["error"]
    assert "another key than other. Bring that other back from a backup, or delete mcp/" in error


async def test_a_token_that_is_refused_is_said_without_the_secret(world: World, start: Callable[..., str]) -> None:
    url = await asyncio.to_thread(start, "guarded")
    assert await world.tools({"s": entry(url, client_id="me", client_secret="wrong-secret")}) == {}
    error = (await world.state("s"))["error"]
    assert "/token answered 400" in error and "wrong-secret" not in error


@pytest.mark.parametrize(
    ("oauth", "is_own"),
    [
        ({}, True),
        ({"grant_type": "authorization_code", "client_id": "me"}, True),
        ({"client_id": "me", "client_secret": "hidden-secret", "token_url": "https://auth.example.org/token"}, False),
        ({"grant_type": "refresh_token", "refresh_token": "r", "token_url": "https://auth.example.org/token"}, False),
        ({"client_id": MissingEnv("$LOST", ("LOST",)), "token_url": "https://auth.example.org/token"}, False),
        ({"enabled": False}, False),
    ],
)
def test_each_person_connects_where_no_client_is_named_or_the_entry_says_so(
    oauth: dict[str, Any], is_own: bool
) -> None:
    entry = {"type": "http", "url": "https://example.org/mcp", "oauth": oauth}
    assert McpServerConfig.model_validate(entry).is_own is is_own
    assert not McpServerConfig.model_validate({"command": "program", "oauth": oauth}).is_own
