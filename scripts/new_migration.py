"""Write the next migration: ``python scripts/new_migration.py "what it changes"``, after a change of the tables.

It is what makes the tables of the newest migration into those that the code declares now. Read it before you keep it,
say what to do with the rows that are there, set ``HEAD`` in ``storage/migrate.py`` to its number, and ``READABLE_FROM``,
too, unless programs of before can go on with the tables; then run ``scripts/schema.py``.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from alembic import command
from alembic.autogenerate.api import AutogenContext
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from deerflow.storage import search as message_search
from deerflow.storage import tables
from deerflow.storage.migrate import MIGRATIONS


def render_item(kind: str, item: Any, context: AutogenContext) -> str | bool:
    """A migration must not depend on code that changes: our own types are written as what they are to the database."""
    if kind == "type" and isinstance(item, tables.UtcDateTime):
        return "sa.DateTime(timezone=True)"
    if kind == "type" and item is tables.Json:
        return "sa.JSON().with_variant(postgresql.JSONB(), 'postgresql')"
    return False


def include_object(item: Any, name: str | None, kind: str, reflected: bool, compare_to: Any) -> bool:
    """Nothing that only the database knows: LangGraph's tables, SQLite's full-text index. What to drop is written by hand."""
    return not (reflected and compare_to is None)


def main(message: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    newest = ScriptDirectory.from_config(config).get_current_head()
    assert newest, "The migration of the first release is gone."
    number = f"{int(newest) + 1:04}"
    with create_engine("sqlite://").begin() as connection:
        config.attributes.update(
            connection=connection,
            target_metadata=[tables.metadata, message_search.metadata],
            render_item=render_item,
            include_object=include_object,
        )
        command.upgrade(config, "head")
        slug = re.sub(r"\W+", "_", message.lower()).strip("_")
        config.set_main_option("file_template", f"{number}_{slug[:40]}")
        command.revision(config, message, autogenerate=True, rev_id=number)


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or sys.exit(__doc__ or ""))
