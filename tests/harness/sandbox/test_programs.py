"""Programs that agents hear of: each ran once in a real sandbox."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest
from tests.harness.sandbox.conftest import Sandboxes, data_dir, namespace_provider, sandboxes

from deerflow.sandbox import programs as module
from deerflow.sandbox.programs import SYSTEM, Programs

__all__ = ["data_dir", "namespace_provider", "sandboxes"]
pytestmark = pytest.mark.timeout(300)


async def working(programs: Programs) -> tuple[str, ...]:
    return await asyncio.to_thread(lambda: programs.working)


async def test_a_program_is_there_once_it_ran_in_a_sandbox_and_until_it_changes(
    sandboxes: Sandboxes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = {
        "git": "git --version",
        "broken": "bash -c 'exit 3'",
        "blind": "cat /etc/shadow",
        "absent": "no-such-program",
    }
    monkeypatch.setattr(module, "CHECKS", checks)
    file = tmp_path / "state/programs.json"
    programs = Programs(sandboxes.provider, file)
    assert await working(programs) == (), "installed is not enough"
    await programs.try_out()
    assert await working(programs) == await working(Programs(sandboxes.provider, file)) == ("git",)
    assert {name: kept[1] for name, kept in json.loads(file.read_text()).items()} == {
        "git": True, "broken": False, "blind": False,
    }  # fmt: skip
    assert await working(Programs(sandboxes.provider, file, "other settings")) == ()
    kept = json.loads(file.read_text())
    kept["git"][0] = "another version"
    file.write_text(json.dumps(kept))
    assert await working(Programs(sandboxes.provider, file)) == ()
    file.write_text("{")
    assert await working(Programs(sandboxes.provider, file)) == ()


async def test_the_desk_programs_of_this_machine_work_in_a_sandbox(
    sandboxes: Sandboxes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = ("git", "libreoffice", "chromium", "poppler (pdftotext, pdftoppm)")
    checks = {name: check for name, check in module.CHECKS.items() if name in mine}
    monkeypatch.setattr(module, "CHECKS", checks)
    programs = Programs(sandboxes.provider, tmp_path / "programs.json")
    await programs.try_out()
    there = tuple(name for name, check in checks.items() if shutil.which(check.partition(" ")[0], path=SYSTEM))
    assert await working(programs) == there
