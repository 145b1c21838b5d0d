"""The tables of the first release."""

from alembic import op

revision = "0001"
down_revision = None

TABLES = """
CREATE TABLE api_tokens (
    id VARCHAR(128) NOT NULL,
    user_id VARCHAR(128) NOT NULL,
    name VARCHAR(128) NOT NULL,
    hash VARCHAR(64) NOT NULL,
    hint VARCHAR(16) NOT NULL,
    scopes JSON NOT NULL,
    created_at DATETIME NOT NULL,
    expires_at DATETIME,
    last_used_at DATETIME,
    PRIMARY KEY (id),
    UNIQUE (hash)
);
CREATE INDEX ix_api_tokens_user_id ON api_tokens (user_id);
CREATE TABLE assistants (
    assistant_id VARCHAR(128) NOT NULL,
    user_id VARCHAR(128) NOT NULL,
    graph_id VARCHAR(128) NOT NULL,
    version INTEGER NOT NULL,
    created_at DATETIME NOT NULL,
    updated_at DATETIME NOT NULL,
    PRIMARY KEY (assistant_id)
);
CREATE INDEX ix_assistants_user_id ON assistants (user_id);
CREATE TABLE crons (
    cron_id VARCHAR(128) NOT NULL,
    user_id VARCHAR(128) NOT NULL,
    assistant_id VARCHAR(128) NOT NULL,
    thread_id VARCHAR(128),
    schedule VARCHAR(128) NOT NULL,
    timezone VARCHAR(64),
    end_time DATETIME,
    enabled BOOLEAN NOT NULL,
    on_run_completed VARCHAR(16) NOT NULL,
    payload JSON NOT NULL,
    metadata JSON NOT NULL,
    next_run_at DATETIME,
    created_at DATETIME NOT NULL,
    updated_at DATETIME NOT NULL,
    PRIMARY KEY (cron_id)
);
CREATE INDEX ix_crons_next_run_at ON crons (next_run_at);
CREATE INDEX ix_crons_user_id ON crons (user_id);
CREATE TABLE jobs (
    id INTEGER NOT NULL,
    kind VARCHAR(32) NOT NULL,
    "key" VARCHAR(256) NOT NULL,
    payload JSON NOT NULL,
    due_at DATETIME NOT NULL,
    attempts INTEGER NOT NULL,
    leased_until DATETIME,
    error TEXT,
    PRIMARY KEY (id),
    UNIQUE (kind, "key")
);
CREATE INDEX ix_jobs_due_at ON jobs (due_at);
CREATE TABLE run_events (
    thread_id VARCHAR(128) NOT NULL,
    first_seq BIGINT NOT NULL,
    last_seq BIGINT NOT NULL,
    run_id VARCHAR(128) NOT NULL,
    ends BOOLEAN NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (thread_id, first_seq)
);
CREATE INDEX ix_run_events_run_id ON run_events (run_id);
CREATE TABLE steering (
    id INTEGER NOT NULL,
    run_id VARCHAR(128) NOT NULL,
    message_id VARCHAR(128) NOT NULL,
    message JSON NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (message_id)
);
CREATE INDEX ix_steering_run_id ON steering (run_id);
CREATE TABLE store_items (
    user_id VARCHAR(128) NOT NULL,
    namespace VARCHAR(512) NOT NULL,
    "key" VARCHAR(256) NOT NULL,
    value JSON NOT NULL,
    created_at DATETIME NOT NULL,
    updated_at DATETIME NOT NULL,
    expires_at DATETIME,
    ttl_minutes FLOAT,
    PRIMARY KEY (user_id, namespace, "key")
);
CREATE INDEX ix_store_items_expires_at ON store_items (expires_at);
CREATE TABLE threads (
    thread_id VARCHAR(128) NOT NULL,
    user_id VARCHAR(128) NOT NULL,
    assistant_id VARCHAR(128),
    title TEXT,
    status VARCHAR(16) NOT NULL,
    metadata JSON NOT NULL,
    epoch BIGINT NOT NULL,
    created_at DATETIME NOT NULL,
    updated_at DATETIME NOT NULL,
    expires_at DATETIME,
    PRIMARY KEY (thread_id)
);
CREATE INDEX threads_by_owner ON threads (user_id, updated_at);
CREATE TABLE tool_executions (
    run_id VARCHAR(128) NOT NULL,
    tool_call_id VARCHAR(256) NOT NULL,
    finished BOOLEAN NOT NULL,
    result BLOB,
    PRIMARY KEY (run_id, tool_call_id)
);
CREATE TABLE users (
    id VARCHAR(128) NOT NULL,
    email VARCHAR(320) NOT NULL,
    password_hash VARCHAR(256),
    role VARCHAR(16) NOT NULL,
    needs_setup BOOLEAN NOT NULL,
    token_version INTEGER NOT NULL,
    created_at DATETIME NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (email)
);
CREATE TABLE assistant_versions (
    assistant_id VARCHAR(128) NOT NULL,
    version INTEGER NOT NULL,
    name VARCHAR(256) NOT NULL,
    description TEXT,
    config JSON NOT NULL,
    context JSON NOT NULL,
    metadata JSON NOT NULL,
    created_at DATETIME NOT NULL,
    PRIMARY KEY (assistant_id, version),
    FOREIGN KEY(assistant_id) REFERENCES assistants (assistant_id) ON DELETE CASCADE
);
CREATE TABLE runs (
    run_id VARCHAR(128) NOT NULL,
    thread_id VARCHAR(128) NOT NULL,
    user_id VARCHAR(128) NOT NULL,
    assistant_id VARCHAR(128),
    status VARCHAR(16) NOT NULL,
    attempt INTEGER NOT NULL,
    epoch BIGINT NOT NULL,
    worker VARCHAR(128),
    multitask_strategy VARCHAR(16) NOT NULL,
    kwargs JSON NOT NULL,
    metadata JSON NOT NULL,
    model_name VARCHAR(128),
    cancel_action VARCHAR(16),
    error TEXT,
    stop_reason VARCHAR(64),
    due_at DATETIME,
    created_at DATETIME NOT NULL,
    updated_at DATETIME NOT NULL,
    started_at DATETIME,
    ended_at DATETIME,
    position BIGINT NOT NULL,
    checkpoint_before VARCHAR(128),
    checkpoint_after VARCHAR(128),
    first_human_message TEXT,
    last_ai_message TEXT,
    message_count INTEGER NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cost FLOAT,
    llm_calls INTEGER NOT NULL,
    usage JSON,
    PRIMARY KEY (run_id),
    FOREIGN KEY(thread_id) REFERENCES threads (thread_id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX one_running ON runs (thread_id) WHERE status = 'running';
CREATE INDEX runs_of_thread ON runs (thread_id, position);
CREATE INDEX runs_unfinished ON runs (status, due_at);
CREATE TABLE sessions (
    id VARCHAR(128) NOT NULL,
    user_id VARCHAR(128) NOT NULL,
    created_at DATETIME NOT NULL,
    expires_at DATETIME NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX ix_sessions_user_id ON sessions (user_id);
CREATE TABLE turns (
    thread_id VARCHAR(128) NOT NULL,
    message_id VARCHAR(128) NOT NULL,
    run_id VARCHAR(128) NOT NULL,
    checkpoint_before VARCHAR(128),
    created_at DATETIME NOT NULL,
    PRIMARY KEY (thread_id, message_id),
    FOREIGN KEY(thread_id) REFERENCES threads (thread_id) ON DELETE CASCADE
);
CREATE INDEX ix_turns_run_id ON turns (run_id);
CREATE TABLE feedback (
    feedback_id VARCHAR(128) NOT NULL,
    run_id VARCHAR(128) NOT NULL,
    thread_id VARCHAR(128) NOT NULL,
    user_id VARCHAR(128) NOT NULL,
    message_id VARCHAR(128),
    rating INTEGER NOT NULL,
    comment TEXT,
    created_at DATETIME NOT NULL,
    PRIMARY KEY (feedback_id),
    FOREIGN KEY(run_id) REFERENCES runs (run_id) ON DELETE CASCADE,
    UNIQUE (thread_id, run_id, user_id)
);
CREATE INDEX ix_feedback_thread_id ON feedback (thread_id);
CREATE TABLE message_search (
    id INTEGER NOT NULL,
    thread_id VARCHAR(128) NOT NULL,
    message_id VARCHAR(256) NOT NULL,
    user_id VARCHAR(128) NOT NULL,
    type VARCHAR(8) NOT NULL,
    text TEXT NOT NULL,
    created_at DATETIME NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY(thread_id) REFERENCES threads (thread_id) ON DELETE CASCADE,
    UNIQUE (thread_id, message_id)
);
CREATE INDEX ix_message_search_user_id ON message_search (user_id);
"""
"""As SQLite has them."""

POSTGRESQL = {
    "DATETIME": "TIMESTAMP WITH TIME ZONE",
    " JSON": " JSONB",
    "BLOB": "BYTEA",
    "TABLE message_search (\n    id INTEGER": "TABLE message_search (\n    id BIGSERIAL",
    "\n    id INTEGER": "\n    id SERIAL",
}

# The words of messages are cut by us (see storage/search.py).
FULL_TEXT = {
    "sqlite": (
        "CREATE VIRTUAL TABLE message_search_index USING fts5("
        "words, detail = none, tokenize = \"unicode61 remove_diacritics 0 categories 'L* N* M* Co'\")",
        "CREATE TRIGGER message_search_gone AFTER DELETE ON message_search "
        "BEGIN DELETE FROM message_search_index WHERE rowid = old.id; END",
    ),
    "postgresql": (
        "ALTER TABLE message_search ADD COLUMN words tsvector",
        "CREATE INDEX message_search_words ON message_search USING gin (words)",
    ),
}


def upgrade() -> None:
    dialect, tables = op.get_bind().dialect.name, TABLES
    if dialect == "postgresql":
        for ours, theirs in POSTGRESQL.items():
            tables = tables.replace(ours, theirs)
    for statement in (*tables.split(";\n"), *FULL_TEXT[dialect]):
        op.execute(statement)
