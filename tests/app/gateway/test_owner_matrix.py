"""All routes × everyone: what is somebody's stays theirs. A new route fails here until owner_rules.py says whose it is."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from bench.scripted_openai import ScriptedOpenAI
from starlette.routing import BaseRoute
from tests.harness.skills.conftest import write_skill

from deerflow.config import ConfigSource, Paths
from deerflow.runtime import Runtime
from deerflow.storage.approvals import RunApprovals
from deerflow_app.gateway.app import RUNTIME_ROUTERS, SERVED_AT_ONCE, router_of
from deerflow_app.gateway.auth.scopes import READS, READS_AND_WRITES, ROUTES, check_scopes
from deerflow_app.gateway.http.authentication import PUBLIC as PUBLIC_PATHS
from deerflow_app.gateway.http.authentication import is_public

from .conftest import PASSWORD, Gateway, opened, settings_for
from .owner_rules import FOREIGN_IDS_IN_BODIES, RULES, Access, Rule

in_the_world = pytest.mark.asyncio(loop_scope="module")
SECRET = "SECRETOFTHEOWNER"
CHATTY = ("api_tokens", "sessions")
ENDLESS = ("GET /api/events", "POST /api/threads/{thread_id}/stream/events", "GET /api/threads/{thread_id}/stream")
"""Streams without an end, which this transport cannot follow when they are allowed."""


def all_routes() -> Iterator[tuple[str, BaseRoute]]:
    for name in (*SERVED_AT_ONCE, *RUNTIME_ROUTERS):
        for route in router_of(name).routes:
            for method in getattr(route, "methods", None) or ["WEBSOCKET"]:
                yield f"{method} {route.path}", route  # type: ignore[attr-defined]


@dataclass
class World:
    """``things`` are the owner's, by the names that paths use."""

    gateway: Gateway
    owner: httpx.AsyncClient
    stranger: httpx.AsyncClient
    other_admin: httpx.AsyncClient
    things: dict[str, str]
    data_dir: Path

    def filled(self, value: Any) -> Any:
        text = json.dumps(value)
        return json.loads(re.sub(r"\{(\w+)(:\w+)?\}", lambda match: self.things.get(match[1], match[0]), text))

    async def ask(self, client: httpx.AsyncClient, name: str, rule: Rule) -> httpx.Response:
        method, path = name.split(" ")
        body: dict[str, Any] = {} if rule.json is None else {"json": self.filled(rule.json)}
        if rule.files:
            body = {"files": {"files": ("new.txt", b"new")}}
        async with asyncio.timeout(60):
            return await client.request(method, self.filled(path), params=rule.params, headers=rule.headers, **body)

    def of_the_owner(self) -> dict[str, Any]:
        """All that is stored for the owner: rows and files."""
        database = next(self.data_dir.rglob("*.db"))
        mine = {
            "user_id": self.things["user_id"],
            "thread_id": self.things["thread_id"],
            "run_id": self.things["run_id"],
        }
        found: dict[str, Any] = {}
        with sqlite3.connect(database) as connection:
            for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
                keys = [key for key in mine if key in columns]
                if not keys or table in CHATTY:
                    continue
                where = " OR ".join(f'"{key}" = ?' for key in keys)
                rows = connection.execute(f'SELECT * FROM "{table}" WHERE {where}', [mine[key] for key in keys])
                found[table] = sorted(map(repr, rows))
        for file in sorted((self.data_dir / "users" / self.things["user_id"]).rglob("*")):
            if file.is_file():
                found[str(file)] = file.read_bytes()
        return found


async def with_things(gateway: Gateway, owner: httpx.AsyncClient) -> dict[str, str]:
    """Let the owner make one of each."""

    async def make(method: str, path: str, **body: Any) -> Any:
        answer = await owner.request(method, path, **body)
        assert answer.is_success, (method, path, answer.status_code, answer.text)
        return answer.json() if answer.content else None

    things = {"user_id": (await make("GET", "/api/v1/auth/me"))["id"]}
    thread = things["thread_id"] = (await make("POST", "/api/threads", json={"metadata": {"note": SECRET}}))[
        "thread_id"
    ]
    run = {"assistant_id": "lead_agent", "input": {"messages": [{"role": "user", "content": f"Keep the {SECRET}"}]}}
    for _ in range(2):
        await make("POST", f"/api/threads/{thread}/runs/wait", json=run)
    newest, first = await make("GET", f"/api/threads/{thread}/runs")
    things |= {"run_id": newest["run_id"], "response_id": f"resp_{first['run_id']}"}
    state = await make("GET", f"/api/threads/{thread}/state")
    things |= {"checkpoint_id": state["checkpoint_id"], "message_id": state["values"]["messages"][0]["id"]}
    await make("POST", f"/api/threads/{thread}/uploads", files={"files": ("note.txt", SECRET.encode())})
    assistant = {"graph_id": "lead_agent", "name": SECRET}
    things["assistant_id"] = (await make("POST", "/api/assistants", json=assistant))["assistant_id"]
    cron = {**run, "schedule": "0 0 1 1 *"}
    things["cron_id"] = (await make("POST", "/api/runs/crons", json=cron))["cron_id"]
    rated = await make(
        "PUT", f"/api/threads/{thread}/runs/{things['run_id']}/feedback", json={"rating": 1, "comment": SECRET}
    )
    things["feedback_id"] = rated["feedback_id"]
    remembered = await make("POST", "/api/memory/facts", json={"content": f"The user keeps the {SECRET}"})
    things["fact_id"] = remembered["facts"][0]["id"]
    await make("PUT", "/api/store/items", json={"namespace": ["notes"], "key": "k", "value": {"note": SECRET}})
    things["connection_id"] = "1"
    bot = {"kind": "telegram", "values": {"bot_token": SECRET}, "own": True}
    things["bot_id"] = (await make("POST", "/api/channels/bots", json=bot))["id"]
    things["token_id"] = (await make("POST", "/api/v1/auth/tokens", json={"name": SECRET}))["id"]
    uploaded = f"users/{things['user_id']}/threads/{thread}/user-data"
    await asyncio.to_thread((gateway.settings.data_dir / uploaded / "outputs" / "out.txt").write_text, SECRET)
    skill = gateway.settings.data_dir / f"users/{things['user_id']}/skills/custom/mine"
    await asyncio.to_thread(write_skill, skill.parent, skill.name, SECRET)
    await make("POST", "/api/agents", json={"name": "mine", "soul": SECRET})
    things |= {
        "agent_name": "mine",
        "model": "mine",
        "skill_name": skill.name,
        "filename": "note.txt",
        "path": "mnt/user-data/outputs/out.txt",
        "namespace": "x",
        "model_name": "scripted",
    }
    return things | {"token": "nonsense"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """One for all tests: what they try must change nothing, but for the last one."""
    home = tmp_path_factory.mktemp("world")
    with ScriptedOpenAI() as scripted:
        model = {"name": "scripted", "use": "langchain_openai:ChatOpenAI", "model": "scripted-model"}
        overrides = {
            "models": [model | {"base_url": scripted.base_url, "api_key": "test-key"}],
            # Nothing but these tests writes what they compare: no title, and no fact that is learned half a minute later.
            "title": {"enabled": False},
            "memory": {"mode": "tools"},
            "sandbox": {"tool_image": {"enabled": False}},
        }
        source = ConfigSource(cwd=home, overrides=overrides)
        runtime = await asyncio.to_thread(lambda: Runtime(source, Paths(home)))
        async with opened(settings_for(home), runtime) as gateway:
            await gateway.populate()
            for name, role in (("stranger", "user"), ("boss", "admin")):
                person = {"email": f"{name}@example.org", "password": PASSWORD, "system_role": role}
                assert (await gateway.admin.post("/api/v1/users", json=person)).status_code == 201
            stranger, boss = [await gateway.sign_in(f"{name}@example.org") for name in ("stranger", "boss")]
            things = await with_things(gateway, gateway.user)
            owner = {"run_id": things["run_id"], "thread_id": things["thread_id"], "user_id": things["user_id"]}
            await RunApprovals(runtime.database, **owner).grant("", SECRET, "", None, everywhere=True)
            [grant] = (await gateway.user.get("/api/approvals/grants")).json()["grants"]
            things["grant_id"] = grant["id"]
            yield World(gateway, gateway.user, stranger, boss, things, home)


def test_every_route_is_classified_and_every_class_is_a_route() -> None:
    assert sorted(RULES) == sorted({name for name, _ in all_routes()})


def test_what_is_public_is_what_the_gateway_lets_through() -> None:
    public = {name.split(" ")[1] for name, rule in RULES.items() if rule.access is Access.PUBLIC}
    others = {name.split(" ")[1] for name, rule in RULES.items()} - public

    assert all(is_public(path) for path in public if path.startswith("/api/"))
    assert PUBLIC_PATHS <= public
    assert not [path for path in others if is_public(path)]


def test_an_id_in_a_path_is_owned_or_for_administrators() -> None:
    for name, rule in RULES.items():
        if re.search(r"\{\w+_id\}", name):
            assert rule.access in (Access.OWNED, Access.OWN_ACCOUNT, Access.ADMIN), name


@in_the_world
async def test_nobody_unknown_gets_past_the_door(world: World) -> None:
    before, wrong = world.of_the_owner(), []

    for name, rule in RULES.items():
        if rule.access is Access.PUBLIC or name.startswith("WEBSOCKET"):
            continue
        for prefix in ("/api", "/api/langgraph", ""):
            method, path = name.split(" ")
            if prefix != "/api" and not re.match(r"/api/(threads|runs|assistants|store)", path):
                continue
            answer = await world.ask(world.gateway.anonymous, f"{method} {prefix}{path.removeprefix('/api')}", rule)
            if answer.status_code != 401:
                wrong.append((name, prefix, answer.status_code, answer.text[:200]))

    assert wrong == []
    assert world.of_the_owner() == before


@in_the_world
@pytest.mark.parametrize("who", ["stranger", "other_admin"])
async def test_what_belongs_to_another_is_not_there(world: World, who: str) -> None:
    before, wrong = world.of_the_owner(), []

    for name, rule in RULES.items():
        if rule.access is Access.PUBLIC or name.startswith("WEBSOCKET") or name in ENDLESS[:1]:
            continue
        if rule.access is Access.ADMIN and who == "other_admin":
            continue
        answer = await world.ask(getattr(world, who), name, rule)
        expected = {Access.OWNED: 404, Access.OWN_ACCOUNT: 404, Access.ADMIN: 403}.get(rule.access)
        if expected is not None and answer.status_code != expected:
            wrong.append((name, answer.status_code, answer.text[:200]))
        elif expected is None and answer.status_code >= 500:
            wrong.append((name, answer.status_code, answer.text[:200]))
        if SECRET in answer.text or (world.things["run_id"] in answer.text.replace(name, "") and expected is None):
            wrong.append((name, "tells a secret", answer.text[:200]))

    assert wrong == []
    assert world.of_the_owner() == before


@in_the_world
async def test_ids_of_another_in_a_body_open_nothing(world: World) -> None:
    before, wrong = world.of_the_owner(), []

    for case, (name, body) in FOREIGN_IDS_IN_BODIES.items():
        answer = await world.ask(world.stranger, name, Rule(Access.SIGNED_IN, body))
        if SECRET in answer.text or answer.status_code >= 500:
            wrong.append((case, answer.status_code, answer.text[:300]))

    assert wrong == []
    assert world.of_the_owner() == before


@in_the_world
async def test_a_token_for_reading_changes_nothing(world: World) -> None:
    token = await world.gateway.token(world.owner, "read")
    before, wrong = world.of_the_owner(), []

    for name, rule in RULES.items():
        method = name.split(" ")[0]
        if rule.access is Access.PUBLIC or method == "WEBSOCKET" or name in ENDLESS:
            continue
        reads = method in ("GET", "HEAD") if rule.reads is None else rule.reads
        answer = await world.ask(token, name, rule)
        closed = rule.access in (Access.ADMIN, Access.ACCOUNT, Access.OWN_ACCOUNT) or not reads
        if (answer.status_code == 403) is not closed:
            wrong.append((name, answer.status_code, answer.text[:200]))

    assert wrong == []
    assert world.of_the_owner() == before


@in_the_world
async def test_a_token_for_writing_reads_nothing(world: World) -> None:
    token = await world.gateway.token(world.owner, "write")
    called = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    things = {"thread_id": "{thread_id}", "path": "/{path}"}
    asked = [(name, rule) for name, rule in RULES.items() if ROUTES[name] in (READS, READS_AND_WRITES)]
    asked += [
        ("POST /api/mcp", Rule(Access.SIGNED_IN, {**called, "params": {"name": tool, "arguments": arguments}}))
        for tool, arguments in (
            ("get_file", things),
            ("list_files", {"thread_id": "{thread_id}"}),
            ("get_run", {"thread_id": "{thread_id}"}),
            ("search_chats", {"query": "SECRET"}),
            ("run_task", {"thread_id": "{thread_id}", "task": "Hi"}),
            ("unknown", {}),
        )
    ]
    asked += [
        ("POST /api/threads/{thread_id}/commands", Rule(Access.OWNED, {"id": 1, "method": method, "params": {}}))
        for method in ("state.get", "state.listCheckpoints", "agent.getTree")
    ]
    wrong = [
        (name, rule.json, answer.status_code, answer.text[:200])
        for name, rule in asked
        if not name.startswith("WEBSOCKET")
        and ((answer := await world.ask(token, name, rule)).status_code != 403 or SECRET in answer.text)
    ]
    assert wrong == [] and len(asked) > 100


def test_every_route_declares_its_scopes_and_has_them_checked() -> None:
    assert set(ROUTES) == {name for name, _ in all_routes()}
    unchecked = [
        name
        for name, route in all_routes()
        if all(each.call is not check_scopes for each in route.dependant.dependencies)  # type: ignore[attr-defined]
    ]
    assert unchecked == []
    assert {name for name, scopes in ROUTES.items() if scopes == ()} == {
        *(name for name, rule in RULES.items() if rule.access is Access.PUBLIC),
        "POST /api/mcp",
        "POST /api/threads/{thread_id}/commands",
    }
    people = {name for name, rule in RULES.items() if rule.access in (Access.ACCOUNT, Access.OWN_ACCOUNT)}
    assert {name for name, scopes in ROUTES.items() if scopes is None} == people


COMMANDS = [
    {"id": 1, "method": "state.get", "params": {}},
    {"id": 2, "method": "subscription.subscribe", "params": {"channels": ["values", "messages"], "since": 0}},
]


async def through_a_websocket(world: World, *headers: tuple[str, str]) -> list[str]:
    """How the gateway answers to opening a WebSocket, and then to each of COMMANDS."""
    sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    came: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    for message in ({"type": "connect"}, *({"type": "receive", "text": json.dumps(one)} for one in COMMANDS)):
        came.put_nowait(message | {"type": f"websocket.{message['type']}"})
    path = world.filled("/api/threads/{thread_id}/stream/events")
    raw = [(name.encode(), value.encode()) for name, value in (("host", "localhost"), *headers)]
    scope = {
        "type": "websocket",
        "path": path,
        "headers": raw,
        "query_string": b"",
        "scheme": "ws",
        "client": ("::1", 1),
    }
    serving = asyncio.create_task(world.gateway.app(scope | {"subprotocols": []}, came.get, sent.put))  # type: ignore[arg-type]
    answers: list[str] = []
    try:
        async with asyncio.timeout(60):
            while len(answers) < 1 + len(COMMANDS) and "close" not in answers:
                message = await sent.get()
                answers.append(message.get("text") or message["type"].removeprefix("websocket."))
    finally:
        came.put_nowait({"type": "websocket.disconnect", "code": 1000})
        await asyncio.wait([serving], timeout=60)
    return answers


@in_the_world
async def test_a_websocket_opens_only_to_our_own_pages_and_tells_only_the_owner(world: World) -> None:
    def cookie(client: httpx.AsyncClient) -> tuple[str, str]:
        return "cookie", f"access_token={client.cookies['access_token']}"

    ours, evil = ("origin", "http://localhost"), ("origin", "https://evil.com")

    assert await through_a_websocket(world) == ["close"]
    assert await through_a_websocket(world, ours) == ["close"]
    assert await through_a_websocket(world, cookie(world.owner), evil) == ["close"]
    accepted, *answers = await through_a_websocket(world, cookie(world.stranger), ours)
    # One may subscribe to a thread that is still to be made, but not to someone else's.
    assert (accepted, [json.loads(answer)["type"] for answer in answers]) == ("accept", ["error", "error"])
    assert SECRET not in str(answers)
    assert SECRET in str(await through_a_websocket(world, cookie(world.owner), ours))


@in_the_world
async def test_the_owner_gets_what_others_do_not(world: World) -> None:
    """Without this the tests above would also pass if nothing was there for anyone."""
    wrong = []
    kind = (Access.OWNED, Access.OWN_ACCOUNT)

    for name, rule in sorted(RULES.items(), key=lambda one: (one[0].startswith("DELETE"), len(one[0]) * -1)):
        if rule.access not in kind or name.startswith("WEBSOCKET") or name in ENDLESS:
            continue
        answer = await world.ask(world.owner, name, rule)
        if not answer.is_success and answer.status_code not in rule.owner:
            wrong.append((name, answer.status_code, answer.text[:200]))

    assert wrong == []
