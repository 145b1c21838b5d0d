"""What a database can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deerflow.errors import InvalidRequestError

MAX_DEPTH = 100


def storable_text(text: str) -> str:
    """``text`` without what a database or UTF-8 cannot hold: NUL characters, lone surrogates."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def storable(value: Any, depth: int = 0) -> Any:
    """JSON-able ``value`` with nothing in it that cannot be stored, see :func:`storable_text`.

    Raises:
        InvalidRequestError: it is nested more than 100 levels deep.
    """
    if depth > MAX_DEPTH:
        raise InvalidRequestError(f"The request is nested more than {MAX_DEPTH} levels deep.")
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, Mapping):
        return {storable_text(str(key)): storable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [storable(item, depth + 1) for item in value]
    return value
