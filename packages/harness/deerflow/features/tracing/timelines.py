"""The timelines of runs, for their owners."""

from __future__ import annotations

from contextlib import AsyncExitStack, aclosing
from itertools import pairwise

from deerflow.features.tracing.timeline import Timeline, goes_on, timeline
from deerflow.identity import Principal
from deerflow.runs.service import RunService

MOST_DECISIONS = 100
"""Runs of a timeline that go on with each other."""


class Timelines:
    def __init__(self, runs: RunService) -> None:
        self._runs = runs

    async def of(self, principal: Principal, run_id: str, *, thread_id: str | None = None) -> Timeline:
        """When the run did what, so far, and those that went on with it after a decision of the person.

        Without ``thread_id`` a thread's id stands for the newest run that nothing came before. Raises NotFoundError.
        """
        newest = await self._runs.runs.of_thread(run_id, limit=MOST_DECISIONS) if thread_id is None else []
        first = next(
            (run for run, before in pairwise(newest) if not goes_on(run, before)), newest[-1] if newest else None
        )
        runs = [await self._runs.get(principal, first.run_id if first else run_id, thread_id=thread_id)]
        for later in await self._runs.runs.after(runs[0], limit=MOST_DECISIONS):
            if not goes_on(later, runs[-1]):
                break
            runs.append(later)
        async with AsyncExitStack() as stack:
            logs = [self._runs.log.read(run.thread_id, run_id=run.run_id, heartbeat=0) for run in runs]
            return await timeline(
                [(run, await stack.enter_async_context(aclosing(log))) for run, log in zip(runs, logs, strict=True)]
            )
