"""The person's grants, as a run reads and keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Approvals(Protocol):
    """The person's grants, and the record of what was decided. ``agent`` is empty for the lead agent."""

    async def patterns(self, agent: str, tool: str, digest: str) -> Sequence[Mapping[str, str | None] | None]:
        """Return the person's grants for a tool, as it is defined now, in this thread; None: every call."""
        ...

    async def grant(
        self, agent: str, tool: str, digest: str, pattern: Mapping[str, str | None] | None, *, everywhere: bool
    ) -> None:
        """Keep a grant, for this thread or for all."""
        ...

    async def may_reach(self, agent: str, destination: str) -> bool:
        """Return whether the person lets this chat send to a host or server."""
        ...

    async def let_reach(self, agent: str, destination: str) -> None:
        """Let this chat send to a host or server."""
        ...

    async def reachable(self, agent: str) -> frozenset[str]:
        """Return all that the person lets this chat send to, as far as this run knows."""
        ...

    async def asked(self, call: str) -> Mapping[str, Any] | None:
        """Return what :meth:`ask` kept about a call."""
        ...

    async def ask(self, call: str, shown: Mapping[str, Any]) -> None:
        """Keep what the person is shown of a call that waits."""
        ...

    async def record(
        self, call_id: str, decision: str, *, asked_by: str, agent: str, tool: str, code: str, policy_id: str | None
    ) -> None:
        """Keep what was decided about a call of the message ``asked_by``."""
        ...
