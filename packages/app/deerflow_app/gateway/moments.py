"""Moments as answers show them: ISO 8601 in UTC with the offset written out, ``2026-01-31T12:00:00+00:00``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import PlainSerializer

Moment = Annotated[datetime, PlainSerializer(lambda moment: moment.astimezone(UTC).isoformat(), return_type=str)]
