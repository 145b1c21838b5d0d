"""Errors are worded by the page, by code and values: each has words there, and the values of its words."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import get_args

from deerflow import errors

ROOT = Path(__file__).parent.parent
WORDS = ROOT / "frontend/src/i18n/messages/en/server.ts"
CAUSES = {*get_args(errors.Code), *get_args(errors.Reason)}


def raised() -> list[tuple[str, set[str], str]]:
    """Return the cause, the names of the values and the place of each error with one of its own."""
    found = []
    for file in sorted((ROOT / "packages").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "").endswith("Error"):
                given = {one.arg: one.value for one in node.keywords if one.arg}
                cause = given.get("reason") or given.get("code")
                if isinstance(cause, ast.Constant):
                    found.append(
                        (str(cause.value), {*given} - {"code", "reason", "param"}, f"{file.name}:{node.lineno}")
                    )
    return found


def worded() -> dict[str, set[str]]:
    """Return the arguments that the words of each cause take."""
    section = re.search(r"\berror: \{(.*?)\n  \}", WORDS.read_text(), re.DOTALL)
    assert section
    texts = re.findall(r'^    (\w+):\s+"((?:[^"\\]|\\.)*)"', section[1], re.MULTILINE)
    return {cause: set(re.findall(r"\{(\w+)", text)) - {"detail"} for cause, text in texts}


def test_every_cause_has_words_and_all_words_have_a_cause() -> None:
    assert set(worded()) == CAUSES


def test_every_reason_is_the_reason_of_an_error() -> None:
    assert set(get_args(errors.Reason)) - {cause for cause, _, _ in raised()} == set()


def test_words_take_only_what_every_error_of_the_cause_gives() -> None:
    takes = worded()
    assert [where for cause, given, where in raised() if not takes.get(cause, set()) <= given] == []
