"""Indexes that give what people list in order, and a full-text index of SQLite that gives the newest first.

SQLite's keeps no text of its own any more, finds beginnings of words in an index, and knows whose a text is.
"""

import sqlalchemy as sa
from alembic import op

from deerflow.storage.search import add_words

revision = "0003"
down_revision = "0002"

STATEMENTS = """
DROP INDEX IF EXISTS threads_by_owner;
CREATE INDEX IF NOT EXISTS threads_by_owner ON threads (user_id, updated_at, thread_id);
CREATE INDEX IF NOT EXISTS threads_by_age ON threads (user_id, created_at, thread_id);
CREATE INDEX IF NOT EXISTS threads_expiring ON threads (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS users_by_age ON users (created_at, id);
CREATE INDEX IF NOT EXISTS users_by_role ON users (role);
CREATE INDEX IF NOT EXISTS store_items_by_age ON store_items (user_id, updated_at, namespace, "key");
DROP INDEX IF EXISTS ix_feedback_thread_id;
CREATE INDEX IF NOT EXISTS ix_feedback_run_id ON feedback (run_id);
DROP INDEX IF EXISTS ix_message_search_user_id
"""

SQLITE = """
DROP TRIGGER IF EXISTS message_search_gone;
DROP TABLE message_search_index;
CREATE VIRTUAL TABLE message_search_index USING fts5(
    words, content = '', columnsize = 0, detail = none, prefix = '2 3',
    tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co'"
)
"""

POSTGRESQL = "CREATE INDEX IF NOT EXISTS message_search_newest ON message_search (user_id, id)"


def upgrade() -> None:
    bind = op.get_bind()
    is_sqlite = bind.dialect.name == "sqlite"
    for statement in (STATEMENTS + ";" + (SQLITE if is_sqlite else POSTGRESQL)).split(";"):
        op.execute(sa.text(statement))
    if is_sqlite:
        for row in bind.execute(sa.text("SELECT id, user_id, text FROM message_search")).all():
            add_words(bind, *row)
