"""The contract between the engine and what answers people: runs, commands, decisions."""

from __future__ import annotations

from typing import Protocol

from sqlalchemy import Connection

from deerflow.features.channels.inbox import InboxRow
from deerflow.features.channels.outbox import OutboxRow


class NotYet(Exception):
    """The row cannot be handled now: it stays accepted and keeps its turn in its place. Commands and clicks may pass it.

    Args:
        after: seconds until it is tried again, unless :meth:`Inbox.bring_forward` comes first.
    """

    def __init__(self, after: float = 5.0) -> None:
        super().__init__(f"again in {after} s")
        self.after = after


class Handler(Protocol):
    """Called in the process that holds the connection's lease, for one row of a place at a time, oldest first.

    A row may come twice, when a process died or was paused meanwhile. So whatever answers it must be written in the transaction in which
    :meth:`Inbox.move` returned True; False: another process was faster, write nothing.
    """

    async def handle(self, row: InboxRow) -> None:
        """Start what a message or command asks for, and move the row on from ``accepted``; do not wait for the end of a run.

        A row that is still accepted afterwards is moved to ``ignored``. Raises NotYet. Any other error is logged, and the row comes again
        after a pause that grows, five times; then it is ignored with the error as reason.
        """
        ...

    async def click(self, row: InboxRow) -> None:
        """Do what a press on a button asks for; as :meth:`handle`."""
        ...

    async def resume(self, connection_id: str, turn: str) -> None:
        """Bring a message that still shows progress up to date: called for each such turn when this process takes the connection over.
        If its run goes on, follow it; if it ended, or never was, replace the placeholder by how it ended."""
        ...

    def undelivered(self, connection: Connection, row: OutboxRow) -> None:
        """Tell the person, by another way and once, that a message was given up; in the transaction that gives it up."""
        ...
