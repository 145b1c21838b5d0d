"""Programs that agents hear of: each ran once in a real sandbox."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
import threading
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


async def test_a_trial_that_the_end_of_the_process_interrupts_leaves_nothing(
    sandboxes: Sandboxes, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(data_dir))
    monkeypatch.setattr(module, "CHECKS", {"sleep": "sleep 60"})
    monkeypatch.setattr(module, "DELAY", 0)
    programs = Programs(sandboxes.provider, tmp_path / "programs.json")
    programs.try_out_aside()
    while not [*data_dir.glob("deerflow-programs-*/work/try.html")]:
        await asyncio.sleep(0.02)
    await sandboxes.provider.shutdown()
    await programs.shutdown()
    assert not [*data_dir.glob("deerflow-programs-*")] and await working(programs) == ()


async def test_a_trial_does_not_begin_after_the_end(
    sandboxes: Sandboxes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DELAY", 3600)
    programs, before = Programs(sandboxes.provider, tmp_path / "programs.json"), {*threading.enumerate()}
    programs.try_out_aside()
    await programs.shutdown()
    assert "programs" not in {thread.name for thread in {*threading.enumerate()} - before}
    assert await working(programs) == ()
