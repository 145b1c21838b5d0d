"""The routes of threads, their states and messages, over HTTP and through the official SDK."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request
from langchain_core.messages import HumanMessage
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import NotFoundError
from tests.support.thread_world import ALICE, ThreadWorld

from deerflow.identity import Principal
from deerflow.storage.database import Database
from deerflow.storage.runs import Run, RunStore
from deerflow.storage.search import index
from deerflow_app.gateway.http import errors
from deerflow_app.gateway.routes import current_principal, current_runtime, messages, threads


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[ThreadWorld]:
    database = Database(tmp_path / "deerflow.db")
    made = ThreadWorld(database, tmp_path / "home")
    yield made
    await made.aclose()
    await database.aclose()


@pytest.fixture
async def client(world: ThreadWorld) -> AsyncIterator[httpx.AsyncClient]:
    app = FastAPI()
    errors.install(app)
    for router in (threads.router, threads.state_routes, messages.router):
        app.include_router(router)

    async def principal(request: Request) -> Principal:
        return Principal(request.headers.get("x-user", "alice"))

    app.dependency_overrides[current_principal] = principal

    async def runs(principal: Principal, thread_id: str, *, limit: int) -> list[Run]:
        await world.threads.repository.get(principal, thread_id)
        return await RunStore(world.database).of_thread(thread_id, limit=limit)

    known = SimpleNamespace(threads=world.threads, paths=world.paths, runs=SimpleNamespace(list=runs))
    app.dependency_overrides[current_runtime] = lambda: known
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test/api") as made:
        yield made


@pytest.fixture
def sdk(client: httpx.AsyncClient) -> LangGraphClient:
    return LangGraphClient(client)


async def test_the_sdk_makes_finds_changes_and_deletes_threads(sdk: LangGraphClient) -> None:
    made = await sdk.threads.create(metadata={"agent_name": "coder"}, if_exists="raise", ttl=60)
    await sdk.threads.create(thread_id="t2", if_exists="do_nothing")
    patched = await sdk.threads.update(made["thread_id"], metadata={"pinned": True})
    found = await sdk.threads.search(metadata={"pinned": True}, status="idle", limit=5, sort_by="created_at")
    some = await sdk.threads.search(ids=["t2"], select=["thread_id"])

    assert patched["metadata"] == {"agent_name": "coder", "pinned": True}
    assert found == [patched] and some == [{"thread_id": "t2"}]
    assert await sdk.threads.count() == 2
    await sdk.threads.delete("t2")
    with pytest.raises(NotFoundError):
        await sdk.threads.get("t2")


async def test_the_sdk_reads_and_changes_states(sdk: LangGraphClient, world: ThreadWorld) -> None:
    await world.thread("t1", "one", "two")
    state = await sdk.threads.get_state("t1", subgraphs=True)
    history = await sdk.threads.get_history("t1", limit=100)
    older = await sdk.threads.get_history("t1", limit=2, before=history[3]["checkpoint"])
    at = await sdk.threads.get_state("t1", checkpoint=history[5]["checkpoint"])
    by_id = await sdk.threads.get_state("t1", checkpoint_id=history[5]["checkpoint"]["checkpoint_id"])
    updated = await sdk.threads.update_state("t1", {"title": "Two"}, as_node="model")
    forked = await sdk.threads.update_state("t1", None, checkpoint_id=history[5]["checkpoint"]["checkpoint_id"])

    assert state == history[0] and older == history[4:6] and at == by_id == history[5]
    assert (await sdk.threads.get_state("t1", checkpoint=updated["checkpoint"]))["values"]["title"] == "Two"
    newest = await sdk.threads.get_state("t1")
    assert newest["checkpoint"] == forked["checkpoint"]
    assert newest["parent_checkpoint"] == history[5]["checkpoint"]


async def test_the_sdk_imports_copies_and_prunes(sdk: LangGraphClient) -> None:
    step = {"updates": [{"values": {"messages": [{"role": "user", "content": "hi"}]}, "as_node": "__start__"}]}
    made = await sdk.threads.create(supersteps=[step])
    copied: Any = await sdk.threads.copy(made["thread_id"])
    pruned: Any = await sdk.threads.prune([made["thread_id"]], strategy="delete")

    assert made["values"]["messages"][0]["content"] == "hi"
    assert copied["values"].pop("sandbox") != made["values"].pop("sandbox")
    assert copied["values"] == made["values"] and copied["thread_id"] != made["thread_id"]
    assert pruned == {"pruned_count": 1}


async def test_an_archived_thread_is_found_by_its_mark_and_by_clients_that_know_of_none(sdk: LangGraphClient) -> None:
    thread_id = (await sdk.threads.create())["thread_id"]
    await sdk.threads.create()

    await sdk.threads.update(thread_id, metadata={"archived": True})
    archived = await sdk.threads.search(metadata={"archived": True})
    everywhere = await sdk.threads.search()
    await sdk.threads.update(thread_id, metadata={"archived": False})

    assert [thread["thread_id"] for thread in archived] == [thread_id]
    assert len(everywhere) == 2
    assert await sdk.threads.search(metadata={"archived": True}) == []


async def test_search_tells_how_many_there_are(client: httpx.AsyncClient) -> None:
    for number in range(5):
        await client.post("/threads", json={"thread_id": f"t{number}"})

    first = await client.post("/threads/search", json={"limit": 2})
    last = await client.post("/threads/search", json={"limit": 2, "offset": 4})

    assert (first.headers["x-pagination-total"], first.headers["x-pagination-next"]) == ("5", "2")
    assert last.headers["x-pagination-total"] == "5" and "x-pagination-next" not in last.headers
    assert (await client.post("/threads/search")).status_code == 200
    assert (await client.post("/threads/count", json={})).json() == 5


async def test_lists_hold_states_unless_titles_are_enough(client: httpx.AsyncClient, world: ThreadWorld) -> None:
    await world.thread("t1", "please ask")
    await world.threads.states.update(ALICE, "t1", {"title": "Asking"})

    async def found(**body: Any) -> dict[str, Any]:
        [thread] = (await client.post("/threads/search", json=body)).json()
        return thread

    whole = (await client.get("/threads/t1")).json()
    del whole["stream_position"]
    assert await found() == whole and len(whole["values"]["messages"]) == 2
    assert await found(select=["values"]) == {"values": whole["values"]}
    assert await found(select=["interrupts"]) == {"interrupts": whole["interrupts"]}
    assert await found(select=["thread_id", "values.title"]) == {"thread_id": "t1", "values": {"title": "Asking"}}


async def test_deleting_twice_is_not_found(client: httpx.AsyncClient) -> None:
    await client.post("/threads", json={"thread_id": "t1"})

    first, second = await client.delete("/threads/t1"), await client.delete("/threads/t1")

    assert (first.status_code, first.content) == (204, b"")
    assert (second.status_code, second.json()["code"]) == (404, "not_found")


async def test_what_is_harmless_is_accepted_without_effect(client: httpx.AsyncClient, world: ThreadWorld) -> None:
    kept = {"thread_id": "t1", "ttl": {"ttl": 1, "strategy": "keep_latest"}}

    assert (await client.post("/threads", json=kept)).status_code == 200
    assert (await client.patch("/threads/t1", json={"ttl": kept["ttl"]})).status_code == 200
    found = await client.post("/threads/search", json={"extract": {"first": "values.messages[0]"}})

    assert [thread["thread_id"] for thread in found.json()] == ["t1"]
    assert (await world.threads.repository.get(ALICE, "t1")).expires_at is None


async def test_a_foreign_thread_answers_like_none(client: httpx.AsyncClient, world: ThreadWorld) -> None:
    await world.thread("t1", "hello")
    bob = {"x-user": "bob"}
    routes = [("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/copy"), ("GET", "/state"), ("GET", "/history")]
    routes += [
        ("GET", "/messages"),
        ("GET", "/token-usage"),
        ("GET", "/export"),
        ("GET", "/turns"),
        ("POST", "/history"),
    ]

    for method, path in routes:
        body = {} if method in ("PATCH", "POST") and path != "/copy" else None
        foreign = await client.request(method, f"/threads/t1{path}", json=body, headers=bob)
        missing = await client.request(method, f"/threads/t9{path}", json=body, headers=bob)
        assert foreign.status_code == missing.status_code == 404, (method, path, foreign.text)
        assert foreign.text.replace("t1", "") == missing.text.replace("t9", "")
    assert (await client.post("/threads", json={"thread_id": "t1"}, headers=bob)).status_code == 409


@pytest.mark.parametrize(
    ("method", "path", "body", "named"),
    [
        ("POST", "/threads", {"thread_id": "../x"}, "thread_id"),
        ("POST", "/threads", {"nonsense": 1}, "nonsense"),
        ("POST", "/threads", {"metadata": {"a": "\x00"}}, "metadata"),
        ("POST", "/threads", {"ttl": -1}, "ttl"),
        ("POST", "/threads", {"ttl": {"ttl": 1, "strategy": "keep"}}, "strategy"),
        ("POST", "/threads", {"supersteps": [{"updates": [{"command": {"goto": "x"}}]}]}, "command"),
        ("POST", "/threads/search", {"values": {"todos": []}}, "values"),
        ("POST", "/threads/search", {"limit": 1001}, "limit"),
        ("POST", "/threads/search", {"offset": -1}, "offset"),
        ("POST", "/threads/search", {"status": "running"}, "status"),
        ("POST", "/threads/prune", {"thread_ids": ["a"], "strategy": "all"}, "strategy"),
        ("POST", "/threads/t1/history", {"limit": 0}, "limit"),
        ("POST", "/threads/t1/state", {"values": {"thread_data": {}}}, "thread_data"),
        ("POST", "/threads/t1/state", {"values": [1]}, "values"),
        ("GET", "/threads/t1/messages?limit=201", None, "limit"),
        ("GET", "/threads/..%2Fx/state", None, ""),
    ],
)
async def test_what_is_not_supported_is_refused_by_name(
    client: httpx.AsyncClient, world: ThreadWorld, method: str, path: str, body: Any, named: str
) -> None:
    await world.thread("t1")

    answer = await client.request(method, path, json=body)

    assert answer.status_code in ((422,) if named else (404, 422)), answer.text
    assert named in answer.text


async def test_states_can_be_asked_for_in_part(client: httpx.AsyncClient, world: ThreadWorld) -> None:
    await world.thread("t1", "hello")

    state = (await client.get("/threads/t1/state", params={"select": ["values.messages", "next"]})).json()
    history = (await client.post("/threads/t1/history", json={"select": ["checkpoint"], "limit": 2})).json()

    assert set(state) == {"values", "next"} and set(state["values"]) == {"messages"}
    assert [set(one) for one in history] == [{"checkpoint"}] * 2


async def test_a_note_on_the_state_is_found_in_history(client: httpx.AsyncClient, world: ThreadWorld) -> None:
    await world.thread("t1", "hello")

    patched = await client.patch("/threads/t1/state", json={"metadata": {"label": "good"}})
    found = (await client.post("/threads/t1/history", json={"metadata": {"label": "good"}})).json()

    assert [one["checkpoint"] for one in found] == [patched.json()["checkpoint"]]


async def test_messages_and_usage_over_http(client: httpx.AsyncClient, world: ThreadWorld) -> None:
    await world.thread("t1")
    run_id = await world.turn("t1", "one")

    entries = (await client.get("/threads/t1/messages", params={"limit": 2})).json()
    of_run = (await client.get(f"/threads/t1/runs/{run_id}/messages", params={"limit": 3})).json()
    anywhere = (await client.get(f"/runs/{run_id}/messages")).json()
    events = (await client.get(f"/threads/t1/runs/{run_id}/events", params={"event_types": "custom, end"})).json()
    turns = (await client.get("/threads/t1/turns")).json()
    usage = (await client.get("/threads/t1/token-usage")).json()

    assert [entry["content"]["type"] for entry in entries] == ["tool", "ai"]
    assert (len(of_run["data"]), of_run["has_more"]) == (3, True)
    assert (len(anywhere["data"]), anywhere["has_more"]) == (4, False)
    assert events == [] and [turn["run_id"] for turn in turns] == [run_id]
    assert usage["total_runs"] == 1 and set(usage["by_caller"]) == {"lead_agent", "subagent", "middleware"}


async def test_a_conversation_can_be_downloaded(client: httpx.AsyncClient, world: ThreadWorld) -> None:
    await world.thread("t1", "hello")
    await world.threads.repository.set_title(ALICE, "t1", 'a"b\r\n中')

    answer = await client.get("/threads/t1/export")

    assert answer.headers["content-type"].startswith("text/markdown")
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''a_b%20%E4%B8%AD.md"
    assert (await client.get("/threads/t1/export?format=json")).json()["thread_id"] == "t1"
    assert (await client.get("/threads/t1/export?format=pdf")).status_code == 422


async def test_a_conversation_can_be_downloaded_with_its_files(client: httpx.AsyncClient, world: ThreadWorld) -> None:
    await world.thread("t1", "hello")
    await asyncio.to_thread(_leave_files, world)

    answer = await client.get("/threads/t1/export?format=zip")

    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    assert archive.testzip() is None
    assert archive.namelist() == ["conversation.md", "conversation.json", "outputs/site/index.html", "uploads/a.csv"]
    assert b"hello" in archive.read("conversation.md") and archive.read("uploads/a.csv") == b"a,b"
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''t1.zip"
    assert (await client.get("/threads/t1/export?format=zip", headers={"x-user": "bob"})).status_code == 404


def _leave_files(world: ThreadWorld) -> None:
    world.paths.ensure_thread_dirs("t1", ALICE.user_id)
    user_data = world.paths.user_data("t1", ALICE.user_id)
    (user_data / "outputs" / "site").mkdir()
    (user_data / "outputs" / "site" / "index.html").write_text("<p>")
    (user_data / "outputs" / "link").symlink_to("/etc/passwd")
    (user_data / "uploads" / "a.csv").write_text("a,b")
    (user_data / "workspace" / "scratch").write_text("not delivered")


async def test_messages_are_found_over_http(client: httpx.AsyncClient, world: ThreadWorld) -> None:
    await world.thread("t1")
    said = [HumanMessage(f"中文 apple {number}", id=f"m{number}") for number in range(3)]
    await world.database.write(lambda connection: index(connection, "t1", "alice", said))

    found = (await client.get("/search/messages", params={"q": "中文", "limit": 2})).json()
    foreign = (await client.get("/search/messages", params={"q": "中文"}, headers={"x-user": "bob"})).json()
    nasty = await client.get("/search/messages", params={"q": "\" OR ' NEAR( *"})

    assert [hit["message_id"] for hit in found["data"]] == ["m2", "m1"] and found["has_more"]
    assert foreign == {"data": [], "has_more": False} and nasty.status_code == 200


async def test_many_requests_at_once_make_one_thread(client: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(
        *(client.post("/threads", json={"thread_id": "t1", "if_exists": "raise"}) for _ in range(6))
    )

    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409, 409]


async def test_a_search_extracts_what_stands_at_paths(sdk: LangGraphClient, world: ThreadWorld) -> None:
    await world.thread("t1", "hello")
    wanted = {"last": "values.messages[-1].content", "none": "values.messages[99].content", "mark": "metadata.a.b"}
    await sdk.threads.update("t1", metadata={"a": {"b": 7}})
    (found,) = await sdk.threads.search(extract=wanted, select=["thread_id"])
    assert found == {"thread_id": "t1", "extracted": {"last": "answer to hello", "none": None, "mark": 7}}
