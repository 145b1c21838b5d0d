"""Where the pages that threads keep came from, and what they were."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"

STATEMENT = """
CREATE TABLE IF NOT EXISTS thread_pages (
    thread_id VARCHAR(128) NOT NULL,
    path TEXT NOT NULL,
    url TEXT NOT NULL,
    title TEXT NOT NULL,
    digest VARCHAR(64) NOT NULL,
    read_at DATETIME NOT NULL,
    PRIMARY KEY (thread_id, path),
    FOREIGN KEY (thread_id) REFERENCES threads (thread_id) ON DELETE CASCADE
)
"""


def upgrade() -> None:
    is_postgres = op.get_bind().dialect.name == "postgresql"
    op.execute(
        sa.text(
            STATEMENT.replace("DATETIME", "TIMESTAMP WITH TIME ZONE") if is_postgres else f"{STATEMENT} WITHOUT ROWID"
        )
    )
