"""Facts from threads, with digits or addresses, wait until their thread was looked at: text from outside may have made them."""

import re
from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0013"

FACTS = """
SELECT number, user_id, agent, source, content FROM memory_facts
WHERE untrusted IS NULL AND ended_at IS NULL AND source NOT IN ('manual', 'unknown')
"""
DOUBT = "UPDATE memory_facts SET untrusted = 'earlier version' WHERE number = :number"
UNFIND = "DELETE FROM memory_index WHERE rowid IN (SELECT number FROM memory_facts WHERE untrusted IS NOT NULL)"
CHECKED = re.compile(r"[\d@]|\w\.\w|://")
JOBS = sa.table(
    "jobs",
    *map(sa.column, ("kind", "key", "attempts")),
    sa.column("payload", sa.JSON()),
    sa.column("due_at", sa.DateTime(timezone=True)),
)


def upgrade() -> None:
    connection, now = op.get_bind(), datetime.now(UTC)
    doubted = [row for row in connection.execute(sa.text(FACTS)) if CHECKED.search(row.content)]
    if doubted:
        connection.execute(sa.text(DOUBT), [{"number": row.number} for row in doubted])
    connection.execute(sa.text(UNFIND))
    threads = {(row.user_id, row.agent, row.source): row.number for row in doubted}
    for (user_id, agent, thread_id), number in threads.items():
        payload = {"user_id": user_id, "agent": agent, "thread_id": thread_id}
        job = {"kind": "memory_review", "key": str(number), "payload": payload}
        connection.execute(JOBS.insert().values(**job, due_at=now, attempts=0))
