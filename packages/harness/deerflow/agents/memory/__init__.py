"""What agents remember of people between threads.

``FileMemoryStorage`` from here is the one in files; the name in the configuration's default stands for the database.
"""

from __future__ import annotations

from deerflow.agents.memory.storage import FileMemoryStorage, MemoryStorage, create_empty_memory

__all__ = ["FileMemoryStorage", "MemoryStorage", "create_empty_memory"]
