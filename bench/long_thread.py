"""Two hundred ``plain`` turns in one thread: bytes written, CPU per turn, memory, requests and their prefix.

Then ``tools-20`` in the same thread: what handles the whole history at every step shows here.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from bench import gauges
from bench.figures import Figure, at_least, at_most
from bench.subjects import open_subject
from bench.worker import Options

SUBJECTS = ("floor", "ours")
ROUNDS = 1
TURNS = 200
MEGABYTE = 1_000_000


async def measure(subject: str, options: Options) -> dict[str, Any]:
    """Per turn: ``written`` bytes, ``cpu`` seconds, ``rss`` bytes; at the end ``stored`` bytes and a turn with ``tools``."""
    turns = 12 if options.quick else TURNS
    written: list[int] = []
    cpu: list[float] = []
    rss: list[int] = []
    data = Path(options.data)
    async with open_subject(subject, options.base_url, data) as agent:
        await agent.turn("warm", "scenario:plain key:warm")
        for turn in range(turns):
            bytes_before, cpu_before = gauges.written(), gauges.own_cpu()
            await agent.turn("long", f"scenario:plain key:long turn {turn + 1}")
            written.append(gauges.written() - bytes_before)
            cpu.append(gauges.own_cpu() - cpu_before)
            rss.append(gauges.resident())
        stored = gauges.stored(data)
        before = gauges.own_cpu()
        await agent.turn("long", "scenario:tools-20 key:long with tools")
        tools = gauges.own_cpu() - before
        compacted = gauges.stored(data) if await agent.compact("long") else None
        if compacted is not None:
            await agent.turn("long", "scenario:plain key:long after compaction")
    return {"written": written, "cpu": cpu, "rss": rss, "stored": stored, "compacted": compacted, "tools": tools}


def figures(results: dict[str, list[dict[str, Any]]]) -> list[Figure]:
    """``requests`` holds what the endpoint saw: its statistics and its log."""
    (floor,), ours = results["floor"], (results.get("ours") or [None])[0]
    lines = [
        _pair(f"turn {turn}: bytes written", "kB", floor, ours, lambda r, t=turn: r["written"][t - 1] / 1000)
        for turn in (1, 50, 200)
    ]
    turns = len(floor["written"])
    lines += [
        _pair(
            f"{turns} turns: bytes written in all",
            "MB",
            floor,
            ours,
            lambda r: sum(r["written"]) / MEGABYTE,
            at_most(12, "MB"),
        ),
        _pair(f"{turns} turns: databases with journals", "MB", floor, ours, lambda r: r["stored"] / MEGABYTE),
        _pair(
            "size after compaction",
            "MB",
            floor,
            ours,
            lambda r: r["compacted"] and r["compacted"] / MEGABYTE,
            at_most(2, "MB"),
        ),
        _pair("CPU of the last turns over turns 6–15", "×", floor, ours, _growth, at_most(1.5, "×")),
        _pair(f"tools-20 behind {turns} turns: CPU", "s", floor, ours, lambda r: r["tools"]),
        _pair("memory after turn 1", "MB", floor, ours, lambda r: r["rss"][0] / MEGABYTE),
        _pair(f"memory after turn {turns}", "MB", floor, ours, lambda r: r["rss"][-1] / MEGABYTE),
        _pair("first request: system prompt", "kB", floor, ours, lambda r: r["requests"][0]["system_bytes"] / 1000),
        _pair("first request: tools", "kB", floor, ours, lambda r: r["requests"][0]["tools_bytes"] / 1000),
        _pair("first request: system prompt and tools", "kB", floor, ours, _fixed, at_most(24, "kB")),
        _pair(f"request of turn {turns}", "kB", floor, ours, lambda r: r["requests"][turns - 1]["bytes"] / 1000),
        _pair(
            "requests that hold the previous one",
            "%",
            floor,
            ours,
            lambda r: 100 * r["stable_share"],
            at_least(100, "%"),
        ),
    ]
    return [line for line in lines if line is not None]


def _growth(result: dict[str, Any]) -> float:
    cpu = result["cpu"]
    return statistics.median(cpu[-10:]) / statistics.median(cpu[5:15])


def _fixed(result: dict[str, Any]) -> float:
    first = result["requests"][0]
    return (first["system_bytes"] + first["tools_bytes"]) / 1000


def _pair(name: str, unit: str, floor: Any, ours: Any, read: Any, target: Any = None) -> Figure | None:
    try:
        return Figure(name, unit, None if ours is None else read(ours), read(floor), target)
    except IndexError:
        return None  # A quick run has fewer turns.
