"""The JSON document that API, files, export and import have in common."""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from deerflow.agents.memory.storage import SECTIONS, create_empty_memory, iso
from deerflow.storage.memory import Fact
from deerflow.storage.sql import storable_text
from deerflow.storage.tables import utc_now

MAX_CONTENT = 2000
MAX_SUMMARY = 8000
MANUAL, UNKNOWN = "manual", "unknown"
_ENDED = "superseded"
"""Facts that ended, in files: they can be restored."""
_KEYS = {
    "source": "source",
    "sourceMessage": "message_id",
    "sourceError": "source_error",
    "untrusted": "untrusted",
    "lastUsed": "used_at",
    "expiresAt": "expires_at",
    "endedAt": "ended_at",
    "supersededBy": "superseded_by",
}
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
    document["facts"] = [fact_json(fact) for fact in facts if fact.ended_at is None]
    if with_ended and (ended := [fact_json(fact) for fact in facts if fact.ended_at is not None]):
        document[_ENDED] = ended
    return document


def read_document(document: Mapping[str, Any]) -> tuple[dict[str, Any], datetime | None, list[Fact]]:
    """Summaries, time of the last change and facts. What cannot be read is left out."""
    sections: dict[str, Any] = {}
    for part, names in SECTIONS.items():
        for name in names:
            section = mapping(mapping(document.get(part)).get(name))
            if summary := text_of(section.get("summary"), MAX_SUMMARY):
                stamp = text_of(section.get("updatedAt"), 64)
                sections.setdefault(part, {})[name] = {"summary": summary, "updatedAt": stamp}
    listed = [document.get("facts"), document.get(_ENDED)]
    given = [entry for entries in listed if isinstance(entries, list) for entry in entries]
    facts = [fact_of(entry) for entry in given if isinstance(entry, Mapping) and text_of(entry.get("content"))]
    return sections, moment_of(document.get("lastUpdated")), list({fact.id: fact for fact in facts}.values())


def fact_json(fact: Fact) -> dict[str, Any]:
    more = {key: getattr(fact, name) for key, name in _KEYS.items()}
    return {
        "id": fact.id,
        "content": fact.content,
        "category": fact.category,
        "confidence": fact.confidence,
        "createdAt": iso(fact.created_at),
        **{
            key: iso(value) if isinstance(value, datetime) else value
            for key, value in more.items()
            if value is not None
        },
    }


def fact_of(entry: Mapping[str, Any]) -> Fact:
    """A fact of a document, whose content is text."""
    more: dict[str, Any] = {name: entry.get(key) for key, name in _KEYS.items() if key != "source"}
    more = {name: moment_of(given) if name in _MOMENTS else text_of(given) or None for name, given in more.items()}
    return Fact(
        id=text_of(entry.get("id"), 128) or new_id(),
        content=text_of(entry.get("content")),
        category=text_of(entry.get("category"), 64) or "context",
        confidence=confidence_of(entry.get("confidence"), 0.5),
        source=text_of(entry.get("source"), 128) or UNKNOWN,
        created_at=moment_of(entry.get("createdAt")) or utc_now(),
        **more,
    )


def new_id() -> str:
    return f"fact_{secrets.token_hex(4)}"


def text_of(given: Any, limit: int = MAX_CONTENT) -> str:
    return storable_text(given).strip()[:limit] if isinstance(given, str) else ""


def mapping(given: Any) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {}


def confidence_of(given: Any, default: float) -> float:
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
