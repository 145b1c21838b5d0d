"""What a run costs: every question to the database is one that nobody could answer otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from bench.scripted_openai import ScriptedOpenAI, Text
from tests.harness.runs.run_house import ME, ended, say, thread

from deerflow.features.titles import TITLE
from deerflow.runtime import Runtime
from deerflow.storage.database import Database
from deerflow.tasks.job_rows import next_due

MOST_JOBS = 9
"""Eight, and one that looks for what is remembered of the person."""

LOOKOUTS = ("tasks of dead workers", "runs without a task")
"""Tasks of a process that look now and then, whatever runs."""


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds of the jobs that databases were given."""
    seen: list[str] = []
    for kind in ("read", "write"):
        monkeypatch.setattr(Database, kind, _counted(getattr(Database, kind), kind, seen))
    return seen


def _counted(real: Callable[..., Any], kind: str, seen: list[str]) -> Callable[..., Any]:
    async def counted(database: Database, job: Any, **options: Any) -> Any:
        task = asyncio.current_task()
        if task is not None and task.get_name() not in LOOKOUTS:
            seen.append(kind)
        return await real(database, job, **options)

    return counted


async def test_a_plain_run_gives_the_database_no_more_than_a_few_jobs(
    runtime: Runtime, endpoint: ScriptedOpenAI, jobs: list[str]
):
    endpoint.script(Text("warm"), Text("first"), Text("second"))
    await ended(runtime, await runtime.runs.start(ME, say("imports take seconds"), thread_id=await thread(runtime)))
    where = await thread(runtime)
    for text in ("hello", "and again"):
        while await runtime.database.read(lambda connection: next_due(connection, [TITLE])) is not None:
            await asyncio.sleep(0.05)
        jobs.clear()
        run = await runtime.runs.start(ME, say(text), thread_id=where)
        methods = [event.method async for batch in runtime.runs.events(run) for event in batch]
        assert methods[-1] == "end"
        while run.run_id in runtime.executor.active:
            await asyncio.sleep(0.01)
        assert len(jobs) <= MOST_JOBS, jobs
