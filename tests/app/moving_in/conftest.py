"""The command line that takes things over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.moved_in import Import
from typer.testing import CliRunner

from deerflow_app.cli import Settings
from deerflow_app.cli.commands import moving_in


@pytest.fixture
def take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Import:
    """Runs ``deerflow import … --json`` and returns the report, by kind and outcome; with ``fails`` also if it ends badly."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text("config_version: 9\nsandbox:\n  tool_image:\n    enabled: false\n")

    def run(*argv: str, fails: bool = False) -> dict[str, Any]:
        result = CliRunner().invoke(moving_in.app, [*argv, "--json"], obj=Settings())
        if not fails and result.exception is not None:
            raise result.exception
        if fails:
            assert result.exception is not None
        if not result.stdout:
            return {"error": str(result.exception)}
        report = json.loads(result.stdout)
        counts = {row.pop("kind"): tuple(row.values()) for row in report["rows"]}
        return {**counts, "notes": [f"{note['kind']} {note['name']}: {note['why']}" for note in report["notes"]]}

    return run
