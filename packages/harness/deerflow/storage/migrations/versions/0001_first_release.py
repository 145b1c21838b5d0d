"""The tables of the first release."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None

ID = sa.String(128)
MOMENT = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")

# The words of messages are cut by us (see message_search.py).
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
    op.create_table(
        "api_tokens",
        sa.Column("id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("name", ID, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("hint", sa.String(16), nullable=False),
        sa.Column("scopes", JSON, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT),
        sa.Column("last_used_at", MOMENT),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("hash"),
    )
    op.create_index(op.f("ix_api_tokens_user_id"), "api_tokens", ["user_id"])
    op.create_table(
        "assistants",
        sa.Column("assistant_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("graph_id", ID, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("assistant_id"),
    )
    op.create_index(op.f("ix_assistants_user_id"), "assistants", ["user_id"])
    op.create_table(
        "crons",
        sa.Column("cron_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("assistant_id", ID, nullable=False),
        sa.Column("thread_id", ID),
        sa.Column("schedule", ID, nullable=False),
        sa.Column("timezone", sa.String(64)),
        sa.Column("end_time", MOMENT),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("on_run_completed", sa.String(16), nullable=False),
        sa.Column("payload", JSON, nullable=False),
        sa.Column("metadata", JSON, nullable=False),
        sa.Column("next_run_at", MOMENT),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("cron_id"),
    )
    op.create_index(op.f("ix_crons_next_run_at"), "crons", ["next_run_at"])
    op.create_index(op.f("ix_crons_user_id"), "crons", ["user_id"])
    op.create_table(
        "jobs",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("key", sa.String(256), nullable=False),
        sa.Column("payload", JSON, nullable=False),
        sa.Column("due_at", MOMENT, nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("leased_until", MOMENT),
        sa.Column("error", sa.Text()),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("kind", "key"),
    )
    op.create_index(op.f("ix_jobs_due_at"), "jobs", ["due_at"])
    op.create_table(
        "run_events",
        sa.Column("thread_id", ID, nullable=False),
        sa.Column("first_seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("run_id", ID, nullable=False),
        sa.Column("ends", sa.Boolean(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("thread_id", "first_seq"),
    )
    op.create_index(op.f("ix_run_events_run_id"), "run_events", ["run_id"])
    op.create_table(
        "steering",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("run_id", ID, nullable=False),
        sa.Column("message_id", ID, nullable=False),
        sa.Column("message", JSON, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("message_id"),
    )
    op.create_index(op.f("ix_steering_run_id"), "steering", ["run_id"])
    op.create_table(
        "store_items",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("namespace", sa.String(512), nullable=False),
        sa.Column("key", sa.String(256), nullable=False),
        sa.Column("value", JSON, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT),
        sa.Column("ttl_minutes", sa.Float()),
        sa.PrimaryKeyConstraint("user_id", "namespace", "key"),
    )
    op.create_index(op.f("ix_store_items_expires_at"), "store_items", ["expires_at"])
    op.create_table(
        "threads",
        sa.Column("thread_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("assistant_id", ID),
        sa.Column("title", sa.Text()),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("metadata", JSON, nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT),
        sa.PrimaryKeyConstraint("thread_id"),
    )
    op.create_index("threads_by_owner", "threads", ["user_id", "updated_at"])
    op.create_table(
        "tool_executions",
        sa.Column("run_id", ID, nullable=False),
        sa.Column("tool_call_id", sa.String(256), nullable=False),
        sa.Column("finished", sa.Boolean(), nullable=False),
        sa.Column("result", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("run_id", "tool_call_id"),
    )
    op.create_table(
        "users",
        sa.Column("id", ID, nullable=False),
        sa.Column("email", sa.String(320), nullable=False),
        sa.Column("password_hash", sa.String(256)),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("needs_setup", sa.Boolean(), nullable=False),
        sa.Column("token_version", sa.Integer(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("email"),
    )
    op.create_table(
        "assistant_versions",
        sa.Column("assistant_id", ID, nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.String(256), nullable=False),
        sa.Column("description", sa.Text()),
        sa.Column("config", JSON, nullable=False),
        sa.Column("context", JSON, nullable=False),
        sa.Column("metadata", JSON, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["assistant_id"], ["assistants.assistant_id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("assistant_id", "version"),
    )
    op.create_table(
        "runs",
        sa.Column("run_id", ID, nullable=False),
        sa.Column("thread_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("assistant_id", ID),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("worker", ID),
        sa.Column("multitask_strategy", sa.String(16), nullable=False),
        sa.Column("kwargs", JSON, nullable=False),
        sa.Column("metadata", JSON, nullable=False),
        sa.Column("model_name", ID),
        sa.Column("cancel_action", sa.String(16)),
        sa.Column("error", sa.Text()),
        sa.Column("stop_reason", sa.String(64)),
        sa.Column("due_at", MOMENT),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("started_at", MOMENT),
        sa.Column("ended_at", MOMENT),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("checkpoint_before", ID),
        sa.Column("checkpoint_after", ID),
        sa.Column("first_human_message", sa.Text()),
        sa.Column("last_ai_message", sa.Text()),
        sa.Column("message_count", sa.Integer(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost", sa.Float()),
        sa.Column("llm_calls", sa.Integer(), nullable=False),
        sa.Column("usage", JSON),
        sa.ForeignKeyConstraint(["thread_id"], ["threads.thread_id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id"),
    )
    op.create_index(
        "one_running",
        "runs",
        ["thread_id"],
        unique=True,
        sqlite_where=sa.text("status = 'running'"),
        postgresql_where=sa.text("status = 'running'"),
    )
    op.create_index("runs_of_thread", "runs", ["thread_id", "position"])
    op.create_index("runs_unfinished", "runs", ["status", "due_at"])
    op.create_table(
        "sessions",
        sa.Column("id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_sessions_user_id"), "sessions", ["user_id"])
    op.create_table(
        "turns",
        sa.Column("thread_id", ID, nullable=False),
        sa.Column("message_id", ID, nullable=False),
        sa.Column("run_id", ID, nullable=False),
        sa.Column("checkpoint_before", ID),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["thread_id"], ["threads.thread_id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("thread_id", "message_id"),
    )
    op.create_index(op.f("ix_turns_run_id"), "turns", ["run_id"])
    op.create_table(
        "feedback",
        sa.Column("feedback_id", ID, nullable=False),
        sa.Column("run_id", ID, nullable=False),
        sa.Column("thread_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("message_id", ID),
        sa.Column("rating", sa.Integer(), nullable=False),
        sa.Column("comment", sa.Text()),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("feedback_id"),
        sa.UniqueConstraint("thread_id", "run_id", "user_id"),
    )
    op.create_index(op.f("ix_feedback_thread_id"), "feedback", ["thread_id"])
    op.create_table(
        "message_search",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("thread_id", ID, nullable=False),
        sa.Column("message_id", sa.String(256), nullable=False),
        sa.Column("user_id", ID, nullable=False),
        sa.Column("type", sa.String(8), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["thread_id"], ["threads.thread_id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("thread_id", "message_id"),
    )
    op.create_index(op.f("ix_message_search_user_id"), "message_search", ["user_id"])
    for statement in FULL_TEXT[op.get_bind().dialect.name]:
        op.execute(statement)
