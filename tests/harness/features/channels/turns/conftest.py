"""Channels over a real runtime: real runs, files and database; the model and the platform alone are doubles."""

from __future__ import annotations

import asyncio
import importlib.util
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

if importlib.util.find_spec("deerflow.features.channels.render") is None:
    stand_in: Any = ModuleType("deerflow.features.channels.render")
    stand_in.parts = lambda markdown, dialect, **_: [markdown]
    stand_in.tail = lambda markdown, dialect, **_: markdown
    sys.modules["deerflow.features.channels.render"] = stand_in

from tests.harness.features.channels.turns.chat_house import House, Platform

from deerflow.runtime import Runtime

ON = {"enabled": True}
OpenHouse = Callable[..., Awaitable[House]]


@pytest.fixture(params=["sqlite"])
def settings(request: pytest.FixtureRequest, endpoint: Any) -> dict[str, Any]:
    database: dict[str, Any] = {"backend": request.param}
    if request.param == "postgres":
        database["postgres_url"] = request.getfixturevalue("postgres_url")
    url = endpoint.base_url
    model = {"name": "m", "use": "langchain_openai:ChatOpenAI", "model": "gpt-x", "base_url": url, "api_key": "k"}
    return {
        "models": [model, {**model, "name": "other", "model": "gpt-y"}],
        "sandbox": {"tool_image": {"enabled": False}},
        "title": {"enabled": False},
        "memory": {"enabled": False},
        "database": database,
        "runs": {"drain_seconds": 0},
    }


@pytest.fixture
async def open_house(
    make: Callable[..., Runtime], settings: dict[str, Any], sqlite_template: Path
) -> AsyncIterator[OpenHouse]:
    """Open a process with a connection. ``runtime``: of another one, whose database and runs it goes on with."""

    def made(**sections: Any) -> Runtime:
        runtime = make(**sections)
        if settings["database"]["backend"] == "sqlite":  # an empty one that is up to date spares its migration
            Path(runtime.database.location).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(sqlite_template, runtime.database.location)
        return runtime

    houses: list[House] = []
    runtimes: list[Runtime] = []

    async def open_house(
        platform: Platform | None = None,
        kind: str = "slack",
        channel: dict[str, Any] | None = None,
        runtime: Runtime | None = None,
        **sections: Any,
    ) -> House:
        if runtime is None:
            channels = {"slack": ON, "telegram": ON, **sections.pop("channels", {})}
            sections["channels"] = {**channels, kind: {**ON, **(channel or {})}}
            runtime = await asyncio.to_thread(made, **sections)
            await runtime.start()
            runtimes.append(runtime)
        house = House(runtime, platform or Platform(), kind)
        houses.append(await house.open())
        return house

    yield open_house
    for house in houses:
        await house.die()
    for runtime in runtimes:
        await runtime.aclose()
