"""A crowd that wants the event loop at the same moment gets it in turn, so that everybody else is not kept waiting."""

from __future__ import annotations

import asyncio
from collections import deque


class Turns:
    """Whoever is about to keep the event loop busy takes a turn first: one is given in each of its rounds.

    A round runs everything that is ready. Where hundreds become ready together, it would take seconds, in which nobody is
    heard. Without a crowd a turn costs nothing. Belongs to one event loop.
    """

    def __init__(self) -> None:
        self._given = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Wait for the turn, behind those that came before."""
        loop = asyncio.get_running_loop()
        if not self._given:
            self._given = True
            loop.call_soon(self._next, loop)
            return
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # who was cancelled has left
                turn.set_result(None)
                loop.call_soon(self._next, loop)
                return
        self._given = False
