"""What the figures of ``http`` do not show: clients that ask for ``values``, the page's own channels, searching and signing in
beside runs, and the same on PostgreSQL."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import statistics
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
from langchain_core.messages import HumanMessage
from tests.servers import postgres_server

from bench import http_client
from bench.figures import Figure, at_least_of_floor, at_most, times_floor
from bench.gateway_process import GatewayProcess
from bench.http import AT_ONCE, MODES, RUNS, SETTLES, Talk, bare_loop
from bench.subjects import open_subject
from bench.worker import Options
from deerflow.identity import LOCAL_PRINCIPAL
from deerflow.storage.database import Database
from deerflow.storage.search import index

SUBJECTS = ("floor", "sqlite", "postgres")
ROUNDS = 1
MESSAGES = 100_000
SEARCHERS = 2
PAGE_CHANNELS = ["updates", "lifecycle", "input", "messages", "custom"]
"""As in ``frontend/src/features/chat/thread/protocol.ts``."""
WORDS = ("report", "rep", "the")


async def measure(subject: str, options: Options) -> dict[str, Any]:
    """Readings of the bare loop in this process, or of a gateway on either database."""
    data = Path(options.data)
    if subject == "floor":
        return await _floor(options, data)
    with _config(subject) as (config, location):
        with GatewayProcess(options.base_url, data, config=config) as gateway:
            reading = await Served(gateway, options).cost()
            if subject == "postgres":
                return reading
        (data / "login").mkdir()
        with GatewayProcess(options.base_url, data / "login", auth=True) as gateway:
            reading["login"] = await _login(gateway.url, 5 if options.quick else 30)
        await _fill(location or str(data / "home/data/deerflow.db"), 2000 if options.quick else MESSAGES)
        with GatewayProcess(options.base_url, data, config=config) as gateway:
            return reading | await Served(gateway, options).search()


@contextlib.contextmanager
def _config(subject: str) -> Iterator[tuple[str, str]]:
    if subject == "sqlite":
        yield "", ""
        return
    with postgres_server() as server, server.fresh_database() as url:
        yield f"database: {{backend: postgres, postgres_url: '{url}'}}\n", url


async def _floor(options: Options, data: Path) -> dict[str, Any]:
    results: dict[str, Any] = {name: spent["own"] for name, spent in (await bare_loop(options, data)).items()}
    (data / "eight").mkdir()
    async with open_subject("floor", options.base_url, data / "eight") as agent:
        began, rounds = time.perf_counter(), 1 if options.quick else 5

        async def one(number: int) -> None:
            for i in range(rounds):
                await agent.turn(f"eight-{number}-{i}", f"scenario:plain key:eight-{number}-{i}")

        await asyncio.gather(*map(one, range(AT_ONCE)))
        results["at_once"] = rounds * AT_ONCE / (time.perf_counter() - began)
    return results


async def _fill(location: str, messages: int) -> None:
    """Put so many messages into the search, in threads of a hundred."""
    database = Database(location)
    texts = [f"Please write the report number {number} about rivers and their banks." for number in range(100)]
    try:
        for _ in range(messages // 100):
            thread = str(uuid.uuid4())
            said = [HumanMessage(text, id=str(uuid.uuid4())) for text in texts]

            def add(connection: Any, thread: str = thread, said: list[HumanMessage] = said) -> None:
                index(connection, thread, LOCAL_PRINCIPAL.user_id, said)

            await _new_thread(database, thread)
            await database.write(add)
    finally:
        await database.aclose()


async def _new_thread(database: Database, thread_id: str) -> None:
    from deerflow.storage.threads import ThreadRepository

    await ThreadRepository(database).create(LOCAL_PRINCIPAL, thread_id)


@contextlib.asynccontextmanager
async def _meanwhile(url: str, act: Callable[[httpx.AsyncClient, int], Awaitable[object]]) -> AsyncIterator[None]:
    """``act`` again and again, by a client of its own."""

    async def go_on() -> None:
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as client:
            for number in itertools.count():
                await act(client, number)

    doing = asyncio.create_task(go_on())
    try:
        yield
    finally:
        doing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await doing


async def _login(url: str, count: int) -> dict[str, float]:
    """Seconds of a signed-in person's runs, alone and while somebody else tries passwords."""
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as client:
        account = {"email": "ada@example.org", "password": "correct horse battery"}
        (await client.post("/api/v1/auth/initialize", json=account)).raise_for_status()
        client.headers["x-csrf-token"] = client.cookies["csrf_token"]
        client.headers["origin"] = url

        async def turn() -> None:
            said = {"messages": [{"role": "user", "content": f"scenario:plain key:{uuid.uuid4()}"}]}
            (await client.post("/api/runs/wait", json={"input": said})).raise_for_status()

        async def wrong(other: httpx.AsyncClient, number: int) -> object:
            form = {"username": f"nobody-{number}@example.org", "password": "wrong password"}
            return await other.post("/api/v1/auth/login/local", data=form)

        alone = await _median_seconds(turn, count)
        async with _meanwhile(url, wrong):
            return {"alone": alone, "beside": await _median_seconds(turn, count)}


async def _median_seconds(act: Callable[[], Awaitable[object]], count: int) -> float:
    taken: list[float] = []
    for _ in range(count):
        began = time.perf_counter()
        await act()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


class Served:
    """What is measured of one gateway."""

    def __init__(self, gateway: GatewayProcess, options: Options) -> None:
        self._gateway = gateway
        self._talk = Talk(gateway, options)
        self._quick = options.quick

    async def cost(self) -> dict[str, Any]:
        """CPU seconds per run, by scenario and what the client asks for, and runs per second of eight clients."""
        found: dict[str, Any] = {}
        for scenario, count in RUNS.items():
            for modes in (["values"], MODES):
                spent = await self._talk.cost(scenario, 2 if self._quick else count, modes)
                found[f"{scenario} {modes[0]}"] = spent["own"]
        found["page"] = await self._page(2 if self._quick else RUNS["plain"])
        found["at_once"] = (await self._talk.at_once(1 if self._quick else 5))["runs_per_second"]
        return found

    async def _page(self, count: int) -> dict[str, float]:
        """CPU seconds and bytes of a run that is started and followed as the page does it."""
        before, size = self._gateway.usage(), 0
        for i in range(count):
            thread = f"{self._gateway.url}/api/threads/{uuid.uuid4()}"
            said = {"messages": [{"role": "user", "content": f"scenario:plain key:page-{i}"}]}
            body = {"id": 1, "method": "run.start", "params": {"assistant_id": "lead_agent", "input": said}}
            await http_client.post(f"{thread}/commands", body)
            followed = await http_client.post(
                f"{thread}/stream/events",
                {"channels": PAGE_CHANNELS},
                enough=lambda body: b'"completed"' in body or b'"failed"' in body,
            )
            size += len(followed.body)
        await asyncio.sleep(SETTLES)
        return {"own": (self._gateway.usage().own - before.own) / count, "bytes": size / count}

    async def search(self) -> dict[str, Any]:
        """Seconds of searches in many messages, and of runs alone and while two people search without a pause."""
        await self._plain()
        alone, searches = await self._seconds(), []

        async def look(client: httpx.AsyncClient, number: int) -> None:
            began = time.perf_counter()
            answer = await client.get("/api/search/messages", params={"q": WORDS[number % len(WORDS)]})
            answer.raise_for_status()
            searches.append(time.perf_counter() - began)

        async with contextlib.AsyncExitStack() as stack:
            for _ in range(SEARCHERS):
                await stack.enter_async_context(_meanwhile(self._gateway.url, look))
            beside = await self._seconds()
        return {"search": sorted(searches), "search_alone": alone, "search_beside": beside}

    async def _seconds(self) -> float:
        return await _median_seconds(self._plain, 5 if self._quick else 30)

    async def _plain(self) -> object:
        return await self._talk.turn(str(uuid.uuid4()), f"scenario:plain key:{uuid.uuid4()}")


def figures(results: dict[str, list[dict[str, Any]]]) -> list[Figure]:
    bare, ours, postgres = (results[subject][0] for subject in SUBJECTS)
    found = [
        Figure("plain with values: CPU per run", "s", ours["plain values"], bare["plain"], times_floor(1.5)),
        Figure("plain with updates: CPU per run", "s", ours["plain messages-tuple"], bare["plain"]),
        Figure("plain on the page's channels: CPU per run", "s", ours["page"]["own"], bare["plain"]),
        Figure("plain on the page's channels", "kB", ours["page"]["bytes"] / 1000),
        Figure("tools-20 with values: CPU per run", "s", ours["tools-20 values"], bare["tools-20"], times_floor(1.0)),
        Figure("tools-20 with updates: CPU per run", "s", ours["tools-20 messages-tuple"], bare["tools-20"], times_floor(0.8)),
        Figure(f"plain, {AT_ONCE} at once", "1/s", ours["at_once"], bare["at_once"], at_least_of_floor(0.7)),
        Figure("PostgreSQL: plain with values, CPU per run, against SQLite", "s", postgres["plain values"], ours["plain values"], times_floor(1.5)),
        Figure(f"PostgreSQL: plain, {AT_ONCE} at once", "1/s", postgres["at_once"], bare["at_once"]),
        Figure("plain while passwords are tried", "ms", 1000 * ours["login"]["beside"], 1000 * ours["login"]["alone"]),
    ]  # fmt: skip
    searches = ours["search"]
    return [
        *found,
        Figure("search in many messages, median", "ms", 1000 * statistics.median(searches), None, at_most(20, "ms")),
        Figure("search in many messages, p95", "ms", 1000 * searches[int(0.95 * len(searches))]),
        Figure(
            "plain while two people search",
            "ms",
            1000 * ours["search_beside"],
            1000 * ours["search_alone"],
            times_floor(1.1),
        ),
    ]
