"""The door: whatever neither the person nor the sandbox wrote reaches a prompt through it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deerflow.security.text import MAX_CHARS, disarmed, inline, sanitize, visible

UNTRUSTED = "untrusted"
"""Key in a message's ``additional_kwargs``: where its text came from that neither the person nor the sandbox wrote."""

EXACT = "exact"
"""Key beside :data:`UNTRUSTED`: the text is fenced with its spaces and letters as they are, since files are edited by what they show."""


@dataclass(frozen=True, slots=True)
class Untrusted:
    """Text from outside. It has no ``str()`` of its own, so that it cannot slip into a prompt.

    Args:
        text: as it came.
        source: where from, e.g. the name of a tool or an address; as little to be trusted as the text.
    """

    text: str
    source: str

    def __str__(self) -> str:
        raise TypeError("Untrusted text enters a prompt through admit().")

    __format__ = __str__  # type: ignore[assignment]


def harmless(text: object, limit: int = MAX_CHARS) -> str:
    """Untrusted text that can be kept and shown: sanitized, without forged tags, roles and tool results. It has no fence yet."""
    return disarmed(sanitize(text, limit), foreign=True)


def admit(given: Untrusted, mark: str, limit: int = MAX_CHARS, *, exact: bool = False) -> str:
    """Text from outside as a prompt may hold it: harmless, inside a tag that ends on ``mark``. Empty text stays empty.

    Args:
        given: the text. What passed this door before passes it unchanged.
        mark: random, and known to nobody outside; where the text holds it nevertheless, it is made unreadable.
        limit: characters of the text that are let through.
        exact: keep spaces and letters as they are, but for invisible characters: files are edited by what they show.
    """
    clean = visible(given.text)[:limit] if exact else sanitize(given.text, limit)
    text = disarmed(clean, foreign=True, mark=mark)
    if not text.strip():
        return ""
    source = disarmed(inline(given.source), mark=mark).replace('"', "'")
    return f'<untrusted-{mark} source="{source}">\n{text}\n</untrusted-{mark}>'


# schemas of others ----------------------------------------------------------------------------------------------------

MAX_DEPTH = 64
_PROPERTY = re.compile(r"[\w.$-]+")
_NAMED = frozenset({"properties", "$defs", "definitions", "dependentSchemas", "dependentRequired"})
"""Keywords whose value maps names of properties or definitions."""
_EXACT = frozenset(
    [
        "enum",
        "const",
        "type",
        "required",
        "dependentRequired",
        "pattern",
        "patternProperties",
        "format",
        "$ref",
        "$id",
        "$schema",
        "$anchor",
        "$dynamicRef",
        "$dynamicAnchor",
        "contentEncoding",
        "contentMediaType",
    ]
)
"""Keywords whose text has a meaning for programs: another text would be another schema."""
_DATA = frozenset({"enum", "const", "default", "examples"})
"""Keywords whose value is data, so that no key in it is a keyword."""


class UnfitError(ValueError):
    """A schema that no prompt may hold. ``str`` says why."""


def disarm(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON schema of others with harmless prose (descriptions, titles, defaults, comments), byte for byte the same each time.

    Raises:
        UnfitError: more than prose would have to be changed (a property's name, a value of an enum), a property is named with
            other characters than letters, digits and ``_.$-``, or the schema is nested more than :data:`MAX_DEPTH` levels deep.
    """
    return _disarmed(schema, "", MAX_DEPTH)


def _disarmed(value: Any, keyword: str, depth: int) -> Any:
    if depth == 0:
        raise UnfitError(f"its schema is nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, str):
        clean = harmless(value)
        if clean != value and keyword in _EXACT:
            raise UnfitError(f"{keyword} in its schema holds text that would have to be changed: {inline(value, 60)}")
        return clean
    if isinstance(value, list | tuple):
        return [_disarmed(item, keyword, depth - 1) for item in value]
    if not isinstance(value, Mapping):
        return value
    for name in value:
        if harmless(name) != name or (keyword in _NAMED and not _PROPERTY.fullmatch(name)):
            raise UnfitError(f"a property in its schema has a name that cannot be used: {inline(name, 60)}")
    return {name: _disarmed(item, _inner(keyword, name), depth - 1) for name, item in value.items()}


def _inner(keyword: str, name: str) -> str:
    """The keyword that the value under ``name`` belongs to."""
    if keyword in _DATA or keyword == "dependentRequired":
        return keyword
    return "" if keyword in _NAMED or keyword == "patternProperties" else name
