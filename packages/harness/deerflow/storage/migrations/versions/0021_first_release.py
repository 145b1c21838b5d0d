"""The tables of the first release, 0.1.0, for both databases.

In development 21 migrations made them. This one makes the same and keeps the number of the last: a database, a backup or a copy
of that number is up to date as it is, and programs of development still tell from the numbers what is newer than they are. Tables
with a smaller number were never released and are refused, see ``OlderDatabaseError``. Later migrations are kept for ever.
"""

from alembic import op

revision = "0021"
down_revision = None

TYPES = {
    "sqlite": {
        "moment": "DATETIME",
        "json": "JSON",
        "bytes": "BLOB",
        "number": "INTEGER",
        "long_number": "INTEGER",
        "without_rowid": " WITHOUT ROWID",
    },
    "postgresql": {
        "moment": "TIMESTAMP WITH TIME ZONE",
        "json": "JSONB",
        "bytes": "BYTEA",
        "number": "SERIAL",
        "long_number": "BIGSERIAL",
        "without_rowid": "",
    },
}

TABLES = """
CREATE TABLE users (
    id VARCHAR(128) NOT NULL,
    email VARCHAR(320) NOT NULL,
    password_hash VARCHAR(256),
    role VARCHAR(16) NOT NULL,
    needs_setup BOOLEAN NOT NULL,
    token_version INTEGER NOT NULL,
    created_at {moment} NOT NULL,
    suspended_at {moment},
    last_seen_at {moment},
    PRIMARY KEY (id),
    UNIQUE (email)
);
CREATE INDEX users_by_age ON users (created_at, id);
CREATE INDEX users_by_role ON users (role);
CREATE TABLE site_settings (
    name VARCHAR(64) NOT NULL,
    value {json} NOT NULL,
    updated_at {moment} NOT NULL,
    PRIMARY KEY (name)
);
CREATE TABLE sessions (
    id VARCHAR(128) NOT NULL,
    user_id VARCHAR(128) NOT NULL,
    created_at {moment} NOT NULL,
    expires_at {moment} NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE INDEX ix_sessions_user_id ON sessions (user_id);
CREATE TABLE api_tokens (
    id VARCHAR(128) NOT NULL,
    user_id VARCHAR(128) NOT NULL,
    name VARCHAR(128) NOT NULL,
    hash VARCHAR(64) NOT NULL,
    hint VARCHAR(16) NOT NULL,
    scopes {json} NOT NULL,
    created_at {moment} NOT NULL,
    expires_at {moment},
    last_used_at {moment},
    PRIMARY KEY (id),
    UNIQUE (hash)
);
CREATE INDEX ix_api_tokens_user_id ON api_tokens (user_id);
CREATE TABLE threads (
    thread_id VARCHAR(128) NOT NULL,
    user_id VARCHAR(128) NOT NULL,
    assistant_id VARCHAR(128),
    title TEXT,
    status VARCHAR(16) NOT NULL,
    metadata {json} NOT NULL,
    epoch BIGINT NOT NULL,
    created_at {moment} NOT NULL,
    updated_at {moment} NOT NULL,
    expires_at {moment},
    waits_since {moment},
    PRIMARY KEY (thread_id)
);
CREATE INDEX threads_by_age ON threads (user_id, created_at, thread_id);
CREATE INDEX threads_by_owner ON threads (user_id, updated_at, thread_id);
CREATE INDEX threads_expiring ON threads (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX threads_waiting ON threads (user_id, waits_since, thread_id) WHERE waits_since IS NOT NULL;
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
    kwargs {json} NOT NULL,
    metadata {json} NOT NULL,
    model_name VARCHAR(128),
    cancel_action VARCHAR(16),
    error TEXT,
    stop_reason VARCHAR(64),
    due_at {moment},
    created_at {moment} NOT NULL,
    updated_at {moment} NOT NULL,
    started_at {moment},
    ended_at {moment},
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
    usage {json},
    receipts {json},
    trace_id VARCHAR,
    turn_id VARCHAR(128),
    ends_turn BOOLEAN,
    PRIMARY KEY (run_id),
    FOREIGN KEY (thread_id) REFERENCES threads (thread_id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX one_running ON runs (thread_id) WHERE status = 'running';
CREATE INDEX runs_of_thread ON runs (thread_id, position);
CREATE INDEX runs_unfinished ON runs (created_at) WHERE status IN ('pending', 'running');
CREATE TABLE turns (
    thread_id VARCHAR(128) NOT NULL,
    message_id VARCHAR(128) NOT NULL,
    run_id VARCHAR(128) NOT NULL,
    checkpoint_before VARCHAR(128),
    created_at {moment} NOT NULL,
    PRIMARY KEY (thread_id, message_id),
    FOREIGN KEY (thread_id) REFERENCES threads (thread_id) ON DELETE CASCADE
);
CREATE TABLE run_events (
    thread_id VARCHAR(128) NOT NULL,
    first_seq BIGINT NOT NULL,
    last_seq BIGINT NOT NULL,
    run_id VARCHAR(128) NOT NULL,
    ends BOOLEAN NOT NULL,
    data {bytes} NOT NULL,
    PRIMARY KEY (thread_id, first_seq)
);
CREATE INDEX ix_run_events_run_id ON run_events (run_id);
CREATE TABLE task_transcripts (
    thread_id VARCHAR(128) NOT NULL,
    namespace VARCHAR(128) NOT NULL,
    task_id TEXT NOT NULL,
    data {bytes} NOT NULL,
    PRIMARY KEY (thread_id, namespace),
    FOREIGN KEY (thread_id) REFERENCES threads (thread_id) ON DELETE CASCADE
);
CREATE TABLE tool_executions (
    run_id VARCHAR(128) NOT NULL,
    call VARCHAR(32) NOT NULL,
    PRIMARY KEY (run_id, call)
){without_rowid};
CREATE TABLE daily_usage (
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
    estimated_calls BIGINT,
    PRIMARY KEY (user_id, day, agent, model, currency)
);
CREATE INDEX daily_usage_by_day ON daily_usage (day);
CREATE TABLE thread_pages (
    thread_id VARCHAR(128) NOT NULL,
    path TEXT NOT NULL,
    url TEXT NOT NULL,
    title TEXT NOT NULL,
    digest VARCHAR(64) NOT NULL,
    read_at {moment} NOT NULL,
    PRIMARY KEY (thread_id, path),
    FOREIGN KEY (thread_id) REFERENCES threads (thread_id) ON DELETE CASCADE
){without_rowid};
CREATE TABLE grants (
    id VARCHAR(128) NOT NULL,
    user_id VARCHAR(128) NOT NULL,
    agent VARCHAR(128) NOT NULL,
    tool TEXT NOT NULL,
    thread_id VARCHAR(128),
    pattern {json},
    created_at {moment} NOT NULL,
    digest VARCHAR(64),
    destination TEXT,
    PRIMARY KEY (id),
    FOREIGN KEY (thread_id) REFERENCES threads (thread_id) ON DELETE CASCADE
);
CREATE INDEX ix_grants_user_id ON grants (user_id);
CREATE TABLE asked_calls (
    thread_id VARCHAR(128) NOT NULL,
    call VARCHAR(32) NOT NULL,
    definition {json} NOT NULL,
    PRIMARY KEY (thread_id, call),
    FOREIGN KEY (thread_id) REFERENCES threads (thread_id) ON DELETE CASCADE
);
CREATE TABLE thread_sources (
    thread_id VARCHAR(128) NOT NULL,
    kind VARCHAR(16) NOT NULL,
    name TEXT NOT NULL,
    digest VARCHAR(64) NOT NULL,
    trusted BOOLEAN NOT NULL,
    created_at {moment} NOT NULL,
    PRIMARY KEY (thread_id, kind, name, digest)
);
CREATE TABLE thread_addresses (
    thread_id VARCHAR(128) NOT NULL,
    address VARCHAR(32) NOT NULL,
    via VARCHAR(8) NOT NULL,
    host TEXT NOT NULL,
    opened_in VARCHAR(128),
    PRIMARY KEY (thread_id, address, via)
){without_rowid};
CREATE INDEX thread_addresses_opened ON thread_addresses (thread_id, host, opened_in);
CREATE TABLE tool_decisions (
    id VARCHAR(128) NOT NULL,
    run_id VARCHAR(128) NOT NULL,
    thread_id VARCHAR(128) NOT NULL,
    user_id VARCHAR(128) NOT NULL,
    agent VARCHAR(128) NOT NULL,
    tool TEXT NOT NULL,
    call_id TEXT NOT NULL,
    decision VARCHAR(16) NOT NULL,
    code TEXT NOT NULL,
    policy_id TEXT,
    created_at {moment} NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY (run_id) REFERENCES runs (run_id) ON DELETE CASCADE
);
CREATE INDEX ix_tool_decisions_created_at ON tool_decisions (created_at);
CREATE INDEX ix_tool_decisions_run_id ON tool_decisions (run_id);
CREATE TABLE budgets (
    scope VARCHAR(8) NOT NULL,
    key VARCHAR(128) NOT NULL,
    day VARCHAR(10) NOT NULL,
    tokens BIGINT NOT NULL,
    cost FLOAT NOT NULL,
    currency VARCHAR(3) NOT NULL,
    extensions INTEGER NOT NULL,
    extended_by VARCHAR(128),
    PRIMARY KEY (scope, key, day)
);
CREATE TABLE steering (
    id {number} NOT NULL,
    run_id VARCHAR(128) NOT NULL,
    message_id VARCHAR(128) NOT NULL,
    message {json} NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (message_id)
);
CREATE INDEX ix_steering_run_id ON steering (run_id);
CREATE TABLE jobs (
    id {number} NOT NULL,
    kind VARCHAR(32) NOT NULL,
    key VARCHAR(256) NOT NULL,
    payload {json} NOT NULL,
    due_at {moment} NOT NULL,
    attempts INTEGER NOT NULL,
    leased_until {moment},
    error TEXT,
    PRIMARY KEY (id),
    UNIQUE (kind, key)
);
CREATE INDEX ix_jobs_due_at ON jobs (due_at);
CREATE TABLE feedback (
    feedback_id VARCHAR(128) NOT NULL,
    run_id VARCHAR(128) NOT NULL,
    thread_id VARCHAR(128) NOT NULL,
    user_id VARCHAR(128) NOT NULL,
    message_id VARCHAR(128),
    rating INTEGER NOT NULL,
    comment TEXT,
    created_at {moment} NOT NULL,
    PRIMARY KEY (feedback_id),
    FOREIGN KEY (run_id) REFERENCES runs (run_id) ON DELETE CASCADE,
    UNIQUE (thread_id, run_id, user_id)
);
CREATE INDEX ix_feedback_run_id ON feedback (run_id);
CREATE TABLE assistants (
    assistant_id VARCHAR(128) NOT NULL,
    user_id VARCHAR(128) NOT NULL,
    graph_id VARCHAR(128) NOT NULL,
    version INTEGER NOT NULL,
    created_at {moment} NOT NULL,
    updated_at {moment} NOT NULL,
    PRIMARY KEY (assistant_id)
);
CREATE INDEX ix_assistants_user_id ON assistants (user_id);
CREATE TABLE assistant_versions (
    assistant_id VARCHAR(128) NOT NULL,
    version INTEGER NOT NULL,
    name VARCHAR(256) NOT NULL,
    description TEXT,
    config {json} NOT NULL,
    context {json} NOT NULL,
    metadata {json} NOT NULL,
    created_at {moment} NOT NULL,
    PRIMARY KEY (assistant_id, version),
    FOREIGN KEY (assistant_id) REFERENCES assistants (assistant_id) ON DELETE CASCADE
);
CREATE TABLE crons (
    cron_id VARCHAR(128) NOT NULL,
    user_id VARCHAR(128) NOT NULL,
    assistant_id VARCHAR(128) NOT NULL,
    thread_id VARCHAR(128),
    schedule VARCHAR(128) NOT NULL,
    timezone VARCHAR(64),
    end_time {moment},
    enabled BOOLEAN NOT NULL,
    on_run_completed VARCHAR(16) NOT NULL,
    payload {json} NOT NULL,
    metadata {json} NOT NULL,
    next_run_at {moment},
    created_at {moment} NOT NULL,
    updated_at {moment} NOT NULL,
    PRIMARY KEY (cron_id)
);
CREATE INDEX ix_crons_next_run_at ON crons (next_run_at);
CREATE INDEX ix_crons_user_id ON crons (user_id);
CREATE TABLE store_items (
    user_id VARCHAR(128) NOT NULL,
    namespace VARCHAR(512) NOT NULL,
    key VARCHAR(256) NOT NULL,
    value {json} NOT NULL,
    created_at {moment} NOT NULL,
    updated_at {moment} NOT NULL,
    expires_at {moment},
    ttl_minutes FLOAT,
    PRIMARY KEY (user_id, namespace, key)
);
CREATE INDEX ix_store_items_expires_at ON store_items (expires_at);
CREATE INDEX store_items_by_age ON store_items (user_id, updated_at, namespace, key);
CREATE TABLE memory_facts (
    number {long_number} NOT NULL PRIMARY KEY,
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
    created_at {moment} NOT NULL,
    used_at {moment},
    expires_at {moment},
    ended_at {moment},
    superseded_by VARCHAR(128),
    UNIQUE (user_id, agent, id)
);
CREATE INDEX memory_facts_held ON memory_facts (user_id, agent, ended_at, confidence, created_at);
CREATE INDEX memory_facts_held_by_category ON memory_facts (user_id, agent, category, ended_at, confidence, created_at);
CREATE TABLE memory_sections (
    user_id VARCHAR(128) NOT NULL,
    agent VARCHAR(128) NOT NULL,
    sections {json} NOT NULL,
    updated_at {moment} NOT NULL,
    PRIMARY KEY (user_id, agent)
);
CREATE TABLE memory_watermarks (
    thread_id VARCHAR(128) NOT NULL PRIMARY KEY,
    message_id VARCHAR(128) NOT NULL,
    is_read BOOLEAN NOT NULL,
    FOREIGN KEY (thread_id) REFERENCES threads (thread_id) ON DELETE CASCADE
);
CREATE TABLE mcp_connections (
    user_id VARCHAR(128) NOT NULL,
    server VARCHAR(256) NOT NULL,
    data TEXT NOT NULL,
    version INTEGER NOT NULL,
    expires_at {moment},
    leased_until {moment},
    PRIMARY KEY (user_id, server)
);
CREATE TABLE mcp_authorizations (
    state VARCHAR(64) NOT NULL PRIMARY KEY,
    user_id VARCHAR(128) NOT NULL,
    data TEXT NOT NULL,
    expires_at {moment} NOT NULL
);
CREATE INDEX ix_mcp_authorizations_user_id ON mcp_authorizations (user_id);
CREATE TABLE mcp_pins (
    server TEXT NOT NULL,
    digest VARCHAR(64) NOT NULL,
    tool TEXT NOT NULL,
    source VARCHAR(64) NOT NULL,
    definition TEXT NOT NULL,
    at {moment} NOT NULL,
    accepted BOOLEAN NOT NULL,
    PRIMARY KEY (server, digest)
);
CREATE TABLE channel_connections (
    id VARCHAR(128) NOT NULL,
    kind VARCHAR(32) NOT NULL,
    user_id VARCHAR(128),
    in_file BOOLEAN NOT NULL,
    is_on BOOLEAN NOT NULL,
    secrets TEXT NOT NULL,
    settings {json} NOT NULL,
    version INTEGER NOT NULL,
    me {json},
    cursor TEXT NOT NULL,
    lease_owner VARCHAR(128),
    lease_epoch BIGINT NOT NULL,
    leased_until {moment},
    state VARCHAR(16) NOT NULL,
    state_since {moment},
    error TEXT,
    linked_at {moment},
    created_at {moment} NOT NULL,
    updated_at {moment} NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX ix_channel_connections_user_id ON channel_connections (user_id);
CREATE TABLE channel_identities (
    id {long_number} NOT NULL,
    kind VARCHAR(32) NOT NULL,
    workspace VARCHAR(256) NOT NULL,
    external_id VARCHAR(256) NOT NULL,
    user_id VARCHAR(128) NOT NULL,
    name TEXT NOT NULL,
    created_at {moment} NOT NULL,
    ended_at {moment},
    PRIMARY KEY (id)
);
CREATE UNIQUE INDEX channel_identities_active ON channel_identities (kind, workspace, external_id) WHERE ended_at IS NULL;
CREATE INDEX ix_channel_identities_user_id ON channel_identities (user_id);
CREATE TABLE channel_codes (
    hash VARCHAR(64) NOT NULL,
    user_id VARCHAR(128) NOT NULL,
    kind VARCHAR(32) NOT NULL,
    until {moment} NOT NULL,
    used_at {moment},
    PRIMARY KEY (hash)
);
CREATE INDEX ix_channel_codes_user_id ON channel_codes (user_id);
CREATE TABLE channel_conversations (
    connection_id VARCHAR(128) NOT NULL,
    chat VARCHAR(256) NOT NULL,
    topic VARCHAR(256) NOT NULL,
    user_id VARCHAR(128) NOT NULL,
    thread_id VARCHAR(128),
    agent VARCHAR(128),
    model VARCHAR(256),
    mode VARCHAR(16),
    created_at {moment} NOT NULL,
    updated_at {moment} NOT NULL,
    PRIMARY KEY (connection_id, chat, topic, user_id),
    FOREIGN KEY (connection_id) REFERENCES channel_connections (id) ON DELETE CASCADE,
    FOREIGN KEY (thread_id) REFERENCES threads (thread_id) ON DELETE SET NULL
);
CREATE INDEX ix_channel_conversations_thread_id ON channel_conversations (thread_id);
CREATE TABLE channel_inbox (
    id {long_number} NOT NULL,
    connection_id VARCHAR(128) NOT NULL,
    message_id VARCHAR(256) NOT NULL,
    kind VARCHAR(8) NOT NULL,
    chat VARCHAR(256) NOT NULL,
    topic VARCHAR(256) NOT NULL,
    workspace VARCHAR(256) NOT NULL,
    author VARCHAR(256) NOT NULL,
    body {json} NOT NULL,
    sent_at {moment} NOT NULL,
    accepted_at {moment} NOT NULL,
    state VARCHAR(16) NOT NULL,
    why TEXT,
    user_id VARCHAR(128),
    run_id VARCHAR(128),
    tries INTEGER NOT NULL,
    due_at {moment},
    PRIMARY KEY (id),
    FOREIGN KEY (connection_id) REFERENCES channel_connections (id) ON DELETE CASCADE,
    UNIQUE (connection_id, message_id)
);
CREATE INDEX channel_inbox_of_place ON channel_inbox (connection_id, chat, topic, id);
CREATE INDEX channel_inbox_waiting ON channel_inbox (connection_id, id) WHERE state = 'accepted';
CREATE INDEX ix_channel_inbox_accepted_at ON channel_inbox (accepted_at);
CREATE INDEX ix_channel_inbox_run_id ON channel_inbox (run_id);
CREATE TABLE channel_outbox (
    id {long_number} NOT NULL,
    connection_id VARCHAR(128) NOT NULL,
    chat VARCHAR(256) NOT NULL,
    topic VARCHAR(256) NOT NULL,
    place {json} NOT NULL,
    turn VARCHAR(256) NOT NULL,
    part INTEGER NOT NULL,
    kind VARCHAR(8) NOT NULL,
    body {json} NOT NULL,
    is_final BOOLEAN NOT NULL,
    key VARCHAR(50) NOT NULL,
    wake {json} NOT NULL,
    state VARCHAR(16) NOT NULL,
    ref {json},
    seq INTEGER NOT NULL,
    sent_seq INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    tried_at {moment},
    is_marked BOOLEAN NOT NULL,
    due_at {moment} NOT NULL,
    error TEXT,
    created_at {moment} NOT NULL,
    updated_at {moment} NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY (connection_id) REFERENCES channel_connections (id) ON DELETE CASCADE,
    UNIQUE (connection_id, turn, kind, part)
);
CREATE INDEX channel_outbox_open ON channel_outbox (connection_id, turn) WHERE NOT is_final;
CREATE INDEX channel_outbox_waiting ON channel_outbox (connection_id, chat, topic, id) WHERE state IN ('pending', 'sending', 'uncertain');
CREATE INDEX ix_channel_outbox_updated_at ON channel_outbox (updated_at);
CREATE TABLE channel_decisions (
    key_hash VARCHAR(64) NOT NULL,
    thread_id VARCHAR(128) NOT NULL,
    interrupt VARCHAR(128) NOT NULL,
    choice {json} NOT NULL,
    outbox_id BIGINT,
    user_id VARCHAR(128) NOT NULL,
    until {moment} NOT NULL,
    decided_at {moment},
    decided_by VARCHAR(128),
    PRIMARY KEY (key_hash),
    FOREIGN KEY (outbox_id) REFERENCES channel_outbox (id) ON DELETE SET NULL,
    FOREIGN KEY (thread_id) REFERENCES threads (thread_id) ON DELETE CASCADE
);
CREATE INDEX ix_channel_decisions_interrupt ON channel_decisions (interrupt);
CREATE INDEX ix_channel_decisions_outbox_id ON channel_decisions (outbox_id);
CREATE INDEX ix_channel_decisions_thread_id ON channel_decisions (thread_id);
CREATE TABLE channel_limits (
    connection_id VARCHAR(128) NOT NULL,
    chat VARCHAR(256) NOT NULL,
    blocked_until {moment},
    sent_at {moment},
    unprompted INTEGER NOT NULL,
    unprompted_since {moment},
    PRIMARY KEY (connection_id, chat),
    FOREIGN KEY (connection_id) REFERENCES channel_connections (id) ON DELETE CASCADE
);
CREATE TABLE message_search (
    id {long_number} NOT NULL,
    thread_id VARCHAR(128) NOT NULL,
    message_id VARCHAR(256) NOT NULL,
    user_id VARCHAR(128) NOT NULL,
    type VARCHAR(8) NOT NULL,
    text TEXT NOT NULL,
    created_at {moment} NOT NULL,
    PRIMARY KEY (id),
    FOREIGN KEY (thread_id) REFERENCES threads (thread_id) ON DELETE CASCADE,
    UNIQUE (thread_id, message_id)
)
"""

# The words of messages and facts are cut by us (see storage/search.py).
WORDS = {
    "sqlite": """
CREATE VIRTUAL TABLE message_search_index USING fts5(
    words, content = '', columnsize = 0, detail = none, prefix = '2 3',
    tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co'"
);
CREATE VIRTUAL TABLE memory_index USING fts5(words, tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co'")
""",
    "postgresql": """
ALTER TABLE message_search ADD COLUMN words tsvector;
CREATE INDEX message_search_newest ON message_search (user_id, id);
CREATE INDEX message_search_words ON message_search USING gin (words);
CREATE TABLE memory_index (
    rowid BIGINT PRIMARY KEY REFERENCES memory_facts (number) ON DELETE CASCADE,
    words tsvector NOT NULL
);
CREATE INDEX memory_index_words ON memory_index USING gin (words)
""",
}
FORGET_WORDS = """
CREATE TRIGGER memory_facts_gone AFTER DELETE ON memory_facts
BEGIN DELETE FROM memory_index WHERE rowid = old.number; END
"""
"""SQLite's index has no foreign key."""

CHANGED = ("threads", "runs", "jobs", "budgets", "channel_connections")
"""Rows are changed again and again: PostgreSQL keeps room for their new versions, and vacuums early."""
PASSING = ("run_events", "tool_executions", "steering")
"""Rows come and go."""


def upgrade() -> None:
    dialect = op.get_bind().dialect.name
    for statement in f"{TABLES.format(**TYPES[dialect])};{WORDS[dialect]}".split(";"):
        op.execute(statement.strip())
    if dialect == "sqlite":
        op.execute(FORGET_WORDS.strip())
        return
    for table in CHANGED:
        op.execute(f"ALTER TABLE {table} SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01)")
    for table in PASSING:
        op.execute(f"ALTER TABLE {table} SET (autovacuum_vacuum_scale_factor = 0.01)")
