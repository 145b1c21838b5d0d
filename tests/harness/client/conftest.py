from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from bench.scripted_openai import ScriptedOpenAI

from deerflow import DeerFlowClient


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ScriptedOpenAI]:
    """The scripted endpoint, named by two environment variables alone: no configuration file."""
    monkeypatch.chdir(tmp_path)
    with ScriptedOpenAI() as server:
        monkeypatch.setenv("OPENAI_API_KEY", "test-key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        server.unscripted.add("title")
        yield server


@pytest.fixture
async def client(endpoint: ScriptedOpenAI) -> AsyncIterator[DeerFlowClient]:
    import asyncio

    made = await asyncio.to_thread(DeerFlowClient)
    yield made
    await made.aclose()
