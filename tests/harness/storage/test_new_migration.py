"""``scripts/new_migration.py`` writes the migration that follows the newest one."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import pytest
from sqlalchemy import Column, String

from deerflow.storage.migrate import HEAD, MIGRATIONS
from deerflow.storage.tables import metadata

SCRIPT = Path(__file__).parents[3] / "scripts" / "new_migration.py"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, which writes into a copy of the migrations."""
    spec = importlib.util.spec_from_file_location("new_migration", SCRIPT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    shutil.copytree(MIGRATIONS, tmp_path / "migrations", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(module, "MIGRATIONS", tmp_path / "migrations")
    return module


def test_migrations_follow_the_newest_one_and_hold_what_has_changed(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = tmp_path / "migrations" / "versions"
    first, second = f"{int(HEAD) + 1:04}", f"{int(HEAD) + 2:04}"
    script.main("Nothing yet")
    written = (versions / f"{first}_nothing_yet.py").read_text()
    assert f"revision = '{first}'\ndown_revision = '{HEAD}'\n" in written
    assert "    pass\n" in written and "op.create" not in written and "op.drop" not in written

    changed = metadata.tables["site_settings"].to_metadata(type(metadata)())
    changed.append_column(Column("why", String(64)))
    monkeypatch.setattr(script.tables, "metadata", changed.metadata)
    script.main("A reason")
    written = (versions / f"{second}_a_reason.py").read_text()
    assert (
        f"down_revision = '{first}'\n" in written and "sa.Column('why', sa.String(length=64), nullable=True)" in written
    )
