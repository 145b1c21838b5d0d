"""Answers of models that are quoted in tests of their connections."""

from __future__ import annotations

import pytest

from deerflow.features.connections.checks import ANSWER_CHARACTERS, quoted


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("ready", "ready"),
        ("# Hello\n\nI am the **demo model** (*scripted*), `v1`.", "Hello I am the demo model (scripted), v1."),
        ("See [Settings](/settings/models) or ![a chart](x.png)", "See Settings or a chart"),
        ("snake_case and 2 * 3 stay", "snake_case and 2 * 3 stay"),
    ],
)
def test_an_answer_is_quoted_without_the_signs_of_markdown(answer: str, shown: str) -> None:
    assert quoted(answer) == shown


def test_a_long_answer_ends_between_words_and_says_that_it_goes_on() -> None:
    words = " ".join(f"word{number}" for number in range(100))
    shown = quoted(words)
    assert shown.endswith("…") and len(shown) <= ANSWER_CHARACTERS + 1
    assert words.startswith(shown[:-1] + " ")
    assert quoted("很" * 300) == "很" * ANSWER_CHARACTERS + "…"
