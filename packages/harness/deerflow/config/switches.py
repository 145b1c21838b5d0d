"""Names of what a person has switched off in a chat. They are kept with the thread and sent with a run; agents do not get it."""

from __future__ import annotations

from typing import Any

from deerflow.errors import InvalidRequestError

KEY = "switched_off"
"""In the context of a run and the metadata of a thread."""
WEB, MEMORY, SKILLS = "web", "memory", "skills"
SERVER = "mcp:"
"""Before the name of an MCP server."""


def switches(given: Any) -> tuple[str, ...]:
    """Return names of what is switched off, each once and sorted. A server need not exist.

    Raises:
        InvalidRequestError: it is no list of such names.
    """
    if given is None:
        return ()
    if not isinstance(given, list | tuple):
        raise InvalidRequestError(f"{KEY} must be a list of names.")
    for name in given:
        if name not in (WEB, MEMORY, SKILLS) and not (
            isinstance(name, str) and name.removeprefix(SERVER) not in ("", name)
        ):
            raise InvalidRequestError(f"{KEY} holds {name!r}: use {WEB}, {MEMORY}, {SKILLS} or {SERVER}<server>.")
    return tuple(sorted(set(given)))
