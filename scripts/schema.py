"""Write what a new SQLite database is made with: ``python scripts/schema.py``, after a new migration.

The statements are those of a database that all migrations made. A test compares the two.
"""

from __future__ import annotations

from sqlalchemy import create_engine, text

from deerflow.storage.migrate import SCHEMA, run_migrations
from deerflow.storage.tables import CHECKPOINTS

STATEMENTS = text(r"""
SELECT sql FROM sqlite_master WHERE sql IS NOT NULL
AND name NOT IN (SELECT name FROM pragma_table_list WHERE type = 'shadow') ORDER BY rowid
""")
"""A full-text index makes its own tables, the shadows."""


def main() -> None:
    with create_engine("sqlite://").begin() as connection:
        for statement in CHECKPOINTS.split(";\n"):
            connection.exec_driver_sql(statement)
        run_migrations(connection)
        SCHEMA.write_text("".join(f"{one};\n" for one in connection.execute(STATEMENTS).scalars()))


if __name__ == "__main__":
    main()
