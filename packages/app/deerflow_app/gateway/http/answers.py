"""JSON in the shape that LangGraph's SDKs read: moments, selected fields, pages, large answers."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Annotated, Any

import orjson
from fastapi import Response
from pydantic import ConfigDict, PlainSerializer


async def json_answer(content: Any) -> Response:
    """``content``, which must be JSON values."""
    body = await asyncio.to_thread(orjson.dumps, content, option=orjson.OPT_NON_STR_KEYS)
    return Response(body, media_type="application/json")


Moment = Annotated[datetime, PlainSerializer(lambda moment: moment.astimezone(UTC).isoformat(), return_type=str)]
"""As answers show moments: ISO 8601 in UTC with the offset written out, ``2026-01-31T12:00:00+00:00``."""


def _optional(schema: dict[str, Any]) -> None:
    schema.pop("required", None)
    schema["description"] = f"{schema.get('description', '')}\nOnly the fields that `select` names.".strip()


SELECTABLE = ConfigDict(json_schema_extra=_optional)
"""For the model of such an answer: any field may be missing."""


HEADERS: dict[int | str, dict[str, Any]] = {
    200: {
        "headers": {
            "X-Pagination-Total": {"description": "How many there are in all.", "schema": {"type": "integer"}},
            "X-Pagination-Next": {
                "description": "The offset of the next page; absent on the last one.",
                "schema": {"type": "integer"},
            },
        }
    }
}
"""For the ``responses`` of a route."""


def tell_pages(response: Response, *, total: int, offset: int, shown: int) -> None:
    """Set the headers for ``shown`` entries from ``offset`` out of ``total``."""
    response.headers["X-Pagination-Total"] = str(total)
    if shown and offset + shown < total:
        response.headers["X-Pagination-Next"] = str(offset + shown)
