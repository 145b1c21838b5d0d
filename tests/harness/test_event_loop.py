"""Turns of the event loop, and work beside a block."""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress

import pytest

from deerflow.event_loop import LoopTurns, begun


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


async def test_work_that_was_begun_ends_with_its_block():
    async with begun(asyncio.sleep(60)) as task:
        await asyncio.sleep(0)
    with suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_an_error_of_work_that_was_begun_belongs_to_those_who_await_it(caplog):
    async def fail() -> None:
        raise ValueError("of the work")

    async with begun(fail()) as task:
        await asyncio.sleep(0)
    del task
    gc.collect()
    assert not caplog.records
    with pytest.raises(ValueError, match="of the work"):
        async with begun(fail()) as task:
            await task
