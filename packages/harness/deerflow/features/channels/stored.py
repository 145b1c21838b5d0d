"""Events and places as JSON in rows, and as JSON becomes them again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from hashlib import sha256
from typing import Any

from deerflow.features.channels.types import Author, Button, Click, Event, FileRef, Inbound, Place
from deerflow.storage.sql import storable, storable_text

_LONGEST = 256


def column(value: str) -> str:
    """Return an id of a platform as the columns hold it: a digest where it is too long for them, such as a Message-ID."""
    value = storable_text(value)
    return value if len(value) <= _LONGEST else f"sha256:{sha256(value.encode()).hexdigest()}"


def place_to_json(place: Place) -> dict[str, Any]:
    return storable(asdict(place))


def place_from_json(stored: Mapping[str, Any]) -> Place:
    return Place(**stored)


def event_to_json(event: Event) -> dict[str, Any]:
    made = asdict(event)
    if isinstance(event, Inbound):
        made["sent_at"] = event.sent_at.isoformat()
    return storable(made)


def event_from_json(stored: Mapping[str, Any]) -> Event:
    place, author = place_from_json(stored["place"]), Author(**stored["author"])
    if "click_id" in stored:
        return Click(**{**stored, "place": place, "author": author})
    files = [FileRef(**file) for file in stored["files"]]
    sent_at = datetime.fromisoformat(stored["sent_at"])
    return Inbound(**{**stored, "place": place, "author": author, "files": files, "sent_at": sent_at})


def button_from_json(stored: Mapping[str, Any]) -> Button:
    return Button(**stored)
