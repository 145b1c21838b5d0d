"""The stop signals of a run's subagents."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SubagentStops:
    """The subagents of a run that are to stop, named by the calls that started them. One that was to stop before it started, or in
    an attempt before this one, stops at its first step."""

    _asked: set[str] = field(default_factory=set[str])
    _limits: dict[str, asyncio.Timeout] = field(default_factory=dict[str, asyncio.Timeout])

    def ask(self, task_id: str) -> None:
        self._asked.add(task_id)
        if (limit := self._limits.get(task_id)) is not None:
            limit.reschedule(asyncio.get_running_loop().time())

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._asked

    @contextmanager
    def ending(self, task_id: str, limit: asyncio.Timeout) -> Generator[None]:
        """The time of a subagent, entered already, is over when it is to stop."""
        self._limits[task_id] = limit
        try:
            yield
        finally:
            del self._limits[task_id]
