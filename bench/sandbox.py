"""Latency of a command in a thread's sandbox session over a plain ``bash -c`` of this machine."""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path
from typing import Any

from bench.figures import Figure, above_floor
from bench.subjects import Ours, open_subject
from bench.worker import Options

SUBJECTS = ("ours",)
ROUNDS = 1
COMMANDS = 100
COMMAND = "ls / | wc -l"


async def measure(subject: str, options: Options) -> dict[str, Any]:
    """Seconds: the ``first`` command with the start of the session, then ``session`` and ``plain`` in turn."""
    from deerflow.context.run_options import RunOptions

    async with open_subject(subject, options.base_url, Path(options.data)) as agent:
        assert isinstance(agent, Ours)
        context = await agent.client.harness.run_context("bench", RunOptions())
        sandbox = await context.sandbox()
        started = time.perf_counter()
        await _checked(sandbox)
        first = time.perf_counter() - started
        session, plain = [], []
        for _ in range(10 if options.quick else COMMANDS):
            started = time.perf_counter()
            await _checked(sandbox)
            between = time.perf_counter()
            await _plain()
            session.append(between - started)
            plain.append(time.perf_counter() - between)
        return {"first": first, "session": session, "plain": plain, "level": sandbox.isolation.level}


async def _checked(sandbox: Any) -> None:
    result = await sandbox.exec(COMMAND)
    if result.exit_code != 0:
        raise RuntimeError(f"{COMMAND!r} ended with {result.exit_code}: {result.output}")


async def _plain() -> None:
    process = await asyncio.create_subprocess_exec("bash", "-c", COMMAND, stdout=asyncio.subprocess.PIPE)
    await process.communicate()


def figures(results: dict[str, list[dict[str, Any]]]) -> list[Figure]:
    (found,) = results["ours"]
    session, plain = ([1000 * value for value in found[name]] for name in ("session", "plain"))
    level = f"isolation: {found['level']}"
    return [
        Figure(
            "session command p50",
            "ms",
            statistics.median(session),
            statistics.median(plain),
            above_floor(10, "ms"),
            level,
        ),
        Figure("session command p95", "ms", _p95(session), _p95(plain)),
        Figure("first command, starts the session", "ms", 1000 * found["first"]),
    ]


def _p95(values: list[float]) -> float:
    return sorted(values)[int(0.95 * (len(values) - 1))]
