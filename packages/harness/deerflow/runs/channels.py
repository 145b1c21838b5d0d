"""Runs as chat channels start, follow and stop them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from pydantic import ValidationError

from deerflow.errors import InvalidRequestError
from deerflow.events.log import RunEvent
from deerflow.features.channels.runs import Runs
from deerflow.identity import Principal
from deerflow.runs.request import RunRequest
from deerflow.runs.service import RunService
from deerflow.storage.runs import Run


class ChannelRuns(Runs):
    def __init__(self, service: RunService) -> None:
        self._service = service

    async def start(self, principal: Principal, body: Mapping[str, Any], *, thread_id: str, run_id: str) -> Run:
        try:
            request = RunRequest.model_validate(dict(body))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise InvalidRequestError(f"The session of this channel is not valid: {where}: {first['msg']}") from None
        return await self._service.start(principal, request, thread_id=thread_id, run_id=run_id)

    async def steer(self, principal: Principal, thread_id: str, message: Mapping[str, Any]) -> Run:
        return await self._service.steer(principal, thread_id, dict(message))

    async def cancel(self, principal: Principal, run_id: str) -> Run:
        return await self._service.cancel(principal, run_id)

    async def find(self, run_id: str) -> Run | None:
        return await self._service.runs.find(run_id)

    async def active(self, thread_id: str) -> list[Run]:
        return [run for run in await self._service.runs.active(thread_id) if not run.ended]

    def events(self, run: Run, *, heartbeat: float) -> AsyncGenerator[list[RunEvent], None]:
        return self._service.events(run, heartbeat=heartbeat)
