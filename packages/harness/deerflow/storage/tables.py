"""The tables of the product, for SQLite and PostgreSQL. Changing one needs a migration in ``migrations/versions``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeDecorator

metadata = MetaData()

Json = JSON().with_variant(JSONB(), "postgresql")
Id = String(128)


class UtcDateTime(TypeDecorator[datetime]):
    """Moments in UTC, aware on both databases: SQLite forgets the zone of what it is given."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("A moment without a time zone cannot be stored.")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def utc_now() -> datetime:
    return datetime.now(UTC)


users = Table(
    "users",
    metadata,
    Column("id", Id, primary_key=True),
    Column("email", String(320), nullable=False, unique=True),
    Column("password_hash", String(256)),
    Column("role", String(16), nullable=False, default="user"),
    Column("needs_setup", Boolean, nullable=False, default=False),
    Column("token_version", Integer, nullable=False, default=0),
    Column("created_at", UtcDateTime, nullable=False),
    Index("users_by_age", "created_at", "id"),
    Index("users_by_role", "role"),
)
"""``email`` is kept in lower case."""

sessions = Table(
    "sessions",
    metadata,
    Column("id", Id, primary_key=True),
    Column("user_id", Id, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
)
"""Signed-in browsers. Signing out deletes the row, and with it what the cookie is worth."""

api_tokens = Table(
    "api_tokens",
    metadata,
    Column("id", Id, primary_key=True),
    Column("user_id", Id, nullable=False, index=True),
    Column("name", String(128), nullable=False),
    Column("hash", String(64), nullable=False, unique=True),
    Column("hint", String(16), nullable=False),
    Column("scopes", Json, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime),
    Column("last_used_at", UtcDateTime),
)
"""``hash`` is the SHA-256 of the token, which nobody but its owner has; ``hint`` is how it begins."""

threads = Table(
    "threads",
    metadata,
    Column("thread_id", Id, primary_key=True),
    Column("user_id", Id, nullable=False),
    Column("assistant_id", Id),
    Column("title", Text),
    Column("status", String(16), nullable=False, default="idle"),
    Column("metadata", Json, nullable=False),
    Column("epoch", BigInteger, nullable=False, default=0),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime),
    Column("waits_since", UtcDateTime),
    Index("threads_by_owner", "user_id", "updated_at", "thread_id"),
    Index("threads_by_age", "user_id", "created_at", "thread_id"),
    Index(
        "threads_expiring",
        "expires_at",
        sqlite_where=text("expires_at IS NOT NULL"),
        postgresql_where=text("expires_at IS NOT NULL"),
    ),
    Index(
        "threads_waiting",
        "user_id",
        "waits_since",
        "thread_id",
        sqlite_where=text("waits_since IS NOT NULL"),
        postgresql_where=text("waits_since IS NOT NULL"),
    ),
)
"""``status``: idle, busy, interrupted, error. ``waits_since``: the person has to decide or to answer. ``epoch`` counts the claims of its runs; event positions begin with it."""

runs = Table(
    "runs",
    metadata,
    Column("run_id", Id, primary_key=True),
    Column("thread_id", Id, ForeignKey("threads.thread_id", ondelete="CASCADE"), nullable=False),
    Column("user_id", Id, nullable=False),
    Column("assistant_id", Id),
    Column("status", String(16), nullable=False, default="pending"),
    Column("attempt", Integer, nullable=False, default=0),
    Column("epoch", BigInteger, nullable=False, default=0),
    Column("worker", String(128)),
    Column("multitask_strategy", String(16), nullable=False),
    Column("kwargs", Json, nullable=False),
    Column("metadata", Json, nullable=False),
    Column("model_name", String(128)),
    Column("cancel_action", String(16)),
    Column("error", Text),
    Column("stop_reason", String(64)),
    Column("due_at", UtcDateTime),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("started_at", UtcDateTime),
    Column("ended_at", UtcDateTime),
    Column("position", BigInteger, nullable=False),
    Column("checkpoint_before", Id),
    Column("checkpoint_after", Id),
    Column("first_human_message", Text),
    Column("last_ai_message", Text),
    Column("message_count", Integer, nullable=False, default=0),
    Column("input_tokens", BigInteger, nullable=False, default=0),
    Column("output_tokens", BigInteger, nullable=False, default=0),
    Column("cost", Float),
    Column("llm_calls", Integer, nullable=False, default=0),
    Column("usage", Json),
    Column("receipts", Json),
    Column("trace_id", String),
    Index("runs_of_thread", "thread_id", "position"),
    Index(
        "runs_unfinished",
        "created_at",
        sqlite_where=text("status IN ('pending', 'running')"),
        postgresql_where=text("status IN ('pending', 'running')"),
    ),
    Index(
        "one_running",
        "thread_id",
        unique=True,
        sqlite_where=text("status = 'running'"),
        postgresql_where=text("status = 'running'"),
    ),
)
"""One execution of an assistant on a thread. ``position`` orders the runs of a thread; ``epoch`` fences: whoever holds an
older one has lost the run. ``kwargs`` is what the client asked for, ``usage`` ``{model: {caller: {...}}}``,
``receipts`` what its tool calls prove."""

turns = Table(
    "turns",
    metadata,
    Column("thread_id", Id, ForeignKey("threads.thread_id", ondelete="CASCADE"), primary_key=True),
    Column("message_id", Id, primary_key=True),
    Column("run_id", Id, nullable=False),
    Column("checkpoint_before", Id),
    Column("created_at", UtcDateTime, nullable=False),
)
"""A message of a person, the run that took it and the checkpoint before it, from which it can be edited or asked again."""

run_events = Table(
    "run_events",
    metadata,
    Column("thread_id", Id, primary_key=True),
    Column("first_seq", BigInteger, primary_key=True, autoincrement=False),
    Column("last_seq", BigInteger, nullable=False),
    Column("run_id", Id, nullable=False, index=True),
    Column("ends", Boolean, nullable=False, default=False),
    Column("data", LargeBinary, nullable=False),
)
"""What happened, in order, several events a row: ``data`` is zstd over JSON lines. ``ends``: holds the run's last event."""

tool_executions = Table(
    "tool_executions",
    metadata,
    Column("run_id", Id, primary_key=True),
    Column("call", String(32), primary_key=True),
    sqlite_with_rowid=False,
)
"""The idempotency ledger: a call with side effects that has begun is never begun again. What it returned stands in the
checkpoints; where it does not, nobody knows how it ended."""

daily_usage = Table(
    "daily_usage",
    metadata,
    Column("user_id", Id, primary_key=True),
    Column("day", String(10), primary_key=True),
    Column("agent", Id, primary_key=True),
    Column("model", String(256), primary_key=True),
    Column("currency", String(3), primary_key=True),
    Column("calls", BigInteger, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("cached_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cost", Float, nullable=False),
    Index("daily_usage_by_day", "day"),
)
"""What models used in runs that ended on that day in UTC. ``currency`` is empty where the price is not known."""

grants = Table(
    "grants",
    metadata,
    Column("id", Id, primary_key=True),
    Column("user_id", Id, nullable=False, index=True),
    Column("agent", Id, nullable=False),
    Column("tool", Text, nullable=False),
    Column("thread_id", Id, ForeignKey("threads.thread_id", ondelete="CASCADE")),
    Column("pattern", Json),
    Column("created_at", UtcDateTime, nullable=False),
)
"""Calls that a person need not decide about any more; see :class:`deerflow.storage.approvals.Grant`."""

tool_decisions = Table(
    "tool_decisions",
    metadata,
    Column("id", Id, primary_key=True),
    Column("run_id", Id, ForeignKey("runs.run_id", ondelete="CASCADE"), nullable=False, index=True),
    Column("thread_id", Id, nullable=False),
    Column("user_id", Id, nullable=False),
    Column("agent", Id, nullable=False),
    Column("tool", Text, nullable=False),
    Column("call_id", Text, nullable=False),
    Column("decision", String(16), nullable=False),
    Column("code", Text, nullable=False),
    Column("policy_id", Text),
    Column("created_at", UtcDateTime, nullable=False, index=True),
)
"""What guardrails and people decided about tool calls that were not simply allowed."""

budgets = Table(
    "budgets",
    metadata,
    Column("scope", String(8), primary_key=True),
    Column("key", Id, primary_key=True),
    Column("day", String(10), primary_key=True),
    Column("tokens", BigInteger, nullable=False),
    Column("cost", Float, nullable=False),
    Column("currency", String(3), nullable=False),
    Column("extensions", Integer, nullable=False),
    Column("extended_by", Id),
)
"""What was spent or is reserved of the limits of a run, a thread, a person or an agent; ``day`` is empty for the first two. ``extensions``: how
often a person let it go on, last in the run ``extended_by``."""

steering = Table(
    "steering",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("run_id", Id, nullable=False, index=True),
    Column("message_id", Id, nullable=False, unique=True),
    Column("message", Json, nullable=False),
)
"""Messages that wait for the next step of a run that is on its way."""

jobs = Table(
    "jobs",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("kind", String(32), nullable=False),
    Column("key", String(256), nullable=False),
    Column("payload", Json, nullable=False),
    Column("due_at", UtcDateTime, nullable=False, index=True),
    Column("attempts", Integer, nullable=False, default=0),
    Column("leased_until", UtcDateTime),
    Column("error", Text),
    UniqueConstraint("kind", "key"),
)
"""Work after runs (title, web hook …): at least once; a second job of the same kind and key replaces the first."""

feedback = Table(
    "feedback",
    metadata,
    Column("feedback_id", Id, primary_key=True),
    Column("run_id", Id, ForeignKey("runs.run_id", ondelete="CASCADE"), nullable=False, index=True),
    Column("thread_id", Id, nullable=False),
    Column("user_id", Id, nullable=False),
    Column("message_id", Id),
    Column("rating", Integer, nullable=False),
    Column("comment", Text),
    Column("created_at", UtcDateTime, nullable=False),
    UniqueConstraint("thread_id", "run_id", "user_id"),
)

assistants = Table(
    "assistants",
    metadata,
    Column("assistant_id", Id, primary_key=True),
    Column("user_id", Id, nullable=False, index=True),
    Column("graph_id", Id, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
)

assistant_versions = Table(
    "assistant_versions",
    metadata,
    Column("assistant_id", Id, ForeignKey("assistants.assistant_id", ondelete="CASCADE"), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("name", String(256), nullable=False),
    Column("description", Text),
    Column("config", Json, nullable=False),
    Column("context", Json, nullable=False),
    Column("metadata", Json, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
)

crons = Table(
    "crons",
    metadata,
    Column("cron_id", Id, primary_key=True),
    Column("user_id", Id, nullable=False, index=True),
    Column("assistant_id", Id, nullable=False),
    Column("thread_id", Id),
    Column("schedule", String(128), nullable=False),
    Column("timezone", String(64)),
    Column("end_time", UtcDateTime),
    Column("enabled", Boolean, nullable=False, default=True),
    Column("on_run_completed", String(16), nullable=False, default="delete"),
    Column("payload", Json, nullable=False),
    Column("metadata", Json, nullable=False),
    Column("next_run_at", UtcDateTime, index=True),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
)
"""``payload`` is the body of the runs that it starts. ``on_run_completed``: delete or keep the thread made for a run."""

store_items = Table(
    "store_items",
    metadata,
    Column("user_id", Id, primary_key=True),
    Column("namespace", String(512), primary_key=True),
    Column("key", String(256), primary_key=True),
    Column("value", Json, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, index=True),
    Column("ttl_minutes", Float),
    Index("store_items_by_age", "user_id", "updated_at", "namespace", "key"),
)
"""``namespace``: its labels joined by the unit separator (U+001F)."""

memory_facts = Table(
    "memory_facts",
    metadata,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("user_id", Id, nullable=False),
    Column("agent", Id, nullable=False),
    Column("id", Id, nullable=False),
    Column("content", Text, nullable=False),
    Column("category", String(64), nullable=False),
    Column("confidence", Float, nullable=False),
    Column("source", Id, nullable=False),
    Column("message_id", Id),
    Column("source_error", Text),
    Column("untrusted", Text),
    Column("created_at", UtcDateTime, nullable=False),
    Column("used_at", UtcDateTime),
    Column("expires_at", UtcDateTime),
    Column("ended_at", UtcDateTime),
    Column("superseded_by", Id),
    UniqueConstraint("user_id", "agent", "id"),
    Index("memory_facts_held", "user_id", "agent", "ended_at", "confidence", "created_at"),
    Index("memory_facts_held_by_category", "user_id", "agent", "category", "ended_at", "confidence", "created_at"),
)
"""What agents remember of people, see :class:`deerflow.storage.memory.Fact`. ``agent`` is empty for the lead agent. The
words of facts that hold are in ``memory_index``: FTS5 on SQLite, a ``tsvector`` on PostgreSQL."""

memory_sections = Table(
    "memory_sections",
    metadata,
    Column("user_id", Id, primary_key=True),
    Column("agent", Id, primary_key=True),
    Column("sections", Json, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
)
"""Summaries beside the facts, as ``{"user": {…}, "history": {…}}``. A row is there once the memory was used."""

memory_watermarks = Table(
    "memory_watermarks",
    metadata,
    Column("thread_id", Id, ForeignKey("threads.thread_id", ondelete="CASCADE"), primary_key=True),
    Column("message_id", Id, nullable=False),
    Column("is_read", Boolean, nullable=False),
)
"""Up to which message facts were taken from a thread. ``is_read``: that message was read as well."""

mcp_connections = Table(
    "mcp_connections",
    metadata,
    Column("user_id", Id, primary_key=True),
    Column("server", String(256), primary_key=True),
    Column("data", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("expires_at", UtcDateTime),
    Column("leased_until", UtcDateTime),
)
"""People's own access to MCP servers. ``data`` (tokens, and the client that they were given to) is encrypted; ``expires_at`` is when the
access token does. Whoever leases a row refreshes it, which makes another ``version``."""

mcp_authorizations = Table(
    "mcp_authorizations",
    metadata,
    Column("state", String(64), primary_key=True),
    Column("user_id", Id, nullable=False, index=True),
    Column("data", Text, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
)
"""Connections that people are just allowing elsewhere. ``state`` is the SHA-256 of what comes back with them; ``data`` is encrypted."""

CHECKPOINTS = """
CREATE TABLE IF NOT EXISTS checkpoint_lines (
    line INTEGER PRIMARY KEY,
    thread_id TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL,
    UNIQUE (thread_id, checkpoint_ns)
);
CREATE TABLE IF NOT EXISTS checkpoint_steps (
    line INTEGER NOT NULL,
    checkpoint_id BLOB NOT NULL,
    parent_id BLOB,
    type TEXT NOT NULL,
    channels TEXT NOT NULL,
    metadata BLOB NOT NULL,
    checkpoint BLOB NOT NULL,
    writes BLOB,
    PRIMARY KEY (line, checkpoint_id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS checkpoint_writes (
    line INTEGER NOT NULL,
    checkpoint_id BLOB NOT NULL,
    task_id BLOB NOT NULL,
    idx INTEGER NOT NULL,
    task_path TEXT NOT NULL,
    channel TEXT NOT NULL,
    type TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (line, checkpoint_id, task_id, idx)
) WITHOUT ROWID;
CREATE VIEW IF NOT EXISTS checkpoints AS SELECT * FROM checkpoint_lines JOIN checkpoint_steps USING (line);
CREATE VIEW IF NOT EXISTS writes AS SELECT * FROM checkpoint_lines JOIN checkpoint_writes USING (line);
"""
"""Of SQLite. ``channels`` names the channels whose value stands in the checkpoint: what ends the walk of a DeltaChannel."""
