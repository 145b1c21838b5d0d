"""Pinned definitions of tools of MCP servers."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"

PINS = """
CREATE TABLE IF NOT EXISTS mcp_pins (
    server TEXT NOT NULL,
    digest VARCHAR(64) NOT NULL,
    tool TEXT NOT NULL,
    source VARCHAR(64) NOT NULL,
    definition TEXT NOT NULL,
    at DATETIME NOT NULL,
    accepted BOOLEAN NOT NULL,
    PRIMARY KEY (server, digest)
)
"""


def upgrade() -> None:
    is_postgres = op.get_bind().dialect.name == "postgresql"
    op.execute(sa.text(PINS.replace("DATETIME", "TIMESTAMP WITH TIME ZONE") if is_postgres else PINS))
