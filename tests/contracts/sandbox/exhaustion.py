"""Checks 30-38: what happens to a sandbox that takes too much, and to what it leaves running."""

from __future__ import annotations

import asyncio
import time

from tests.contracts.sandbox.environment import TIGHT, Checks, Environment, Need, host_processes

from deerflow.sandbox.interface import Sandbox

PATIENCE = 60.0
"""Seconds that a loaded machine may take to start or to end a process."""

checks = Checks()

FORKS = """
import time
children = []
try:
    while len(children) < 1000:
        pid = os.fork()
        if pid == 0:
            time.sleep(60)
            os._exit(0)
        children.append(pid)
    print(len(children), 'unlimited')
except OSError as error:
    print(len(children), errno.errorcode[error.errno])
for pid in children:
    os.kill(pid, 9)
"""


async def appeared(marker: str, least: int = 1) -> list[int]:
    """At least ``least`` processes that carry ``marker``. Raises TimeoutError."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = await asyncio.to_thread(host_processes, marker)
        if len(found) >= least:
            return found
        await asyncio.sleep(0.02)
    raise TimeoutError(f"{marker} did not start")


async def survivors(marker: str) -> list[int]:
    """Processes that still carry ``marker`` after a moment, which an exiting process may take."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = await asyncio.to_thread(host_processes, marker)
        if not found or time.monotonic() >= deadline:
            return found
        await asyncio.sleep(0.02)


@checks("30", "a fork bomb ends at the limit of processes", Need.PROCESS_LIMIT)
async def fork_bomb(environment: Environment) -> None:
    sandbox = await environment.other("bomb")
    [line] = await environment.python(FORKS, sandbox=sandbox)
    count, outcome = line.split()
    assert outcome == "EAGAIN", line
    assert int(count) <= TIGHT.processes, line


@checks("30.1", "after a fork bomb, reset makes the sandbox usable again", Need.PROCESS_LIMIT, Need.SESSION)
async def after_fork_bomb(environment: Environment) -> None:
    sandbox = await environment.other("bomb")
    await environment.sh("for i in $(seq 300); do sleep 300 & done 2>/dev/null; true", sandbox=sandbox, timeout=1)
    await sandbox.reset()
    assert (await environment.sh("echo usable", sandbox=sandbox)).output == "usable\n"


@checks(
    "30.2", "a fork bomb that the host must watch for ends, and other sandboxes of the user go on", Need.PROCESS_WATCH
)
async def watched_fork_bomb(environment: Environment) -> None:
    marker, other = environment.new_name(), environment.new_name()
    await environment.sandbox.start_process(f"exec -a {other} sleep 300")
    await appeared(other)
    # Bounded by itself, should nothing stop it: 600 detached processes and as many children.
    bomb = "for _ in range(600):\n if os.fork() == 0:\n  os.setsid()\n  os.fork() and os._exit(0)\n  break\n"
    sandbox = await environment.other("watched")
    result = await environment.sh(
        f"python3 -c 'import os, time\n{bomb}time.sleep(50)' {marker}", sandbox=sandbox, timeout=60
    )
    assert result.killed_for == "processes", result
    assert await survivors(marker) == []
    assert len(await appeared(other)) == 1
    after = await environment.sh("echo usable", sandbox=sandbox)
    assert after.output == "usable\n", after


@checks("31", "a process that wants too much memory gets an error", Need.DATA_LIMIT)
async def memory_hog(environment: Environment) -> None:
    code = f"try: bytearray({TIGHT.memory_mb + 512} << 20); print('granted')\nexcept MemoryError: print('refused')"
    assert await environment.python(code) == ["refused"]


@checks("32", "memory file systems are bounded or read-only", Need.NAMESPACES)
async def fill_memory(environment: Environment) -> None:
    result = await environment.sh(
        "for i in 1 2; do head -c 40M /dev/zero >/dev/shm/$i; done; cat /dev/shm/? | wc -c; rm /dev/shm/?"
    )
    lines = result.output.splitlines()
    assert "No space left" in lines[0], result
    assert int(lines[-1]) <= 64 << 20, result
    for place in ("/", "/dev", "/run"):
        assert (await environment.sh(f"head -c 1 /dev/zero >{place}/fill")).exit_code not in (0, None)


@checks("33", "one file cannot grow beyond its limit", Need.FILE_LIMIT)
async def big_file(environment: Environment) -> None:
    name = environment.new_name()
    result = await environment.sh(f"head -c 80M /dev/zero >{name}; stat -c %s {name}; rm {name}")
    assert int(result.output.split()[-1]) <= TIGHT.file_size_mb << 20, result


@checks("34", "output beyond the cap is dropped in the middle and counted")
async def huge_output(environment: Environment) -> None:
    result = await environment.sandbox.exec(
        "echo first; head -c 20M /dev/zero | tr '\\0' x; echo; echo last", max_output=100_000
    )
    assert result.truncated
    assert result.output.startswith("first\n")
    assert result.output.endswith("\nlast\n")
    assert result.exit_code == 0


@checks("34.1", "the cap on output holds and the total is right")
async def output_cap(environment: Environment) -> None:
    result = await environment.sandbox.exec("head -c 20M /dev/zero | tr '\\0' x", max_output=100_000)
    assert len(result.output) < 101_000
    assert result.total_bytes == 20 << 20


@checks("35", "endless output is stopped")
async def endless_output(environment: Environment) -> None:
    result = await environment.sandbox.exec("yes", timeout=60, max_output=10_000)
    assert (result.killed_for, result.exit_code, result.timed_out) == ("flood", None, False), result


async def run_into_timeout(environment: Environment, command: str, sandbox: Sandbox | None = None) -> None:
    result = await environment.sh(command, timeout=0.5, sandbox=sandbox)
    assert result.timed_out, result
    assert result.exit_code is None, result


@checks("36", "a timeout kills the whole tree, also what left its session or ignores SIGTERM")
async def timeout_tree(environment: Environment) -> None:
    marker = environment.new_name()
    stay = f"exec -a {marker} sleep 300"
    command = (
        f"(trap '' TERM HUP; bash -c '{stay}') & setsid bash -c '{stay}' & nohup setsid bash -c \"trap '' TERM; {stay}\" "
        f">/dev/null 2>&1 & (setsid bash -c '({stay}) & ({stay}) &') ; trap '' TERM; while :; do sleep 1; done"
    )
    await run_into_timeout(environment, command)
    assert await survivors(marker) == []


@checks("37", "a daemon without environment does not outlive a timeout")
async def daemon(environment: Environment) -> None:
    marker = environment.new_name()
    await run_into_timeout(environment, f"env -i setsid bash -c '(exec -a {marker} sleep 300) &' & sleep 30")
    assert await survivors(marker) == []


HOSTILE = """
import os, sys, time
def parent(pid):
    with open(f'/proc/{pid}/stat') as file:
        return int(file.read().rsplit(')', 1)[1].split()[1])
runner = os.getppid()
while parent(runner) != 1:
    runner = parent(runner)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.kill(runner, 9)
        os.execvp('sleep', [sys.argv[1], '300'])
    os._exit(0)
time.sleep(0.2)
"""


@checks("37.1", "what kills its own runner and detaches is killed too", Need.OWN_PROC, Need.SESSION)
async def kills_its_runner(environment: Environment) -> None:
    marker = environment.new_name()
    sandbox = await environment.other("hostile")
    await environment.sh(f"python3 - {marker} <<'END'\n{HOSTILE}\nEND", timeout=5, sandbox=sandbox)
    assert await survivors(marker) == []
    assert (await environment.sh("echo alive", sandbox=sandbox)).output == "alive\n"


@checks("37.2", "reset kills everything that runs", Need.SESSION)
async def reset_kills(environment: Environment) -> None:
    marker = environment.new_name()
    sandbox = await environment.other("hostile")
    await environment.sh(f"setsid bash -c 'exec -a {marker} sleep 300' >/dev/null 2>&1 &", sandbox=sandbox)
    await appeared(marker)
    await sandbox.reset()
    assert await survivors(marker) == []


@checks("38", "orphans are reaped", Need.SESSION)
async def zombies(environment: Environment) -> None:
    await environment.sh("for i in $(seq 60); do (setsid true &) ; done; sleep 0.1")
    result = await environment.sh("grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l")
    if Need.OWN_PROC.met(environment.sandbox.isolation):
        assert result.output == "0\n", result
    assert result.exit_code == 0
