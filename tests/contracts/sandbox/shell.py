"""Checks 54-56, 59-61: how the shell behaves, and how everything ends."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys

from tests.contracts.sandbox.environment import Checks, Environment, Need
from tests.contracts.sandbox.exhaustion import appeared, survivors

from deerflow.sandbox.interface import WORKSPACE, SandboxError
from deerflow.sandbox.isolated import IsolatedSandbox
from deerflow.sandbox.spawner import process_tree

checks = Checks()

GATEWAY = """
import asyncio, importlib, sys
from pathlib import Path
from tests.contracts.sandbox.environment import thread_policy
async def main():
    module, name, data_dir, marker = sys.argv[1:]
    provider = getattr(importlib.import_module(module), name)(Path(data_dir))
    sandbox = await provider.acquire("gateway", user_id="contract", policy=thread_policy(Path(data_dir), "gateway"))
    await sandbox.exec(f"setsid bash -c 'exec -a {marker} sleep 300' >/dev/null 2>&1 &")
    await sandbox.start_process(f"exec -a {marker} sleep 300")
    print("up", flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


@checks("54", "a command of 300 kB runs")
async def long_command(environment: Environment) -> None:
    result = await environment.sh(f": {'x' * 300_000}\necho done")
    assert (result.output, result.exit_code) == ("done\n", 0)


@checks("55", "exit codes are kept and a syntax error is an error")
async def exit_codes(environment: Environment) -> None:
    assert (await environment.sh("exit 42")).exit_code == 42
    assert (await environment.sh("false")).exit_code == 1
    assert (await environment.sh("kill -9 $$")).exit_code == 137
    broken = await environment.sh("if then fi (")
    assert broken.exit_code not in (0, None)
    assert "syntax error" in broken.output
    assert (await environment.sh("echo fine")).output == "fine\n"


@checks("55.1", "a program is run without a shell: nothing that the session defined has a part in it")
async def without_a_shell(environment: Environment) -> None:
    forged = "id() { echo forged; }; export -f id; alias id='echo forged'; export FORGED=1"
    await environment.sh(f"mkdir -p deep; echo 'echo forged' | tee ~/.bashrc > ~/.bash_profile; {forged}")
    run = environment.sandbox.run
    assert (await run(["id", "-u"])).output.strip().isdigit()
    seen = await run(["env"], env={"GIVEN": "a b"})
    assert "FORGED" not in seen.output and "BASH_FUNC" not in seen.output and "GIVEN=a b\n" in seen.output
    there = await run(["sh", "-c", "pwd; echo $0 $1", "a b", "; exit 3"], cwd=f"{WORKSPACE}/deep")
    assert (there.output, there.exit_code) == (f"{WORKSPACE}/deep\na b ; exit 3\n", 0), there
    assert (await run(["false"])).exit_code == 1 and (await run(["no-such-program"])).exit_code == 127
    assert (await run(["sh", "-c", "kill -9 $$"])).exit_code == 137
    assert (await run(["sleep", "60"], timeout=0.2)).timed_out
    assert (await environment.sh("echo $FORGED; id")).output == "1\nforged\n", "the session is as before"


@checks("56", "a variable given to one command is not seen by another, before, beside or after")
async def secret_variable(environment: Environment) -> None:
    watcher = "for i in $(seq 20); do cat /proc/[0-9]*/environ 2>/dev/null; sleep 0.05; done | tr '\\0' '\\n' | grep -c s3cr3t"
    spying = asyncio.create_task(environment.sh(watcher))
    await asyncio.sleep(0.1)
    result = await environment.sandbox.exec("echo $TOKEN; export TOKEN; sleep 0.3", env={"TOKEN": "s3cr3t"})
    assert result.output == "s3cr3t\n", result
    seen = await spying
    if Need.CONFINED.met(environment.sandbox.isolation):
        assert seen.output == "0\n", seen
    assert (await environment.sh("echo [$TOKEN]")).output == "[]\n"


@checks("59", "a working directory that is deleted crashes nothing")
async def deleted_directory(environment: Environment) -> None:
    name = environment.new_name()
    result = await environment.sh(f"mkdir {name} && cd {name} && rmdir ../{name} && echo gone")
    assert result.output == "gone\n", result
    await environment.sh("cd")


@checks("59.1", "after that the next command begins in the workspace")
async def recovers(environment: Environment) -> None:
    sandbox = await environment.other("lost")
    await environment.sh("mkdir -p lost && cd lost && rmdir ../lost", sandbox=sandbox)
    result = await environment.sh("pwd", sandbox=sandbox)
    assert (result.output, result.cwd) == (f"{WORKSPACE}\n", WORKSPACE), result


@checks("60", "killing the launcher on the host kills everything inside", Need.OWN_PIDS, Need.SESSION)
async def kill_launcher(environment: Environment) -> None:
    marker = environment.new_name()
    sandbox = await environment.other("doomed")
    assert isinstance(sandbox, IsolatedSandbox)
    await environment.sh(f"setsid bash -c 'exec -a {marker} sleep 300' >/dev/null 2>&1 &", sandbox=sandbox)
    [running, *_] = await appeared(marker)
    launcher = sandbox.launcher_pid
    assert launcher is not None
    assert running in await asyncio.to_thread(process_tree, launcher)
    await asyncio.to_thread(subprocess.run, ["kill", "-9", str(launcher)], check=True)
    assert await survivors(marker) == []
    try:
        result = await environment.sh("echo back", sandbox=sandbox)
    except SandboxError:
        result = await environment.sh("echo back", sandbox=sandbox)
    assert result.output == "back\n", result


@checks("61", "killing the gateway kills its sandboxes", Need.SESSION)
async def kill_gateway(environment: Environment) -> None:
    marker = environment.new_name()
    kind = type(environment.provider)
    data_dir = environment.data_dir / f"gateway-{marker}"
    await asyncio.to_thread(data_dir.mkdir)
    gateway = await asyncio.create_subprocess_exec(
        sys.executable, "-c", GATEWAY, kind.__module__, kind.__name__, str(data_dir), marker,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert gateway.stdout is not None
    try:
        async with asyncio.timeout(60):
            assert await gateway.stdout.readline() == b"up\n"
        # The gateway's own command line holds the marker too.
        await appeared(marker, least=3)
    finally:
        gateway.send_signal(signal.SIGKILL)
        await gateway.wait()
    assert await survivors(marker) == []
