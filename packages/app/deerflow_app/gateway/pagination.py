"""Pages of a search, told in headers as LangGraph's SDKs read them."""

from __future__ import annotations

from typing import Any

from fastapi import Response

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
