"""Time to the first token of a warm process, over asking the endpoint directly; and of a cold one."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

from bench import floor
from bench.figures import Figure, above_floor
from bench.subjects import open_subject
from bench.worker import Options

SUBJECTS = ("floor", "ours")
ROUNDS = 2
ASKED = 60


async def measure(subject: str, options: Options) -> dict[str, Any]:
    """Seconds to the first token: ``cold``, and alternating ``direct`` and ``agent`` calls."""
    count = 5 if options.quick else ASKED
    started = time.perf_counter()
    async with open_subject(subject, options.base_url, Path(options.data)) as agent:
        await agent.turn("cold", "scenario:plain key:cold")
        cold = time.perf_counter() - started
        model = floor.model(options.base_url)
        direct_calls, through = [], []
        for i in range(count + 3):
            direct_calls.append(await direct(model, f"scenario:plain key:direct-{i}"))
            through.append((await agent.turn(f"t{i}", f"scenario:plain key:t{i}")).first_token)
    return {"cold": cold, "direct": direct_calls[3:], "agent": through[3:]}


async def direct(model: Any, text: str) -> float:
    """Seconds to the first token of a model that is asked without an agent."""
    started = time.perf_counter()
    first = 0.0
    async for chunk in model.astream(text):
        if chunk.text and not first:
            first = time.perf_counter() - started
    return first


def figures(results: dict[str, list[dict[str, Any]]]) -> list[Figure]:
    direct = 1000 * statistics.median(value for rounds in results.values() for one in rounds for value in one["direct"])
    agent = {name: 1000 * _median(rounds, "agent") for name, rounds in results.items()}
    cold = {name: min(one["cold"] for one in rounds) for name, rounds in results.items()}
    return [
        Figure("first token, warm, against a direct call", "ms", agent.get("ours"), direct, above_floor(20, "ms")),
        Figure("first token, warm, against the bare agent", "ms", agent.get("ours"), agent["floor"]),
        Figure("first turn of a fresh process, imports included", "s", cold.get("ours"), cold["floor"]),
    ]


def _median(rounds: list[dict[str, Any]], name: str) -> float:
    return statistics.median(value for one in rounds for value in one[name])
