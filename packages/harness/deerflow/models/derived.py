"""Values that were made of objects, kept as long as the objects are in use."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Generic, TypeVar
from weakref import ref

V = TypeVar("V")


class Derived(Generic[V]):
    """A map from objects, by identity, to what was made of them. Each entry goes with its object.

    Each step is one dictionary operation, so threads that share a map need no lock.
    """

    def __init__(self) -> None:
        self._made: dict[int, tuple[ref[Any], Hashable, V]] = {}

    def get(self, source: object, key: Hashable) -> V | None:
        """Return what was made of ``source``, unless it has changed since: ``key`` stands for its contents."""
        known = self._made.get(id(source))
        return known[2] if known is not None and known[0]() is source and known[1] == key else None

    def put(self, source: object, key: Hashable, value: V) -> None:
        """Keep ``value``, which must not refer to ``source``."""
        made, at = self._made, id(source)
        made[at] = ref(source, lambda _: made.pop(at, None)), key, value

    def __len__(self) -> int:
        return len(self._made)

    def __reduce__(self) -> tuple[type[Derived[V]], tuple[()]]:
        """Copies start empty: a copied model may say the same message in another way."""
        return type(self), ()
