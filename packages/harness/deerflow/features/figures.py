"""Figures of the whole installation, which each of its processes can read from the database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection, case, exists, func, select, text

from deerflow.storage.tables import channel_connections, channel_outbox, runs, utc_now

DEAD_WITHIN = timedelta(hours=1)
RUN_STATES = ("running", "waiting", "queued", "scheduled")


@dataclass(frozen=True, slots=True)
class InstallationFigures:
    """``runs`` that have not ended, by state: ``waiting`` for a process, ``queued`` behind another run of their thread, ``scheduled``
    for later. ``channels`` that are on, by kind and state. ``outbox_dead``: messages given up within the last hour."""

    runs: Mapping[str, int]
    oldest_waiting: float
    """Seconds; 0 if no run waits."""
    channels: Mapping[tuple[str, str], int]
    outbox_waiting: int
    outbox_dead: int


def installation(connection: Connection) -> InstallationFigures:
    """Read all figures. Conditions stand as text where only so an index with the same condition serves them."""
    now = utc_now()
    others = runs.alias("others")
    is_behind = exists().where(others.c.thread_id == runs.c.thread_id, text("others.status = 'running'"))
    state = case(
        (runs.c.status == "running", "running"),
        (runs.c.due_at > now, "scheduled"),
        (is_behind, "queued"),
        else_="waiting",
    )
    since = func.min(func.coalesce(runs.c.due_at, runs.c.created_at), type_=runs.c.created_at.type)
    unfinished = text("runs.status IN ('pending', 'running')")
    found = connection.execute(select(state, func.count(), since).where(unfinished).group_by(state)).all()
    counted = {name: count for name, count, _ in found}
    oldest = next((since for name, _, since in found if name == "waiting"), now)
    kind, link = channel_connections.c.kind, channel_connections.c.state
    channels = connection.execute(
        select(kind, link, func.count()).where(channel_connections.c.is_on).group_by(kind, link)
    ).all()
    outbox = select(func.count()).select_from(channel_outbox)
    waiting = outbox.where(text("channel_outbox.state IN ('pending', 'sending', 'uncertain')"))
    dead = outbox.where(channel_outbox.c.updated_at > now - DEAD_WITHIN, channel_outbox.c.state == "dead")
    return InstallationFigures(
        runs={name: counted.get(name, 0) for name in RUN_STATES},
        oldest_waiting=max(0.0, (now - oldest).total_seconds()),
        channels={(kind, state): count for kind, state, count in channels},
        outbox_waiting=connection.execute(waiting).scalar_one(),
        outbox_dead=connection.execute(dead).scalar_one(),
    )
