from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deerflow.errors import InvalidRequestError
from deerflow.features.schedules.times import next_due

BERLIN = "Europe/Berlin"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def following(schedule: str, timezone: str | None, after: str, count: int) -> list[str]:
    times, moment = [], at(after)
    for _ in range(count):
        moment = next_due(schedule, timezone, moment)
        times.append(moment.strftime("%m-%d %H:%M"))
    return times


def test_a_schedule_is_read_in_its_time_zone() -> None:
    assert following("0 9 * * *", None, "2026-01-01", 1) == ["01-01 09:00"]
    assert following("0 9 * * *", BERLIN, "2026-01-01", 1) == ["01-01 08:00"]
    assert following("0 9 * * *", "Asia/Kolkata", "2026-01-01", 1) == ["01-01 03:30"]


def test_a_time_that_the_clocks_skip_is_due_when_they_have_moved_on() -> None:
    assert following("30 2 * * *", BERLIN, "2026-03-28T12:00", 3) == ["03-29 01:00", "03-30 00:30", "03-31 00:30"]


def test_a_time_that_comes_twice_is_due_once() -> None:
    assert following("30 2 * * *", BERLIN, "2026-10-24T12:00", 3) == ["10-25 00:30", "10-26 01:30", "10-27 01:30"]


def test_what_is_due_every_half_hour_stays_so_when_clocks_change() -> None:
    for day in ("2026-03-28T23:45", "2026-10-24T23:45"):
        moments = [at(day)]
        for _ in range(8):
            moments.append(next_due("*/30 * * * *", BERLIN, moments[-1]))
        assert {(later - earlier).total_seconds() for earlier, later in pairwise(moments[1:])} == {1800}


@settings(max_examples=60)
@given(
    schedule=st.sampled_from(
        ["30 2 * * *", "*/15 * * * *", "0 */3 * * *", "0 0 1 * *", "15 1,2,3 * * *", "0 9 * * MON-FRI"]
    ),
    zone=st.sampled_from([None, BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia"]),
    start=st.datetimes(datetime(2024, 1, 1), datetime(2027, 1, 1)),
)
def test_time_only_goes_forward(schedule: str, zone: str | None, start: datetime) -> None:
    moment = start.replace(tzinfo=UTC)
    for _ in range(5):
        due = next_due(schedule, zone, moment)
        assert due > moment and due.second == 0
        moment = due


@pytest.mark.parametrize(
    ("schedule", "says"),
    [
        ("", "0 fields"),
        ("* * * *", "4 fields"),
        ("* * * * * *", "6 fields"),
        ("@hourly", "1 fields"),
        ("60 * * * *", "out of range"),
        ("a b c d e", "not acceptable"),
        ("*/0 * * * *", "not acceptable"),
        ("0 0 31 2 *", "failed to find"),
        ("R * * * *", "not supported"),
        ("H H * * *", "not supported"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused_with_the_reason(schedule: str, says: str) -> None:
    with pytest.raises(InvalidRequestError, match=says):
        next_due(schedule, None, at("2026-01-01"))


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../../etc/passwd", "/etc/localtime", "America", "\0", "UTC+1"])
def test_an_unknown_time_zone_is_refused(zone: str) -> None:
    with pytest.raises(InvalidRequestError, match="unknown"):
        next_due("0 0 * * *", zone, at("2026-01-01"))
