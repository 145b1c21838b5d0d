"""The ledger of a run's tool calls."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class ToolLedger(Protocol):
    """The tool calls that a run started, so that a run that goes on after a crash repeats none of them."""

    async def begin(self, tool_call_id: str) -> bool:
        """Record that a call begins, durably. False: it began before, and nothing in the thread tells how it ended."""
        ...

    async def forget(self, tool_call_id: str) -> None:
        """Forget a call that did nothing: it may begin again."""
        ...
