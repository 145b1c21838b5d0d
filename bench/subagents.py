"""``python -m bench.subagents``: what subagents cost, against the same work in the lead agent and one after the other."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from bench.endpoint_process import EndpointProcess
from deerflow.config import ConfigSource, Paths
from deerflow.identity import LOCAL_PRINCIPAL
from deerflow.runs.request import RunRequest
from deerflow.runtime import Runtime

STEPS, ROUNDS, ANSWER_MS = 20, 5, 200


class Team:
    """A runtime, and the endpoint that answers it."""

    def __init__(self, runtime: Runtime, endpoint: EndpointProcess) -> None:
        self._runtime, self._control = runtime, httpx.Client(base_url=endpoint.base_url.removesuffix("/v1"))
        self.latencies: list[float] = []

    def script(self, key: str | None, steps: int, calls: list[Any] | None = None) -> None:
        call = ["bash", {"description": "time", "command": "date +%s.%N"}]
        first = [{"kind": "tool_calls", "calls": calls}] if calls else []
        body = [*first, *([{"kind": "tool_calls", "calls": [call]}] * steps), {"kind": "text", "text": "done"}]
        self._control.post("/script", json={"key": key, "replies": body}).raise_for_status()

    def slow(self, first_ms: int) -> None:
        self._control.post("/config", json={"first_ms": first_ms}).raise_for_status()

    async def run(self) -> tuple[float, float]:
        """Seconds on the wall, and of CPU."""
        thread = (await self._runtime.threads.create(LOCAL_PRINCIPAL))["thread_id"]
        request = RunRequest(
            input={"messages": [{"role": "user", "content": "go"}]}, context={"subagent_enabled": True}
        )
        began, cpu = time.perf_counter(), time.process_time()
        run = await self._runtime.runs.start(LOCAL_PRINCIPAL, request, thread_id=thread)
        async for batch in self._runtime.runs.events(run):
            for event in batch:
                data = event.data if event.method == "custom" and event.namespace else None
                if data and data.get("type") == "tool_output":
                    self.latencies.append(time.time() - float(data["text"].split()[0]))
        return time.perf_counter() - began, time.process_time() - cpu


def _task(key: str) -> list[Any]:
    return ["task", {"description": key, "prompt": f"key:{key}", "subagent_type": "general-purpose"}]


async def _measure(team: Team) -> dict[str, float]:
    async def delegated(children: str, steps: int) -> tuple[float, float]:
        for key in children:
            team.script(key, steps)
        team.script(None, 0, [_task(key) for key in children])
        return await team.run()

    async def alone(steps: int) -> tuple[float, float]:
        team.script(None, steps)
        return await team.run()

    await delegated("a", 2)
    team.latencies.clear()
    own, child = [], []
    for _ in range(ROUNDS):
        own.append((await alone(STEPS))[1] - (await alone(0))[1])
        child.append((await delegated("a", STEPS))[1] - (await delegated("a", 0))[1])
    latencies = sorted(team.latencies)
    team.slow(ANSWER_MS)
    one = statistics.median([(await delegated("a", 5))[0] for _ in range(ROUNDS)])
    three = statistics.median([(await delegated("abc", 5))[0] for _ in range(ROUNDS)])
    return {
        "three at once / one alone (seconds)": three / one,
        "CPU of a child / of the lead": statistics.median(child) / statistics.median(own),
        "CPU of a step in a child, ms": statistics.median(child) / STEPS * 1000,
        "event to reader, median ms": statistics.median(latencies) * 1000,
        "event to reader, 99 % ms": latencies[int(len(latencies) * 0.99)] * 1000,
    }


async def _main() -> None:
    with EndpointProcess() as endpoint, tempfile.TemporaryDirectory(prefix="deerflow-bench-") as data:
        Path(data).chmod(0o711)
        model = {"name": "m", "use": "langchain_openai:ChatOpenAI", "model": "m", "api_key": "k"}
        settings: dict[str, Any] = {
            "models": [{**model, "base_url": endpoint.base_url}],
            "sandbox": {"tool_image": {"enabled": False}},
            "title": {"enabled": False},
        }
        runtime = Runtime(ConfigSource(None, overrides=settings), Paths(Path(data)))
        await runtime.start()
        try:
            for name, value in (await _measure(Team(runtime, endpoint))).items():
                print(f"{name:<40} {value:8.2f}")
        finally:
            await runtime.aclose()


if __name__ == "__main__":
    asyncio.run(_main())
