"""Indexes that a run does not write twice: that of runs on their way holds no others, and turns are found by their thread."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

STATEMENTS = """
DROP INDEX IF EXISTS runs_unfinished;
CREATE INDEX runs_unfinished ON runs (created_at) WHERE status IN ('pending', 'running');
DROP INDEX IF EXISTS ix_turns_run_id
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";"):
        op.execute(sa.text(statement))
