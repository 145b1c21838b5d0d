"""The tables of the product, for SQLite and PostgreSQL. Changing one needs a migration in ``migrations/versions``."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
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


primary = partial(Column, primary_key=True)
required = partial(Column, nullable=False)

users = Table(
    "users",
    metadata,
    primary("id", Id),
    required("email", String(320), unique=True),
    Column("password_hash", String(256)),
    required("role", String(16), default="user"),
    required("needs_setup", Boolean, default=False),
    required("token_version", Integer, default=0),
    required("created_at", UtcDateTime),
    Column("suspended_at", UtcDateTime),
    Column("last_seen_at", UtcDateTime),
    Index("users_by_age", "created_at", "id"),
    Index("users_by_role", "role"),
)
"""``email`` is kept in lower case. ``suspended_at``: an administrator has shut the account since then."""

site_settings = Table(
    "site_settings",
    metadata,
    primary("name", String(64)),
    required("value", Json),
    required("updated_at", UtcDateTime),
)
"""Settings that administrators change while the site runs; see :mod:`deerflow.features.site`."""

sessions = Table(
    "sessions",
    metadata,
    primary("id", Id),
    required("user_id", Id, ForeignKey("users.id", ondelete="CASCADE"), index=True),
    required("created_at", UtcDateTime),
    required("expires_at", UtcDateTime),
)
"""Signed-in browsers. Signing out deletes the row, and with it what the cookie is worth."""

api_tokens = Table(
    "api_tokens",
    metadata,
    primary("id", Id),
    required("user_id", Id, index=True),
    required("name", String(128)),
    required("hash", String(64), unique=True),
    required("hint", String(16)),
    required("scopes", Json),
    required("created_at", UtcDateTime),
    Column("expires_at", UtcDateTime),
    Column("last_used_at", UtcDateTime),
)
"""``hash`` is the SHA-256 of the token, which nobody but its owner has; ``hint`` is how it begins."""

threads = Table(
    "threads",
    metadata,
    primary("thread_id", Id),
    required("user_id", Id),
    Column("assistant_id", Id),
    Column("title", Text),
    required("status", String(16), default="idle"),
    required("metadata", Json),
    required("epoch", BigInteger, default=0),
    required("created_at", UtcDateTime),
    required("updated_at", UtcDateTime),
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
    primary("run_id", Id),
    required("thread_id", Id, ForeignKey("threads.thread_id", ondelete="CASCADE")),
    required("user_id", Id),
    Column("assistant_id", Id),
    required("status", String(16), default="pending"),
    required("attempt", Integer, default=0),
    required("epoch", BigInteger, default=0),
    Column("worker", String(128)),
    required("multitask_strategy", String(16)),
    required("kwargs", Json),
    required("metadata", Json),
    Column("model_name", String(128)),
    Column("cancel_action", String(16)),
    Column("error", Text),
    Column("stop_reason", String(64)),
    Column("due_at", UtcDateTime),
    required("created_at", UtcDateTime),
    required("updated_at", UtcDateTime),
    Column("started_at", UtcDateTime),
    Column("ended_at", UtcDateTime),
    required("position", BigInteger),
    Column("turn_id", Id),
    Column("ends_turn", Boolean),
    Column("checkpoint_before", Id),
    Column("checkpoint_after", Id),
    Column("first_human_message", Text),
    Column("last_ai_message", Text),
    required("message_count", Integer, default=0),
    required("input_tokens", BigInteger, default=0),
    required("output_tokens", BigInteger, default=0),
    Column("cost", Float),
    required("llm_calls", Integer, default=0),
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
``receipts`` what its tool calls prove. ``turn_id`` is the id of the run that began its turn, from the claim on; ``ends_turn``: with
this run the turn came to a good end."""

turns = Table(
    "turns",
    metadata,
    primary("thread_id", Id, ForeignKey("threads.thread_id", ondelete="CASCADE")),
    primary("message_id", Id),
    required("run_id", Id),
    Column("checkpoint_before", Id),
    required("created_at", UtcDateTime),
)
"""A message of a person, the run that took it and the checkpoint before it, from which it can be edited or asked again."""

run_events = Table(
    "run_events",
    metadata,
    primary("thread_id", Id),
    primary("first_seq", BigInteger, autoincrement=False),
    required("last_seq", BigInteger),
    required("run_id", Id, index=True),
    required("ends", Boolean, default=False),
    required("data", LargeBinary),
)
"""What happened, in order, several events a row: ``data`` is zstd over JSON lines. ``ends``: holds the run's last event."""

task_transcripts = Table(
    "task_transcripts",
    metadata,
    primary("thread_id", Id, ForeignKey("threads.thread_id", ondelete="CASCADE")),
    primary("namespace", Id),
    required("task_id", Text),
    required("data", LargeBinary),
)
"""What was said in subagents: ``data`` is zstd over a JSON list of messages."""

tool_executions = Table(
    "tool_executions",
    metadata,
    primary("run_id", Id),
    primary("call", String(32)),
    sqlite_with_rowid=False,
)
"""The idempotency ledger: a call with side effects that has begun is never begun again. What it returned stands in the
checkpoints; where it does not, nobody knows how it ended."""

daily_usage = Table(
    "daily_usage",
    metadata,
    primary("user_id", Id),
    primary("day", String(10)),
    primary("agent", Id),
    primary("model", String(256)),
    primary("currency", String(3)),
    required("calls", BigInteger),
    required("input_tokens", BigInteger),
    required("cached_tokens", BigInteger),
    required("output_tokens", BigInteger),
    required("cost", Float),
    Column("estimated_calls", BigInteger),
    Index("daily_usage_by_day", "day"),
)
"""What models used in runs that ended on that day in UTC. ``currency`` is empty where the price is not known; of
``estimated_calls`` the provider gave no figures."""

thread_pages = Table(
    "thread_pages",
    metadata,
    primary("thread_id", Id, ForeignKey("threads.thread_id", ondelete="CASCADE")),
    primary("path", Text),
    required("url", Text),
    required("title", Text),
    required("digest", String(64)),
    required("read_at", UtcDateTime),
    sqlite_with_rowid=False,
)
"""What threads keep of the web; see :class:`deerflow.storage.pages.PageRow`."""

grants = Table(
    "grants",
    metadata,
    primary("id", Id),
    required("user_id", Id, index=True),
    required("agent", Id),
    required("tool", Text),
    Column("thread_id", Id, ForeignKey("threads.thread_id", ondelete="CASCADE")),
    Column("pattern", Json),
    Column("digest", String(64)),
    Column("destination", Text),
    required("created_at", UtcDateTime),
)
"""Calls that a person need not decide about any more; see :class:`deerflow.storage.approvals.Grant`."""

asked_calls = Table(
    "asked_calls",
    metadata,
    primary("thread_id", Id, ForeignKey("threads.thread_id", ondelete="CASCADE")),
    primary("call", String(32)),
    required("definition", Json),
)
"""Calls that wait for a person, with the definition of the tool that the person was shown."""

thread_sources = Table(
    "thread_sources",
    metadata,
    primary("thread_id", Id),
    primary("kind", String(16)),
    primary("name", Text),
    primary("digest", String(64)),
    required("trusted", Boolean),
    required("created_at", UtcDateTime),
)
"""Where foreign text in threads came from; see :mod:`deerflow.storage.provenance`. Of a writable mount, ``thread_id`` is its path."""

thread_addresses = Table(
    "thread_addresses",
    metadata,
    primary("thread_id", Id),
    primary("address", String(32)),
    primary("via", String(8)),
    required("host", Text),
    Column("opened_in", Id),
    Index("thread_addresses_opened", "thread_id", "host", "opened_in"),
    sqlite_with_rowid=False,
)
"""Addresses, by digest, that the person, a search or a page named in a thread. ``opened_in``: the last turn that opened one which a
page named."""

tool_decisions = Table(
    "tool_decisions",
    metadata,
    primary("id", Id),
    required("run_id", Id, ForeignKey("runs.run_id", ondelete="CASCADE"), index=True),
    required("thread_id", Id),
    required("user_id", Id),
    required("agent", Id),
    required("tool", Text),
    required("call_id", Text),
    required("decision", String(16)),
    required("code", Text),
    Column("policy_id", Text),
    required("created_at", UtcDateTime, index=True),
)
"""What guardrails and people decided about tool calls that were not simply allowed."""

budgets = Table(
    "budgets",
    metadata,
    primary("scope", String(8)),
    primary("key", Id),
    primary("day", String(10)),
    required("tokens", BigInteger),
    required("cost", Float),
    required("currency", String(3)),
    required("extensions", Integer),
    Column("extended_by", Id),
)
"""What was spent or is reserved of the limits of a turn, a thread, a person or an agent; ``day`` is empty for the first two.
``extensions``: how often a person let it go on. A row of the scope ``run`` holds what a run on its way has charged to the others,
one of the scope ``answer`` marks a question as answered. ``extended_by`` is of older versions."""

steering = Table(
    "steering",
    metadata,
    primary("id", Integer, autoincrement=True),
    required("run_id", Id, index=True),
    required("message_id", Id, unique=True),
    required("message", Json),
)
"""Messages that wait for the next step of a run that is on its way."""

jobs = Table(
    "jobs",
    metadata,
    primary("id", Integer, autoincrement=True),
    required("kind", String(32)),
    required("key", String(256)),
    required("payload", Json),
    required("due_at", UtcDateTime, index=True),
    required("attempts", Integer, default=0),
    Column("leased_until", UtcDateTime),
    Column("error", Text),
    UniqueConstraint("kind", "key"),
)
"""Work after runs (title, web hook …): at least once; a second job of the same kind and key replaces the first."""

feedback = Table(
    "feedback",
    metadata,
    primary("feedback_id", Id),
    required("run_id", Id, ForeignKey("runs.run_id", ondelete="CASCADE"), index=True),
    required("thread_id", Id),
    required("user_id", Id),
    Column("message_id", Id),
    required("rating", Integer),
    Column("comment", Text),
    required("created_at", UtcDateTime),
    UniqueConstraint("thread_id", "run_id", "user_id"),
)

assistants = Table(
    "assistants",
    metadata,
    primary("assistant_id", Id),
    required("user_id", Id, index=True),
    required("graph_id", Id),
    required("version", Integer),
    required("created_at", UtcDateTime),
    required("updated_at", UtcDateTime),
)

assistant_versions = Table(
    "assistant_versions",
    metadata,
    primary("assistant_id", Id, ForeignKey("assistants.assistant_id", ondelete="CASCADE")),
    primary("version", Integer, autoincrement=False),
    required("name", String(256)),
    Column("description", Text),
    required("config", Json),
    required("context", Json),
    required("metadata", Json),
    required("created_at", UtcDateTime),
)

crons = Table(
    "crons",
    metadata,
    primary("cron_id", Id),
    required("user_id", Id, index=True),
    required("assistant_id", Id),
    Column("thread_id", Id),
    required("schedule", String(128)),
    Column("timezone", String(64)),
    Column("end_time", UtcDateTime),
    required("enabled", Boolean),
    required("on_run_completed", String(16)),
    required("payload", Json),
    required("metadata", Json),
    Column("next_run_at", UtcDateTime, index=True),
    required("created_at", UtcDateTime),
    required("updated_at", UtcDateTime),
)
"""``payload`` is the body of the runs that it starts. ``on_run_completed``: delete or keep the thread made for a run."""

store_items = Table(
    "store_items",
    metadata,
    primary("user_id", Id),
    primary("namespace", String(512)),
    primary("key", String(256)),
    required("value", Json),
    required("created_at", UtcDateTime),
    required("updated_at", UtcDateTime),
    Column("expires_at", UtcDateTime, index=True),
    Column("ttl_minutes", Float),
    Index("store_items_by_age", "user_id", "updated_at", "namespace", "key"),
)
"""``namespace``: its labels joined by the unit separator (U+001F)."""

memory_facts = Table(
    "memory_facts",
    metadata,
    primary("number", BigInteger().with_variant(Integer, "sqlite"), autoincrement=True),
    required("user_id", Id),
    required("agent", Id),
    required("id", Id),
    required("content", Text),
    required("category", String(64)),
    required("confidence", Float),
    required("source", Id),
    Column("message_id", Id),
    Column("source_error", Text),
    Column("untrusted", Text),
    required("created_at", UtcDateTime),
    Column("used_at", UtcDateTime),
    Column("expires_at", UtcDateTime),
    Column("ended_at", UtcDateTime),
    Column("superseded_by", Id),
    UniqueConstraint("user_id", "agent", "id"),
    Index("memory_facts_held", "user_id", "agent", "ended_at", "confidence", "created_at"),
    Index("memory_facts_held_by_category", "user_id", "agent", "category", "ended_at", "confidence", "created_at"),
)
"""What agents remember of people, see :class:`deerflow.features.memory.rows.Fact`. ``agent`` is empty for the lead agent. The
words of facts that hold are in ``memory_index``: FTS5 on SQLite, a ``tsvector`` on PostgreSQL."""

memory_sections = Table(
    "memory_sections",
    metadata,
    primary("user_id", Id),
    primary("agent", Id),
    required("sections", Json),
    required("updated_at", UtcDateTime),
)
"""Summaries beside the facts, as ``{"user": {…}, "history": {…}}``. A row is there once the memory was used."""

memory_watermarks = Table(
    "memory_watermarks",
    metadata,
    primary("thread_id", Id, ForeignKey("threads.thread_id", ondelete="CASCADE")),
    required("message_id", Id),
    required("is_read", Boolean),
)
"""Up to which message facts were taken from a thread. ``is_read``: that message was read as well."""

mcp_connections = Table(
    "mcp_connections",
    metadata,
    primary("user_id", Id),
    primary("server", String(256)),
    required("data", Text),
    required("version", Integer),
    Column("expires_at", UtcDateTime),
    Column("leased_until", UtcDateTime),
)
"""People's own access to MCP servers. ``data`` (tokens, and the client that they were given to) is encrypted; ``expires_at`` is when the
access token does. Whoever leases a row refreshes it, which makes another ``version``."""

mcp_authorizations = Table(
    "mcp_authorizations",
    metadata,
    primary("state", String(64)),
    required("user_id", Id, index=True),
    required("data", Text),
    required("expires_at", UtcDateTime),
)
"""Connections that people are just allowing elsewhere. ``state`` is the SHA-256 of what comes back with them; ``data`` is encrypted."""

mcp_pins = Table(
    "mcp_pins",
    metadata,
    primary("server", Text),
    primary("digest", String(64)),
    required("tool", Text),
    required("source", String(64)),
    required("definition", Text),
    required("at", UtcDateTime),
    required("accepted", Boolean),
)
"""Definitions of tools that MCP servers have listed, as JSON. Trust, policies and grants hold for those that are ``accepted``."""

channel_connections = Table(
    "channel_connections",
    metadata,
    primary("id", Id),
    required("kind", String(32)),
    Column("user_id", Id, index=True),
    required("in_file", Boolean, default=False),
    required("is_on", Boolean, default=True),
    required("secrets", Text, default=""),
    required("settings", Json, default=dict),
    required("version", Integer, default=0),
    Column("me", Json),
    required("cursor", Text, default=""),
    Column("lease_owner", String(128)),
    required("lease_epoch", BigInteger, default=0),
    Column("leased_until", UtcDateTime),
    required("state", String(16), default="retrying"),
    Column("state_since", UtcDateTime),
    Column("error", Text),
    Column("linked_at", UtcDateTime),
    required("created_at", UtcDateTime),
    required("updated_at", UtcDateTime),
)
"""Accounts of bots on chat platforms. ``user_id``: the person whose own it is; none if it is the instance's. ``in_file``: it stands in
the configuration file, not in the page. ``secrets`` is encrypted; ``settings`` holds the rest: agent, model, options of the platform.
``version`` grows with each change of them. ``me``: the bot's account there. ``cursor``: up to where messages were accepted.
``lease_epoch`` is a fencing token, which grows with each holder. ``state``: connected, retrying, signed-out, displaced, misconfigured.
``linked_at``: when the link was last known to stand."""

channel_identities = Table(
    "channel_identities",
    metadata,
    primary("id", BigInteger().with_variant(Integer, "sqlite"), autoincrement=True),
    required("kind", String(32)),
    required("workspace", String(256)),
    required("external_id", String(256)),
    required("user_id", Id, index=True),
    required("name", Text, default=""),
    required("created_at", UtcDateTime),
    Column("ended_at", UtcDateTime),
    Index(
        "channel_identities_active",
        "kind",
        "workspace",
        "external_id",
        unique=True,
        sqlite_where=text("ended_at IS NULL"),
        postgresql_where=text("ended_at IS NULL"),
    ),
)
"""Accounts of people on chat platforms. One is active while it has no ``ended_at``."""

channel_codes = Table(
    "channel_codes",
    metadata,
    primary("hash", String(64)),
    required("user_id", Id, index=True),
    required("kind", String(32)),
    required("until", UtcDateTime),
    Column("used_at", UtcDateTime),
)
"""Codes with which people connect their account on a platform. ``hash`` is the SHA-256."""

channel_conversations = Table(
    "channel_conversations",
    metadata,
    primary("connection_id", Id, ForeignKey("channel_connections.id", ondelete="CASCADE")),
    primary("chat", String(256)),
    primary("topic", String(256)),
    primary("user_id", Id),
    Column("thread_id", Id, ForeignKey("threads.thread_id", ondelete="SET NULL"), index=True),
    Column("agent", Id),
    Column("model", String(256)),
    Column("mode", String(16)),
    required("created_at", UtcDateTime),
    required("updated_at", UtcDateTime),
)
"""The thread that a person's messages in a place go to, and what they chose for it. No thread: the next message makes one."""

channel_inbox = Table(
    "channel_inbox",
    metadata,
    primary("id", BigInteger().with_variant(Integer, "sqlite"), autoincrement=True),
    required("connection_id", Id, ForeignKey("channel_connections.id", ondelete="CASCADE")),
    required("message_id", String(256)),
    required("kind", String(8)),
    required("chat", String(256)),
    required("topic", String(256)),
    required("workspace", String(256)),
    required("author", String(256)),
    required("body", Json),
    required("sent_at", UtcDateTime),
    required("accepted_at", UtcDateTime, index=True),
    required("state", String(16), default="accepted"),
    Column("why", Text),
    Column("user_id", Id),
    Column("run_id", Id, index=True),
    required("tries", Integer, default=0),
    Column("due_at", UtcDateTime),
    UniqueConstraint("connection_id", "message_id"),
    Index("channel_inbox_of_place", "connection_id", "chat", "topic", "id"),
    Index(
        "channel_inbox_waiting",
        "connection_id",
        "id",
        sqlite_where=text("state = 'accepted'"),
        postgresql_where=text("state = 'accepted'"),
    ),
)
"""Messages and clicks of people, stored before they are acknowledged. ``kind``: message or click; ``body`` is the event. ``state``:
accepted, running, steered, asked, ignored, answered. ``user_id``: the person, once known. ``due_at``: not handled before."""

channel_outbox = Table(
    "channel_outbox",
    metadata,
    primary("id", BigInteger().with_variant(Integer, "sqlite"), autoincrement=True),
    required("connection_id", Id, ForeignKey("channel_connections.id", ondelete="CASCADE")),
    required("chat", String(256)),
    required("topic", String(256)),
    required("place", Json),
    required("turn", String(256)),
    required("part", Integer),
    required("kind", String(8)),
    required("body", Json),
    required("is_final", Boolean),
    required("key", String(50)),
    required("wake", Json),
    required("state", String(16), default="pending"),
    Column("ref", Json),
    required("seq", Integer, default=1),
    required("sent_seq", Integer, default=0),
    required("tries", Integer, default=0),
    Column("tried_at", UtcDateTime),
    required("is_marked", Boolean, default=False),
    required("due_at", UtcDateTime),
    Column("error", Text),
    required("created_at", UtcDateTime),
    required("updated_at", UtcDateTime, index=True),
    UniqueConstraint("connection_id", "turn", "kind", "part"),
    Index(
        "channel_outbox_waiting",
        "connection_id",
        "chat",
        "topic",
        "id",
        sqlite_where=text("state IN ('pending', 'sending', 'uncertain')"),
        postgresql_where=text("state IN ('pending', 'sending', 'uncertain')"),
    ),
    Index(
        "channel_outbox_open",
        "connection_id",
        "turn",
        sqlite_where=text("NOT is_final"),
        postgresql_where=text("NOT is_final"),
    ),
)
"""Messages to platforms, one row for each, whatever edits follow. ``kind``: text or file. ``state``: pending, sending, sent, uncertain,
dead. ``ref`` names the sent message there; ``seq`` counts its contents, of which ``sent_seq`` is the last that arrived. ``key`` names
it before it was sent, ``tried_at`` is when that was tried first. ``is_marked``: its text says that it may be a duplicate."""

channel_decisions = Table(
    "channel_decisions",
    metadata,
    primary("key_hash", String(64)),
    required("thread_id", Id, ForeignKey("threads.thread_id", ondelete="CASCADE"), index=True),
    required("interrupt", Id, index=True),
    required("choice", Json),
    Column("outbox_id", BigInteger, ForeignKey("channel_outbox.id", ondelete="SET NULL"), index=True),
    required("user_id", Id),
    required("until", UtcDateTime),
    Column("decided_at", UtcDateTime),
    Column("decided_by", Id),
)
"""Buttons: what a click on one decides, and the person who may. ``key_hash`` is the SHA-256 of the button's key."""

channel_limits = Table(
    "channel_limits",
    metadata,
    primary("connection_id", Id, ForeignKey("channel_connections.id", ondelete="CASCADE")),
    primary("chat", String(256)),
    Column("blocked_until", UtcDateTime),
    Column("sent_at", UtcDateTime),
    required("unprompted", Integer, default=0),
    Column("unprompted_since", UtcDateTime),
)
"""Limits of sending to a chat; to all of the connection where ``chat`` is empty. ``sent_at``: the last new message.
``unprompted``: messages since the person's last one."""

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
