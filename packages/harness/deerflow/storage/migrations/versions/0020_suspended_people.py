"""People who are suspended, when people were last seen, and settings that administrators change on the page."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"

STATEMENT = """
CREATE TABLE IF NOT EXISTS site_settings (
    name VARCHAR(64) NOT NULL,
    value JSON NOT NULL,
    updated_at DATETIME NOT NULL,
    PRIMARY KEY (name)
)
"""


def upgrade() -> None:
    is_postgres = op.get_bind().dialect.name == "postgresql"
    of_postgres = STATEMENT.replace("DATETIME", "TIMESTAMP WITH TIME ZONE").replace("JSON", "JSONB")
    op.execute(sa.text(of_postgres if is_postgres else STATEMENT))
    there = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("users")}
    for name in ("suspended_at", "last_seen_at"):
        if name not in there:
            op.add_column("users", sa.Column(name, sa.DateTime(timezone=True)))
