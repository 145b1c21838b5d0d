"""Checkpoints in SQLite as a row per superstep, a ledger of calls without their results."""

from hashlib import blake2b
from sqlite3 import Connection

import sqlalchemy as sa
from alembic import op

from deerflow.storage.checkpoints import sqlite_steps as steps
from deerflow.storage.tables import CHECKPOINTS

revision = "0002"
down_revision = "0001"

STEP = "thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata, channels"
WRITE = "thread_id, checkpoint_ns, checkpoint_id, task_id, idx, task_path, channel, type, value"


def upgrade() -> None:
    bind = op.get_bind()
    begun = bind.execute(sa.text("SELECT run_id, tool_call_id FROM tool_executions")).all()
    op.drop_table("tool_executions")
    ledger = op.create_table(
        "tool_executions",
        sa.Column("run_id", sa.String(128), nullable=False),
        sa.Column("call", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "call"),
        sqlite_with_rowid=False,
    )
    op.bulk_insert(ledger, [{"run_id": run, "call": _digest(call)} for run, call in begun])
    if bind.dialect.name == "sqlite":
        raw = bind.connection.driver_connection
        assert isinstance(raw, Connection)
        _convert(raw)


def _digest(call: str) -> str:
    return blake2b(call.encode(), digest_size=16).hexdigest()


def _convert(db: Connection) -> None:
    before = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('checkpoints', 'writes')"
    if db.execute(before).fetchone()[0] != 2:
        return
    for thread, namespace, checkpoint_id, parent, kind, value, metadata, channels in db.execute(
        f"SELECT {STEP} FROM checkpoints"
    ):
        step = steps.Step(thread, namespace, checkpoint_id, parent, kind, value, metadata or b"{}", channels)
        steps.insert_step(db, step, ())
    for thread, namespace, checkpoint_id, task_id, idx, path, channel, kind, value in db.execute(
        f"SELECT {WRITE} FROM writes"
    ):
        steps.insert_writes(
            db, thread, namespace, checkpoint_id, [steps.Write(task_id, idx, path, channel, kind, value)]
        )
    db.execute("DROP TABLE checkpoints")
    db.execute("DROP TABLE writes")
    for statement in CHECKPOINTS.split(";\n"):
        db.execute(statement)
