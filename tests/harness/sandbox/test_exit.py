"""A program that ends without shutting its provider down says nothing and leaves nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TICKING = """
import asyncio, threading, time
from deerflow.sandbox.spawner import Spawner

tasks = set()

async def tick():
    while True:
        await asyncio.to_thread(int)
        await asyncio.sleep(0.01)

async def start():
    # As the provider watches its sessions: a task that nobody awaits.
    tasks.add(task := asyncio.create_task(tick()))
    task.add_done_callback(tasks.discard)
    # The interpreter waits for this thread; executors refuse work while it does.
    asyncio.get_running_loop().run_in_executor(None, time.sleep, 0.5)

asyncio.run(Spawner().call(start()))
threading.Thread(target=lambda: (threading.main_thread().join(), time.sleep(0.5))).start()
"""

FORGETFUL = """
import asyncio, sys
from pathlib import Path
from deerflow.sandbox.interface import WORKSPACE, Mount, Policy
from deerflow.sandbox.local import LocalSandboxProvider

async def main():
    policy = Policy(mounts=(Mount(Path(sys.argv[1]), WORKSPACE),))
    for allowed in (True, False):
        provider = LocalSandboxProvider(allow_host_bash=allowed)
        sandbox = await provider.acquire("t", user_id="u", policy=policy)
        if allowed:
            print((await sandbox.exec("echo hi")).output)
        kept.append(provider)

kept = []
asyncio.run(main())
"""


def ended(program: str, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=dict(os.environ, TMPDIR=str(directory)),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_what_was_under_way_ends_without_a_word(tmp_path: Path) -> None:
    run = ended(TICKING, tmp_path)
    assert (run.returncode, run.stderr) == (0, "")


def test_directories_of_sandboxes_without_isolation_are_taken_away(tmp_path: Path) -> None:
    temporary, workspace = tmp_path / "tmp", tmp_path / "workspace"
    temporary.mkdir()
    run = ended(FORGETFUL, temporary, str(workspace))
    assert (run.returncode, run.stdout) == (0, "hi\n\n"), run.stderr
    assert list(temporary.iterdir()) == []
