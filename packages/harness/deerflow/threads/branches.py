"""Turns of a thread and the branches that they form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import Connection, select

from deerflow.storage.tables import runs, turns

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class TurnCheckpoints:
    """A message that began a run: the checkpoints before and after it. None: unknown, or not there yet."""

    message_id: str
    run_id: str
    before: str | None
    after: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Branch:
    """``parent`` is the message that this one followed; messages with the same are the ways that the person tried.
    ``end`` is the checkpoint at which the newest way through this message ends."""

    parent: str | None
    end: str | None


def turns_of(connection: Connection, thread_id: str) -> list[TurnCheckpoints]:
    """All turns of the thread in order of time; messages that steered a run stand among them, without ``before``."""
    query = (
        select(turns, runs.c.checkpoint_after)
        .outerjoin(runs, runs.c.run_id == turns.c.run_id)
        .where(turns.c.thread_id == thread_id)
        .order_by(turns.c.created_at)
    )
    return [
        TurnCheckpoints(row.message_id, row.run_id, row.checkpoint_before, row.checkpoint_after, row.created_at)
        for row in connection.execute(query)
    ]


def are_joined(recorded: Sequence[TurnCheckpoints]) -> bool:
    """Return whether each turn but the first ones begins exactly where another one ended."""
    begun = [turn for turn in recorded if turn.before is not None]
    ends = {turn.after for turn in begun}
    return all(turn.before in ends or turn.before == begun[0].before for turn in begun)


def branches(recorded: Sequence[TurnCheckpoints], parents: Mapping[str, str | None]) -> dict[str, Branch]:
    """By message that began a run.

    Args:
        recorded: in order of time.
        parents: by checkpoint the one before it; needed only for turns that are not joined.
    """
    begun = [turn for turn in recorded if turn.before is not None]
    ended_with = {turn.after: turn.message_id for turn in begun if turn.after is not None}
    found: dict[str, str | None] = {}
    for turn in begun:
        at = turn.before
        while at is not None and at not in ended_with:
            at = parents.get(at)
        found[turn.message_id] = None if at is None else ended_with[at]
    newest = {turn.message_id: turn for turn in begun}
    for turn in reversed(begun):
        parent = found[turn.message_id]
        if parent is not None and newest[turn.message_id].created_at > newest[parent].created_at:
            newest[parent] = newest[turn.message_id]
    return {turn.message_id: Branch(found[turn.message_id], newest[turn.message_id].after) for turn in begun}
