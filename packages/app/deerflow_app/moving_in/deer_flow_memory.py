"""deer-flow's memory as documents: ``memory.json`` of people and agents, with the facts that later versions keep as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from deerflow.storage.sql import short_key
from deerflow_app.moving_in.deer_flow_home import ORIGIN, DeerFlowHome, json_object, text_of

NO_AGENT = "__default__"
_HELD = (None, "", "active")
"""States of facts that hold."""


@dataclass(frozen=True, slots=True)
class FormerMemory:
    """Memory that an agent has of a user. ``ended``: facts that hold no more; ``broken``: files that cannot be read."""

    agent: str | None
    document: dict[str, Any]
    ended: int
    broken: list[str]


def memories(home: DeerFlowHome, user: str) -> Iterator[FormerMemory]:
    """Yield what is remembered of a user, by the lead agent first. Blocks."""
    places = home.user_dirs(user)
    names = {path.name for place in places for path in (place / "agents").glob("*") if path.is_dir()} - {NO_AGENT}
    for agent in (None, *sorted(names)):
        folders = [place / "agents" / (agent or NO_AGENT) for place in places]
        files = [folder / "memory.json" for folder in ([] if agent else places) + folders]
        found = [document for file in files if (document := json_object(text_of(file)))]
        facts: dict[str, dict[str, Any]] = {}
        for document in reversed(found):
            listed = document.get("facts")
            for fact in listed if isinstance(listed, list) else ():
                if isinstance(fact, dict):
                    key = str(fact.get("id") or f"fact_{short_key(str(fact.get('content')))[:8]}")
                    facts[key] = {**fact, "id": key}
        broken: list[str] = []
        for file in sorted(file for folder in folders for file in (folder / "facts").glob("*.md")):
            fact = _fact(file)
            if fact is None:
                broken.append(file.name)
            else:
                facts[fact["id"]] = fact
        held = [fact for fact in facts.values() if fact.get("status") in _HELD]
        if held or broken or found:
            sections = {
                key: document[key] for document in reversed(found) for key in ("user", "history") if key in document
            }
            document = {**sections, "facts": [{**fact, "source": fact.get("source") or ORIGIN} for fact in held]}
            yield FormerMemory(agent, document, len(facts) - len(held), broken)


def _fact(file: Path) -> dict[str, Any] | None:
    """Return the fact of a Markdown file: its head as it stands there, the text as its content."""
    text = text_of(file)
    if text is None:
        return None
    head: Any = {}
    if text.startswith("---\n"):
        given, mark, rest = text[4:].partition("\n---")
        if mark:
            text = rest.partition("\n")[2]
            try:
                head = yaml.load(given, Loader=yaml.BaseLoader)
            except (yaml.YAMLError, ValueError, RecursionError):
                return None
    if not isinstance(head, dict):
        return None
    content = text.strip() or str(head.get("content") or "")
    return {**head, "id": str(head.get("id") or file.stem), "content": content} if content else None
