"""What runs, threads, people and agents have spent of their limits."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

TABLE = """
CREATE TABLE IF NOT EXISTS budgets (
    scope VARCHAR(8) NOT NULL,
    key VARCHAR(128) NOT NULL,
    day VARCHAR(10) NOT NULL,
    tokens BIGINT NOT NULL,
    cost FLOAT NOT NULL,
    currency VARCHAR(3) NOT NULL,
    extensions INTEGER NOT NULL,
    extended_by VARCHAR(128),
    PRIMARY KEY (scope, key, day)
)
"""


def upgrade() -> None:
    op.execute(sa.text(TABLE))
