"""Runs that come to their right end though the processes that execute and stream them are killed at random moments.

``python -m tests.e2e.crash --points 100`` does it with SQLite and one process, and with PostgreSQL, a gateway and two workers.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e.crash_check import Findings, Shape, check_lines, check_run, check_seen, check_transcript, shape
from tests.e2e.crash_client import Client, Followed
from tests.e2e.crash_endpoint import CallsEndpoint, task
from tests.e2e.crash_world import World, world
from tests.servers import postgres_server

CALLS = 20
RUN_GUARD = 900.0
HASTE = 0.3
"""How often a process is killed without waiting until it is up again."""


class Ordeal:
    """Keeps some threads busy while processes of the world are killed.

    Args:
        kills: how many at random moments, after one power failure.
        at_once: threads.
        longest: how many answers of the model a process that is up may live to see, at most. An attempt begins with one
            that was given before: it should be several times ``at_once``.
    """

    def __init__(
        self, world: World, *, kills: int, seed: int, at_once: int = 8, calls: int = CALLS, longest: int | None = None
    ) -> None:
        self._world = world
        self._kills = kills
        self._random = random.Random(seed)
        self._at_once = at_once
        self._calls = calls
        self._longest = 8 * at_once if longest is None else longest
        self._client = Client(world.gateway.url)
        self._on_their_way = 0
        self._undisturbed: Shape = []
        self.found = Findings()

    async def suffer(self) -> Findings:
        try:
            thread_id, _ = await self._run_on(await self._client.new_thread(), task(self._calls))
            self._undisturbed = shape(await self._client.messages(thread_id))
            check_lines(self.found, thread_id, self._world.lines(thread_id), self._calls, ())
            async with asyncio.TaskGroup() as group:
                killer = group.create_task(self._kill())
                for _ in range(self._at_once):
                    group.create_task(self._keep_busy(killer))
        finally:
            await self._client.aclose()
        return self.found

    async def _kill(self) -> None:
        await self._fail_power()
        for number in range(self._kills):
            name = self._random.choice([*self._world.processes])
            answers = 0
            if self._random.random() >= HASTE:
                await self._world.ready(name, self._client)
                answers = self._random.randint(0, self._longest)
            await self._moment(answers)
            self._world.kill(name)
            self._world.launch(name)
            if number % 10 == 9:
                print(f"{number + 1} kills; {self.found}", file=sys.stderr)
        for name in self._world.processes:
            await self._world.ready(name, self._client)

    async def _fail_power(self) -> None:
        """Kill all that execute runs while runs are on their way: whatever chance does later, some were interrupted."""
        await self._moment(self._random.randint(1, self._calls // 2))
        for name in self._world.executing:
            self._world.kill(name)
            self._world.launch(name)

    async def _moment(self, answers: int) -> None:
        """Somewhere in a run: work counts, not time, so that a slow machine gets on as well."""
        async with asyncio.timeout(RUN_GUARD):
            while not self._on_their_way:
                await asyncio.sleep(0.01)
            enough = self._world.endpoint.answers + answers
            while self._world.endpoint.answers < enough and self._on_their_way:
                await asyncio.sleep(0.005)
        await asyncio.sleep(self._random.uniform(0, 0.15))

    async def _keep_busy(self, killer: asyncio.Task[None]) -> None:
        """One thread after the other, until nothing is killed any more."""
        while True:
            thread_id = await self._client.new_thread()
            await self._one_thread(thread_id)
            if killer.done():
                return

    async def _one_thread(self, thread_id: str) -> None:
        found = self.found
        _, followed = await self._run_on(thread_id, task(self._calls))
        messages = await self._client.messages(thread_id)
        cut = check_transcript(found, thread_id, messages, self._undisturbed)
        check_lines(found, thread_id, self._world.lines(thread_id), self._calls, cut)
        check_seen(found, followed, messages)
        check_seen(found, await self._client.follow(Followed(thread_id, followed.run_id)), messages)
        _, followed = await self._run_on(thread_id, "Thank you! What now?")
        longer = await self._client.messages(thread_id)
        check_seen(found, followed, longer)
        if [message["id"] for message in longer[:-2]] != [message["id"] for message in messages]:
            found.failures.append(f"thread {thread_id}: the next message changed what was there")

    async def _run_on(self, thread_id: str, text: str) -> tuple[str, Followed]:
        async with asyncio.timeout(RUN_GUARD):
            followed = await self._client.start_run(thread_id, text)
            self._on_their_way += 1
            try:
                await self._client.follow(followed)
            finally:
                self._on_their_way -= 1
            check_run(self.found, followed, await self._client.run(followed))
        return thread_id, followed


def ordeal(root: Path, postgres_url: str | None, **options: Any) -> tuple[Findings, World]:
    """In a world of its own, which is gone afterwards."""
    with CallsEndpoint() as endpoint, world(root, endpoint, postgres_url) as made:
        return asyncio.run(Ordeal(made, **options).suffer()), made


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.crash", description=__doc__)
    parser.add_argument("--points", type=int, default=100, help="kills, for each of the worlds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=8, help="threads")
    parser.add_argument("--world", choices=["embedded", "scaled", "both"], default="both")
    parser.add_argument("--keep", action="store_true", help="leave the worlds' files where they are")
    options = parser.parse_args()
    failed = 0
    for name in ("embedded", "scaled"):
        if options.world in (name, "both"):
            failed += _report(name, options)
    raise SystemExit(1 if failed else 0)


def _report(name: str, options: argparse.Namespace) -> int:
    began = time.monotonic()
    root = Path(tempfile.mkdtemp(prefix=f"crash-{name}-"))
    with database(name) as url:
        found, made = ordeal(root, url, kills=options.points, seed=options.seed, at_once=options.at_once)
    print(f"{name}: {made.kills.total()} kills {dict(made.kills)} in {time.monotonic() - began:.0f} s; {found}")
    if left := made.left_behind():
        print("left behind:", *left, sep="\n  ")
    if options.keep:
        print("files:", root)
    else:
        shutil.rmtree(root)
    return len(found.failures) + len(left)


@contextmanager
def database(name: str) -> Iterator[str | None]:
    if name == "embedded":
        yield None
        return
    with postgres_server() as server, server.fresh_database() as url:
        yield url


if __name__ == "__main__":
    main()
