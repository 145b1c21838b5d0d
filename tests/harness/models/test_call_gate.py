"""Calls to one provider: so many at once and per minute, in their order, and none while it asks to wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from deerflow.models.call_gate import CallGate, CallGates


class Line:
    """Calls that wait at a gate, and what became of them."""

    def __init__(self, gate: CallGate, at_once: int | None = None, per_minute: int | None = None) -> None:
        self.gate, self.limits = gate, (at_once, per_minute)
        self.begun: list[int] = []
        self._ends: dict[int, asyncio.Event] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def join(self, *numbers: int) -> None:
        for number in numbers:
            self._ends[number] = asyncio.Event()
            self._tasks[number] = asyncio.create_task(self._call(number))

    async def end(self, number: int) -> None:
        self._ends[number].set()
        await self._tasks.pop(number)

    def cancel(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    async def _call(self, number: int) -> None:
        async with self.gate.call(*self.limits):
            self.begun.append(number)
            await self._ends[number].wait()


async def rounds() -> None:
    """Everything that can go on now has gone on."""
    for _ in range(20):
        await asyncio.sleep(0)


@asynccontextmanager
async def line(gate: CallGate, **limits: int) -> AsyncIterator[Line]:
    made = Line(gate, **limits)
    try:
        yield made
    finally:
        made.cancel()


@pytest.fixture
def now() -> list[float]:
    return [1000.0]


@pytest.fixture
def gate(now: list[float]) -> CallGate:
    return CallGate(lambda: now[0])


async def test_so_many_calls_at_once_and_the_others_in_their_order(gate: CallGate) -> None:
    async with line(gate, at_once=2) as calls:
        calls.join(*range(6))
        await rounds()
        assert calls.begun == [0, 1]
        for ended, then in ((1, [0, 1, 2]), (0, [0, 1, 2, 3])):
            await calls.end(ended)
            await rounds()
            assert calls.begun == then


async def test_a_call_that_gives_up_waiting_leaves_its_place_to_the_next(gate: CallGate) -> None:
    async with line(gate, at_once=1) as calls:
        calls.join(0, 1, 2)
        await rounds()
        calls._tasks.pop(1).cancel()
        await calls.end(0)
        await rounds()
        assert calls.begun == [0, 2]


async def test_so_many_calls_per_minute(gate: CallGate, now: list[float]) -> None:
    async with line(gate, per_minute=3) as calls:
        calls.join(0)
        await rounds()
        now[0] += 30
        calls.join(1, 2, 3, 4)
        await rounds()
        assert calls.begun == [0, 1, 2]
        assert gate._wait(None, 3, False) == 30
        now[0] += 30
        await calls.end(0)  # whoever is first in line looks again
        await rounds()
        assert calls.begun == [0, 1, 2, 3]


async def test_after_a_refusal_all_wait_then_one_goes_first_and_each_success_lets_more_go(
    gate: CallGate, now: list[float]
) -> None:
    async with line(gate) as calls:
        calls.join(-1)
        await rounds()
        gate.hold(20)
        calls.join(*range(8))
        await rounds()
        assert calls.begun == [-1] and gate.held == 20
        now[0] += 20
        calls.begun.clear()
        await calls.end(-1)
        await rounds()
        assert calls.begun == [0, 1], "the call before it succeeded, too"
        gate.hold(0)
        await calls.end(0)
        await rounds()
        assert calls.begun == [0, 1, 2]
        for ended in (1, 2, 3):
            await calls.end(ended)
            await rounds()
        assert calls.begun == list(range(8))


async def test_one_gate_per_provider_and_event_loop() -> None:
    gates = CallGates()
    assert gates.gate("a") is gates.gate("a") is not gates.gate("b")
    assert await asyncio.to_thread(lambda: asyncio.run(_gate(gates))) is not gates.gate("a")


async def _gate(gates: CallGates) -> CallGate:
    return gates.gate("a")


def test_a_provider_that_wants_no_calls_for_a_day_is_looked_at_each_minute(gate: CallGate, now: list[float]) -> None:
    gate.hold(86_400)
    assert gate.held <= 6 * 3600 and not gate.may_probe()
    now[0] += 61
    assert gate.may_probe() and not gate.may_probe()
    gate.release()
    assert gate.held == 0
