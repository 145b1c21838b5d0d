"""People who write, steer, stop, take back, upload and delete, while the processes of DeerFlow are killed under them.

``python -m tests.e2e.turmoil --kills 100`` looks afterwards for what was accepted and is lost, and for what was done twice.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import shutil
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from bench.replies import Delay, Reply, Text, ToolCalls
from bench.request_log import Record
from bench.scenarios import fitted, text_of
from bench.scripted_openai import ScriptedOpenAI
from tests.e2e.crash import database
from tests.e2e.crash_client import Client, Followed
from tests.e2e.crash_endpoint import FILE, CallsEndpoint
from tests.e2e.crash_world import World, world

GUARD = 900.0
PATIENCE = 60.0
AT_ONCE = 3
"""Calls of one reply, which are executed side by side where they may be."""
_TASK = re.compile(r"append (\d+) lines as (\w+)")
_ACTIVE = ("pending", "running")


class PeopleEndpoint(CallsEndpoint):
    """Asks for some ``bash`` calls a reply, each appending ``<token>-<n>`` to a file. Follows from the transcript alone."""

    def reply_to(self, record: Record) -> Reply:
        done = 0
        if not record.body.get("tools"):  # a title
            return ScriptedOpenAI.reply_to(self, record)
        for message in reversed(record.body["messages"]):
            done += message["role"] == "tool"
            if message["role"] == "user" and (found := _TASK.search(text_of(message))):
                return Delay(0.0, _step(record.body, int(found[1]), found[2], done), 0.01)
        return ScriptedOpenAI.reply_to(self, record)


def _step(request: Mapping[str, Any], wanted: int, token: str, done: int) -> Reply:
    numbers = range(done + 1, min(done + AT_ONCE, wanted) + 1)
    commands = [f"echo {token}-{number} >> {FILE}; sleep 0.05" for number in numbers]
    calls = [fitted(request["tools"], "bash", {"description": "append", "command": command}) for command in commands]
    return ToolCalls(*calls, text="Now I append some.") if calls else Text(f"{token}: all lines are there.")


@dataclass
class Thread:
    """What a person knows of one. ``maybe``: nobody answered, so it was accepted or not."""

    thread_id: str
    present: set[str] = field(default_factory=set)
    maybe: set[str] = field(default_factory=set)
    uploads: dict[str, bytes] = field(default_factory=dict)
    is_deleted: bool = False


class Turmoil:
    """Args:
    kills: how many.
    people: each with one thread at a time.
    """

    def __init__(self, world: World, *, kills: int, people: int, seed: int) -> None:
        self._world = world
        self._kills = kills
        self._people = people
        self._random = random.Random(seed)
        self._client = Client(world.gateway.url)
        self._threads: list[Thread] = []
        self.deeds: Counter[str] = Counter()
        self.failures: list[str] = []

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                killer = group.create_task(self._kill())
                for _ in range(self._people):
                    group.create_task(self._live(killer))
            for thread in self._threads:
                await self._check(thread)
        finally:
            await self._client.aclose()

    async def _kill(self) -> None:
        for number in range(self._kills):
            name = self._random.choice([*self._world.processes])
            if self._random.random() > 0.25:
                began = time.monotonic()
                await self._world.ready(name, self._client)
                # On a slow machine, too, something happens between two kills.
                await asyncio.sleep(self._random.uniform(0, max(6, 2 * (time.monotonic() - began))))
            self._world.kill(name)
            self._world.launch(name)
            if number % 10 == 9:
                print(f"{number + 1} kills, {dict(self.deeds)}, {len(self.failures)} failures", flush=True)
        for name in self._world.processes:
            await self._world.ready(name, self._client)

    async def _live(self, killer: asyncio.Task[None]) -> None:
        while not killer.done():
            thread = Thread(await self._client.new_thread())
            self._threads.append(thread)
            for _ in range(self._random.randint(1, 3)):
                await self._turn(thread)
                await self._check(thread)
            if self._random.random() < 0.2:
                await self._delete(thread)

    async def _turn(self, thread: Thread) -> None:
        deed = self._random.choice(("leave alone", "steer", "interrupt", "rollback", "upload", "queue"))
        self.deeds[deed] += 1
        runs = {text: run async for text, run in self._send(thread, 2 if deed == "queue" else 1)}
        (text, first), *_ = runs.items()
        await asyncio.sleep(self._random.uniform(0, 1.0))
        if deed == "steer":
            await self._steer(thread)
        elif deed == "upload":
            await self._upload(thread)
        elif deed in ("interrupt", "rollback"):
            await self._client.request("POST", f"{_address(first)}/cancel?action={deed}")
        async with asyncio.timeout(GUARD):
            for run in runs.values():
                while (status := await self._status(run)) in _ACTIVE:
                    await asyncio.sleep(0.1)
                if status == "error" and "given up" in (await self._client.json(_address(run)))["error"]:
                    self.deeds["given up"] += 1  # killed five times within one step
                elif status not in ("success", "interrupted", "gone"):
                    self.failures.append(f"{run}: ended as {status}")
        if deed == "rollback" and await self._status(first) == "gone":
            thread.present.discard(text)
            thread.maybe |= {each for each in thread.present if each.startswith("steer")}

    async def _send(self, thread: Thread, count: int) -> Any:
        for _ in range(count):
            token = uuid.uuid4().hex
            text = f"Please append {self._random.randint(2, 7)} lines as {token}"
            run = await self._client.start_run(thread.thread_id, text)
            thread.present.add(text)
            yield text, run

    async def _steer(self, thread: Thread) -> None:
        text = f"steer {uuid.uuid4().hex}"
        answer = await self._client.once("POST", f"/api/threads/{thread.thread_id}/steer", {"message": text})
        if answer is None:
            thread.maybe.add(text)
        elif answer.is_success:
            thread.present.add(text)

    async def _upload(self, thread: Thread) -> None:
        name, content = f"{uuid.uuid4().hex}.bin", self._random.randbytes(self._random.randint(1, 300_000))
        path = f"{self._world.gateway.url}/api/threads/{thread.thread_id}/uploads"
        async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
            try:
                answer = await client.post(path, files={"files": (name, content)})
            except httpx.TransportError:
                return
        if answer.is_success:
            thread.uploads[name] = content

    async def _delete(self, thread: Thread) -> None:
        answer = await self._client.request("DELETE", f"/api/threads/{thread.thread_id}")
        if not answer.is_success and answer.status_code != 404:
            self.failures.append(f"{thread.thread_id}: not deleted: {answer.status_code} {answer.text}")
        thread.is_deleted = True
        self.deeds["delete"] += 1

    async def _status(self, run: Followed) -> str:
        answer = await self._client.request("GET", _address(run))
        return "gone" if answer.status_code == 404 else answer.raise_for_status().json()["status"]

    async def _check(self, thread: Thread) -> None:
        """Whether all is there once that was accepted, and nothing that was taken back."""
        address = f"/api/threads/{thread.thread_id}"
        if thread.is_deleted:
            if (await self._client.request("GET", address)).status_code != 404:
                self.failures.append(f"{thread.thread_id}: deleted, and there")
            return
        found = await self._said(thread)
        for text in thread.present - thread.maybe:
            if found[text] != 1:
                self.failures.append(f"{thread.thread_id}: {found[text]} × {text!r}")
        for text in found.keys() - thread.present - thread.maybe:
            self.failures.append(f"{thread.thread_id}: was not said, or taken back: {text!r}")
        lines = self._world.lines(thread.thread_id)
        self.failures.extend(
            f"{thread.thread_id}: {line} done {count} times" for line, count in lines.items() if count > 1
        )
        for name, content in thread.uploads.items():
            answer = await self._client.request(
                "GET", f"{address}/artifacts/mnt/user-data/uploads/{name}?download=true"
            )
            if answer.content != content:
                self.failures.append(f"{thread.thread_id}: upload {name} is not what was sent ({answer.status_code})")

    async def _said(self, thread: Thread) -> Counter[str]:
        """By the transcript. A run that is stopped before it begins has ended at once; what was said with it follows."""
        until = time.monotonic() + PATIENCE
        while True:
            messages = await self._client.messages(thread.thread_id)
            found = Counter(text_of(each) for each in messages if each["type"] == "human")
            if found.keys() >= thread.present - thread.maybe or time.monotonic() > until:
                return found
            await asyncio.sleep(0.1)


def _address(run: Followed) -> str:
    return f"/api/threads/{run.thread_id}/runs/{run.run_id}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.turmoil", description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--people", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--world", choices=["embedded", "scaled"], default="embedded")
    options = parser.parse_args()
    root, began = Path(tempfile.mkdtemp(prefix="turmoil-")), time.monotonic()
    with database(options.world) as url, PeopleEndpoint() as endpoint, world(root, endpoint, url) as made:
        turmoil = Turmoil(made, kills=options.kills, people=options.people, seed=options.seed)
        asyncio.run(turmoil.run())
    print(f"{options.world}: {made.kills.total()} kills in {time.monotonic() - began:.0f} s; {dict(turmoil.deeds)}")
    print(*(turmoil.failures or ["Nothing was lost, nothing was done twice."]), sep="\n")
    if not turmoil.failures:
        shutil.rmtree(root)
    raise SystemExit(1 if turmoil.failures else 0)


if __name__ == "__main__":
    main()
