"""What Landlock alone does not confine: shared memory, other processes' limits, and who is left when the supervisor dies."""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.contracts.sandbox.exhaustion import appeared, survivors
from tests.harness.sandbox.conftest import Sandboxes

from deerflow.sandbox.interface import SandboxRuntimeError
from deerflow.sandbox.isolation.host_paths import HostPathsSandbox
from deerflow.sandbox.isolation.landlock import LandlockSandboxProvider

IPC_PRIVATE, IPC_RMID = 0, 0


@pytest.fixture
async def landlocked(data_dir: Path) -> AsyncIterator[Sandboxes]:
    # The sandbox has no mounts: it takes the host's way to its directories.
    data_dir.chmod(0o711)
    provider = LandlockSandboxProvider(data_dir)
    report = await asyncio.to_thread(provider.probe)
    if not report.ok:
        pytest.skip(str(report))
    yield Sandboxes(provider, data_dir)
    await provider.shutdown()


async def test_shared_memory_of_the_user_is_out_of_reach(landlocked: Sandboxes) -> None:
    sandbox = await landlocked.acquire()
    libc = ctypes.CDLL(None, use_errno=True)
    segment = libc.shmget(0x5EC2E7, 4096, 0o1666)
    try:
        assert segment >= 0
        ask = "import ctypes; print(ctypes.CDLL(None).shmget(0x5EC2E7, 4096, 0))"
        assert (await sandbox.exec(f'python3 -c "{ask}"')).output == "-1\n"
    finally:
        libc.shmctl(segment, IPC_RMID, None)


async def test_limits_of_other_processes_cannot_be_changed(landlocked: Sandboxes) -> None:
    sandbox = await landlocked.acquire()
    await sandbox.start_process("exec sleep 300")
    ask = "import resource as r, sys; r.prlimit(int(sys.argv[1]), r.RLIMIT_CPU, (1, 1))"
    result = await sandbox.exec(f"python3 -c '{ask}' $PPID 2>&1 | tail -1; nice -n 1 true; ulimit -n 300 && ulimit -n")
    assert result.output == "PermissionError: [Errno 1] Operation not permitted\n300\n"


async def test_what_a_killed_supervisor_leaves_behind_is_killed(landlocked: Sandboxes) -> None:
    sandbox = await landlocked.acquire()
    await sandbox.start_process("exec setsid bash -c 'exec -a left-behind-process sleep 300'")
    await appeared("left-behind-process")
    with pytest.raises(SandboxRuntimeError):
        # The shell's parent is its runner, whose parent is the supervisor.
        await sandbox.exec("kill -9 $(awk '/^PPid/ { print $2 }' /proc/$PPID/status); sleep 300")
    assert await survivors("left-behind-process") == []
    assert (await sandbox.exec("echo again")).output == "again\n"


async def test_a_forgotten_sandbox_leaves_no_directory(landlocked: Sandboxes) -> None:
    sandbox = await landlocked.acquire()
    assert isinstance(sandbox, HostPathsSandbox)
    aliases = sandbox._aliases
    assert await asyncio.to_thread(aliases.is_dir)
    landlocked.provider._sandboxes.clear()
    del sandbox
    for _ in range(500):
        gc.collect()
        if not await asyncio.to_thread(aliases.exists):
            return
        await asyncio.sleep(0.01)
    pytest.fail(f"{aliases} was left behind")
