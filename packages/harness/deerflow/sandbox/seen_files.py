"""What an agent has seen of each file, so that it never overwrites what it does not know."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from weakref import WeakValueDictionary


@dataclass(slots=True)
class SeenFiles:
    """Stamps of files as last read or written by the agent, and a lock per path for read-modify-write."""

    _stamps: dict[str, tuple[float, int]] = field(default_factory=dict)
    _locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def remember(self, path: str, modified: float, size: int) -> None:
        self._stamps[path] = (modified, size)

    def changed(self, path: str, modified: float, size: int) -> bool:
        """Whether the file differs from what the agent saw. A file never seen has not changed."""
        return self._stamps.get(path, (modified, size)) != (modified, size)

    def lock(self, path: str) -> asyncio.Lock:
        """The lock of ``path``; it lives as long as someone holds a reference to it."""
        lock = self._locks.get(path)
        if lock is None:
            lock = self._locks[path] = asyncio.Lock()
        return lock
