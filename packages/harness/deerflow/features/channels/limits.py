"""Limits of sending, in rows, so that a restart forgets no pause that a platform asked for."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from sqlalchemy import Connection

from deerflow.features.channels.types import Caps
from deerflow.storage import sql

EVERYWHERE = ""
"""In place of a chat: the whole connection."""


def block(connection: Connection, connection_id: str, chat: str, until: datetime) -> None:
    """Send nothing there before ``until``."""
    later = "WHERE channel_limits.blocked_until IS NULL OR channel_limits.blocked_until < excluded.blocked_until"
    sql.execute(
        connection,
        "INSERT INTO channel_limits (connection_id, chat, blocked_until, unprompted) VALUES (?, ?, ?, 0) "
        f"ON CONFLICT (connection_id, chat) DO UPDATE SET blocked_until = excluded.blocked_until {later}",
        *(connection_id, chat, until),
    )


def blocked_until(connection: Connection, connection_id: str, chat: str = EVERYWHERE) -> datetime | None:
    """Return until when nothing may be sent to a chat, or None; the pause of the whole connection included."""
    query = "SELECT max(blocked_until) FROM channel_limits WHERE connection_id = ? AND chat IN (?, ?)"
    (until,) = sql.execute(connection, query, connection_id, EVERYWHERE, chat).fetchone()
    return None if until is None else sql.moment(until)


def take_post(connection: Connection, connection_id: str, chat: str, caps: Caps, now: datetime) -> datetime | None:
    """Take the right to send one new message to a chat now. Otherwise return when it may be asked for again."""
    query = "SELECT sent_at, unprompted, unprompted_since FROM channel_limits WHERE connection_id = ? AND chat = ?"
    row = sql.execute(connection, query, connection_id, chat).fetchone()
    sent_at = sql.moment(row[0]) if row and row[0] else None
    count, since = (row[1], sql.moment(row[2]) if row[2] else now) if row else (0, now)
    next_at = sent_at + timedelta(seconds=caps.post_every) if sent_at else now
    if next_at > now:
        return next_at
    if caps.unprompted is not None:
        window = since + timedelta(seconds=caps.unprompted_seconds)
        if window <= now or count == 0:
            count, since = 0, now
        elif count >= caps.unprompted:
            return window
    sql.execute(
        connection,
        "INSERT INTO channel_limits (connection_id, chat, sent_at, unprompted, unprompted_since) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (connection_id, chat) DO UPDATE SET sent_at = excluded.sent_at, unprompted = excluded.unprompted, "
        "unprompted_since = excluded.unprompted_since",
        *(connection_id, chat, now, count + 1, since),
    )
    return None


def prompted(connection: Connection, chats: Collection[tuple[str, str]]) -> None:
    """Count no message before this as unprompted: people have written in these chats of connections."""
    if chats:
        which = ", ".join(["(?, ?)"] * len(chats))
        reset = f"UPDATE channel_limits SET unprompted = 0 WHERE unprompted > 0 AND (connection_id, chat) IN (VALUES {which})"
        sql.execute(connection, reset, *(name for chat in sorted(chats) for name in chat))
