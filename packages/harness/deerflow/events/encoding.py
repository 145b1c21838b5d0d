"""Whatever a run reports, as one line of JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from deerflow.events.jsonable import plain

_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME
_DEEPEST = 200
_LINE_SEPARATORS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))


def encode(value: Any) -> bytes:
    """``value`` as UTF-8 JSON without a line break of any kind. Never raises.

    What JSON lacks becomes what is nearest: NaN null, bytes base64, half a surrogate pair U+FFFD, an integer of more than
    64 bits its digits, an object its fields or its text. What is nested deeper than 200 levels is cut.
    """
    try:
        encoded = orjson.dumps(value, default=_default, option=_OPTIONS)
    except TypeError:
        encoded = orjson.dumps(_clean(value, 0), option=_OPTIONS)
    # Many a client splits a stream at these, too, though only CR and LF end a line of it.
    for separator, escaped in _LINE_SEPARATORS:
        if separator in encoded:
            encoded = encoded.replace(separator, escaped)
    return encoded


def _default(value: Any) -> Any:
    try:
        return plain(value)
    except Exception:
        return f"<{type(value).__name__}>"


def _clean(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, str):
        return str.encode(value, "utf-8", "surrogatepass").decode("utf-8", "replace")
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**64 else str(value)
    if isinstance(value, Mapping):
        return {_key(key): _clean(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_clean(item, depth + 1) for item in value]
    return _clean(_default(value), depth + 1)


def _key(key: Any) -> str:
    return _clean(key if isinstance(key, str) else str(_default(key)), 0)
