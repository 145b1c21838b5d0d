"""Answers that may be tens of megabytes: encoded off the event loop, and not validated once more."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from fastapi import Response


async def json_answer(content: Any) -> Response:
    """``content``, which must be JSON values."""
    body = await asyncio.to_thread(orjson.dumps, content, option=orjson.OPT_NON_STR_KEYS)
    return Response(body, media_type="application/json")
