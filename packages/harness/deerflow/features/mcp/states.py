"""States of servers and their tools, as people see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from typing_extensions import TypedDict

from deerflow.config.schema import McpServerConfig
from deerflow.config.section import EMPTY
from deerflow.features.mcp import Reason
from deerflow.features.mcp.definitions import Change, ServerOffer, plain_name
from deerflow.features.mcp.pins import Pins
from deerflow.security.door import harmless

if TYPE_CHECKING:
    from mcp_types import Tool

    from deerflow.features.mcp.server import McpServer


class McpTool(TypedDict):
    """``policy``: allow, ask or deny, as configured; null: as the guardrail judges. ``called``: the name that agents call it by; null:
    they do not get it. ``change``: new or changed since an administrator has accepted the server's tools; null: accepted. ``note``: why it
    is left out or has another name, else empty.
    """

    name: str
    called: str | None
    change: Change | None
    note: str
    description: str
    read_only: bool
    enabled: bool
    policy: Literal["allow", "ask", "deny"] | None


class McpServerState(TypedDict):
    """``state``: off, starting, ready or failed, ``since`` when (ISO 8601). ``error``: what went wrong last; a page words it by ``reason`` and ``values``, whose ``said`` is the program's last line, and ``program`` what was not found. ``connection``: of the
    person who asks, needed or connected; null where the server has none of each person's own. What lacks it is off. ``trusted``: what
    it says of its tools is believed. ``changes``: how many definitions wait for an administrator.
    """

    name: str
    type: str
    description: str
    state: str
    since: str | None
    error: str
    reason: Reason | None
    values: dict[str, str]
    connection: Literal["needed", "connected"] | None
    trusted: bool
    changes: int
    tools: list[McpTool]


def state_of(
    name: str,
    entry: McpServerConfig,
    server: McpServer | None,
    tools: list[McpTool],
    *,
    is_connected: bool,
    changes: int,
) -> McpServerState:
    """Return the state of a configured server; ``server``: None while it is off."""
    return {
        "name": name,
        "type": entry.type,
        "description": entry.description,
        "state": server.state if server else "off",
        "since": server.since.isoformat() if server else None,
        "error": server.error if server else "",
        "reason": server.reason if server else None,
        "values": server.values if server else {},
        "connection": ("connected" if is_connected else "needed") if entry.is_own else None,
        "trusted": entry.trusted,
        "changes": changes,
        "tools": tools,
    }


def tools_shown(
    name: str,
    entry: McpServerConfig,
    tools: Sequence[Tool],
    offer: ServerOffer,
    pins: Pins | None = None,
    names: Mapping[tuple[str, str], str] = EMPTY,
) -> list[McpTool]:
    """Return all tools that a server lists. Without ``pins`` no change waits: the server is only being tried."""
    known = {one.tool.name: one for one in offer.definitions}
    found: list[McpTool] = []
    for tool in tools:
        one, plain = known.pop(tool.name, None), plain_name(name, tool.name)
        called, note = (names.get((name, tool.name), plain), "") if one else (None, offer.left_out.get(tool.name, ""))
        if called not in (None, plain):
            note = f"Another tool has the name {plain}, or it is too long: agents call this one {called}."
        found.append(
            {
                "name": tool.name,
                "called": called,
                "change": pins.change_of(name, one) if pins and one else None,
                "note": note,
                "description": one.tool.description or "" if one else harmless(tool.description, 300),
                "read_only": bool(tool.annotations and tool.annotations.read_only_hint),
                "enabled": entry.tool(tool.name).enabled,
                "policy": entry.tool(tool.name).policy,
            }
        )
    return found
