"""Keeping what was serialised, so that a request costs what is new in it."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any, Generic, TypeVar

import orjson
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, ToolMessage
from pydantic import BaseModel

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class RecentMap(Generic[K, V]):
    """A bounded map: what was not used for long goes first.

    Two generations stand in for an ordered list: a hit moves to the young one, a full young one becomes the old one.
    Each step is one dictionary operation, so threads that share a model need no lock.

    Args:
        capacity: weight per generation; twice as much is held at most, except for one heavier value.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._young: dict[K, tuple[V, int]] = {}
        self._old: dict[K, tuple[V, int]] = {}
        self._weight = 0

    def get(self, key: K) -> V | None:
        if (entry := self._young.get(key)) is not None:
            return entry[0]
        if (entry := self._old.get(key)) is not None:
            self.put(key, *entry)
            return entry[0]
        return None

    def put(self, key: K, value: V, weight: int = 1) -> None:
        if self._weight + weight > self.capacity:
            self._old, self._young, self._weight = self._young, {}, 0
        self._young[key] = value, weight
        self._weight += weight

    def __len__(self) -> int:
        return len(self._young.keys() | self._old.keys())

    def __reduce__(self) -> tuple[type[RecentMap[K, V]], tuple[int]]:
        """Copies start empty: a copied model may say the same message in another way."""
        return type(self), (self.capacity,)


def message_key(message: BaseMessage) -> Hashable:
    """Everything of a message that can reach the wire, by value: equal keys mean equal JSON, whatever the ids say."""
    extra = message.additional_kwargs
    if isinstance(message, AIMessage):
        rest: Hashable = (freeze(message.tool_calls), freeze(message.invalid_tool_calls))
    elif isinstance(message, ToolMessage):
        rest = message.tool_call_id
    elif isinstance(message, ChatMessage):
        rest = message.role
    else:
        rest = None
    content = message.content
    return (
        type(message),
        content if type(content) is str else freeze(content),
        message.name,
        freeze(extra) if extra else None,
        rest,
    )


def freeze(value: Any) -> Hashable:
    """A hashable stand-in for a JSON value that tells apart what JSON tells apart: ``1``, ``1.0`` and ``True``, key order.

    Strings stand for themselves: their hash is computed once in their life, even for an image of megabytes.
    """
    kind = type(value)
    if kind is str or value is None:
        return value
    if kind is dict:
        return (dict, *[(key, item if type(item) is str else freeze(item)) for key, item in value.items()])
    if kind is list or kind is tuple:
        return (list, *[item if type(item) is str else freeze(item) for item in value])
    return kind, repr(value)


def to_json(value: Any) -> bytes:
    """Compact JSON. What UTF-8 cannot carry (half of a surrogate pair, from a broken source) becomes U+FFFD."""
    try:
        encoded = orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)
        return repair_surrogates(text).encode()
    return bytes(memoryview(encoded))  # a copy of its size: what orjson returns holds 4 KiB, however short it is


def repair_surrogates(text: str) -> str:
    """Join surrogate pairs to the character they mean, replace single halves by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True, by_alias=True)
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError(f"A {type(value).__name__} cannot be sent to a model as JSON: {value!r:.200}")
