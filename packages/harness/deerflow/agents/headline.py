"""Headlines of calls that wait, in our words: nothing that a model wrote is in them but names."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

_LASTING = {
    "update_agent": "Change the agent's instructions",
    "setup_agent": "Create an agent",
    "memory_save": "Save something to memory",
    "memory_forget": "Remove something from memory",
}
_DESTINATIONS = {"search": "your search provider", "acp": "another agent"}
_UNSEEN = frozenset("\u00ad\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Characters without a shape that Unicode counts among letters and signs."""


def headline(request: Mapping[str, Any], value: Mapping[str, Any]) -> str:
    """Return what a call does and where it sends something.

    Args:
        request: one of the ``action_requests`` of a card.
        value: the card.
    """
    effect: Mapping[str, Any] = value.get("effect") or {}
    if is_network(request, value):
        if request["args"].get("packages") is True:
            return f"Let this chat install packages, from {visible(str(request['args'].get('host')))}?"
        return f"Let commands reach {visible(str(request['args'].get('host')))}?"
    what, destination = visible(_what(request, effect)), str(effect.get("destination") or "")
    to = visible(_DESTINATIONS.get(destination, destination))
    if effect.get("changes"):
        return (
            f"{what} – changes something there and sends data to {to}" if to else f"{what} – changes something outside"
        )
    return f"{what} – sends data to {to}" if to else what


def is_network(request: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    """Return whether the card asks about a host that commands may reach; it is of no tool."""
    return request["name"] == "network" and not value.get("tool_call_id")


def _what(request: Mapping[str, Any], effect: Mapping[str, Any]) -> str:
    name, args = str(request["name"]), request["args"]
    if server := str(effect.get("server") or ""):
        return f"{name.removeprefix(f'{server}_').lstrip('_') or name} at {server}"
    if effect.get("lasts"):
        return _LASTING.get(name, f"{name}: change something that stays after this chat")
    match name:
        case "bash":
            return "Run a command"
        case "write_file" | "str_replace":
            verb = "Change" if name == "str_replace" else "Add to" if args.get("append") is True else "Write"
            return f"{verb} the file {str(args.get('path')).rpartition('/')[2]}"
        case "web_fetch" | "web_capture":
            return f"Open a page of {_host(str(args.get('url')))}"
        case _:
            return f"Use {name}"


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or url
    except ValueError:
        return url


def visible(text: str) -> str:
    """Return ``text`` with marks for characters that cannot be seen or change the direction: what is approved must hide nothing."""
    return "".join(f"⟦U+{ord(each):04X}⟧" if _is_unseen(each) else each for each in text)


def _is_unseen(each: str) -> bool:
    if each == "\n" or each == "\t":
        return False
    selects = "\ufe00" <= each <= "\ufe0f" or "\U000e0100" <= each <= "\U000e01ef" or "\u180b" <= each <= "\u180f"
    return selects or each in _UNSEEN or unicodedata.category(each) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
