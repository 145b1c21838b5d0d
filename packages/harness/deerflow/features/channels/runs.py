"""Runs as chat channels start, follow and stop them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from deerflow.errors import InvalidRequestError
from deerflow.identity import Principal
from deerflow.runs.request import RunRequest
from deerflow.storage.runs import Run

if TYPE_CHECKING:
    from deerflow.events.store import RunEvent
    from deerflow.runs.service import RunService


class ChannelRuns:
    """The part of the run service that channels need. Every method raises RequestError for what the person may not or cannot do."""

    def __init__(self, service: RunService) -> None:
        self._service = service

    async def start(self, principal: Principal, body: Mapping[str, Any], *, thread_id: str, run_id: str) -> Run:
        """Start a run by the create body of the LangGraph API, or return the one that has this id."""
        try:
            request = RunRequest.model_validate(dict(body))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise InvalidRequestError(f"The session of this channel is not valid: {where}: {first['msg']}") from None
        return await self._service.start(principal, request, thread_id=thread_id, run_id=run_id)

    async def steer(self, principal: Principal, thread_id: str, message: Mapping[str, Any]) -> Run:
        """Hand a message to the run on its way, once by the message's id. Raises ConflictError if there is none."""
        return await self._service.steer(principal, thread_id, dict(message))

    async def cancel(self, principal: Principal, run_id: str) -> Run:
        """Ask for the run's end. Raises NotFoundError if it has ended or is another person's."""
        return await self._service.cancel(principal, run_id)

    async def find(self, run_id: str) -> Run | None:
        """Return any person's run."""
        return await self._service.runs.find(run_id)

    async def active(self, thread_id: str) -> list[Run]:
        """Return the runs of a thread that have not ended, oldest first."""
        return [run for run in await self._service.runs.active(thread_id) if not run.ended]

    def events(self, run: Run, *, heartbeat: float) -> AsyncGenerator[list[RunEvent], None]:
        """Yield what the run says from its beginning to its end; an empty list after each silence of ``heartbeat`` seconds."""
        return self._service.events(run, heartbeat=heartbeat)
