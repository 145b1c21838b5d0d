from __future__ import annotations

import pytest

from deerflow.models.circuit_breaker import CircuitBreakers


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_circuit_opens_at_the_threshold_and_closes_after_a_good_probe(clock: Clock) -> None:
    breaker = CircuitBreakers(failure_threshold=2, recovery_timeout=60, clock=clock).breaker("a")
    for _ in range(2):
        assert breaker.admit()
        breaker.report(False)
    assert not breaker.admit()
    clock.now = 59.9
    assert not breaker.admit()
    clock.now = 60
    assert breaker.admit()
    assert not breaker.admit(), "only one probe"
    breaker.report(True)
    assert breaker.admit()
    breaker.report(False)
    assert breaker.admit(), "failures are counted from the start"


def test_a_failed_probe_opens_for_a_full_timeout_again(clock: Clock) -> None:
    breaker = CircuitBreakers(failure_threshold=1, recovery_timeout=60, clock=clock).breaker("a")
    assert breaker.admit()
    breaker.report(False)
    clock.now = 100
    assert breaker.admit()
    breaker.report(False)
    assert not breaker.admit()
    clock.now = 160
    assert breaker.admit()


def test_a_probe_without_an_outcome_makes_room_for_the_next(clock: Clock) -> None:
    breaker = CircuitBreakers(failure_threshold=1, recovery_timeout=60, clock=clock).breaker("a")
    assert breaker.admit()
    breaker.report(False)
    clock.now = 60
    assert breaker.admit()
    breaker.report(None)
    assert breaker.admit()


def test_success_forgets_earlier_failures_and_circuits_are_separate(clock: Clock) -> None:
    breakers = CircuitBreakers(failure_threshold=2, clock=clock)
    breaker = breakers.breaker("a")
    for is_available in (False, True, False):
        assert breaker.admit()
        breaker.report(is_available)
    assert breaker.admit()
    assert breakers.breaker("a") is breaker
    assert breakers.breaker("b") is not breaker
