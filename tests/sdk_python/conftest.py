"""The official Python client, both kinds of it, against gateways that are processes of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from bench.scripted_openai import Delay, Scripted, ScriptedOpenAI, Text
from langgraph_sdk import get_client, get_sync_client
from tests.servers import PostgresServer
from tests.support.gateway_process import GatewayProcess, WorkerProcess

ASSISTANT = "lead_agent"
PARTS = ("assistants", "threads", "runs", "crons", "store")
CONFIG = "title:\n  enabled: false\n"
LONG = " ".join(f"word{number}" for number in range(400))

Test = TypeVar("Test", bound=Callable[..., Any])


def covers(*methods: str) -> Callable[[Test], Test]:
    """Says which methods of the client, as ``threads.copy``, the test is about. It must call them."""

    def mark(test: Test) -> Test:
        test.covers = methods  # pyright: ignore[reportFunctionMemberAccess]
        return test

    return mark


class Sdk:
    """Both kinds of client, used alike: awaited, and iterated with ``async for``. ``called`` notes which methods were."""

    def __init__(self, client: Any, endpoint: ScriptedOpenAI, kind: str) -> None:
        self.client = client
        self.kind = kind
        self.called: set[str] = set()
        self._endpoint = endpoint
        for part in PARTS:
            setattr(self, part, _Part(self, part))

    assistants: Any
    threads: Any
    runs: Any
    crons: Any
    store: Any

    def script(self, *replies: Scripted) -> dict[str, Any]:
        """An input to which the model answers so."""
        key = uuid4().hex
        self._endpoint.script(*replies, key=key)
        return {"messages": [{"role": "user", "content": f"key:{key}"}]}

    async def thread(self, *texts: str) -> str:
        """A new thread in which the model has said these texts, each in a run of its own."""
        thread_id = (await self.threads.create())["thread_id"]
        for text in texts:
            await self.runs.wait(thread_id, ASSISTANT, input=self.script(Text(text)))
        return thread_id

    async def running(self, thread_id: str, **options: Any) -> dict[str, Any]:
        """A run whose answer takes half a minute and has begun."""
        options = {"input": self.script(Delay(0, Text(LONG), between=0.08)), **options}
        run = await self.runs.create(thread_id, ASSISTANT, **options)
        parts = self.runs.join_stream(thread_id, run["run_id"], stream_mode=["messages-tuple"])
        async for part in parts:
            if part.event == "messages" and part.data[0]["content"]:
                break
        await parts.aclose()
        return run


class _Part:
    def __init__(self, sdk: Sdk, name: str) -> None:
        self._sdk = sdk
        self._name = name

    def __getattr__(self, method: str) -> Callable[..., Any]:
        self._sdk.called.add(f"{self._name}.{method}")
        found = getattr(getattr(self._sdk.client, self._name), method)
        if (self._name, method) == ("threads", "stream"):
            return found
        if self._sdk.kind == "async":
            return _awaited(found) if (self._name, method) == ("threads", "join_stream") else found
        return _iterated(found) if method in ("stream", "join_stream") else _threaded(found)


def _awaited(method: Callable[..., Any]) -> Callable[..., Any]:
    """This one gives an iterator that must be awaited first."""

    async def call(*arguments: Any, **options: Any) -> AsyncIterator[Any]:
        async for item in await method(*arguments, **options):
            yield item

    return call


def _threaded(method: Callable[..., Any]) -> Callable[..., Any]:
    async def call(*arguments: Any, **options: Any) -> Any:
        return await asyncio.to_thread(method, *arguments, **options)

    return call


def _iterated(method: Callable[..., Any]) -> Callable[..., Any]:
    async def call(*arguments: Any, **options: Any) -> AsyncIterator[Any]:
        end = object()
        iterator = await asyncio.to_thread(method, *arguments, **options)
        try:
            while (item := await asyncio.to_thread(next, iterator, end)) is not end:
                yield item
        finally:
            await asyncio.to_thread(iterator.close)

    return call


@dataclass(frozen=True)
class House:
    url: str
    endpoint: ScriptedOpenAI
    processes: tuple[Any, ...]

    def sdk(self, kind: str, url: str | None = None) -> Sdk:
        make = get_client if kind == "async" else get_sync_client
        return Sdk(make(url=url or self.url, api_key=None), self.endpoint, kind)


@pytest.fixture(scope="package", params=["sqlite", "postgres"])
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A gateway that executes runs itself, or one that leaves them to a worker."""
    root = tmp_path_factory.mktemp("house")
    with ExitStack() as stack:
        endpoint = stack.enter_context(ScriptedOpenAI())
        if request.param == "sqlite":
            gateway = GatewayProcess(root, model_url=endpoint.base_url, config=CONFIG)
            processes: tuple[Any, ...] = (stack.enter_context(gateway).start(),)
        else:
            server: PostgresServer = request.getfixturevalue("postgres")
            url = stack.enter_context(server.fresh_database())
            processes = _scaled(stack, root, endpoint, url)
        yield House(processes[0].url, endpoint, processes)


def _scaled(stack: ExitStack, root: Path, endpoint: ScriptedOpenAI, database: str) -> tuple[Any, ...]:
    config = CONFIG + f"database:\n  backend: postgres\n  postgres_url: {database}\n"
    gateway = GatewayProcess(root, "--no-execute", model_url=endpoint.base_url, config=config)
    worker = WorkerProcess(root, model_url=endpoint.base_url, config=config)
    # The worker starts while the gateway does.
    stack.enter_context(gateway).launch()
    stack.enter_context(worker).start()
    return (gateway.started(), worker)


@pytest.fixture(params=["async", "sync"])
async def sdk(request: pytest.FixtureRequest, house: House) -> AsyncIterator[Sdk]:
    made = house.sdk(request.param)
    yield made
    if made.kind == "async":
        await made.client.aclose()
    else:
        await asyncio.to_thread(made.client.close)
    promised = set(getattr(request.function, "covers", ()))
    assert promised <= made.called, f"never called: {promised - made.called}"
