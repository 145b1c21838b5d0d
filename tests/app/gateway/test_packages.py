"""A noun that another package brings: the glossary of ``examples/my_package``, in a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from bench.replies import Text, ToolCalls
from bench.scenarios import text_of
from bench.scripted_openai import ScriptedOpenAI
from tests.support.gateway_process import PASSWORD, DeerFlowProcess, GatewayProcess, gateway_process, until
from tests.support.own_package import install

RULES = "Spell terms out."
LOOKUPS = "/api/capabilities/glossary/lookups"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("own"))


@pytest.fixture
def endpoint() -> Iterator[ScriptedOpenAI]:
    with ScriptedOpenAI() as server:
        server.unscripted |= {"title", "memory"}
        yield server


def config_of(**changes: Any) -> str:
    glossary = {"name": "glossary", "terms": {"ARR": "annual recurring revenue"}, "rules": RULES, **changes}
    return yaml.safe_dump({"capabilities": [glossary]})


def environment_of(installed: Path) -> dict[str, str]:
    return {"PYTHONPATH": str(installed)}


def test_a_package_brings_tool_prompt_middleware_task_and_route(
    tmp_path: Path, installed: Path, endpoint: ScriptedOpenAI
):
    endpoint.script(ToolCalls(("explain_term", {"term": "arr"}), ("explain_term", {"term": "nps"})), Text("I see."))
    options = {"config": config_of(), "environment": environment_of(installed), "model_url": endpoint.base_url}
    with gateway_process(tmp_path, auth=True, **options) as gateway:
        token = gateway.token("read", "write")
        with gateway.client(authorization=f"Bearer {token}") as client:
            run = {"input": {"messages": [{"role": "user", "content": "What is ARR?"}]}, "if_not_exists": "create"}
            values = client.post("/threads/t/runs/wait", json=run).raise_for_status().json()
            assert values["messages"][-1]["content"] == "I see."
            assert client.get(LOOKUPS).status_code == 403, "no token opens it"
        first, last = endpoint.requests[:2]
        prompt = text_of(first["messages"][0])
        assert "<glossary>\nexplain_term knows what the house means by: ARR.\n</glossary>" in prompt
        assert prompt.endswith(f"\n\n{RULES}") and prompt == text_of(last["messages"][0])
        results = [text_of(message) for message in last["messages"] if message["role"] == "tool"]
        assert results[0] == "annual recurring revenue" and "It has: ARR." in results[1]
        with gateway.client() as client:
            assert client.get(LOOKUPS).status_code == 401
            client.headers["origin"] = gateway.url
            form = {"username": "admin@example.org", "password": PASSWORD}
            client.post("/api/v1/auth/login/local", data=form).raise_for_status()
            until(lambda: client.get(LOOKUPS).raise_for_status().json() == {"arr": 1, "nps": 1})


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (config_of(terms=["ARR"]), "capabilities[0].terms: Input should be a valid dictionary."),
        (config_of(colour="blue"), "capabilities[0].colour: Extra inputs are not permitted."),
        (config_of(name="glosary"), "no installed package brings the capability 'glosary'"),
    ],
)
def test_what_cannot_be_is_said_before_the_server_starts(tmp_path: Path, installed: Path, config: str, words: str):
    process = GatewayProcess(tmp_path, config=config, environment=environment_of(installed))
    DeerFlowProcess.start(process)
    assert process.wait() != 0
    said = " ".join(process.output.split())
    assert words in said and "Traceback" not in said, said
    assert "config.yaml" in said and ("installed are: glossary" in said or "glosary" not in config)
