"""The door: whatever neither the person nor the sandbox wrote reaches a prompt through it."""

from __future__ import annotations

from dataclasses import dataclass

from deerflow.security.text import MAX_CHARS, disarmed, inline, sanitize, visible


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
