"""A gateway, and the official package of OpenAI as its client."""

from __future__ import annotations

from collections.abc import AsyncIterator

import openai
import pytest
from tests.app.gateway.conftest import Gateway, WithRuntime


@pytest.fixture
async def gateway(with_runtime: WithRuntime) -> AsyncIterator[Gateway]:
    async with with_runtime(memory={"enabled": False}) as made:
        yield made


@pytest.fixture
async def token(gateway: Gateway) -> str:
    made = await gateway.user.post("/api/v1/auth/tokens", json={"name": "t", "scopes": ["read", "write"]})
    return made.json()["token"]


@pytest.fixture
async def client(gateway: Gateway, token: str) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=token, max_retries=0) as client:
        yield client


async def threads(gateway: Gateway) -> list[str]:
    return [each["thread_id"] for each in (await gateway.user.post("/api/threads/search", json={})).json()]
