"""`deerflow migrate-database` as a person uses it: to PostgreSQL, and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deerflow_app.gateway import held

Cli = Callable[..., Any]


def test_a_database_moves_to_postgres_and_back(cli: Cli, folder: Path, data_dir: Path, postgres_url: str) -> None:
    assert cli("migrate-database", postgres_url).code == 2, "there is nothing yet"
    cli("user", "add", "ann@example.org")
    chat = {"uuid": "1", "name": "Bees", "chat_messages": [{"sender": "human", "text": "Do bees dance?"}]}
    (folder / "conversations.json").write_text(json.dumps([chat]))
    cli("import", "chats", "conversations.json")
    with held(data_dir) as is_ours:
        assert is_ours
        refused = cli("migrate-database", postgres_url)
    assert refused.code == 1 and "Another DeerFlow uses" in refused.err
    moved = cli("migrate-database", postgres_url)
    assert moved.code == 0 and "the history of 1 threads" in moved.out and "postgres_url" in moved.out
    assert "is not empty" in cli("migrate-database", postgres_url).err
    config = folder / "config.yaml"
    before = config.read_text()
    config.write_text(f"{before}database:\n  backend: postgres\n  postgres_url: {postgres_url}\n")
    assert "ann@example.org" in cli("user", "list").out
    assert cli("import", "chats", "conversations.json", "--json").out.count('"there_already": 1') == 1
    back = folder / "back" / "deerflow.db"
    assert cli("migrate-database", str(back)).code == 0
    assert [*back.parent.iterdir()] == [back]
    config.write_text(f"{before}database:\n  backend: sqlite\n  sqlite_dir: {back.parent}\n")
    assert "ann@example.org" in cli("user", "list").out


def test_what_is_no_database_is_refused(cli: Cli, folder: Path) -> None:
    cli("user", "add", "ann@example.org")
    for url in ("mysql://x/y", "other.db", str(folder)):
        assert cli("migrate-database", url).code == 2
