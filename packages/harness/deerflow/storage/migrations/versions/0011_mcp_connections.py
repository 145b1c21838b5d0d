"""People's own connections to MCP servers."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

STATEMENTS = """
CREATE TABLE IF NOT EXISTS mcp_connections (
    user_id VARCHAR(128) NOT NULL,
    server VARCHAR(256) NOT NULL,
    data TEXT NOT NULL,
    version INTEGER NOT NULL,
    expires_at DATETIME,
    leased_until DATETIME,
    PRIMARY KEY (user_id, server)
);
CREATE TABLE IF NOT EXISTS mcp_authorizations (
    state VARCHAR(64) NOT NULL PRIMARY KEY,
    user_id VARCHAR(128) NOT NULL,
    data TEXT NOT NULL,
    expires_at DATETIME NOT NULL
);
CREATE INDEX IF NOT EXISTS ix_mcp_authorizations_user_id ON mcp_authorizations (user_id)
"""


def upgrade() -> None:
    statements = STATEMENTS
    if op.get_bind().dialect.name == "postgresql":
        statements = statements.replace("DATETIME", "TIMESTAMP WITH TIME ZONE")
    for statement in statements.split(";"):
        op.execute(sa.text(statement))
