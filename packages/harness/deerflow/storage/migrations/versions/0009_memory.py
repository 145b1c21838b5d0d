"""What agents remember of people, and how far they have read."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

TABLES = """
CREATE TABLE IF NOT EXISTS memory_facts (
    number INTEGER NOT NULL PRIMARY KEY,
    user_id VARCHAR(128) NOT NULL,
    agent VARCHAR(128) NOT NULL,
    id VARCHAR(128) NOT NULL,
    content TEXT NOT NULL,
    category VARCHAR(64) NOT NULL,
    confidence FLOAT NOT NULL,
    source VARCHAR(128) NOT NULL,
    message_id VARCHAR(128),
    source_error TEXT,
    untrusted TEXT,
    created_at DATETIME NOT NULL,
    used_at DATETIME,
    expires_at DATETIME,
    ended_at DATETIME,
    superseded_by VARCHAR(128),
    UNIQUE (user_id, agent, id)
);
CREATE TABLE IF NOT EXISTS memory_sections (
    user_id VARCHAR(128) NOT NULL,
    agent VARCHAR(128) NOT NULL,
    sections JSON NOT NULL,
    updated_at DATETIME NOT NULL,
    PRIMARY KEY (user_id, agent)
);
CREATE TABLE IF NOT EXISTS memory_watermarks (
    thread_id VARCHAR(128) NOT NULL PRIMARY KEY,
    message_id VARCHAR(128) NOT NULL,
    is_read BOOLEAN NOT NULL,
    FOREIGN KEY (thread_id) REFERENCES threads (thread_id) ON DELETE CASCADE
)
"""
POSTGRESQL = {
    "INTEGER NOT NULL PRIMARY": "BIGSERIAL PRIMARY",
    "DATETIME": "TIMESTAMP WITH TIME ZONE",
    " JSON ": " JSONB ",
}
INDEXES = {
    "sqlite": (
        "CREATE VIRTUAL TABLE IF NOT EXISTS memory_index USING fts5("
        "words, tokenize = \"unicode61 remove_diacritics 0 categories 'L* N* M* Co'\")",
        "CREATE TRIGGER IF NOT EXISTS memory_facts_gone AFTER DELETE ON memory_facts "
        "BEGIN DELETE FROM memory_index WHERE rowid = old.number; END",
    ),
    "postgresql": (
        "CREATE TABLE IF NOT EXISTS memory_index (rowid BIGINT PRIMARY KEY REFERENCES memory_facts (number) ON DELETE CASCADE, "
        "words tsvector NOT NULL)",
        "CREATE INDEX IF NOT EXISTS memory_index_words ON memory_index USING gin (words)",
    ),
}


BY_CONFIDENCE = (
    "CREATE INDEX IF NOT EXISTS memory_facts_held ON memory_facts (user_id, agent, ended_at, confidence, created_at)",
    "CREATE INDEX IF NOT EXISTS memory_facts_held_by_category "
    "ON memory_facts (user_id, agent, category, ended_at, confidence, created_at)",
)


def upgrade() -> None:
    dialect, statements = op.get_bind().dialect.name, TABLES
    for name, other in POSTGRESQL.items() if dialect == "postgresql" else ():
        statements = statements.replace(name, other)
    for statement in (*statements.split(";"), *INDEXES[dialect], *BY_CONFIDENCE):
        op.execute(sa.text(statement))
