"""Connections to chat platforms: who writes there, what came in and what goes out."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.create_table(
        "channel_codes",
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.String(length=128), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("hash"),
        if_not_exists=True,
    )
    op.create_index(op.f("ix_channel_codes_user_id"), "channel_codes", ["user_id"], unique=False, if_not_exists=True)

    op.create_table(
        "channel_connections",
        sa.Column("id", sa.String(length=128), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("user_id", sa.String(length=128), nullable=True),
        sa.Column("in_file", sa.Boolean(), nullable=False),
        sa.Column("is_on", sa.Boolean(), nullable=False),
        sa.Column("secrets", sa.Text(), nullable=False),
        sa.Column("settings", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("me", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=True),
        sa.Column("cursor", sa.Text(), nullable=False),
        sa.Column("lease_owner", sa.String(length=128), nullable=True),
        sa.Column("lease_epoch", sa.BigInteger(), nullable=False),
        sa.Column("leased_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("state_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("linked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        if_not_exists=True,
    )
    op.create_index(
        op.f("ix_channel_connections_user_id"), "channel_connections", ["user_id"], unique=False, if_not_exists=True
    )

    op.create_table(
        "channel_identities",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("workspace", sa.String(length=256), nullable=False),
        sa.Column("external_id", sa.String(length=256), nullable=False),
        sa.Column("user_id", sa.String(length=128), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        if_not_exists=True,
    )
    op.create_index(
        "channel_identities_active",
        "channel_identities",
        ["kind", "workspace", "external_id"],
        unique=True,
        if_not_exists=True,
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )
    op.create_index(
        op.f("ix_channel_identities_user_id"), "channel_identities", ["user_id"], unique=False, if_not_exists=True
    )

    op.create_table(
        "channel_conversations",
        sa.Column("connection_id", sa.String(length=128), nullable=False),
        sa.Column("chat", sa.String(length=256), nullable=False),
        sa.Column("topic", sa.String(length=256), nullable=False),
        sa.Column("user_id", sa.String(length=128), nullable=False),
        sa.Column("thread_id", sa.String(length=128), nullable=True),
        sa.Column("agent", sa.String(length=128), nullable=True),
        sa.Column("model", sa.String(length=256), nullable=True),
        sa.Column("mode", sa.String(length=16), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["connection_id"], ["channel_connections.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["thread_id"], ["threads.thread_id"], ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("connection_id", "chat", "topic", "user_id"),
        if_not_exists=True,
    )
    op.create_index(
        op.f("ix_channel_conversations_thread_id"),
        "channel_conversations",
        ["thread_id"],
        unique=False,
        if_not_exists=True,
    )

    op.create_table(
        "channel_inbox",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("connection_id", sa.String(length=128), nullable=False),
        sa.Column("message_id", sa.String(length=256), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("chat", sa.String(length=256), nullable=False),
        sa.Column("topic", sa.String(length=256), nullable=False),
        sa.Column("workspace", sa.String(length=256), nullable=False),
        sa.Column("author", sa.String(length=256), nullable=False),
        sa.Column("body", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("accepted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("why", sa.Text(), nullable=True),
        sa.Column("user_id", sa.String(length=128), nullable=True),
        sa.Column("run_id", sa.String(length=128), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["connection_id"], ["channel_connections.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("connection_id", "message_id"),
        if_not_exists=True,
    )
    op.create_index(
        "channel_inbox_of_place",
        "channel_inbox",
        ["connection_id", "chat", "topic", "id"],
        unique=False,
        if_not_exists=True,
    )
    op.create_index(
        "channel_inbox_waiting",
        "channel_inbox",
        ["connection_id", "id"],
        unique=False,
        if_not_exists=True,
        sqlite_where=sa.text("state = 'accepted'"),
        postgresql_where=sa.text("state = 'accepted'"),
    )
    op.create_index(
        op.f("ix_channel_inbox_accepted_at"), "channel_inbox", ["accepted_at"], unique=False, if_not_exists=True
    )
    op.create_index(op.f("ix_channel_inbox_run_id"), "channel_inbox", ["run_id"], unique=False, if_not_exists=True)

    op.create_table(
        "channel_limits",
        sa.Column("connection_id", sa.String(length=128), nullable=False),
        sa.Column("chat", sa.String(length=256), nullable=False),
        sa.Column("blocked_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("unprompted", sa.Integer(), nullable=False),
        sa.Column("unprompted_since", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["connection_id"], ["channel_connections.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("connection_id", "chat"),
        if_not_exists=True,
    )
    op.create_table(
        "channel_outbox",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("connection_id", sa.String(length=128), nullable=False),
        sa.Column("chat", sa.String(length=256), nullable=False),
        sa.Column("topic", sa.String(length=256), nullable=False),
        sa.Column("place", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False),
        sa.Column("turn", sa.String(length=256), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("body", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False),
        sa.Column("is_final", sa.Boolean(), nullable=False),
        sa.Column("key", sa.String(length=50), nullable=False),
        sa.Column("wake", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("ref", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=True),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("sent_seq", sa.Integer(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("tried_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("is_marked", sa.Boolean(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["connection_id"], ["channel_connections.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("connection_id", "turn", "kind", "part"),
        if_not_exists=True,
    )
    op.create_index(
        "channel_outbox_open",
        "channel_outbox",
        ["connection_id", "turn"],
        unique=False,
        if_not_exists=True,
        sqlite_where=sa.text("NOT is_final"),
        postgresql_where=sa.text("NOT is_final"),
    )
    op.create_index(
        "channel_outbox_waiting",
        "channel_outbox",
        ["connection_id", "chat", "topic", "id"],
        unique=False,
        if_not_exists=True,
        sqlite_where=sa.text("state IN ('pending', 'sending', 'uncertain')"),
        postgresql_where=sa.text("state IN ('pending', 'sending', 'uncertain')"),
    )
    op.create_index(
        op.f("ix_channel_outbox_updated_at"), "channel_outbox", ["updated_at"], unique=False, if_not_exists=True
    )

    op.create_table(
        "channel_decisions",
        sa.Column("key_hash", sa.String(length=64), nullable=False),
        sa.Column("thread_id", sa.String(length=128), nullable=False),
        sa.Column("interrupt", sa.String(length=128), nullable=False),
        sa.Column("choice", sa.JSON().with_variant(postgresql.JSONB(), "postgresql"), nullable=False),
        sa.Column("outbox_id", sa.BigInteger(), nullable=True),
        sa.Column("user_id", sa.String(length=128), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("decided_by", sa.String(length=128), nullable=True),
        sa.ForeignKeyConstraint(["outbox_id"], ["channel_outbox.id"], ondelete="SET NULL"),
        sa.ForeignKeyConstraint(["thread_id"], ["threads.thread_id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("key_hash"),
        if_not_exists=True,
    )
    op.create_index(
        op.f("ix_channel_decisions_interrupt"), "channel_decisions", ["interrupt"], unique=False, if_not_exists=True
    )
    op.create_index(
        op.f("ix_channel_decisions_outbox_id"), "channel_decisions", ["outbox_id"], unique=False, if_not_exists=True
    )
    op.create_index(
        op.f("ix_channel_decisions_thread_id"), "channel_decisions", ["thread_id"], unique=False, if_not_exists=True
    )
