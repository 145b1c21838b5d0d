"""Guess the encoding of a text whose bytes prove none, inside a converter."""

from __future__ import annotations

import contextlib
from typing import Any

from deerflow.security.encodings import guessed


def warm() -> None:
    """Load the detector."""
    with contextlib.suppress(ImportError):
        import cchardet  # type: ignore[import-not-found]  # noqa: F401


def work(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the name of the likeliest encoding."""
    return {"codec": guessed(data).codec}, b""
