"""The runs that channels start, follow and stop: the part of the run service that they need."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from deerflow.identity import Principal
from deerflow.storage.runs import Run

if TYPE_CHECKING:
    from deerflow.events.store import RunEvent


class Runs(Protocol):
    """Runs as their owners see them. Every method raises RequestError for what the person may not or cannot do."""

    async def start(self, principal: Principal, body: Mapping[str, Any], *, thread_id: str, run_id: str) -> Run:
        """Start a run by the create body of the LangGraph API, or return the one that has this id."""
        ...

    async def steer(self, principal: Principal, thread_id: str, message: Mapping[str, Any]) -> Run:
        """Hand a message to the run on its way, once by the message's id. Raises ConflictError if there is none."""
        ...

    async def cancel(self, principal: Principal, run_id: str) -> Run:
        """Ask for the run's end. Raises NotFoundError if it has ended or is another person's."""
        ...

    async def find(self, run_id: str) -> Run | None:
        """Return any person's run."""
        ...

    async def active(self, thread_id: str) -> list[Run]:
        """Return the runs of a thread that have not ended, oldest first."""
        ...

    def events(self, run: Run, *, heartbeat: float) -> AsyncGenerator[list[RunEvent], None]:
        """Yield what the run says from its beginning to its end; an empty list after each silence of ``heartbeat`` seconds."""
        ...
