"""The names under which users' programs know storages of memory, see :mod:`deerflow.features.memory.storage`."""

from __future__ import annotations

from deerflow.agents.memory.storage import FileMemoryStorage, MemoryStorage, create_empty_memory

__all__ = ["FileMemoryStorage", "MemoryStorage", "create_empty_memory"]
