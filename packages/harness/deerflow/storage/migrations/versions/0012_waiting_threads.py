"""Which threads wait for their person."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

WAITING = """
UPDATE threads SET waits_since = updated_at WHERE status = 'interrupted' AND user_id <> '' AND (
    SELECT stop_reason FROM runs WHERE runs.thread_id = threads.thread_id ORDER BY position DESC LIMIT 1
) = 'interrupt'
"""
INDEX = """
CREATE INDEX IF NOT EXISTS threads_waiting ON threads (user_id, waits_since, thread_id) WHERE waits_since IS NOT NULL
"""


def upgrade() -> None:
    if "waits_since" not in {column["name"] for column in sa.inspect(op.get_bind()).get_columns("threads")}:
        op.add_column("threads", sa.Column("waits_since", sa.DateTime(timezone=True)))
        op.execute(sa.text(WAITING))
    op.execute(sa.text(INDEX))
