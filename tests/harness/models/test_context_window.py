"""A window is learned from what providers say of tokens, and never so that a short chat is called too long."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from deerflow.config import AppConfig
from deerflow.models.context_window import GUESS_SECONDS, ContextWindows, estimate_usage, has_figures
from deerflow.models.openai import OpenAIChatModel

STATED = 100_000
ENTRY = {"name": "m", "use": "x:Y", "model": "m", "context_window": STATED}
CONFIG = AppConfig.model_validate({"models": [ENTRY]})
TOO_LONG = "This model's maximum context length is {} tokens."


def model(**settings: Any) -> OpenAIChatModel:
    return OpenAIChatModel(**{"model": "m", "api_key": "k", "base_url": "http://a.example/v1", **settings})


@pytest.fixture
def now() -> list[float]:
    return [1000.0]


@pytest.fixture
def windows(now: list[float]) -> ContextWindows:
    return ContextWindows(clock=lambda: now[0])


def answer(tokens: int) -> AIMessage:
    return AIMessage("ok", usage_metadata={"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1})


def test_a_window_is_one_of_an_address_a_key_and_a_model(windows: ContextWindows) -> None:
    windows.refused(model(), TOO_LONG.format(20_000), 30_000, 0)
    assert windows.window(model(), None) == 20_000
    for other in (model(api_key="l"), model(base_url="http://b.example/v1"), model(model="n")):
        assert windows.window(other, None) is None


@pytest.mark.parametrize(
    "words",
    [
        "<html><h1>413 Request Entity Too Large</h1> limit 1048576</html>",
        "Request body too large: 2000000 > 1000000",
        "Request too large on tokens per minute (TPM): Limit 6000, Requested 7000",
        "too many tokens, max 8000/min",
    ],
)
def test_what_does_not_speak_of_a_window_teaches_none(windows: ContextWindows, words: str) -> None:
    windows.refused(model(), words, 7000, 100)
    assert windows.limit(model(), None) is None


def test_a_window_below_the_configured_one_is_believed_for_ten_minutes(
    windows: ContextWindows, now: list[float]
) -> None:
    windows.refused(model(), TOO_LONG.format(20_000), 30_000, 0)
    windows.refused(model(model="n"), "Your input exceeds the context window.", 30_000, 0)
    assert windows.window(model(), CONFIG) == 20_000
    assert windows.limit(model(model="n"), None) is not None
    now[0] += GUESS_SECONDS
    assert windows.window(model(), CONFIG) == STATED
    assert windows.window(model(), None) == 20_000
    assert windows.limit(model(model="n"), None) is None


def test_it_is_never_below_what_was_answered_or_what_each_request_holds(windows: ContextWindows) -> None:
    windows.passed(model(), 15_000, None)
    windows.refused(model(), TOO_LONG.format(1000), 16_000, 0)
    assert windows.window(model(), None) == 15_000
    windows.refused(model(model="n"), TOO_LONG.format(600), 9000, 8000)
    assert (windows.limit(model(model="n"), None) or 0) >= 7500
    windows.refused(model(model="o"), "input exceeds the context length", 8010, 8000)
    assert (windows.limit(model(model="o"), None) or 0) >= 7500


def test_a_larger_answer_makes_it_forgotten(windows: ContextWindows) -> None:
    windows.refused(model(), TOO_LONG.format(20_000), 30_000, 0)
    windows.passed(model(), 19_000, None)
    assert windows.window(model(), None) == 20_000
    windows.passed(model(), 25_000, None)
    assert windows.window(model(), None) is None


def test_one_wrong_figure_among_many_changes_nothing(windows: ContextWindows) -> None:
    for wrong in (40_000, 1):
        windows.passed(model(), 1000, answer(wrong))
        assert windows.counted(model(), 1000) == 1000
    for _ in range(12):
        windows.passed(model(), 1000, answer(1500))
    assert windows.counted(model(), 1000) == 1500
    windows.passed(model(), 1000, answer(1_000_000))
    assert windows.counted(model(), 1000) == 1500


@pytest.mark.parametrize("tokens", [-5, 10**20])
def test_figures_that_no_answer_can_have_are_replaced_by_an_estimate(tokens: int) -> None:
    answer = AIMessage("Twelve bytes")
    answer.usage_metadata = {"input_tokens": 10, "output_tokens": tokens, "total_tokens": tokens}
    assert not has_figures(answer)
    estimate_usage(answer, 7)
    assert answer.usage_metadata == {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
