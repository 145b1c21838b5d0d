"""Watch how a model answers while it streams."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler

if TYPE_CHECKING:
    from deerflow.events.log import EventWriter


LLM_WAITING = "llm_waiting"
"""Type of the custom event which says that a model has sent nothing for ``seconds``; void with whatever comes next."""
WAITING_EVERY = 15.0
"""Seconds of silence, after which it is said, and again after as many."""
PAUSE = 0.001
"""Seconds: long enough for a token to pass through the graph's queue, the log and the response."""
THIRD = 3
"""The first chunk often holds nothing but the role, and the second may not have been passed on yet."""


class AnswerWatch(AsyncCallbackHandler):
    """Yields to the readers of a stream once for each answer, so that its first token is sent before the rest is read,
    and says when a model is silent.

    A provider may send many tokens in one packet, and they are then worked through without a break.

    Args:
        writer: of the run's log.
    """

    run_inline = True
    ignore_agent = ignore_chain = ignore_custom_event = ignore_retriever = ignore_retry = True  # type: ignore[assignment]

    def __init__(self, writer: EventWriter) -> None:
        self._writer = writer
        self._tokens: dict[UUID, int] = {}
        self._heard: dict[UUID, float] = {}
        self._looks: dict[UUID, asyncio.TimerHandle] = {}

    async def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: UUID, **_: Any) -> None:
        loop = asyncio.get_running_loop()
        self._heard[run_id] = loop.time()
        self._looks[run_id] = loop.call_later(WAITING_EVERY, self._look, loop, run_id, WAITING_EVERY)

    async def on_llm_new_token(self, token: Any, *, run_id: UUID, **_: Any) -> None:
        count = self._tokens[run_id] = self._tokens.get(run_id, 0) + 1
        if run_id in self._heard:
            self._heard[run_id] = asyncio.get_running_loop().time()
        if count == THIRD:
            await asyncio.sleep(PAUSE)

    async def on_llm_end(self, response: Any, *, run_id: UUID, **_: Any) -> None:
        self._end(run_id)

    async def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        self._end(run_id)

    def close(self) -> None:
        for run_id in list(self._heard):
            self._end(run_id)

    def _end(self, run_id: UUID) -> None:
        if self._heard.pop(run_id, None) is not None:
            self._looks.pop(run_id).cancel()  # or it would keep the run, with all that it holds, until it is due

    def _look(self, loop: asyncio.AbstractEventLoop, run_id: UUID, due: float) -> None:
        """``due``: after so much silence it is said."""
        if (silence := loop.time() - self._heard[run_id]) >= due:
            self._writer.append("custom", {"type": LLM_WAITING, "seconds": round(silence)})
            due += WAITING_EVERY
        else:
            due = WAITING_EVERY * (silence // WAITING_EVERY + 1)
        self._looks[run_id] = loop.call_later(max(due - silence, 0.0), self._look, loop, run_id, due)
