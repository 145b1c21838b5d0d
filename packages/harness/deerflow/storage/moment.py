"""Moments as clients read them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import PlainSerializer

Moment = Annotated[datetime, PlainSerializer(lambda moment: moment.astimezone(UTC).isoformat(), return_type=str)]
"""ISO 8601 in UTC with the offset written out, ``2026-01-31T12:00:00+00:00``."""


def iso_or_none(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
