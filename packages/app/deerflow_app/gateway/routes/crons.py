"""Crons: runs that start by themselves."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import Response
from pydantic import Field, with_config

from deerflow.features.schedules.rows import CronQuery
from deerflow.features.schedules.service import CronChanges, CronRequest
from deerflow.features.schedules.view import CronView, cron_view
from deerflow.storage.list_page import ListPage
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import (
    HEADERS,
    SELECTABLE,
    CurrentPrincipal,
    CurrentRuntime,
    RequestBody,
    SortedPage,
    page_answer,
    selected,
)

router = Router(tags=["crons"])

CronField = Literal[
    "cron_id",
    "assistant_id",
    "thread_id",
    "end_time",
    "schedule",
    "timezone",
    "created_at",
    "updated_at",
    "user_id",
    "payload",
    "next_run_date",
    "metadata",
    "on_run_completed",
    "enabled",
]


@with_config(SELECTABLE)
class FoundCron(CronView):
    pass


class CronFilter(RequestBody):
    assistant_id: str | None = None
    thread_id: str | None = None
    metadata: dict[str, Any] | None = None

    def query(self, enabled: bool | None = None) -> CronQuery:
        return CronQuery(self.assistant_id, self.thread_id, enabled, self.metadata)


class CronSearch(CronFilter, SortedPage):
    enabled: bool | None = None
    sort_by: (
        Literal["cron_id", "assistant_id", "thread_id", "created_at", "updated_at", "next_run_date", "end_time"] | None
    ) = None
    select: list[CronField] | None = Field(default=None, description="Only these fields.")


@router.post("/api/threads/{thread_id}/runs/crons", summary="Start runs on a thread by schedule")
async def create_thread_cron(
    thread_id: str, body: CronRequest, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> CronView:
    return cron_view(await runtime.crons.create(principal, body, thread_id=thread_id))


@router.post("/api/runs/crons", summary="Start runs by schedule, each on a thread of its own")
async def create_cron(body: CronRequest, principal: CurrentPrincipal, runtime: CurrentRuntime) -> CronView:
    return cron_view(await runtime.crons.create(principal, body))


@router.post(
    "/api/runs/crons/search",
    summary="Find crons",
    response_model=list[FoundCron],
    responses=HEADERS,
)
async def search_crons(
    principal: CurrentPrincipal, runtime: CurrentRuntime, body: CronSearch | None = None
) -> Response:
    body = body or CronSearch()
    found, total = await runtime.crons.search(principal, body.query(body.enabled), body.page())
    return await page_answer([selected(cron_view(cron), body.select) for cron in found], body, total)


@router.post("/api/runs/crons/count", summary="Count crons")
async def count_crons(principal: CurrentPrincipal, runtime: CurrentRuntime, body: CronFilter | None = None) -> int:
    _, total = await runtime.crons.search(principal, (body or CronFilter()).query(), ListPage(1))
    return total


@router.get("/api/runs/crons/{cron_id}", summary="A cron")
async def get_cron(cron_id: str, principal: CurrentPrincipal, runtime: CurrentRuntime) -> CronView:
    return cron_view(await runtime.crons.get(principal, cron_id))


@router.patch("/api/runs/crons/{cron_id}", summary="Change a cron")
async def update_cron(
    cron_id: str, body: CronChanges, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> CronView:
    return cron_view(await runtime.crons.update(principal, cron_id, body))


@router.delete("/api/runs/crons/{cron_id}", status_code=204, summary="Delete a cron")
async def delete_cron(cron_id: str, principal: CurrentPrincipal, runtime: CurrentRuntime) -> None:
    await runtime.crons.delete(principal, cron_id)
