"""The first word of an answer goes out before the rest of it is taken in."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler

PAUSE = 0.001
"""Seconds: long enough for the word to pass through the graph's queue, the log and the response."""
THIRD = 3
"""The first piece often holds no word but the role, and the second may not have been handed on yet."""


class FirstToken(AsyncCallbackHandler):
    """Gives way to the readers of a stream once for each answer.

    A provider may send many tokens in one packet, and they are then worked through without a break.
    """

    run_inline = True
    ignore_agent = ignore_chain = ignore_chat_model = ignore_custom_event = ignore_retriever = ignore_retry = True  # type: ignore[assignment]

    def __init__(self) -> None:
        self._heard: dict[UUID, int] = {}

    async def on_llm_new_token(self, token: Any, *, run_id: UUID, **_: Any) -> None:
        heard = self._heard[run_id] = self._heard.get(run_id, 0) + 1
        if heard == THIRD:
            await asyncio.sleep(PAUSE)
