"""``python -m bench.load URL``: load a server that is there with runs, and print how long they took and how the server bore it.

Each run has a thread of its own, which the server deletes afterwards. The models are the server's, and cost what they cost.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench import http_client
from bench.http_client import Answer

MESSAGE = "Say hello in one sentence."
LOOKS_EVERY = 1.0
FIRST = b"event: messages"


@dataclass
class Load:
    """Runs on a server.

    Args:
        url: of the server.
        headers: of each request, such as the one with a token.
        body: of each run.
    """

    url: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    answers: list[Answer] = field(default_factory=list[Answer])
    failures: Counter[str] = field(default_factory=Counter[str])
    seen: list[dict[str, float]] = field(default_factory=list[dict[str, float]])
    """Figures of the server, second by second; none if it does not show them."""
    seconds: float = 0.0

    async def put(self, runs: int, at_once: int) -> None:
        """Do so many runs, so many of them at once."""
        left = iter(range(runs))

        async def one_after_the_other() -> None:
            for _ in left:
                await self._run()

        watching = asyncio.create_task(self._watch())
        began = time.perf_counter()
        await asyncio.gather(*(one_after_the_other() for _ in range(at_once)))
        self.seconds = time.perf_counter() - began
        watching.cancel()
        await asyncio.wait([watching])
        self.seen += [found] if (found := await self._figures()) else []

    async def _run(self) -> None:
        try:
            answer = await http_client.post(
                f"{self.url}/api/runs/stream", dict(self.body), headers=self.headers, mark=FIRST
            )
        except OSError as error:
            self.failures[str(error) or type(error).__name__] += 1
            return
        end = bytes(answer.body[-2000:]).decode(errors="replace")
        if answer.status != 200:
            self.failures[f"{answer.status}: {end[:200]}"] += 1
        elif '"status":"success"' not in end:
            reason = re.search(r'"stop_reason":"([^"]+)"', end)
            self.failures[f"The run ended with {reason[1] if reason else 'no status'}."] += 1
        else:
            self.answers.append(answer)

    async def _watch(self) -> None:
        while found := await self._figures():
            self.seen.append(found)
            await asyncio.sleep(LOOKS_EVERY)

    async def _figures(self) -> dict[str, float]:
        try:
            answer = await http_client.get(f"{self.url}/metrics", self.headers)
        except OSError:
            return {}
        lines = bytes(answer.body).decode().splitlines() if answer.status == 200 else []
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[:1] != "#")}

    def report(self) -> str:
        """Return the report as text."""
        done, failed = len(self.answers), self.failures.total()
        lines = [
            f"{done + failed} runs in {self.seconds:.1f} s, {done / (self.seconds or 1):.2f} a second, {failed} failed"
        ]
        lines += [f"  {count} x {reason}" for reason, count in self.failures.most_common()]
        for name, values in (
            ("first token", [answer.first for answer in self.answers if answer.first is not None]),
            ("whole run", [answer.ended for answer in self.answers]),
        ):
            if values:
                lines.append(
                    f"{name:<12} half within {statistics.median(values):.2f} s, 95 % within {_share(values, 0.95):.2f} s, "
                    f"all within {max(values):.2f} s"
                )
        return "\n".join([*lines, *self._of_server()])

    def _of_server(self) -> list[str]:
        if not self.seen:
            return [
                "The server does not show its figures: ask from its own machine, or with the token of an administrator."
            ]
        before = self.seen[0]
        lag = _quantile(before, self.seen[-1], "deerflow_event_loop_lag_seconds_bucket", 0.99)
        waited, oldest = (
            self._most('deerflow_runs{state="waiting"}'),
            self._most("deerflow_runs_oldest_waiting_seconds"),
        )
        memory = "process_resident_memory_bytes"
        return [
            f"runs that waited: at most {waited:.0f}, the oldest for {oldest:.1f} s",
            f"event loop: 99 % late by less than {lag:g} s",
            f"memory: {before.get(memory, 0) / 1e6:.0f} MB before, at most {self._most(memory) / 1e6:.0f} MB",
        ]

    def _most(self, name: str) -> float:
        return max(found.get(name, 0.0) for found in self.seen)


def _share(values: Sequence[float], share: float) -> float:
    return sorted(values)[round(share * (len(values) - 1))]


def _quantile(before: Mapping[str, float], after: Mapping[str, float], name: str, share: float) -> float:
    """Return the bound below which the given share of what a histogram has gained lies."""
    bounds = {
        float(found[1]): count - before.get(key, 0.0)
        for key, count in after.items()
        if (found := re.fullmatch(rf'{name}{{le="([^"]+)"}}', key))
    }
    total = bounds.get(float("inf"), 0.0)
    return next((bound for bound, count in sorted(bounds.items()) if count >= share * total), 0.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Load the server that the arguments name. Returns 1 if a run failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.load", description="Load a running server.")
    parser.add_argument("url", help="of the server, such as http://127.0.0.1:2026")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--at-once", type=int, default=10, metavar="N")
    parser.add_argument("--message", default=MESSAGE, help=f"what each run is asked [{MESSAGE}]")
    parser.add_argument("--model", help="one of the server's; default: its first")
    parser.add_argument("--token", default=os.environ.get("DEER_FLOW_API_KEY"), help="[DEER_FLOW_API_KEY]")
    options = parser.parse_args(arguments)
    body: dict[str, Any] = {
        "assistant_id": "lead_agent",
        "input": {"messages": [{"role": "user", "content": options.message}]},
        "stream_mode": ["messages-tuple"],
        "on_completion": "delete",
    }
    if options.model:
        body["config"] = {"configurable": {"model_name": options.model}}
    headers = {"authorization": f"Bearer {options.token}"} if options.token else {}
    load = Load(options.url.rstrip("/"), headers, body)
    asyncio.run(load.put(options.runs, options.at_once))
    print(load.report())
    return 1 if load.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
