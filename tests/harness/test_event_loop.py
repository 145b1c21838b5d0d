"""Turns of the event loop."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from deerflow.event_loop import LoopTurns


class Rounds:
    """Counts the rounds of the event loop."""

    def __init__(self) -> None:
        self.number = 0
        self._count()

    def _count(self) -> None:
        self.number += 1
        self._handle = asyncio.get_running_loop().call_soon(self._count)

    def stop(self) -> None:
        self._handle.cancel()


async def test_of_a_crowd_one_comes_in_each_round_in_the_order_of_coming():
    turns, rounds = LoopTurns(), Rounds()
    came: list[tuple[int, int]] = []

    async def come(number: int) -> None:
        await turns.take()
        came.append((number, rounds.number))

    await asyncio.gather(*map(come, range(50)))
    rounds.stop()
    assert [number for number, _ in came] == list(range(50))
    assert len({at for _, at in came}) == 50


async def test_without_a_crowd_a_turn_is_had_at_once():
    turns, rounds = LoopTurns(), Rounds()
    for _ in range(3):
        before = rounds.number
        await turns.take()
        assert rounds.number == before
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    rounds.stop()


async def test_who_is_cancelled_keeps_nobody_waiting():
    turns = LoopTurns()
    waiting = [asyncio.create_task(turns.take()) for _ in range(10)]
    await asyncio.sleep(0)
    for task in waiting[1:9]:
        task.cancel()
    async with asyncio.timeout(60):
        await waiting[9]
        for task in waiting[1:9]:
            with suppress(asyncio.CancelledError):
                await task
        await turns.take()
