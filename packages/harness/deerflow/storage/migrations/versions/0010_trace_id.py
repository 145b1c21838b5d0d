"""Which trace a run belongs to."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    if "trace_id" not in {column["name"] for column in sa.inspect(op.get_bind()).get_columns("runs")}:
        op.add_column("runs", sa.Column("trace_id", sa.String))
