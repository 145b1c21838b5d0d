"""People's own connections to MCP servers, allowed at a real authorization server over HTTP."""
# ruff: noqa: F811 - fixtures of other modules

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.app.gateway.conftest import Gateway
from tests.app.gateway.test_agents import opened, said, tools_of  # noqa: F401
from tests.harness.mcp.conftest import start  # noqa: F401

from deerflow.errors import UnavailableError
from deerflow.features.mcp.offer import McpOffer

pytestmark = pytest.mark.usefixtures("warm_programs")

Open = Callable[..., AbstractAsyncContextManager[Gateway]]


@pytest.fixture
async def server(start: Callable[..., str], tmp_path: Path) -> str:
    """The address of an MCP server that wants a connection of each person's own, and is in the file."""
    url = await asyncio.to_thread(start, "oauth")
    write(tmp_path, url, {"grant_type": "authorization_code"})
    return url


def write(tmp_path: Path, url: str, oauth: dict[str, Any], **more: Any) -> None:
    entry = {"type": "http", "url": url, "description": "Issues.", "oauth": oauth, **more}
    (tmp_path / "extensions_config.json").write_text(json.dumps({"mcpServers": {"tickets": entry}}))


async def change(url: str, **attributes: Any) -> dict[str, Any]:
    async with httpx.AsyncClient() as client:
        return (await client.post(url.replace("/mcp", "/change"), json=attributes)).json()


async def allow(address: str, person: str | None) -> str:
    """What a person does in the browser; where the browser is sent back to."""
    async with httpx.AsyncClient() as browser:
        answer = await browser.get(address, headers={"x-person": person} if person else {})
    assert answer.status_code == 302, answer.text
    return answer.headers["location"]


async def begin(client: httpx.AsyncClient) -> str:
    answer = await client.post("/api/mcp/servers/tickets/connect")
    assert answer.status_code == 200, answer.text
    return answer.json()["authorization_url"]


async def connect(client: httpx.AsyncClient, person: str) -> httpx.Response:
    answer = await client.get(await allow(await begin(client), person))
    assert answer.status_code == 200, answer.text
    return answer


async def seen(client: httpx.AsyncClient) -> Any:
    return (await client.get("/api/mcp/servers")).json()["servers"][0]


async def who(gateway: Gateway, client: httpx.AsyncClient, scripted: ScriptedOpenAI) -> str:
    """Whom the server takes a person's agent for."""
    scripted.script(ToolCalls(("tickets_whoami", {})), Text("Done."))
    before = len(scripted.requests)
    assert (await said(client)).status_code == 200
    assert len(scripted.requests) == before + 2, "the tool was not there"
    return [m["content"] for m in scripted.requests[-1]["messages"] if m["role"] == "tool"][-1]


async def test_each_person_has_a_session_of_their_own_with_their_own_tools(
    opened: Open,
    server: str,
    scripted: ScriptedOpenAI,
    tmp_path: Path,
) -> None:
    async with opened() as gateway:
        before = await seen(gateway.user)
        assert (before["connection"], before["tools"], before["state"]) == ("needed", [], "off")
        page = await connect(gateway.user, "ada")
        assert "script-src 'nonce-" in page.headers["content-security-policy"] and "/settings/mcp" in page.text
        after = await seen(gateway.user)
        assert (after["connection"], after["state"]) == ("connected", "ready")
        assert "whoami" in {tool["name"] for tool in after["tools"]}
        assert (await seen(gateway.admin))["connection"] == "needed", "that of somebody else counts for nobody"

        scripted.script(Text("Hello."))
        await said(gateway.admin)
        request = scripted.requests[-1]
        assert not any(name.startswith("tickets_") for name in tools_of(request))
        assert "tickets" in request["messages"][0]["content"] and "Settings" in request["messages"][0]["content"]

        assert "ada" in await who(gateway, gateway.user, scripted)
        assert "tickets" not in scripted.requests[-1]["messages"][0]["content"]
        await connect(gateway.admin, "grace")
        assert "grace" in await who(gateway, gateway.admin, scripted)
        assert "ada" in await who(gateway, gateway.user, scripted)

        assert (await gateway.user.delete("/api/mcp/servers/tickets/connect")).status_code == 204
        assert (await gateway.user.delete("/api/mcp/servers/tickets/connect")).status_code == 404
        assert (await seen(gateway.user))["connection"] == "needed"
        assert "grace" in await who(gateway, gateway.admin, scripted)
        rows = await gateway.runtime.database.read(
            lambda connection: connection.exec_driver_sql("SELECT data FROM mcp_connections").fetchall()
        )
        assert len(rows) == 1 and "access_token" not in rows[0][0] and "client-" not in rows[0][0]


async def test_an_answer_counts_once_and_only_for_who_began_in_that_session(opened: Open, server: str) -> None:
    async with opened() as gateway:
        address = await begin(gateway.user)
        back = await allow(address, "ada")
        elsewhere = await gateway.sign_in("user@example.org")
        for client in (gateway.admin, elsewhere):
            stolen = await client.get(back)
            assert stolen.status_code == 422 and "not begun here" in stolen.text
        assert (await gateway.anonymous.get(back)).status_code == 401
        assert (await gateway.user.get(back)).status_code == 422, "another session of the same person has used it up"
        back = await allow(await begin(gateway.user), "ada")
        assert (await gateway.user.get(back.replace("iss=http", "iss=https"))).status_code == 503
        back = await allow(await begin(gateway.user), "ada")
        assert (await gateway.user.get(back)).status_code == 200
        assert (await gateway.user.get(back)).status_code == 422
        refused = await gateway.user.get(await allow(await begin(gateway.user), None))
        assert refused.status_code == 422 and "&lt;no&gt;" in refused.text and "<no>" not in refused.text
        assert (await seen(gateway.user))["connection"] == "connected", "what failed takes nothing away"
        assert (await gateway.user.post("/api/mcp/servers/nothing/connect")).status_code == 404


async def test_an_answer_that_comes_after_ten_minutes_is_too_late(
    opened: Open,
    server: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from datetime import timedelta

    monkeypatch.setattr("deerflow.features.mcp.connections.LIFETIME", timedelta(0))
    async with opened() as gateway:
        late = await gateway.user.get(await allow(await begin(gateway.user), "ada"))
        assert late.status_code == 422 and "ten minutes" in late.text


async def test_a_program_begins_with_its_token_what_the_person_allows_in_a_browser(opened: Open, server: str) -> None:
    async with opened() as gateway:
        program = await gateway.token(gateway.user, "read", "write")
        back = await allow(await begin(program), "ada")
        assert (await gateway.user.get(back)).status_code == 200
        assert (await seen(program))["connection"] == "connected"


async def test_tokens_that_expire_are_refreshed_once_whoever_needs_them(
    opened: Open,
    server: str,
    scripted: ScriptedOpenAI,
) -> None:
    async with opened() as gateway:
        await change(server, lifetime=1)
        await connect(gateway.user, "ada")
        await asyncio.sleep(1)
        await change(server, lifetime=3600)
        connections = gateway.runtime.agent_provider.harness.of(McpOffer).servers.connections
        entry = (await gateway.runtime.agent_provider.fresh()).config.extensions.mcp_servers["tickets"]
        user = (await gateway.user.get("/api/v1/auth/me")).json()["id"]
        headers = await asyncio.gather(*(connections.header(user, "tickets", entry) for _ in range(8)))
        assert len(set(headers)) == 1
        assert (await change(server))["refreshes"] == 1, "a second use would have ended the connection"
        assert "ada" in await who(gateway, gateway.user, scripted)
        await change(server, access={})
        assert "ada" in await who(gateway, gateway.user, scripted), "one that was revoked is refreshed, too"


async def test_a_connection_that_is_allowed_no_more_is_needed_again(opened: Open, server: str) -> None:
    async with opened() as gateway:
        await connect(gateway.user, "ada")
        assert (await seen(gateway.user))["state"] == "ready"
        await change(server, access={}, refreshing={})
        connections = gateway.runtime.agent_provider.harness.of(McpOffer).servers.connections
        entry = (await gateway.runtime.agent_provider.fresh()).config.extensions.mcp_servers["tickets"]
        user = (await gateway.user.get("/api/v1/auth/me")).json()["id"]
        from deerflow.features.mcp.connections import NotConnectedError

        used = await connections.header(user, "tickets", entry)
        with pytest.raises(NotConnectedError):
            await connections.header(user, "tickets", entry, used)
        assert (await seen(gateway.user))["connection"] == "needed"


async def test_a_token_goes_nowhere_but_to_the_address_it_was_given_for(
    opened: Open,
    server: str,
    tmp_path: Path,
) -> None:
    async with opened() as gateway:
        await connect(gateway.user, "ada")
        write(tmp_path, server.replace("127.0.0.1", "localhost"), {"grant_type": "authorization_code"})

        async def is_needed() -> bool:
            return (await seen(gateway.user))["connection"] == "needed"

        async with asyncio.timeout(10):
            while not await is_needed():
                await asyncio.sleep(0.05)


async def test_a_client_is_registered_once_for_a_person_and_not_where_the_entry_names_one(
    opened: Open,
    server: str,
    tmp_path: Path,
) -> None:
    async with opened() as gateway:
        await connect(gateway.user, "ada")
        await connect(gateway.user, "ada")
        assert (await change(server))["clients"] == 1
        await change(server, registers=False)
        refused = await gateway.admin.post("/api/mcp/servers/tickets/connect")
        assert refused.status_code == 503 and "oauth.client_id" in refused.json()["detail"]
        oauth = {"grant_type": "authorization_code", "client_id": "known", "scope": "issues"}
        write(tmp_path, server, oauth)
        async with asyncio.timeout(10):
            while "client_id=known" not in (address := await _begun(gateway.admin)):
                await asyncio.sleep(0.05)
        assert parse_qs(urlsplit(address).query)["scope"] == ["issues"]


async def _begun(client: httpx.AsyncClient) -> str:
    answer = await client.post("/api/mcp/servers/tickets/connect")
    return str(answer.json().get("authorization_url"))


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        ({"methods": ["plain"]}, "S256"),
        ({"issuer": "https://elsewhere.example.org"}, "issuer mismatch"),
        ({"discovers": "http://169.254.169.254"}, "private or reserved"),
        ({"discovers": "http://localhost:1"}, "private or reserved"),
    ],
)
async def test_a_server_that_leads_elsewhere_is_not_followed(
    opened: Open,
    server: str,
    attributes: dict[str, Any],
    why: str,
) -> None:
    async with opened() as gateway:
        await change(server, **attributes)
        refused = await gateway.user.post("/api/mcp/servers/tickets/connect")
        assert refused.status_code == UnavailableError.status
        assert why in refused.json()["detail"], refused.text
