"""What stands around a conversation: the log."""

from __future__ import annotations

import logging
from pathlib import Path

from deerflow_app.cli.backend import LogFile


def test_the_log_is_for_its_owner_alone_and_is_added_to(tmp_path: Path) -> None:
    for text in ("erste Zeile 報告", "second"):
        handler = LogFile(tmp_path / "deerflow.log", maxBytes=1000, backupCount=1, encoding="utf-8")
        handler.emit(logging.makeLogRecord({"msg": text}))
        handler.close()
    assert (tmp_path / "deerflow.log").read_text(encoding="utf-8").splitlines() == ["erste Zeile 報告", "second"]
    assert (tmp_path / "deerflow.log").stat().st_mode & 0o077 == 0


def test_the_log_stays_small(tmp_path: Path) -> None:
    handler = LogFile(tmp_path / "deerflow.log", maxBytes=1000, backupCount=1, encoding="utf-8")
    for number in range(200):
        handler.emit(logging.makeLogRecord({"msg": f"line {number}"}))
    handler.close()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 2500
