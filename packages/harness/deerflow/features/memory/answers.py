"""A model's answer in JSON, whatever stands around it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

_ATTEMPTS = 50
"""Braces at which an answer may begin: each costs a look at what follows."""


def read_answer(answer: str, keys: Collection[str]) -> Mapping[str, Any]:
    """Return the first JSON object in ``answer`` that has one of ``keys``, else the first that is empty.

    Raises:
        ValueError: there is none.
    """
    decoder, start, empty = json.JSONDecoder(), -1, False
    for _ in range(_ATTEMPTS):
        if (start := answer.find("{", start + 1)) < 0:
            break
        try:
            found, _ = decoder.raw_decode(answer, start)
        except (ValueError, RecursionError):
            continue
        if not keys or not found.keys().isdisjoint(keys):
            return found
        empty = empty or not found
    if empty:
        return {}
    raise ValueError("The model's answer holds no JSON object of the kind that was asked for.")
