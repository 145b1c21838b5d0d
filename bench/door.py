"""``python -m bench.door``: how fast untrusted text passes the door, in MB/s of processor time, up to 10 MB."""

from __future__ import annotations

import time
from collections.abc import Callable

from deerflow.security.text import disarmed, sanitize

TEXTS = {
    "English": "The quick brown fox  jumps over the lazy dog.\n",
    "German": "Über größere Brücken läuft der naïve Hund.\n",
    "Chinese": "今天天气很好我们去公园玩\n",
    "HTML": "<p class='x'>hello <b>world</b></p>\n",
    "emoji": "All is well 😀 👍 🇫🇷\n",
    "spaces": " ",
    "zero width": "a\u200b",
    "stacked accents": "\u0300\u0316",
    "tag characters": "\U000e0041",
    "brackets": "<",
    "labels": "\n### ",
}
SIZES = (1_000_000, 10_000_000)
"""Characters."""


def rate(work: Callable[[str], object], text: str) -> float:
    """MB of UTF-8 per second."""
    size = len(text.encode()) / 1e6
    began = time.process_time()
    work(text)
    return size / (time.process_time() - began)


def main() -> None:
    """Print a line per kind of text; the two sizes have the same rate where time is linear."""
    sanitize("é\U0001f600"), disarmed("é")  # tables
    for name, piece in TEXTS.items():
        texts = [(piece * (size // len(piece) + 1))[:size] for size in SIZES]
        clean = [rate(lambda text: sanitize(text, len(text)), text) for text in texts]
        calm = [rate(lambda text: disarmed(text, foreign=True), text) for text in texts]
        print(f"{name:16} sanitize {clean[0]:6.0f} {clean[1]:6.0f}   disarm {calm[0]:6.0f} {calm[1]:6.0f}")


if __name__ == "__main__":
    main()
