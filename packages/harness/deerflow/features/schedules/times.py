"""When a schedule is due."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import CroniterError, croniter

from deerflow.errors import InvalidRequestError


def next_due(schedule: str, timezone: str | None, after: datetime) -> datetime:
    """The first time after ``after`` that ``schedule`` names, in UTC.

    Expressions of fixed hours are due once a day also on the days when clocks change: a time that is skipped is due
    when clocks have moved on, one that comes twice the first time. Others (``*/15 * * * *``) follow the real time.

    Args:
        schedule: five fields, as in crontab(5).
        timezone: IANA name; None: UTC.

    Raises:
        InvalidRequestError: the expression or the time zone is none, or the time never comes.
    """
    zone = _zone(timezone)
    fields = schedule.split()
    if len(fields) != 5:
        raise InvalidRequestError(
            f"schedule {schedule!r} has {len(fields)} fields. A schedule has five: "
            "minute hour day-of-month month day-of-week."
        )
    if any(field[:1] in "RrHh" for field in fields):
        raise InvalidRequestError(f"schedule {schedule!r} is not a cron expression: R and H are not supported.")
    try:
        times = croniter(schedule, after.astimezone(zone))
        due: datetime = times.get_next(datetime)
        while due.fold and "*" not in fields[1]:
            due = times.get_next(datetime)
    except (CroniterError, ValueError, KeyError, IndexError) as error:
        raise InvalidRequestError(f"schedule {schedule!r} cannot be used: {error}.") from error
    return due.astimezone(UTC)


def _zone(name: str | None) -> ZoneInfo:
    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidRequestError(f"timezone {name!r} is unknown. Use an IANA name such as Europe/Berlin.") from error
