"""What a run can show for its answer."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    bind = op.get_bind()
    if "receipts" not in {column["name"] for column in sa.inspect(bind).get_columns("runs")}:
        op.execute(
            sa.text(f"ALTER TABLE runs ADD COLUMN receipts {'JSON' if bind.dialect.name == 'sqlite' else 'JSONB'}")
        )
