"""Cutting tool output to a number of characters, marker included."""

from __future__ import annotations


def cut_middle(text: str, limit: int) -> str:
    """Keep head and tail. ``limit`` 0 means no limit; a limit below the marker's length is a plain cut."""
    if limit <= 0 or len(text) <= limit:
        return text
    marker = f"\n... [middle truncated: {len(text) - limit} chars skipped] ...\n"
    keep = limit - len(marker) - 12
    if keep <= 0:
        return text[:limit]
    head = keep - keep // 2
    tail = keep // 2
    skipped = len(text) - head - tail
    return f"{text[:head]}\n... [middle truncated: {skipped} chars skipped] ...\n{text[len(text) - tail :]}"


def cut_tail(text: str, limit: int, hint: str) -> str:
    """Keep the head and say how to see the rest. ``limit`` 0 means no limit."""
    if limit <= 0 or len(text) <= limit:
        return text
    shown = max(0, limit - len(f"\n... [truncated: showing first {limit} of {len(text)} chars. {hint}]"))
    marker = f"\n... [truncated: showing first {shown} of {len(text)} chars. {hint}]"
    return text[:shown] + marker if shown else text[:limit]
