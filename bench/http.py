"""The gateway over HTTP, in a process of its own: CPU, latency and bytes per run, many runs at once, a long thread."""

from __future__ import annotations

import asyncio
import statistics
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from bench import floor, gauges, http_client, latency
from bench.figures import Figure, above_floor, at_least, at_most, times_floor
from bench.gateway_process import GatewayProcess, Usage
from bench.http_client import Answer
from bench.subjects import open_subject
from bench.worker import Options

SUBJECTS = ("floor", "ours")
ROUNDS = 1
RUNS = {"plain": 20, "tools-20": 4}
AT_ONCE = 8
MANY = 500
THINKS = 2.0
"""Seconds before the model's first word while many runs go on at once."""
PACE = 10
"""Milliseconds between tokens where single ones are to be seen."""
TURNS = 200
STEADY = 5000
"""Runs after which memory is read."""
TOKEN = b"tok00"
MODES = ("messages-tuple", "updates")
WARM = 10
"""Runs of each kind before those that are measured: by then the interpreter has specialized what they execute."""
SETTLES = 1.0
"""Seconds for what follows a run in the background, such as its thread's title: it belongs to the run's cost."""


async def measure(subject: str, options: Options) -> dict[str, Any]:
    """Readings of the bare loop in this process, or of the gateway in one that this one starts."""
    data = Path(options.data)
    return await (bare_loop(options, data) if subject == "floor" else _ours(options, data))


async def bare_loop(options: Options, data: Path) -> dict[str, Any]:
    """CPU seconds of its runs, by scenario."""
    results: dict[str, Any] = {}
    async with open_subject("floor", options.base_url, data) as agent:
        for scenario, count in RUNS.items():
            for i in range(WARM):
                await agent.turn(f"warm-{scenario}-{i}", f"scenario:{scenario} key:warm-{scenario}-{i}")
            before = gauges.cpu()
            runs = 2 if options.quick else count
            for i in range(runs):
                await agent.turn(f"{scenario}-{i}", f"scenario:{scenario} key:{scenario}-{i}")
            spent = gauges.cpu().since(before)
            results[scenario] = {"own": spent.own / runs, "children": spent.children / runs}
    return results


async def _ours(options: Options, data: Path) -> dict[str, Any]:
    results: dict[str, Any] = {}
    first, steady, crowd = data / "first", data / "steady", data / "crowd"
    for folder in (first, steady, crowd):
        folder.mkdir(parents=True)
    with GatewayProcess(options.base_url, first, profile=options.profile) as gateway:
        results["started_in"] = gateway.started_in
        await asyncio.sleep(SETTLES)
        results["idle"] = gateway.resident()
        talk = Talk(gateway, options)
        for scenario, count in RUNS.items():
            results[scenario] = await talk.cost(scenario, 2 if options.quick else count)
        results["latency"] = await talk.latency(5 if options.quick else 40)
        results["at_once"] = await talk.at_once(1 if options.quick else 5)
        results["sizes"] = await talk.sizes()
        results["long"] = await talk.long_thread(21 if options.quick else TURNS)
    # In a process of its own: the titles and memories of so many threads keep it busy for minutes, and a long thread leaves a
    # heap with holes.
    with GatewayProcess(options.base_url, steady) as gateway:
        results["steady"] = await Talk(gateway, options).steady(40 if options.quick else STEADY)
    with GatewayProcess(options.base_url, crowd, probe=True) as gateway:
        results["crowd"] = await Talk(gateway, options).crowd(20 if options.quick else MANY)
    return results


class Talk:
    """What is measured of one gateway."""

    def __init__(self, gateway: GatewayProcess, options: Options) -> None:
        self._gateway = gateway
        self._model = floor.model(options.base_url)
        self._endpoint = options.base_url.removesuffix("/v1")

    async def cost(self, scenario: str, count: int, modes: Sequence[str] = MODES) -> dict[str, Any]:
        """Per run, each on a fresh thread of a warm process."""
        for i in range(WARM):
            await self.turn(str(uuid.uuid4()), f"scenario:{scenario} key:warm-{scenario}-{i}", modes)
        await asyncio.sleep(SETTLES)
        self._gateway.toggle_profile()
        asked, before = await self._asked(), self._gateway.usage()
        size = 0
        for i in range(count):
            size += len((await self.turn(str(uuid.uuid4()), f"scenario:{scenario} key:{scenario}-{i}", modes)).body)
        await asyncio.sleep(SETTLES)
        self._gateway.toggle_profile()
        spent = self._gateway.usage().since(before)
        asked = await self._asked() - asked
        return {**_each(spent, count), "files": (spent.written - size - asked) / count}

    async def latency(self, count: int) -> dict[str, list[float]]:
        """Seconds to the first token, of direct calls and of runs in turn."""
        direct: list[float] = []
        through: list[float] = []
        for i in range(count):
            direct.append(await latency.direct(self._model, f"scenario:plain key:direct-{i}"))
            through.append(_first(await self.turn(str(uuid.uuid4()), f"scenario:plain key:first-{i}")))
        return {"direct": direct, "through": through}

    async def at_once(self, rounds: int) -> dict[str, float]:
        """``runs_per_second`` of the clock, and of the gateway's CPU."""
        await asyncio.sleep(SETTLES)
        before, started = self._gateway.usage(), time.perf_counter()

        async def one(number: int) -> None:
            for i in range(rounds):
                await self.turn(str(uuid.uuid4()), f"scenario:plain key:eight-{number}-{i}")

        await asyncio.gather(*(one(number) for number in range(AT_ONCE)))
        seconds, spent = time.perf_counter() - started, self._gateway.usage().since(before)
        runs = rounds * AT_ONCE
        return {"runs_per_second": runs / seconds, "runs_per_cpu_second": runs / spent.own}

    async def steady(self, runs: int) -> dict[str, int]:
        """Bytes of memory after a third of so many runs, each on a thread of its own, and after all."""

        async def some(first: int) -> None:
            for i in range(first, first + runs // (3 * AT_ONCE)):
                await self.turn(str(uuid.uuid4()), f"scenario:plain key:steady-{i}")

        seen: list[int] = []
        for third in range(3):
            await asyncio.gather(*(some(1000 * (third * AT_ONCE + one)) for one in range(AT_ONCE)))
            await asyncio.sleep(SETTLES)
            seen.append(self._gateway.resident())
        return {"early": seen[0], "late": seen[-1]}

    async def sizes(self) -> dict[str, int]:
        """Bytes of a run's stream, told so slowly that every token is an event of its own."""
        await self._configure(delay_ms=PACE)
        told = {
            scenario: len((await self.turn(str(uuid.uuid4()), f"scenario:{scenario} key:slow-{scenario}")).body)
            for scenario in RUNS
        }
        told["protocol"] = await self._bytes_of_protocol()
        await self._configure(delay_ms=0)
        return told

    async def _bytes_of_protocol(self) -> int:
        """One ``plain`` run as the agent streaming protocol tells it."""
        thread = f"{self._gateway.url}/api/threads/{uuid.uuid4()}"
        body = {"assistant_id": "lead_agent", "input": _said("scenario:plain key:v3")}
        started = await http_client.post(f"{thread}/commands", {"id": 1, "method": "run.start", "params": body})
        _ok(started)
        channels = {"channels": ["messages", "lifecycle", "tools", "input"]}
        told = await http_client.post(
            f"{thread}/stream/events", channels, enough=lambda body: b'"completed"' in body or b'"failed"' in body
        )
        return len(_ok(told).body)

    async def long_thread(self, turns: int) -> dict[str, Any]:
        """Per turn the database's growth and what was written for it; then latency and pages at the end."""
        thread_id = str(uuid.uuid4())
        written: list[int] = []
        stored: list[int] = []
        cpu: list[float] = []
        for turn in range(turns):
            asked, before = await self._asked(), self._gateway.usage()
            answer = await self.turn(thread_id, f"scenario:plain key:long turn {turn + 1}")
            spent = self._gateway.usage().since(before)
            written.append(spent.written - len(answer.body) - (await self._asked() - asked))
            stored.append(spent.stored)
            cpu.append(spent.own)
        direct: list[float] = []
        through: list[float] = []
        for i in range(10):
            direct.append(await latency.direct(self._model, f"scenario:plain key:direct-long-{i}"))
            through.append(_first(await self.turn(thread_id, f"scenario:plain key:long more {i + 1}")))
        thread = f"{self._gateway.url}/api/threads/{thread_id}"
        messages = [_ok(await http_client.get(f"{thread}/messages?limit=100")).ended for _ in range(5)]
        history = [_ok(await http_client.post(f"{thread}/history", {"limit": 100})) for _ in range(3)]
        return {
            "written": written,
            "stored": stored,
            "cpu": cpu,
            "direct": direct,
            "through": through,
            "messages": min(messages),
            "history": min(answer.ended for answer in history),
            "history_bytes": len(history[0].body),
        }

    async def crowd(self, count: int) -> dict[str, Any]:
        """Many runs at once, each followed, while the model thinks."""
        await self.turn(str(uuid.uuid4()), "scenario:plain key:warm")
        await self._configure(first_ms=1000 * THINKS)
        self._gateway.lags()
        before, started = self._gateway.usage(), time.perf_counter()
        asked = [self.turn(str(uuid.uuid4()), f"scenario:plain key:crowd-{i}", checked=False) for i in range(count)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        seconds, lags = time.perf_counter() - started, await asyncio.to_thread(self._gateway.lags)
        await self._configure(first_ms=0)
        return {
            "errors": sum(not _is_whole(answer) for answer in answers),
            "seconds": seconds,
            "late_p99": _p99(lags["late"]),
            "late_max": max(lags["late"]),
            "held_p99": _p99(lags["held"]),
            "resident": self._gateway.resident(),
            "cpu": self._gateway.usage().since(before).own / count,
        }

    async def turn(self, thread_id: str, text: str, modes: Sequence[str] = MODES, *, checked: bool = True) -> Answer:
        body = {
            "assistant_id": "lead_agent",
            "input": _said(text),
            "stream_mode": [*modes],
            "if_not_exists": "create",
        }
        answer = await http_client.post(f"{self._gateway.url}/api/threads/{thread_id}/runs/stream", body, mark=TOKEN)
        if checked and not _is_whole(answer):
            raise RuntimeError(f"The run failed: {answer.status} {bytes(answer.body[-2000:]).decode()}")
        return answer

    async def _configure(self, **settings: float) -> None:
        """How long the endpoint takes, in milliseconds."""
        await asyncio.to_thread(httpx.post, f"{self._endpoint}/config", json=settings, timeout=60)

    async def _asked(self) -> int:
        """Bytes of all requests that the endpoint has seen."""
        answer = await http_client.get(f"{self._endpoint}/stats")
        return sum(kind["bytes"] for name, kind in answer.json()["by"].items() if ":" not in name)


def _said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def _ok(answer: Answer) -> Answer:
    if answer.status != 200:
        raise RuntimeError(f"The gateway answered {answer.status}: {bytes(answer.body[:2000]).decode()}")
    return answer


def _is_whole(answer: Answer | BaseException) -> bool:
    return isinstance(answer, Answer) and answer.first is not None and b'"status":"success"' in answer.body[-200:]


def _first(answer: Answer) -> float:
    assert answer.first is not None
    return answer.first


def _each(spent: Usage, count: int) -> dict[str, float]:
    return {"own": spent.own / count, "children": spent.children / count, "stored": spent.stored / count}


def figures(results: dict[str, list[dict[str, Any]]]) -> list[Figure]:
    """Medians of the rounds; for latency, of all runs."""
    ours, bare = results["ours"], results["floor"]
    direct = 1000 * statistics.median(value for one in ours for value in one["latency"]["direct"])
    through = 1000 * statistics.median(value for one in ours for value in one["latency"]["through"])
    cpu = {scenario: (_median(ours, scenario, "own"), _median(bare, scenario, "own")) for scenario in RUNS}
    tools = "tools-20"
    return [
        Figure("start to /health", "s", min(one["started_in"] for one in ours), None, at_most(3, "s")),
        Figure("memory, idle", "MB", _median(ours, "idle") / 1e6, None, at_most(200, "MB")),
        Figure(f"memory after {STEADY:,} runs", "MB", _median(ours, "steady", "late") / 1e6, None, at_most(200, "MB")),
        Figure(
            "its growth in the last two thirds",
            "MB",
            statistics.median(one["steady"]["late"] - one["steady"]["early"] for one in ours) / 1e6,
            None,
            at_most(10, "MB"),
        ),
        Figure("plain: CPU per run", "s", *cpu["plain"], at_most(0.075, "s")),
        Figure("tools-20: CPU per run", "s", *cpu[tools], times_floor(1.3)),
        Figure("tools-20: CPU with children", "s", _both(ours, tools), _both(bare, tools)),
        Figure("first token, against a direct call", "ms", through, direct, above_floor(30, "ms")),
        Figure(
            "plain: stream, agent protocol", "kB", _median(ours, "sizes", "protocol") / 1000, None, at_most(12, "kB")
        ),
        Figure(
            "plain: stream, messages and updates", "kB", _median(ours, "sizes", "plain") / 1000, None, at_most(25, "kB")
        ),
        Figure("tools-20: stream", "kB", _median(ours, "sizes", tools) / 1000, None, at_most(120, "kB")),
        Figure("plain: written to files", "kB", _median(ours, "plain", "files") / 1000),
        Figure("tools-20: written to files", "kB", _median(ours, tools, "files") / 1000, None, at_most(400, "kB")),
        Figure("tools-20: pages dirtied on the disk", "kB", _median(ours, tools, "stored") / 1000),
        *_at_once(ours),
        *_long(ours),
        *_crowd(ours),
    ]


def _at_once(ours: list[dict[str, Any]]) -> list[Figure]:
    best = max(one["at_once"]["runs_per_second"] for one in ours)
    return [
        Figure(f"plain, {AT_ONCE} at once", "1/s", best, None, at_least(12, "1/s"), "by the clock, the best round"),
        Figure(
            f"plain, {AT_ONCE} at once", "1/s", _median(ours, "at_once", "runs_per_cpu_second"), note="per CPU second"
        ),
    ]


def _long(ours: list[dict[str, Any]]) -> list[Figure]:
    long = ours[-1]["long"]
    early, late = (statistics.mean(long["written"][part]) / 1000 for part in (slice(9, 20), slice(-11, None)))
    early_cpu, late_cpu = (statistics.median(long["cpu"][part]) for part in (slice(9, 20), slice(-11, None)))
    direct, through = (1000 * statistics.median(long[name]) for name in ("direct", "through"))
    turns = len(long["written"])
    return [
        Figure(f"{turns} turns: written per turn, last against turns 10–20", "kB", late, early, times_floor(2)),
        Figure(f"{turns} turns: CPU per turn, last against turns 10–20", "s", late_cpu, early_cpu),
        Figure(f"{turns} turns: first token against a direct call", "ms", through, direct, above_floor(60, "ms")),
        Figure(f"{turns} turns: page of 100 messages", "ms", 1000 * long["messages"], None, at_most(150, "ms")),
        Figure(
            f"{turns} turns: history of 100 checkpoints",
            "ms",
            1000 * long["history"],
            note=f"{long['history_bytes'] / 1e6:.1f} MB",
        ),
    ]


def _crowd(ours: list[dict[str, Any]]) -> list[Figure]:
    name = f"{MANY} runs at once"
    return [
        Figure(f"{name}: errors", "", _median(ours, "crowd", "errors"), None, at_most(0)),
        Figure(f"{name}: loop late p99", "ms", 1000 * _median(ours, "crowd", "late_p99"), None, at_most(100, "ms")),
        Figure(f"{name}: loop late at most", "ms", 1000 * _median(ours, "crowd", "late_max")),
        Figure(f"{name}: loop held p99", "ms", 1000 * _median(ours, "crowd", "held_p99"), note="its own CPU"),
        Figure(f"{name}: memory", "MB", _median(ours, "crowd", "resident") / 1e6, None, at_most(600, "MB")),
        Figure(f"{name}: all of them took", "s", _median(ours, "crowd", "seconds")),
        Figure(f"{name}: CPU per run", "s", _median(ours, "crowd", "cpu")),
    ]


def _p99(values: list[float]) -> float:
    return sorted(values)[int(0.99 * (len(values) - 1))]


def _median(rounds: list[dict[str, Any]], *path: str) -> float:
    found: list[Any] = []
    for one in rounds:
        value: Any = one
        for name in path:
            value = value[name]
        found.append(value)
    return statistics.median(found)


def _both(rounds: list[dict[str, Any]], scenario: str) -> float:
    return _median(rounds, scenario, "own") + _median(rounds, scenario, "children")
