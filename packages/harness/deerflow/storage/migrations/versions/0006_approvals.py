"""What people grant to agents, and what was decided about tool calls."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    short, moment = sa.String(128), sa.DateTime(timezone=True)
    op.create_table(
        "grants",
        sa.Column("id", short, primary_key=True),
        sa.Column("user_id", short, nullable=False),
        sa.Column("agent", short, nullable=False),
        sa.Column("tool", sa.Text, nullable=False),
        sa.Column("thread_id", short, sa.ForeignKey("threads.thread_id", ondelete="CASCADE")),
        sa.Column("pattern", sa.JSON().with_variant(JSONB(), "postgresql")),
        sa.Column("created_at", moment, nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "tool_decisions",
        sa.Column("id", short, primary_key=True),
        sa.Column("run_id", short, sa.ForeignKey("runs.run_id", ondelete="CASCADE"), nullable=False),
        sa.Column("thread_id", short, nullable=False),
        sa.Column("user_id", short, nullable=False),
        sa.Column("agent", short, nullable=False),
        sa.Column("tool", sa.Text, nullable=False),
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("decision", sa.String(16), nullable=False),
        sa.Column("code", sa.Text, nullable=False),
        sa.Column("policy_id", sa.Text),
        sa.Column("created_at", moment, nullable=False),
        if_not_exists=True,
    )
    for table, column in ("grants", "user_id"), ("tool_decisions", "run_id"), ("tool_decisions", "created_at"):
        op.create_index(f"ix_{table}_{column}", table, [column], if_not_exists=True)
