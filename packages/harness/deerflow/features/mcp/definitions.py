"""Definitions of servers' tools: fit for a prompt or left out, bound to a digest of their content, and called by unique names."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from deerflow.config.schema import McpServerConfig
from deerflow.security.door import UnfitError, disarm, harmless
from deerflow.security.text import inline

if TYPE_CHECKING:
    from mcp_types import Tool

Change = Literal["new", "changed"]
"""A definition that nobody has accepted: of a tool that the server had not before, or in place of an accepted one."""

MAX_TOOL, MAX_SERVER = 16 << 10, 128 << 10
"""Bytes of JSON, of one definition and of all that a server has."""
MAX_DESCRIPTION = 2000
MAX_NAME = 64
"""Characters that providers take."""
_DIGITS = 6
_MOST_DIGITS = 48


@dataclass(frozen=True, slots=True)
class Definition:
    """``tool`` as a prompt may hold it, ``text`` as the server gave it: JSON, ASCII, with sorted keys."""

    tool: Tool
    text: str
    digest: str


@dataclass(frozen=True, slots=True)
class ServerOffer:
    """All that a server offers now. ``left_out``: why agents do not get a tool, by its name."""

    source: str = ""
    definitions: tuple[Definition, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict[str, str])


def source_of(entry: McpServerConfig) -> str:
    """Return the digest of where a server is: its command and arguments, or its address."""
    return _sha256([entry.command, *entry.args] if entry.type == "stdio" else [entry.url])


def destination_of(name: str, entry: McpServerConfig) -> str:
    """Return the host that calls go to, or the name of a server that is a program."""
    return name if entry.type == "stdio" else urlsplit(str(entry.url)).netloc.rpartition("@")[2].lower()


def digest(source: str, text: str) -> str:
    """Return the hex digest of a definition: of its server (:func:`source_of`), and of the tool's name, schema, description and
    annotations (:attr:`Definition.text`)."""
    return _sha256([source, text])


def offer_of(entry: McpServerConfig, tools: Iterable[Tool]) -> ServerOffer:
    """Return what agents get of a server's list: same list, same bytes."""
    offer, size, seen = ServerOffer(source_of(entry)), 0, set[str]()
    made: list[Definition] = []
    for tool in tools:
        try:
            if tool.name in seen:
                raise UnfitError("the server lists another tool of this name before it")
            seen.add(tool.name)
            made.append(_definition(offer.source, tool))
            size += _size(made[-1].text)
            if size > MAX_SERVER:
                made.pop()
                raise UnfitError(
                    f"the definitions of this server's tools are larger than {MAX_SERVER >> 10} kB together"
                )
        except UnfitError as error:
            offer.left_out[tool.name] = f"Left out: {error}."
    return ServerOffer(offer.source, tuple(made), offer.left_out)


def _definition(source: str, tool: Tool) -> Definition:
    """Raises UnfitError: no prompt may hold it."""
    hints = tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else {}
    said = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "annotations": hints,
    }
    try:
        text = json.dumps(said, sort_keys=True)
        if _size(text) > MAX_TOOL:
            raise UnfitError(f"its definition is larger than {MAX_TOOL >> 10} kB")
    except RecursionError:
        raise UnfitError("its schema is nested too deeply") from None
    if harmless(tool.name) != tool.name:
        raise UnfitError(f"its name holds characters that cannot be shown: {inline(tool.name, 60)}")
    schema = disarm(tool.input_schema)
    made = tool.model_copy(
        update={
            "description": harmless(tool.description or tool.title or tool.name, MAX_DESCRIPTION),
            "input_schema": {**schema, "type": "object", "properties": schema.get("properties") or {}},
        }
    )
    return Definition(made, text, digest(source, text))


def _size(text: str) -> int:
    """Bytes of what is written as ASCII here."""
    return (
        len(json.dumps(json.loads(text), ensure_ascii=False).encode(errors="replace")) if "\\u" in text else len(text)
    )


def shown(text: str) -> str:
    """Return a definition for people: indented JSON in which characters that are not visible stand as escapes."""
    plain = json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    return "".join(char if char.isprintable() or char == "\n" else f"\\u{ord(char):04x}" for char in plain)


# names ----------------------------------------------------------------------------------------------------------------


def plain_name(server: str, tool: str) -> str:
    """Return ``server_tool`` in the characters that providers take, of any length."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", f"{server}_{tool}")


def names_of(tools: Iterable[tuple[str, str]], own: Collection[str] = ()) -> dict[tuple[str, str], str]:
    """Return how agents call tools, given as ``(server, tool)``: each its own name, in whatever order they come.

    All that would have the same name, or one of ``own``, end on ``_`` and a digest of the pair; so do names that are too long.
    """
    digits = {pair: _DIGITS if len(plain_name(*pair)) > MAX_NAME else 0 for pair in tools}
    while True:
        names = {pair: _name(pair, count) for pair, count in digits.items()}
        sharing = Counter(names.values())
        doubled = [pair for pair, name in names.items() if sharing[name] > 1 or name in own]
        if not doubled or min(digits[pair] for pair in doubled) >= _MOST_DIGITS:
            return names
        # A name made to look like another's name with its digest changes; the other stays.
        fewest: dict[str, int] = {}
        for pair in doubled:
            fewest[names[pair]] = min(digits[pair], fewest.get(names[pair], _MOST_DIGITS))
        digits |= {pair: max(_DIGITS, 2 * digits[pair]) for pair in doubled if digits[pair] == fewest[names[pair]]}


def _name(pair: tuple[str, str], digits: int) -> str:
    plain = plain_name(*pair)
    return f"{plain[: MAX_NAME - digits - 1]}_{_sha256(pair)[:digits]}" if digits else plain


def _sha256(value: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
