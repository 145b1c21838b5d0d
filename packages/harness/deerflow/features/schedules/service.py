"""Crons: runs that start by themselves, at times that a schedule names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from deerflow.capability import AskedRun, Capabilities
from deerflow.errors import InvalidRequestError
from deerflow.features.assistants.service import AssistantService
from deerflow.features.schedules.rows import Cron, CronQuery, CronRepository
from deerflow.features.schedules.times import next_due
from deerflow.identity import Principal
from deerflow.runs.request import RunRequest
from deerflow.storage.database import Database
from deerflow.storage.list_page import ListPage
from deerflow.storage.sql import storable
from deerflow.storage.tables import utc_now

OnRunCompleted = Literal["delete", "keep"]
NOT_FOR_CRONS = ("after_seconds", "on_completion")


def _aware(value: datetime | None) -> datetime | None:
    return value.replace(tzinfo=UTC) if value is not None and value.tzinfo is None else value


class CronRequest(RunRequest):
    """A schedule, and the body of the runs that it starts."""

    schedule: str = Field(max_length=128, description="Five fields: minute hour day-of-month month day-of-week.")
    timezone: str | None = Field(default=None, max_length=64, description="IANA name. Default: UTC.")
    end_time: datetime | None = Field(default=None, description="No run starts after it.")
    enabled: bool = True
    on_run_completed: OnRunCompleted = Field(
        default="delete",
        description="What becomes of the thread made for a run. Of no effect with a thread of its own.",
    )

    _utc = field_validator("end_time")(_aware)


class CronChanges(BaseModel):
    """What is given is changed, the rest stays."""

    model_config = ConfigDict(extra="forbid")

    schedule: str | None = Field(default=None, max_length=128)
    timezone: str | None = Field(default=None, max_length=64)
    end_time: datetime | None = None
    enabled: bool | None = None
    on_run_completed: OnRunCompleted | None = None
    metadata: dict[str, Any] | None = None
    input: dict[str, Any] | list[Any] | str | None = None
    config: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    webhook: str | None = None
    interrupt_before: list[str] | Literal["*"] | None = None
    interrupt_after: list[str] | Literal["*"] | None = None
    stream_mode: str | list[str] | None = None
    stream_subgraphs: bool | None = None
    stream_resumable: bool | None = None
    durability: Literal["sync", "async", "exit"] | None = None

    _utc = field_validator("end_time")(_aware)


_OF_CRON = {"schedule", "timezone", "end_time", "enabled", "on_run_completed", "metadata", "assistant_id"}


class CronService:
    """Args: wake: called when a schedule is new or changed, and with it the task that looks at them."""

    def __init__(
        self,
        database: Database,
        assistants: AssistantService,
        wake: Callable[[], None],
        *,
        clock: Callable[[], datetime] = utc_now,
        capabilities: Capabilities = Capabilities(),
    ) -> None:
        self._crons = CronRepository(database)
        self._capabilities = capabilities
        self._assistants = assistants
        self._wake = wake
        self._clock = clock

    async def create(self, principal: Principal, request: CronRequest, *, thread_id: str | None = None) -> Cron:
        """A new cron, whose runs go to ``thread_id`` or each to a thread of its own.

        Raises:
            InvalidRequestError: the schedule, time zone, assistant or an option of the run cannot be used.
            NotFoundError: there is no such thread.
        """
        if unfit := [name for name in NOT_FOR_CRONS if name in request.model_fields_set]:
            raise InvalidRequestError(f"{unfit[0]} is not for crons; see schedule and on_run_completed.")
        assistant, _ = await self._assistants.resolve(principal, request.assistant_id)
        payload = storable(request.model_dump(mode="json", exclude_unset=True, exclude=_OF_CRON))
        await self._check_run(principal, payload)
        now = self._clock()
        first = await _next(request.schedule, request.timezone, request.end_time, now)
        cron = Cron(
            cron_id=str(uuid4()),
            user_id=principal.user_id,
            assistant_id=assistant.assistant_id,
            thread_id=thread_id,
            schedule=request.schedule,
            timezone=request.timezone,
            end_time=request.end_time,
            enabled=request.enabled,
            on_run_completed=request.on_run_completed,
            payload=payload,
            metadata=storable(request.metadata or {}),
            next_run_at=first if request.enabled else None,
            created_at=now,
            updated_at=now,
        )
        await self._crons.create(principal, cron)
        self._wake()
        return cron

    async def get(self, principal: Principal, cron_id: str) -> Cron:
        return await self._crons.get(principal, cron_id)

    async def update(self, principal: Principal, cron_id: str, changes: CronChanges) -> Cron:
        """Raises InvalidRequestError as :meth:`create`; NotFoundError."""
        cron = await self._crons.get(principal, cron_id)
        given = changes.model_dump(exclude_unset=True)
        # Null only means something for what may be absent; elsewhere it leaves things as they are.
        own = {k: v for k, v in given.items() if k in _OF_CRON and (v is not None or k in ("end_time", "timezone"))}
        run = changes.model_dump(mode="json", exclude_unset=True, exclude=_OF_CRON)
        new: dict[str, Any] = {**own, "payload": {**cron.payload, **storable(run)}, "updated_at": self._clock()}
        await self._check_run(principal, new["payload"])
        if "metadata" in new:
            new["metadata"] = storable(new["metadata"])
        if own.keys() & {"schedule", "timezone", "end_time", "enabled"}:
            now = replace(cron, **{name: value for name, value in own.items() if name != "metadata"})
            following = await _next(now.schedule, now.timezone, now.end_time, self._clock())
            new["next_run_at"] = following if now.enabled else None
        updated = await self._crons.update(principal, cron_id, new)
        self._wake()
        return updated

    async def delete(self, principal: Principal, cron_id: str) -> None:
        await self._crons.delete(principal, cron_id)

    async def search(
        self,
        principal: Principal,
        query: CronQuery,
        page: ListPage = ListPage(),
    ) -> tuple[list[Cron], int]:
        """A page, and how many there are in all. Raises InvalidRequestError for an unknown order or odd metadata."""
        return await self._crons.search(principal, query, page)

    async def _check_run(self, principal: Principal, payload: Mapping[str, Any]) -> None:
        try:
            request = RunRequest.model_validate(payload)
        except ValidationError as error:
            raise InvalidRequestError("; ".join(found["msg"] for found in error.errors())) from error
        await self._capabilities.admit(AskedRun(principal, request.webhook))


async def _next(schedule: str, timezone: str | None, end_time: datetime | None, after: datetime) -> datetime | None:
    """The next time before the end. On a thread: time zones are files."""
    due = await asyncio.to_thread(next_due, schedule, timezone, after)
    return None if end_time is not None and due > end_time else due
