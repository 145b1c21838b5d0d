"""Stores of memory: the database, or documents. Both are used through :class:`OwnedMemory`, in one transaction or one save."""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import re
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from sqlalchemy import Connection

from deerflow.config import Paths
from deerflow.config.schema import MemoryConfig
from deerflow.errors import UnavailableError
from deerflow.features.memory.rows import Fact, OwnedRows, Owner, is_new
from deerflow.features.memory.storage import (
    EARLIER_VERSION,
    SECTIONS,
    FileMemoryStorage,
    MemoryStorage,
    create_empty_memory,
    iso,
)
from deerflow.features.memory.view import FactView
from deerflow.reflection import resolve_class
from deerflow.storage.database import Database
from deerflow.storage.search import words_of
from deerflow.storage.sql import storable_text
from deerflow.storage.tables import utc_now

T = TypeVar("T")
Also = Callable[[Connection], None]

logger = logging.getLogger(__name__)


class DatabaseMemory:
    """Facts are rows. What files of the layout of :class:`FileMemoryStorage` hold is taken over at the first use."""

    def __init__(self, database: Database, files: FileMemoryStorage) -> None:
        self._database = database
        self._files = files
        self._known: set[Owner] = set()

    async def read(self, owner: Owner, job: Callable[[OwnedMemory], T]) -> T:
        await self._take_over(owner)
        return await self._database.read(lambda connection: job(OwnedRows(connection, owner)))

    async def write(self, owner: Owner, job: Callable[[OwnedMemory], T], also: Also | None = None) -> T:
        await self._take_over(owner)

        def both(connection: Connection) -> T:
            result = job(OwnedRows(connection, owner))
            if also is not None:
                also(connection)
            return result

        return await self._database.write(both)

    async def recalled(self, owner: Owner, fact_ids: Sequence[str]) -> None:
        """The transaction that ends the run does it."""

    async def _take_over(self, owner: Owner) -> None:
        if owner in self._known:
            return
        document = await asyncio.to_thread(self._files.found, owner.agent or None, user_id=owner.user_id)
        if document is not None:

            def take_over(connection: Connection) -> None:
                if is_new(connection, owner):
                    fill(OwnedRows(connection, owner), document)

            await self._database.write(take_over)
        self._known.add(owner)


class DocumentMemory:
    """Each job reads and writes a whole document, one at a time in this process."""

    def __init__(self, storage: MemoryStorage, database: Database) -> None:
        self._storage = storage
        self._database = database
        self._lock = threading.Lock()

    async def read(self, owner: Owner, job: Callable[[OwnedMemory], T]) -> T:
        return await asyncio.to_thread(lambda: job(self._owned(owner)))

    async def write(self, owner: Owner, job: Callable[[OwnedMemory], T], also: Also | None = None) -> T:
        def work() -> T:
            with self._lock:
                owned = self._owned(owner)
                result = job(owned)
                if not self._storage.save(owned.document(), owner.agent or None, user_id=owner.user_id):
                    raise UnavailableError("The memory could not be saved. The log has the reason.")
                return result

        result = await asyncio.to_thread(work)
        if also is not None:
            await self._database.write(also)
        return result

    async def recalled(self, owner: Owner, fact_ids: Sequence[str]) -> None:
        def note(owned: OwnedMemory) -> None:
            for fact in filter(None, map(owned.get, fact_ids)):
                owned.put(replace(fact, used_at=utc_now()))

        await self.write(owner, note)

    def _owned(self, owner: Owner) -> OwnedDocument:
        return OwnedDocument(self._storage.load(owner.agent or None, user_id=owner.user_id))


class OwnedDocument:
    """The memory of one owner in a document, while a job works on it."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._sections, self._updated_at, facts = read_document(document)
        self._facts = {fact.id: fact for fact in facts}

    def document(self) -> dict[str, Any]:
        return document_of(self._sections, self._updated_at, self._facts.values(), with_ended=True)

    def sections(self) -> tuple[Mapping[str, Any], datetime | None]:
        """The summaries, and when the memory last changed."""
        return self._sections, self._updated_at

    def touch(self, sections: Mapping[str, Any] | None = None) -> None:
        """The memory changes now; with ``sections`` the summaries do."""
        self._sections, self._updated_at = (self._sections if sections is None else sections), utc_now()

    def live(self, *, category: str | None = None, limit: int = 1_000_000) -> list[Fact]:
        """Confirmed facts that hold, the surest first, then the newest."""
        held = [fact for fact in self._held() if fact.untrusted is None and category in (None, fact.category)]
        return sorted(held, key=lambda fact: (fact.confidence, fact.created_at), reverse=True)[:limit]

    def unconfirmed(self) -> list[Fact]:
        """Facts that wait for the person, the newest first."""
        waiting = [fact for fact in self._held() if fact.untrusted is not None]
        return sorted(waiting, key=lambda fact: fact.created_at, reverse=True)

    def find(self, words: Sequence[str], limit: int) -> list[Fact]:
        """Confirmed facts that hold and have any of the words, those that fit best, in any order."""
        wanted = set(words)
        shared = [(len(wanted & set(words_of(fact.content))), fact) for fact in self.live()]
        best = sorted((pair for pair in shared if pair[0]), key=lambda pair: pair[0], reverse=True)
        return [fact for _, fact in best[:limit]]

    def get(self, fact_id: str) -> Fact | None:
        """A fact, also one that has ended."""
        return self._facts.get(fact_id)

    def superseded_by(self, fact_id: str) -> list[Fact]:
        return [fact for fact in self._facts.values() if fact.superseded_by == fact_id]

    def of_source(self, source: str) -> list[Fact]:
        """Facts that hold and were learned in a thread, confirmed or not."""
        return [fact for fact in self._held() if fact.source == source]

    def put(self, fact: Fact) -> None:
        """Add a fact, or change that of the same id."""
        self._facts[fact.id] = fact

    def purge(self, ended_before: datetime | None = None) -> None:
        """Delete what has ended before then; None: everything."""
        known, self._facts = self._facts.values(), {}
        for fact in known:
            if ended_before is not None and (fact.ended_at is None or fact.ended_at >= ended_before):
                self.put(fact)

    def _held(self) -> list[Fact]:
        now = utc_now()
        return [fact for fact in self._facts.values() if fact.holds(now)]


OwnedMemory = OwnedRows | OwnedDocument
MemoryStore = DatabaseMemory | DocumentMemory
"""Jobs are functions of a owned. Those that write are kept as a whole or, when they raise, not at all.

``also`` is what else is to be written: in the same transaction if memory is in the database, else right after.
``recalled`` notes that a run uses facts.
"""


def fill(owned: OwnedMemory, document: Mapping[str, Any], most: int | None = None) -> None:
    """Replace everything by what a document holds, of confirmed facts the ``most`` surest."""
    sections, _, facts = read_document(document)
    owned.purge()
    owned.touch(sections)
    for fact in facts:
        owned.put(fact)
    limit(owned, most)


def limit(owned: OwnedMemory, most: int | None) -> None:
    """End the facts beyond ``most``: the least sure of those that are confirmed, the oldest of those that are not."""
    for fact in (*owned.live()[most:], *owned.unconfirmed()[MAX_UNCONFIRMED:]) if most is not None else ():
        owned.put(replace(fact, ended_at=utc_now()))


def memory_store(config: MemoryConfig, database: Database, paths: Paths) -> MemoryStore:
    """What ``storage_class`` and ``storage_path`` name. The default of the class is the database, if no path is given."""
    name, files = config.storage_class, FileMemoryStorage(paths, config.storage_path)
    if name == MemoryConfig.model_fields["storage_class"].default:
        return DocumentMemory(files, database) if config.storage_path else DatabaseMemory(database, files)
    try:
        cls: Any = resolve_class(name if ":" in name else ":".join(name.rsplit(".", 1)), MemoryStorage)
        takes = inspect.signature(cls).parameters
        given = {"paths": paths, "storage_path": config.storage_path}
        return DocumentMemory(cls(**{key: value for key, value in given.items() if key in takes}), database)
    except (ImportError, ValueError, TypeError) as error:
        logger.warning("memory.storage_class: %s Memory is kept in the database.", error)
        return DatabaseMemory(database, files)


# the document that API, files, export and import have in common -------------------------------------------------------

MAX_CONTENT = 2000
MAX_SUMMARY = 8000
MAX_UNCONFIRMED = 50
"""Facts that wait for the person; more are not read, and make room."""
MANUAL, UNKNOWN = "manual", "unknown"
EARLIER = "earlier version"
"""``untrusted`` of facts that were kept before the person's own words counted, until their thread was looked at."""
CHECKED = re.compile(r"[\d@]|\w\.\w|://")
"""Digits and addresses: of facts that text from outside may have made, those that can do harm."""
_ENDED = "superseded"
"""Facts that ended, in files: they can be restored."""
_KEYS = {
    "id": "id",
    "content": "content",
    "category": "category",
    "confidence": "confidence",
    "createdAt": "created_at",
    "source": "source",
    "sourceMessage": "message_id",
    "sourceError": "source_error",
    "untrusted": "untrusted",
    "lastUsed": "used_at",
    "expiresAt": "expires_at",
    "endedAt": "ended_at",
    "supersededBy": "superseded_by",
}
_TEXTS = ("message_id", "source_error", "untrusted", "superseded_by")
_MOMENTS = ("used_at", "expires_at", "ended_at")


def document_of(
    sections: Mapping[str, Any], updated_at: datetime | None, facts: Iterable[Fact], *, with_ended: bool = False
) -> dict[str, Any]:
    document = create_empty_memory()
    for part, names in SECTIONS.items():
        document[part] |= {name: sections[part][name] for name in names if name in (sections.get(part) or {})}
    if updated_at is not None:
        document["lastUpdated"] = iso(updated_at)
    facts = list(facts)
    document["facts"] = [fact_view(fact) for fact in facts if fact.ended_at is None]
    if with_ended and (ended := [fact_view(fact) for fact in facts if fact.ended_at is not None]):
        document[_ENDED] = ended
    return document


def read_document(document: Mapping[str, Any]) -> tuple[dict[str, Any], datetime | None, list[Fact]]:
    """Summaries, time of the last change and facts. What cannot be read is left out."""
    sections: dict[str, Any] = {}
    for part, names in SECTIONS.items():
        for name in names:
            section = mapping(mapping(document.get(part)).get(name))
            summary, stamp = text_of(section.get("summary"), MAX_SUMMARY), text_of(section.get("updatedAt"), 64)
            if summary or stamp:
                sections.setdefault(part, {})[name] = {"summary": summary, "updatedAt": stamp}
    listed = [document.get("facts"), document.get(_ENDED)]
    given = [entry for entries in listed if isinstance(entries, list) for entry in entries]
    facts = [fact_of(entry) for entry in given if isinstance(entry, Mapping) and text_of(entry.get("content"))]
    if document.get("version") == EARLIER_VERSION:
        facts = [replace(fact, untrusted=EARLIER) if _is_doubtful(fact) else fact for fact in facts]
    return sections, moment_of(document.get("lastUpdated")), list({fact.id: fact for fact in facts}.values())


def _is_doubtful(fact: Fact) -> bool:
    is_learned = fact.source not in (MANUAL, UNKNOWN) and fact.untrusted is None
    return is_learned and CHECKED.search(fact.content) is not None


def fact_view(fact: Fact) -> FactView:
    found = {key: getattr(fact, name) for key, name in _KEYS.items()}
    known = {key: value for key, value in found.items() if value is not None}
    shown = {key: iso(value) if isinstance(value, datetime) else value for key, value in known.items()}
    return cast(FactView, shown)


def fact_of(entry: Mapping[str, Any]) -> Fact:
    """A fact of a document, whose content is text."""
    given = {name: entry.get(key) for key, name in _KEYS.items()}
    more: dict[str, Any] = {name: text_of(given[name]) or None for name in _TEXTS}
    more |= {name: moment_of(given[name]) for name in _MOMENTS}
    return Fact(
        id=text_of(given["id"], 128) or new_id(),
        content=text_of(given["content"]),
        category=text_of(given["category"], 64) or "context",
        confidence=confidence_of(given["confidence"], 0.5),
        source=text_of(given["source"], 128) or UNKNOWN,
        created_at=moment_of(given["created_at"]) or utc_now(),
        **more,
    )


def words_in(text: str) -> list[str]:
    """The words that facts are looked up by."""
    return list(dict.fromkeys(words_of(text)))[:64]


def new_id() -> str:
    return f"fact_{secrets.token_hex(4)}"


def text_of(given: Any, limit: int = MAX_CONTENT) -> str:
    return storable_text(given).strip()[:limit] if isinstance(given, str) else ""


def mapping(given: Any) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {}


def confidence_of(given: Any, default: float) -> float:
    if isinstance(given, str):
        with suppress(ValueError):
            given = float(given)
    if not isinstance(given, int | float):
        return default
    return min(1.0, max(0.0, given)) if math.isfinite(given) else 0.0


def moment_of(given: Any) -> datetime | None:
    """A moment or a day of ISO 8601, in UTC if it names no zone."""
    try:
        moment = datetime.fromisoformat(given)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
