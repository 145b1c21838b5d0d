"""Keeping broken tool arguments broken.

LangChain completes cut JSON when it merges the chunks of a stream, so of a file whose text hit the output limit half
would be written as if it were whole. A suffix that matches nothing makes the call the invalid one that it is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from langchain_core.messages import ToolCallChunk
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.utils.json import parse_partial_json

MARK = "\ue0de\ue0ad"
"""Private characters before what is appended, so that a model's own words can be quoted without it."""

# Brackets that match nothing: outside of a string, at the end of one, and behind a backslash in one.
_SUFFIXES = ("", *(MARK + suffix for suffix in ("]", "}", '"]', '"}', '\\"]', '\\"}')))


def spoiler(arguments: str) -> str:
    """What to append to ``arguments`` so that they stay broken; empty if they are sound or cannot be mistaken."""
    try:
        json.loads(arguments or "{}", strict=False)
        return ""
    except ValueError:
        return next((suffix for suffix in _SUFFIXES if not _is_completed(arguments + suffix)), "")


def as_written(arguments: str) -> str:
    """Broken arguments as the model wrote them."""
    return arguments.rpartition(MARK)[0] if MARK in arguments[-len(MARK) - 3 :] else arguments


class StreamedArguments:
    """The arguments of the calls in one stream, by index."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}

    def add(self, chunks: Sequence[ToolCallChunk]) -> None:
        for chunk in chunks:
            index = chunk["index"]
            if index is not None:
                self._texts[index] = self._texts.get(index, "") + (chunk["args"] or "")

    def spoilers(self) -> list[ToolCallChunk]:
        """Chunks to send before the stream ends."""
        suffixes = {index: spoiler(text) for index, text in self._texts.items()}
        return [tool_call_chunk(args=suffix, index=index) for index, suffix in suffixes.items() if suffix]


def _is_completed(arguments: str) -> bool:
    try:
        return isinstance(parse_partial_json(arguments), dict)
    except ValueError:
        return False
