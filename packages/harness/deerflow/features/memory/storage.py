"""Memory as one JSON document for each person and agent, and its storage in files."""

from __future__ import annotations

import json
import logging
from abc import ABC, abstractmethod
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deerflow.config import Paths
from deerflow.config.document import write_text
from deerflow.identity import LOCAL_PRINCIPAL

VERSION, EARLIER_VERSION = "1.1", "1.0"
"""Of documents. In those of before, facts from threads with text from outside count as the person's own."""
SECTIONS = {
    "user": ("workContext", "personalContext", "topOfMind"),
    "history": ("recentMonths", "earlierContext", "longTermBackground"),
}

logger = logging.getLogger(__name__)


def create_empty_memory() -> dict[str, Any]:
    """The document of someone of whom nothing is known."""
    sections = {part: {name: {"summary": "", "updatedAt": ""} for name in names} for part, names in SECTIONS.items()}
    return {"version": VERSION, "lastUpdated": iso(datetime.now(UTC)), **sections, "facts": []}


def iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


class MemoryStorage(ABC):
    """Where documents are kept. Its methods may block. A class of yours is named by ``memory.storage_class``."""

    @abstractmethod
    def load(self, agent_name: str | None = None, *, user_id: str | None = None) -> dict[str, Any]:
        """The document; an empty one if there is none, or none that can be read."""

    @abstractmethod
    def reload(self, agent_name: str | None = None, *, user_id: str | None = None) -> dict[str, Any]:
        """The document as it is now, whatever was kept of it in memory."""

    @abstractmethod
    def save(self, memory_data: dict[str, Any], agent_name: str | None = None, *, user_id: str | None = None) -> bool:
        """Replace the document, all of it or nothing. False: it could not be written. ``memory_data`` stays as it is."""


class FileMemoryStorage(MemoryStorage):
    """A file ``memory.json`` for each person and agent below the data directory.

    Args:
        storage_path: an absolute path is one file for all people; a relative one is for calls without a person.
    """

    def __init__(self, paths: Paths | None = None, storage_path: str = "") -> None:
        self._paths = paths or Paths()
        self._storage_path = storage_path

    def load(self, agent_name: str | None = None, *, user_id: str | None = None) -> dict[str, Any]:
        return self.found(agent_name, user_id=user_id) or create_empty_memory()

    reload = load

    def found(self, agent_name: str | None = None, *, user_id: str | None = None) -> dict[str, Any] | None:
        """The document, if there is a file of it. That of the person without a name may lie where it lay without people."""
        files = [self.file(agent_name, user_id)]
        if user_id == LOCAL_PRINCIPAL.user_id:
            files.append(self.file(agent_name, None))
        for file in files:
            try:
                document = json.loads(file.read_text("utf-8"))
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                logger.warning("The memory in %s cannot be read: %s", file, error)
                continue
            if isinstance(document, dict):
                return document
        return None

    def save(self, memory_data: dict[str, Any], agent_name: str | None = None, *, user_id: str | None = None) -> bool:
        file = self.file(agent_name, user_id)
        text = json.dumps({**memory_data, "lastUpdated": iso(datetime.now(UTC))}, ensure_ascii=False, indent=2)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_text(file, text, 0o600)
        except OSError as error:
            logger.warning("The memory in %s cannot be written: %s", file, error)
            return False
        return True

    def file(self, agent_name: str | None, user_id: str | None) -> Path:
        """Raises ValueError for a name that may not be a directory."""
        if agent_name is not None:
            return self._paths.agent_memory_file(agent_name, user_id)
        path = Path(self._storage_path)
        if self._storage_path and (path.is_absolute() or user_id is None):
            return self._paths.base_dir / path
        return self._paths.memory_file if user_id is None else self._paths.user_memory_file(user_id)
