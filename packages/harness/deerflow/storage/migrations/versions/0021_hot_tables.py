"""PostgreSQL: room for new versions of rows in the tables that change most, which are vacuumed early; and no more tasks of runs."""

from alembic import op

revision = "0021"
down_revision = "0020"

CHANGED = ("threads", "runs", "jobs", "budgets", "channel_connections")
"""Rows are changed again and again."""
PASSING = ("run_events", "tool_executions", "steering")
"""Rows come and go."""


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    for table in CHANGED:
        op.execute(f"ALTER TABLE {table} SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01)")
    for table in PASSING:
        op.execute(f"ALTER TABLE {table} SET (autovacuum_vacuum_scale_factor = 0.01)")
    op.execute("DELETE FROM jobs WHERE kind = 'run'")
