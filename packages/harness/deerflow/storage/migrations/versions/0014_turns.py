"""Which turn a run belongs to, and how many calls of a day are counted by an estimate."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

COLUMNS = {
    "runs": {"turn_id": sa.String(128), "ends_turn": sa.Boolean},
    "daily_usage": {"estimated_calls": sa.BigInteger},
}


def upgrade() -> None:
    for table, columns in COLUMNS.items():
        known = {column["name"] for column in sa.inspect(op.get_bind()).get_columns(table)}
        for name, kind in columns.items():
            if name not in known:
                op.add_column(table, sa.Column(name, kind))
