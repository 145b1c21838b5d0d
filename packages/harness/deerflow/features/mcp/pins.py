"""Pinned definitions: trust in a tool holds for the definition that was there when the server first listed it, or that an
administrator has accepted since, and for no other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from typing_extensions import TypedDict

from deerflow.errors import ConflictError
from deerflow.features.mcp.definitions import Change, Definition, ServerOffer, shown
from deerflow.features.mcp.rows import McpPin, McpPinRepository, with_accepted, with_listed
from deerflow.storage.tables import utc_now

REFRESH_SECONDS = 5.0
"""How long another process may take to see what was accepted."""


class McpChange(TypedDict):
    """A definition that waits to be accepted. ``before``: of the tool's accepted one, null of a new tool; both as JSON text.
    ``is_moved``: the server itself has another command, other arguments or another address.
    """

    tool: str
    digest: str
    change: Change
    before: str | None
    after: str
    is_moved: bool


@dataclass
class Pins:
    """Args:
    rows: where pins are kept; None: in this process alone.
    """

    rows: McpPinRepository | None = None
    _known: dict[str, list[McpPin]] = field(default_factory=dict[str, list[McpPin]])
    _accepted: dict[str, dict[str, set[str]]] = field(default_factory=dict[str, dict[str, set[str]]])
    """By server and tool, the accepted digests. Made of the above when asked for."""
    _read_at: float | None = None
    _changing: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    async def see(self, server: str, offer: ServerOffer) -> None:
        """Record what a server offers. Its first definitions are accepted, later ones wait."""
        async with self._changing:
            await self._read_once()
            there = self._known.get(server, [])
            known = {pin.digest for pin in there}
            if all(one.digest in known for one in offer.definitions):
                return
            now = utc_now()
            listed = [
                McpPin(server, one.digest, one.tool.name, offer.source, one.text, now) for one in offer.definitions
            ]
            self._set(server, await self.rows.record(server, listed) if self.rows else with_listed(there, listed))

    async def refresh(self) -> None:
        """Read what other processes have accepted, unless that was just done."""
        if self._read_at is None or time.monotonic() - self._read_at > REFRESH_SECONDS:
            async with self._changing:
                await self._read()

    async def accept(self, server: str, digests: Collection[str]) -> None:
        """Rely on these definitions as on the first ones. Raises ConflictError: one of them is not waiting."""
        async with self._changing:
            await self._read_once()
            there = self._known.get(server, [])
            changed = await self.rows.accept(server, digests) if self.rows else with_accepted(there, digests)
            if changed is None:
                text = f"The tools of {server} have changed again. Look at the changes once more."
                raise ConflictError(text, reason="tools_changed", name=server)
            self._set(server, changed)

    async def forget(self, servers: Iterable[str]) -> None:
        """Forget servers whose entries were deleted: another one under the name begins with nothing."""
        async with self._changing:
            await self._read_once()
            for server in servers:
                self._set(server, [])
                if self.rows is not None:
                    await self.rows.forget(server)

    def change_of(self, server: str, definition: Definition) -> Change | None:
        """Return None for an accepted definition."""
        if server not in self._accepted:
            made: dict[str, set[str]] = {}
            for pin in self._known.get(server, ()):
                if pin.accepted:
                    made.setdefault(pin.tool, set()).add(pin.digest)
            self._accepted[server] = made
        digests = self._accepted[server].get(definition.tool.name)
        return "new" if digests is None else "changed" if definition.digest not in digests else None

    def waiting(self, server: str, offered: Collection[str] | None) -> list[McpChange]:
        """Return the definitions of a server that nobody has accepted, of those ``offered`` now (None: of all), by tool."""
        pins = self._known.get(server, [])
        found: list[McpChange] = []
        for pin in pins:
            if pin.accepted or (offered is not None and pin.digest not in offered):
                continue
            before = [one for one in pins if one.accepted and one.tool == pin.tool][-1:]
            found.append(
                {
                    "tool": pin.tool,
                    "digest": pin.digest,
                    "change": "changed" if before else "new",
                    "before": shown(before[0].definition) if before else None,
                    "after": shown(pin.definition),
                    "is_moved": bool(before) and before[0].source != pin.source,
                }
            )
        return sorted(found, key=lambda one: one["tool"])

    def tools(self, servers: Collection[str]) -> set[tuple[str, str]]:
        """Return the tools that these servers have listed, as ``(server, tool)``, whether they are up or not."""
        return {(name, pin.tool) for name, pins in self._known.items() if name in servers for pin in pins}

    def _set(self, server: str, pins: list[McpPin]) -> None:
        self._known[server] = pins
        self._accepted.pop(server, None)

    async def _read_once(self) -> None:
        if self._read_at is None:
            await self._read()

    async def _read(self) -> None:
        if self.rows is not None:
            known: dict[str, list[McpPin]] = {}
            for pin in await self.rows.all():
                known.setdefault(pin.server, []).append(pin)
            self._known, self._accepted = known, {}
        self._read_at = time.monotonic()
