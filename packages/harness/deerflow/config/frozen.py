"""Containers that cannot be changed, for snapshots that many threads read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn


class FrozenDict(dict[Any, Any]):
    """A dict that refuses to change, yet passes for a dict wherever one is read (``json``, ``**kwargs``, pydantic)."""

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("Configuration is read-only: copy it with dict(...) first, or edit the file.")

    if not TYPE_CHECKING:
        __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __copy__(self) -> FrozenDict:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> FrozenDict:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)


EMPTY = FrozenDict()


def frozen(value: Any) -> Any:
    """``value`` with every mapping and list in it made read-only."""
    if isinstance(value, Mapping):
        return FrozenDict({key: frozen(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(map(frozen, value))
    return value


def thawed(value: Any) -> Any:
    """A private copy of a frozen value in plain dicts and lists."""
    if isinstance(value, Mapping):
        return {key: thawed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [thawed(item) for item in value]
    return value
