"""What requests and answers have in common, in the shape that LangGraph's SDKs read: moments, selected fields, pages."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import orjson
from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field, PlainSerializer


class RequestBody(BaseModel):
    """What a client sends. A field that the route does not know is a mistake."""

    model_config = ConfigDict(extra="forbid")


class Page(RequestBody):
    limit: int = Field(default=10, ge=1, le=1000)
    offset: int = Field(default=0, ge=0, le=2**31)


class SortedPage(Page):
    sort_by: Any = None
    sort_order: Literal["asc", "desc"] | None = None

    def arguments(self, sort_by: str) -> dict[str, Any]:
        """For a service's search; ``sort_by`` is the default. The newest first, unless said otherwise."""
        order = {"sort_by": self.sort_by or sort_by, "descending": self.sort_order != "asc"}
        return {"limit": self.limit, "offset": self.offset, **order}


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


async def page_answer(entries: Sequence[Any], page: Page, total: int) -> Response:
    """``entries``, those of ``page`` out of ``total``, with the headers that tell where they stand."""
    response = await json_answer(entries)
    response.headers["X-Pagination-Total"] = str(total)
    if entries and page.offset + len(entries) < total:
        response.headers["X-Pagination-Next"] = str(page.offset + len(entries))
    return response


def selected(entry: Mapping[str, Any], fields: Collection[str] | None) -> Mapping[str, Any]:
    """These fields of an entry; ``values.x`` leaves of its values only x. None: all of it."""
    if fields is None:
        return entry
    chosen = {key: value for key, value in entry.items() if key in fields}
    inner = {name.removeprefix("values.") for name in fields if name.startswith("values.")}
    if inner and "values" not in chosen:
        chosen["values"] = {key: value for key, value in entry["values"].items() if key in inner}
    return chosen
