"""Counting attempts."""

from __future__ import annotations

import pytest

from deerflow_app.gateway.auth.throttle import Throttle, ThrottledError


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def attempts(throttle: Throttle, key: str, limit: int = 3) -> int:
    for number in range(100):
        try:
            throttle.attempt({key: limit})
        except ThrottledError:
            return number
    raise AssertionError("no limit")


def test_a_window_ends_though_attempts_go_on() -> None:
    throttle = Throttle(window=60, clock=(clock := Clock()))
    assert attempts(throttle, "a") == 3
    clock.now = 59.5
    with pytest.raises(ThrottledError) as error:
        throttle.attempt({"a": 3})
    assert error.value.retry_after == 1

    clock.now = 60

    assert attempts(throttle, "a") == 3


def test_an_attempt_that_is_refused_on_one_key_counts_on_none() -> None:
    throttle = Throttle(clock=Clock())
    attempts(throttle, "full")

    for _ in range(10):
        with pytest.raises(ThrottledError):
            throttle.attempt({"full": 3, "other": 3})

    assert attempts(throttle, "other") == 3


def test_good_attempts_do_not_add_up() -> None:
    throttle = Throttle(clock=Clock())
    for _ in range(10):
        throttle.attempt({"a": 3})
        throttle.take_back(["a"])

    assert attempts(throttle, "a") == 3


def test_memory_is_bounded_and_who_keeps_trying_is_not_forgotten() -> None:
    throttle = Throttle(capacity=100, clock=Clock())
    for number in range(1_000):
        throttle.attempt({f"account {number}": 3, "client": 10_000})

    assert len(throttle._counts) == 100
    assert "client" in throttle._counts
