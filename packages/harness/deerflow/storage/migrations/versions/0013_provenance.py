"""Provenance of threads, and grants that are bound to what was granted."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

STATEMENTS = """
CREATE TABLE IF NOT EXISTS asked_calls (
    thread_id VARCHAR(128) NOT NULL,
    call VARCHAR(32) NOT NULL,
    definition JSON NOT NULL,
    PRIMARY KEY (thread_id, call),
    FOREIGN KEY (thread_id) REFERENCES threads (thread_id) ON DELETE CASCADE
);
CREATE TABLE IF NOT EXISTS thread_sources (
    thread_id VARCHAR(128) NOT NULL,
    kind VARCHAR(16) NOT NULL,
    name TEXT NOT NULL,
    digest VARCHAR(64) NOT NULL,
    trusted BOOLEAN NOT NULL,
    created_at DATETIME NOT NULL,
    PRIMARY KEY (thread_id, kind, name, digest)
);
CREATE TABLE IF NOT EXISTS thread_addresses (
    thread_id VARCHAR(128) NOT NULL,
    address VARCHAR(32) NOT NULL,
    via VARCHAR(8) NOT NULL,
    host TEXT NOT NULL,
    opened_in VARCHAR(128),
    PRIMARY KEY (thread_id, address, via)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS thread_addresses_opened ON thread_addresses (thread_id, host, opened_in)
"""
EARLIER = """
INSERT INTO thread_sources (thread_id, kind, name, digest, trusted, created_at)
SELECT thread_id, 'unjudged', '', '', :no, created_at FROM threads
"""
"""Threads of before are judged by their messages when they next matter."""


def upgrade() -> None:
    connection = op.get_bind()
    statements = STATEMENTS
    if connection.dialect.name == "postgresql":
        statements = statements.replace("DATETIME", "TIMESTAMP WITH TIME ZONE").replace(") WITHOUT ROWID", ")")
        statements = statements.replace("JSON NOT", "JSONB NOT")
    is_new = not sa.inspect(connection).has_table("thread_sources")
    for statement in statements.split(";"):
        op.execute(sa.text(statement))
    if is_new:
        connection.execute(sa.text(EARLIER), {"no": False})
    columns = {column["name"] for column in sa.inspect(connection).get_columns("grants")}
    for column in (sa.Column("digest", sa.String(64)), sa.Column("destination", sa.Text())):
        if column.name not in columns:
            op.add_column("grants", column)
