"""A runtime over a real graph, a real sandbox and both databases; the model alone is scripted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.scripted_openai import ScriptedOpenAI
from tests.support.converters import converters as converters  # a fixture

from deerflow.config import ConfigSource, Paths
from deerflow.runtime import Runtime


@pytest.fixture
def endpoint() -> Iterator[ScriptedOpenAI]:
    with ScriptedOpenAI() as endpoint:
        yield endpoint


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.nightly)])
def settings(request: pytest.FixtureRequest, endpoint: ScriptedOpenAI) -> dict[str, Any]:
    """Return a configuration. What the databases do differently is tested below these tests, in ``storage``, and above, through the SDK."""
    database: dict[str, Any] = {"backend": request.param}
    if request.param == "postgres":
        database["postgres_url"] = request.getfixturevalue("migrated_url")
    return {
        "models": [
            {
                "name": "m",
                "use": "langchain_openai:ChatOpenAI",
                "model": "gpt-x",
                "base_url": endpoint.base_url,
                "api_key": "k",
            }
        ],
        "sandbox": {"tool_image": {"enabled": False}},
        "title": {"enabled": False},
        "database": database,
        "runs": {"drain_seconds": 0},
    }


@pytest.fixture
def make(settings: dict[str, Any], clean_environment: Path) -> Callable[..., Runtime]:
    def make(**sections: Any) -> Runtime:
        source = ConfigSource(None, overrides={**settings, **sections})
        return Runtime(source, Paths(clean_environment))

    return make


@pytest.fixture
async def runtime(make: Callable[..., Runtime]) -> AsyncIterator[Runtime]:
    runtime = await asyncio.to_thread(make)
    await runtime.start()
    yield runtime
    await runtime.aclose()
