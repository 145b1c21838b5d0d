"""A temporary thread is in no backup, on both databases: no row, no file, no bytes of what was deleted from the copy."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tarfile
from pathlib import Path

from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.harness.runs.run_house import ME, bash, ended, say, thread

from deerflow.runtime import Runtime
from deerflow.storage.backup import backup

KEPT, PASSING = b"heron", b"falcon"


def texts(archive: Path, work: Path) -> bytes:
    """Everything in the archive that is text, what pg_dump wrote as SQL included."""
    work.mkdir()
    with tarfile.open(archive) as tar:
        tar.extractall(work)
    found = b"".join(file.name.encode() + file.read_bytes() for file in work.rglob("*") if file.is_file())
    for dump in work.glob("database.pg"):
        script = subprocess.run(["pg_restore", "--file=-", str(dump)], check=True, capture_output=True).stdout
        # Binary columns are hexadecimal there.
        found += script + b"".join(bytes.fromhex(part) for part in _hex(script))
    return found


def _hex(script: bytes) -> list[str]:
    import re

    return [part.decode() for part in re.findall(rb"\\\\x((?:[0-9a-f]{2})+)", script)]


async def test_a_backup_holds_nothing_of_a_temporary_thread(runtime: Runtime, endpoint: ScriptedOpenAI, tmp_path: Path):
    passing = (await runtime.threads.create(ME, metadata={"temporary": True}))["thread_id"]
    kept = await thread(runtime)
    for where, word in ((passing, PASSING.decode()), (kept, KEPT.decode())):
        endpoint.script(ToolCalls(bash(f"echo {word} > {word}.txt")), Text(f"It is written: {word}."))
        assert (await ended(runtime, await runtime.runs.start(ME, say(f"Write {word}"), thread_id=where))).ended
    archive, location = tmp_path / "b.tar.gz", runtime.database.location
    await asyncio.to_thread(backup, location, runtime.agent_provider.harness.paths, archive)
    held = await asyncio.to_thread(texts, archive, tmp_path / "out")
    assert KEPT in held and kept.encode() in held
    assert PASSING not in held and passing.encode() not in held
    assert (await runtime.threads.get(ME, passing))["status"] == "idle", "the thread itself goes on"
    assert os.path.exists(runtime.agent_provider.harness.paths.workspace(passing, ME.user_id) / "falcon.txt")
