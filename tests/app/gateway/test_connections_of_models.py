"""A real model is connected over HTTP: tried, used at once, kept; its key never comes back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from bench.scripted_openai import ScriptedOpenAI, Text
from tests.app.gateway.conftest import Gateway, Population, listening, settings_for

from deerflow.config import ConfigSource, Paths
from deerflow.runtime import Runtime

KEY = "sk-real-and-secret-1234"
OTHER = "/api/connections/openai_compatible"

Fresh = Callable[..., AbstractAsyncContextManager[Gateway]]


@pytest.fixture
def provider() -> Iterator[ScriptedOpenAI]:
    with ScriptedOpenAI(api_key=KEY, models=("big", "small", "text-embedding-9")) as endpoint:
        yield endpoint


@pytest.fixture
def fresh(tmp_path: Path, population: Population) -> Fresh:
    """A gateway that nobody has connected a model to, opened again with what it kept."""

    @asynccontextmanager
    async def open_it(**environ: str) -> AsyncIterator[Gateway]:
        paths = Paths(tmp_path / "home")
        if not paths.data_dir.exists():
            population.copy_to(paths.data_dir)
        settings = {
            "sandbox": {"tool_image": {"enabled": False}},
            "title": {"enabled": False},
            "memory": {"enabled": False},
        }
        source = ConfigSource(
            cwd=tmp_path,
            environ={"DEER_FLOW_HOME": str(paths.base_dir)} | environ,
            probe=lambda *_: (),
            overrides=settings,
        )
        runtime = await asyncio.to_thread(lambda: Runtime(source, paths))
        async with listening(settings_for(tmp_path / "home"), runtime) as made:
            await made.resume(population)
            yield made

    return open_it


def given(provider: ScriptedOpenAI, **more: Any) -> dict[str, Any]:
    return {"key": KEY, "base_url": provider.base_url, **more}


async def models_of(gateway: Gateway) -> list[str]:
    return [model["name"] for model in (await gateway.user.get("/api/models")).json()["models"]]


async def connection(gateway: Gateway, name: str = "openai_compatible") -> dict[str, Any]:
    answer = (await gateway.admin.get("/api/connections")).json()
    return next(one for one in answer["connections"] if one["id"] == name)


async def test_from_the_demo_to_an_answer_of_a_real_model_without_a_restart_and_after_one(
    fresh: Fresh, provider: ScriptedOpenAI, tmp_path: Path
) -> None:
    async with fresh() as gateway:
        assert await models_of(gateway) == ["demo"]
        listed = await gateway.admin.post(f"{OTHER}/models", json=given(provider))
        assert listed.json() == {"models": ["big", "small"]}
        provider.script(Text("ready"), Text("ready"))
        tried = (await gateway.admin.post(f"{OTHER}/test", json=given(provider, models=["small"]))).json()
        assert (tried["ok"], tried["answer"]) == (True, "ready")
        assert await models_of(gateway) == ["demo"], "a trial keeps nothing"

        made = await gateway.admin.put(OTHER, json=given(provider, models=["small", "big"]))
        assert (made.json()["place"], made.json()["models"]) == ("encrypted", ["small", "big"])
        assert await models_of(gateway) == ["small", "big"]
        provider.script(Text("I am real."))
        said = await gateway.user.post(
            "/api/runs/wait", json={"input": {"messages": [{"role": "user", "content": "Hi"}]}}
        )
        assert said.json()["messages"][-1]["content"] == "I am real."
        assert provider.requests[-1]["model"] == "small"
    kept = tmp_path / "home/data/variables"
    assert await asyncio.to_thread(lambda: (kept.stat().st_mode & 0o777, KEY.encode() in kept.read_bytes())) == (
        0o600,
        False,
    )
    async with fresh() as gateway:
        assert await models_of(gateway) == ["small", "big"]
        assert (await gateway.admin.delete(OTHER)).status_code == 204
        assert await models_of(gateway) == ["demo"]
        assert (await connection(gateway))["place"] is None


async def test_the_key_never_comes_back_and_goes_nowhere_else(fresh: Fresh, provider: ScriptedOpenAI) -> None:
    with ScriptedOpenAI(models=("evil",)) as elsewhere:
        async with fresh() as gateway:
            assert (await gateway.admin.put(OTHER, json=given(provider, models=["big"]))).is_success
            for path in ("/api/connections", "/api/models", "/api/system"):
                assert KEY not in (await gateway.admin.get(path)).text
            without_key = {"base_url": provider.base_url}
            again = await gateway.admin.post(f"{OTHER}/models", json=without_key)
            assert again.json() == {"models": ["big", "small"]}, (
                "the kept key serves at the address that it is kept with"
            )
            for action in ("/models", "/test"):
                answer = await gateway.admin.post(
                    OTHER + action, json={"base_url": elsewhere.base_url, "models": ["x"]}
                )
                assert answer.status_code == 422 and "not sent to another address" in answer.text
            assert (
                await gateway.admin.put(OTHER, json={"base_url": elsewhere.base_url, "models": ["x"]})
            ).status_code == 422
            assert not elsewhere.records


async def test_what_is_wrong_is_said_in_words(fresh: Fresh, provider: ScriptedOpenAI) -> None:
    async with fresh() as gateway:

        async def fails(path: str, **body: Any) -> tuple[int, str]:
            answer = await gateway.admin.post(path, json=body)
            return answer.status_code, answer.text

        status, text = await fails(f"{OTHER}/models", key="sk-wrong-key-77", base_url=provider.base_url)
        assert status == 422 and "key_refused" in text and "sk-wrong-key-77" not in text
        status, text = await fails(f"{OTHER}/models", base_url="http://127.0.0.1:9/v1")
        assert status == 422 and "no_server" in text and "cannot be reached. Check the address" in text
        status, text = await fails(f"{OTHER}/models", base_url=provider.base_url)
        assert status == 422 and "key_wanted" in text
        status, text = await fails("/api/connections/anthropic/models", key="sk-ant-1", base_url="http://127.0.0.1:9")
        assert status == 422 and '"no_way_out"' in text and "address" not in text
        status, text = await fails(f"{OTHER}/models", base_url=provider.base_url + "/elsewhere", key=KEY)
        assert status == 422 and "no_list" in text
        for base_url in (
            "file:///etc/passwd",
            "ftp://host",
            "http://u:pw@host/v1",
            "http://",
            "http://[",
            "http://h:99999",
        ):
            status, text = await fails(f"{OTHER}/models", base_url=base_url)
            assert status == 422 and "http://" in text, base_url
        for key in ("two words", "line\nbreak", "quo'te", "ref${HOME}"):
            assert (await fails("/api/connections/openai/models", key=key))[0] == 422, key
        assert (await fails("/api/connections/openai/models"))[0] == 422
        assert (await fails("/api/connections/nobody/models"))[0] == 404
        wrong = await gateway.admin.post(f"{OTHER}/test", json=given(provider, key="sk-wrong-key-77", models=["big"]))
        assert wrong.json()["ok"] is False and "key" in wrong.json()["problem"]
        assert await models_of(gateway) == ["demo"]


async def test_ordinary_people_neither_see_nor_change_connections(fresh: Fresh, provider: ScriptedOpenAI) -> None:
    async with fresh() as gateway:
        assert (await gateway.user.get("/api/connections")).status_code == 403
        assert (await gateway.user.put(OTHER, json=given(provider, models=["big"]))).status_code == 403
        assert (await gateway.user.post(f"{OTHER}/models", json=given(provider))).status_code == 403
        assert not provider.records


async def test_a_key_can_stand_in_the_file_of_variables_and_move(
    fresh: Fresh, provider: ScriptedOpenAI, tmp_path: Path
) -> None:
    file = tmp_path / ".env"
    file.write_text("# mine\nUNTOUCHED='a b'")
    async with fresh() as gateway:
        made = await gateway.admin.put(OTHER, json=given(provider, models=["big"], store="dotenv"))
        assert made.json()["place"] == "dotenv"
        text = await asyncio.to_thread(file.read_text)
        assert text.startswith("# mine\nUNTOUCHED='a b'\n") and KEY in text
        assert await asyncio.to_thread(lambda: file.stat().st_mode & 0o777) == 0o600
        assert await models_of(gateway) == ["big"]
        moved = await gateway.admin.put(OTHER, json={"base_url": provider.base_url, "models": ["small"]})
        assert moved.json()["place"] == "encrypted"
        assert await asyncio.to_thread(file.read_text) == "# mine\nUNTOUCHED='a b'\n"
        assert await models_of(gateway) == ["small"]


async def test_what_the_process_was_started_with_is_changed_there(fresh: Fresh) -> None:
    async with fresh(DEEPSEEK_API_KEY=KEY) as gateway:
        assert (await connection(gateway, "deepseek"))["place"] == "environment"
        for answer in (
            await gateway.admin.put("/api/connections/deepseek", json={"key": "another-key-1"}),
            await gateway.admin.delete("/api/connections/deepseek"),
        ):
            assert answer.status_code == 409 and "set_outside" in answer.text
        beside = await gateway.admin.put("/api/connections/mistral", json={"key": "another-key-1"})
        assert beside.json()["place"] == "encrypted"
        assert await models_of(gateway) == [
            "deepseek-flash",
            "deepseek-v4-pro",
            "mistral-medium-latest",
            "mistral-large-latest",
        ]


async def test_models_of_a_file_are_changed_in_the_file(fresh: Fresh, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(json.dumps({"models": [{"name": "m", "use": "a:B", "model": "m"}]}))
    async with fresh() as gateway:
        assert (await gateway.admin.get("/api/connections")).json()["models_in_file"] is True
        answer = await gateway.admin.put("/api/connections/openai", json={"key": KEY})
        assert answer.status_code == 409 and "config.yaml" in answer.text


async def test_an_address_is_found_by_trying_and_a_key_typed_here_is_not_of_the_environment(
    fresh: Fresh, provider: ScriptedOpenAI
) -> None:
    host = provider.base_url.removeprefix("http://").removesuffix("/v1")
    async with fresh() as gateway:
        for typed in (host, f"http://{host}/"):
            listed = await gateway.admin.post(f"{OTHER}/models", json=given(provider, base_url=typed))
            assert listed.json() == {"models": ["big", "small"]}
        provider.script(Text("ready"), Text("ready"))
        tried = await gateway.admin.post(f"{OTHER}/test", json=given(provider, base_url=host, models=["big"]))
        assert tried.json()["ok"] is True
        made = (await gateway.admin.put(OTHER, json=given(provider, base_url=host, models=["big"]))).json()
        assert made["base_url"] == provider.base_url
        (model,) = (await gateway.user.get("/api/models")).json()["models"]
        assert model["discovered_from"]["kind"] == "connected"
        again = await gateway.admin.post(f"{OTHER}/models", json={"base_url": host})
        assert again.json() == {"models": ["big", "small"]}, "the kept key, at the address that was found"
        wrong = await gateway.admin.post(f"{OTHER}/models", json={"base_url": host, "key": "sk-wrong-key-77"})
        assert "key_refused" in wrong.text
        nowhere = await gateway.admin.post(f"{OTHER}/models", json={"base_url": "localhost:9", "key": KEY})
        assert "no_server" in nowhere.text


async def test_presets_need_an_address_or_a_key_and_show_its_form(fresh: Fresh, provider: ScriptedOpenAI) -> None:
    async with fresh() as gateway:
        examples = {
            name: (await connection(gateway, name))["example"]
            for name in ("azure_openai", "bedrock", "vertex", "ollama", "vllm", "lm_studio", "together")
        }
        assert examples["ollama"] == "http://127.0.0.1:11434/v1" and examples["together"] is None
        assert all(str(example).startswith("http") for name, example in examples.items() if name != "together")
        body = given(provider, models=["deployed"])
        assert (await gateway.admin.put("/api/connections/azure_openai", json=body)).is_success
        assert (await gateway.admin.put("/api/connections/fireworks", json={"key": "k-1"})).status_code == 422
        assert (await gateway.admin.put("/api/connections/together", json={**body, "models": ["big"]})).is_success
        assert sorted(await models_of(gateway)) == ["big", "deployed"]
        provider.script(Text("Hi."))
        await gateway.user.post("/api/runs/wait", json={"input": {"messages": [{"role": "user", "content": "Hi"}]}})
    assert provider.headers[-1]["authorization"] == f"Bearer {KEY}"


async def test_each_provider_is_asked_in_its_own_way(fresh: Fresh) -> None:
    asked: list[tuple[str, dict[str, str]]] = []

    async def listing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        asked.append((head[0].split()[1], dict(line.lower().split(": ", 1) for line in head[1:] if line)))
        body = json.dumps({"data": [{"id": "models/zeta"}, {"id": "claude-opus-5-5"}, {"id": "alpha"}]}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()

    async with fresh() as gateway, await asyncio.start_server(listing, "127.0.0.1", 0) as server:
        here = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for name in ("anthropic", "google"):
            body = {"key": KEY, "base_url": here}
            answer = await gateway.admin.post(f"/api/connections/{name}/models", json=body)
            first = ["claude-opus-5-5", "alpha"] if name == "anthropic" else ["alpha", "claude-opus-5-5"]
            assert answer.json() == {"models": [*first, "zeta"]}, "known ones first"
    (claude, headers), (google, bearer) = asked
    assert (claude, headers["x-api-key"], headers["anthropic-version"]) == ("/v1/models?limit=1000", KEY, "2023-06-01")
    assert "authorization" not in headers
    assert (google, bearer["authorization"]) == ("/models", f"bearer {KEY}")


async def test_without_the_key_of_the_installation_everything_else_goes_on(
    fresh: Fresh, provider: ScriptedOpenAI, tmp_path: Path
) -> None:
    async with fresh() as gateway:
        assert (await gateway.admin.put(OTHER, json=given(provider, models=["big"]))).is_success
        assert await models_of(gateway) == ["big"]
        (tmp_path / "home/data/secrets.key").unlink()
        refused = await gateway.admin.get("/api/connections")
        assert refused.status_code == 503 and "deerflow doctor" in refused.text and str(tmp_path) not in refused.text
        assert await models_of(gateway) == ["big"], "the last good configuration stays in force"
