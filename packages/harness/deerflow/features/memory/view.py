"""Memory as people and their programs see it: one document, to read and to import."""

from __future__ import annotations

from typing import Annotated, Any, Required

from pydantic import Field
from typing_extensions import TypedDict

from deerflow.features.memory.storage import VERSION


def _default(value: Any) -> Any:
    """Describe what stands for a field that a document to import lacks. Answers have all of them."""
    return Field(json_schema_extra={"default": value})


class SectionView(TypedDict, total=False):
    """A summary of a person."""

    summary: Annotated[str, _default("")]
    updatedAt: Annotated[str, _default("")]


class UserContext(TypedDict, total=False):
    workContext: SectionView
    personalContext: SectionView
    topOfMind: SectionView


class HistoryContext(TypedDict, total=False):
    recentMonths: SectionView
    earlierContext: SectionView
    longTermBackground: SectionView


class FactView(TypedDict, total=False):
    """``source``: a thread, ``manual`` or ``unknown``. ``untrusted``: the fact is not confirmed, and where its text came from."""

    id: Required[str]
    content: Required[str]
    category: Annotated[str, _default("context")]
    confidence: Annotated[float, _default(0.5)]
    createdAt: Annotated[str, _default("")]
    source: Annotated[str, _default("unknown")]
    sourceMessage: str | None
    sourceError: str | None
    untrusted: str | None
    lastUsed: str | None
    expiresAt: str | None


class MemoryDocument(TypedDict, total=False):
    version: Annotated[str, _default(VERSION)]
    lastUpdated: Annotated[str, _default("")]
    user: UserContext
    history: HistoryContext
    facts: Annotated[list[FactView], _default([])]


class MemorySettings(TypedDict):
    """The part of the configuration that concerns people."""

    enabled: bool
    storage_path: str
    debounce_seconds: int
    max_facts: int
    fact_confidence_threshold: float
    injection_enabled: bool
    max_injection_tokens: int
    mode: str
    search_chats: bool


class MemoryStatus(TypedDict):
    config: MemorySettings
    data: MemoryDocument
