"""Who searches the web is connected over HTTP: tried, used by the next run, kept; a key never comes back."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.app.gateway.conftest import Gateway
from tests.app.gateway.test_connections_of_models import KEY, OTHER, fresh, given, provider
from tests.harness.community.conftest import Request, Web, web

__all__ = ["fresh", "provider", "web"]
Fresh = Callable[..., AbstractAsyncContextManager[Gateway]]
SEARX, TAVILY, DUCK = (f"/api/connections/{name}" for name in ("searx", "tavily", "ddg"))
PAGE = {"url": "https://example.org/deer"}


def answering(web: Web, path: str, results: list[dict[str, Any]]) -> None:
    web.put(path, json.dumps({"results": results}), "application/json")


def refusing(request: Request) -> bytes:
    status = b"200 OK" if request.headers.get("authorization") == f"Bearer {KEY}" else b"401 Unauthorized"
    body = json.dumps({"results": [{**PAGE, "title": "Deer of the key", "content": "Grass."}]}).encode()
    head = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    return head % (status, len(body)) + body


async def searches(gateway: Gateway) -> dict[str, dict[str, Any]]:
    listed = (await gateway.admin.get("/api/connections")).json()["connections"]
    return {one["id"]: one for one in listed if one["kind"] == "search"}


async def in_use(gateway: Gateway) -> list[str]:
    return [name for name, one in (await searches(gateway)).items() if one["in_use"]]


async def test_what_is_connected_searches_in_the_next_run_and_after_a_restart(
    fresh: Fresh, provider: ScriptedOpenAI, web: Web
) -> None:
    answering(web, "/search", [{**PAGE, "title": "Deer of our own", "content": "They eat grass."}])
    async with fresh() as gateway:
        assert await in_use(gateway) == ["ddg"]
        assert (await gateway.admin.put(OTHER, json=given(provider, models=["big"]))).is_success
        tried = (await gateway.admin.post(f"{SEARX}/test", json={"base_url": web.base})).json()
        assert (tried["ok"], tried["answer"]) == (True, "Deer of our own")
        assert await in_use(gateway) == ["ddg"], "a trial keeps nothing"

        made = (await gateway.admin.put(SEARX, json={"base_url": web.base})).json()
        assert (made["place"], made["base_url"], made["in_use"]) == ("encrypted", web.base, True)
        provider.script(ToolCalls(("web_search", {"query": "deer"})), Text("They eat grass."))
        question = {"input": {"messages": [{"role": "user", "content": "What do deer eat?"}]}}
        answer = (await gateway.user.post("/api/runs/wait", json=question)).json()["messages"]
        assert "Deer of our own" in answer[-2]["content"], answer
        assert web.requests[-1].line.startswith("GET /search?q=deer&format=json")
    async with fresh() as gateway:
        assert await in_use(gateway) == ["searx"]
        assert (await gateway.admin.delete(SEARX)).status_code == 204
        assert await in_use(gateway) == ["ddg"]


async def test_of_several_the_one_that_was_chosen_last_searches(fresh: Fresh, web: Web) -> None:
    web.pages["/search"] = refusing
    async with fresh() as gateway:
        wrong = (await gateway.admin.post(f"{TAVILY}/test", json={"key": "no-1", "base_url": web.base})).json()
        assert wrong["ok"] is False and "key is not valid" in wrong["problem"] and "no-1" not in wrong["problem"]
        assert (await gateway.admin.put(TAVILY, json={"key": KEY, "base_url": web.base})).is_success
        assert (await gateway.admin.put(SEARX, json={"base_url": web.base})).is_success
        assert await in_use(gateway) == ["searx"]
        back = await gateway.admin.put(TAVILY, json={"base_url": web.base})
        assert back.json()["in_use"] and (await searches(gateway))["searx"]["place"] == "encrypted"
        with_kept = (await gateway.admin.post(f"{TAVILY}/test", json={"base_url": web.base})).json()
        assert with_kept["answer"] == "Deer of the key"
        elsewhere = await gateway.admin.post(f"{TAVILY}/test", json={"base_url": "http://127.0.0.2:9"})
        assert elsewhere.status_code == 422 and "not sent to another address" in elsewhere.text
        assert KEY not in (await gateway.admin.get("/api/connections")).text
        assert (await gateway.admin.put(DUCK, json={})).json()["in_use"]
        assert await in_use(gateway) == ["ddg"]


async def test_what_cannot_search_is_refused_in_words(fresh: Fresh, tmp_path: Path) -> None:
    async with fresh(DEER_FLOW_WEB_SEARCH="exa", BRAVE_API_KEY=KEY) as gateway:
        assert await in_use(gateway) == ["exa"]
        for path, given, status, words in (
            (SEARX, {}, 422, "address"),
            (TAVILY, {}, 422, "key"),
            (SEARX, {"base_url": "file:///etc"}, 422, "http://"),
            (DUCK, {}, 409, "DEER_FLOW_WEB_SEARCH is set in the environment"),
        ):
            answer = await gateway.admin.put(path, json=given)
            assert answer.status_code == status and words in answer.text, (path, answer.text)
        assert (await gateway.admin.post(f"{SEARX}/models", json={"base_url": "http://h"})).status_code == 404
        assert (await gateway.user.put(DUCK, json={})).status_code == 403
    (tmp_path / "config.yaml").write_text("tools: []\nsandbox: {tool_image: {enabled: false}}\n")
    async with fresh() as gateway:
        assert (await gateway.admin.get("/api/connections")).json()["tools_in_file"] is True
        refused = await gateway.admin.put(DUCK, json={})
        assert refused.status_code == 409 and "config.yaml lists the tools" in refused.text


async def test_a_key_of_the_environment_searches_and_can_be_chosen(fresh: Fresh, web: Web) -> None:
    async with fresh(BRAVE_API_KEY=KEY) as gateway:
        assert await in_use(gateway) == ["brave"]
        assert (await gateway.admin.put(SEARX, json={"base_url": web.base})).is_success
        assert await in_use(gateway) == ["searx"]
        again = await gateway.admin.put("/api/connections/brave", json={})
        assert (again.json()["place"], again.json()["in_use"]) == ("environment", True)
        assert (await gateway.admin.put("/api/connections/brave", json={"key": "another-1"})).status_code == 409


def test_a_name_that_is_none_is_said_when_the_configuration_is_read(tmp_path: Path) -> None:
    from deerflow.config import ConfigError, load_config

    with pytest.raises(ConfigError, match=r"gogle.*Choose one of tavily, brave"):
        load_config(cwd=tmp_path, environ={"DEER_FLOW_WEB_SEARCH": "gogle"}, probe=lambda *_: ())


def test_a_search_of_ones_own_works_beside_an_allowlist_the_others_do_not(tmp_path: Path) -> None:
    from deerflow.config import load_config
    from deerflow.tools import get_available_tools

    def of_web(**environ: str) -> set[str]:
        config = load_config(cwd=tmp_path, environ=environ, probe=lambda *_: ())
        return {tool.name for tool in get_available_tools(app_config=config)} & {"web_search", "web_fetch"}

    (tmp_path / "config.yaml").write_text("security: {native_web_tools: deny}\n")
    assert of_web() == of_web(TAVILY_API_KEY=KEY) == set()
    assert of_web(SEARX_BASE_URL="http://search.intern") == {"web_search"}
