"""Runs that a schedule begins in a chat's thread: the chat shows them as if the person had just asked."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from deerflow.features.channels.inbox import InboxRow, InboxState, row_of
from deerflow.features.channels.types import Inbound
from deerflow.storage import sql
from deerflow.storage.tables import channel_inbox

KIND = "schedule"
_SINCE = timedelta(hours=1)
_NEW = """SELECT r.run_id, r.thread_id, r.metadata, c.cron_id FROM crons c
JOIN channel_conversations v ON v.thread_id = c.thread_id JOIN runs r ON r.thread_id = c.thread_id
WHERE v.connection_id = ? AND r.created_at > ? AND NOT EXISTS (SELECT 1 FROM channel_inbox i WHERE i.run_id = r.run_id)"""
_LAST = """WHERE connection_id = ? AND kind = 'message' AND user_id IS NOT NULL
AND run_id IN (SELECT run_id FROM runs WHERE thread_id = ?) ORDER BY id DESC"""


def begun(connection: Connection, connection_id: str, now: datetime) -> dict[str, str]:
    """Return the scheduled runs that the chats of a connection do not show yet, and their threads."""
    found = sql.execute(connection, _NEW, connection_id, now - _SINCE).fetchall()
    return {run: thread for run, thread, metadata, cron in found if sql.loads(metadata).get("cron_id") == cron}


def adopt(connection: Connection, connection_id: str, run_id: str, thread_id: str, now: datetime) -> bool:
    """Store a run as a running message of the chat that its thread was written in last. False: there is none."""
    last = sql.first(connection, InboxRow, channel_inbox, _LAST, connection_id, thread_id)
    if last is None or not isinstance(said := last.event, Inbound):
        return False
    event = Inbound(f"{KIND}/{run_id}", said.place, said.author, now, wake=said.wake)
    running = {"kind": KIND, "state": str(InboxState.RUNNING), "user_id": last.user_id, "run_id": run_id}
    row = row_of(connection_id, event, now) | running
    sql.insert(connection, channel_inbox, row, "ON CONFLICT (connection_id, message_id) DO NOTHING")
    return True
