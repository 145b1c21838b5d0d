"""Transcripts of subagents, which stay longer than the events of their runs; and runs of before there were sums of days, in these."""

from collections import Counter
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0019"
down_revision = "0018"

STATEMENT = """
CREATE TABLE IF NOT EXISTS task_transcripts (
    thread_id VARCHAR(128) NOT NULL,
    namespace VARCHAR(128) NOT NULL,
    task_id TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (thread_id, namespace),
    FOREIGN KEY (thread_id) REFERENCES threads (thread_id) ON DELETE CASCADE
)
"""
COUNTED = ("calls", "input_tokens", "cached_tokens", "output_tokens", "cost", "estimated_calls")
KEYS = ("user_id", "day", "agent", "model", "currency")


def upgrade() -> None:
    connection = op.get_bind()
    is_postgres = connection.dialect.name == "postgresql"
    op.execute(sa.text(STATEMENT.replace("BLOB", "BYTEA") if is_postgres else STATEMENT))
    _count_earlier_runs(connection, is_postgres)


def _count_earlier_runs(connection: sa.Connection, is_postgres: bool) -> None:
    """Add what was used on days before the first that has sums."""
    day = "to_char(ended_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')" if is_postgres else "substr(ended_at, 1, 10)"
    agent = "kwargs #>> '{agent,name}'" if is_postgres else "json_extract(kwargs, '$.agent.name')"
    query = f"""SELECT user_id, {day} AS day, COALESCE({agent}, 'lead_agent') AS agent, usage FROM runs
        WHERE usage IS NOT NULL AND {day} < COALESCE((SELECT min(day) FROM daily_usage), '9999')"""
    typed = sa.text(query).columns(usage=sa.JSON().with_variant(postgresql.JSONB(), "postgresql"))
    sums: dict[tuple[str, ...], Counter[str]] = {}
    for user_id, on, who, usage in connection.execute(typed):
        for model, callers in (usage or {}).items():
            for counted in callers.values():
                key = (user_id, on, who, model[:256], counted.get("currency", ""))
                sums.setdefault(key, Counter()).update({name: counted.get(name, 0) for name in COUNTED})
    rows: list[dict[str, Any]] = [
        {**dict(zip(KEYS, key, strict=True)), **{name: counted[name] for name in COUNTED}}
        for key, counted in sums.items()
    ]
    if rows:
        names = [*KEYS, *COUNTED]
        values = ", ".join(f":{name}" for name in names)
        connection.execute(sa.text(f"INSERT INTO daily_usage ({', '.join(names)}) VALUES ({values})"), rows)
