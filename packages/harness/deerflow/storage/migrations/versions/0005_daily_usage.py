"""What models used, by day: a row for each person, agent and model."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

STATEMENTS = """
CREATE TABLE IF NOT EXISTS daily_usage (
    user_id VARCHAR(128) NOT NULL,
    day VARCHAR(10) NOT NULL,
    agent VARCHAR(128) NOT NULL,
    model VARCHAR(256) NOT NULL,
    currency VARCHAR(3) NOT NULL,
    calls BIGINT NOT NULL,
    input_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cost FLOAT NOT NULL,
    PRIMARY KEY (user_id, day, agent, model, currency)
);
CREATE INDEX IF NOT EXISTS daily_usage_by_day ON daily_usage (day)
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";"):
        op.execute(sa.text(statement))
