"""A cron as clients of the LangGraph API see it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from deerflow.features.schedules.rows import Cron
from deerflow.storage.moment import iso_or_none


class CronView(TypedDict):
    cron_id: str
    assistant_id: str
    thread_id: str | None
    schedule: Annotated[str, Field(examples=["0 9 * * MON-FRI"])]
    timezone: Annotated[str | None, Field(description="null: UTC.")]
    end_time: str | None
    enabled: bool
    on_run_completed: str
    payload: Annotated[dict[str, Any], Field(description="The body of the runs that it starts.")]
    metadata: dict[str, Any]
    next_run_date: Annotated[str | None, Field(description="null: it starts no more runs.")]
    user_id: str
    created_at: str
    updated_at: str


def cron_view(cron: Cron) -> CronView:
    return {
        "cron_id": cron.cron_id,
        "assistant_id": cron.assistant_id,
        "thread_id": cron.thread_id,
        "schedule": cron.schedule,
        "timezone": cron.timezone,
        "end_time": iso_or_none(cron.end_time),
        "enabled": cron.enabled,
        "on_run_completed": cron.on_run_completed,
        "payload": {"assistant_id": cron.assistant_id, **cron.payload},
        "metadata": cron.metadata,
        "next_run_date": iso_or_none(cron.next_run_at),
        "user_id": cron.user_id,
        "created_at": cron.created_at.isoformat(),
        "updated_at": cron.updated_at.isoformat(),
    }
