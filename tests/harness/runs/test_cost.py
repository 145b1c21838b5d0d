"""What a run costs: every question to the database is one that nobody could answer otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest
from bench.scripted_openai import ScriptedOpenAI, Text
from tests.harness.runs.run_house import ME, ended, say, thread

from deerflow.features.titles.job import TITLE
from deerflow.runtime import Runtime
from deerflow.storage.database import Database
from deerflow.tasks.jobs import next_due

MOST_JOBS = 8
BY_THE_CLOCK = {"write Flusher.write.<locals>.job", "write _notify"}
"""What is written of a run and sent to other processes now and then: the longer it takes, the more often. Each counts once."""

asks: ContextVar[list[str] | None] = ContextVar("asks", default=None)
"""What the run asked of the database. Tasks of the process that look now and then were started without it."""


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Note the jobs that databases are given by those who are counted."""
    for kind in ("read", "write"):
        monkeypatch.setattr(Database, kind, _counted(getattr(Database, kind), kind))


def _counted(real: Callable[..., Any], kind: str) -> Callable[..., Any]:
    async def counted(database: Database, job: Any, *args: Any, **options: Any) -> Any:
        if (seen := asks.get()) is not None:
            seen.append(f"{kind} {job.__qualname__}")
        return await real(database, job, *args, **options)

    return counted


async def test_a_plain_run_gives_the_database_no_more_than_a_few_jobs(runtime: Runtime, endpoint: ScriptedOpenAI):
    endpoint.script(Text("warm"), Text("first"), Text("second"))
    await ended(runtime, await runtime.runs.start(ME, say("imports take seconds"), thread_id=await thread(runtime)))
    where = await thread(runtime)
    for text in ("hello", "and again"):
        while await runtime.database.read(lambda connection: next_due(connection, [TITLE])) is not None:
            await asyncio.sleep(0.05)
        seen: list[str] = []
        counting = asks.set(seen)
        run = await runtime.runs.start(ME, say(text), thread_id=where)
        methods = [event.method async for batch in runtime.runs.events(run) for event in batch]
        asks.reset(counting)
        assert methods[-1] == "end"
        while run.run_id in runtime.executor.active:
            await asyncio.sleep(0.01)
        kinds = [job for job in seen if job not in BY_THE_CLOCK] + sorted(BY_THE_CLOCK.intersection(seen))
        assert 0 < len(kinds) <= MOST_JOBS, "\n".join(kinds)
