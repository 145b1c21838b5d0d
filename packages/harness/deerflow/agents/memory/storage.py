"""See :mod:`deerflow.agents.memory`."""

from __future__ import annotations

from deerflow.features.memory.storage import FileMemoryStorage, MemoryStorage, create_empty_memory

__all__ = ["FileMemoryStorage", "MemoryStorage", "create_empty_memory"]
