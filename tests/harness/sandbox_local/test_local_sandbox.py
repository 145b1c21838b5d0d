"""Commands on the host: what the faults of the reference's local sandbox were must not happen here."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deerflow.sandbox.interface import (
    OUTPUTS,
    SKILLS,
    UPLOADS,
    WORKSPACE,
    GrepMatch,
    Limits,
    SandboxCommandError,
    SandboxNotFoundError,
    SandboxUnavailableError,
)
from deerflow.sandbox.isolation.plan import BASE_ENVIRONMENT
from deerflow.sandbox.local import LocalSandboxProvider

from .conftest import Local, policy_over


def running(marker: str) -> list[str]:
    """Processes of the host whose command line holds ``marker``."""
    found = subprocess.run(["pgrep", "-f", marker], capture_output=True, text=True).stdout.split()
    return [pid for pid in found if int(pid) != os.getpid()]


async def started(marker: str) -> bool:
    return await _becomes(marker, lives=True)


async def gone(marker: str) -> bool:
    return await _becomes(marker, lives=False)


async def _becomes(marker: str, *, lives: bool) -> bool:
    for _ in range(100):
        if bool(await asyncio.to_thread(running, marker)) is lives:
            return True
        await asyncio.sleep(0.05)
    return False


# paths --------------------------------------------------------------------------------------------------------------


async def test_virtual_paths_work_in_commands_though_the_host_directory_has_an_ugly_name(local: Local) -> None:
    script = f"echo hi > {WORKSPACE}/a.txt; cat {WORKSPACE}/a.txt; cp {WORKSPACE}/a.txt {OUTPUTS}/; ls {OUTPUTS}; ls /mnt/user-data; pwd"
    result = await local.sandbox.exec(script)
    assert result.output == f"hi\na.txt\noutputs\nuploads\nworkspace\n{WORKSPACE}\n"
    assert (local.root / "user-data/outputs/a.txt").read_text() == "hi\n"


async def test_what_is_written_is_never_changed(local: Local) -> None:
    text = f"see {SKILLS}/x, https://h{SKILLS}/a and {WORKSPACE}/../b/\n".encode()
    await local.sandbox.write(f"{WORKSPACE}/note.md", text)
    assert (local.workspace / "note.md").read_bytes() == text
    assert (await local.sandbox.exec("cat note.md")).output.encode() == text
    await local.sandbox.exec(f"cat > two.md <<'EOF'\nsee {SKILLS}/x\nEOF")
    assert (local.workspace / "two.md").read_text() == f"see {SKILLS}/x\n"


async def test_a_script_that_needs_a_real_path_is_explained(local: Local) -> None:
    result = await local.sandbox.exec(f"python3 - <<'EOF'\nopen('{WORKSPACE}/a')\nEOF")
    assert result.exit_code == 1 and "no real /mnt paths" in result.notice
    assert (await local.sandbox.exec("false")).notice == ""


async def test_no_host_path_shows_in_what_commands_print(local: Local) -> None:
    script = f"pwd; pwd -P; realpath {UPLOADS}; python3 -c 'import os; print(os.getcwd())'; cd {SKILLS}; pwd -P; echo $HOME $TMPDIR; cat {WORKSPACE}/no"
    result = await local.sandbox.exec(script)
    assert str(local.root) not in result.output and "deerflow-" not in result.output
    assert result.output.splitlines()[:5] == [WORKSPACE, WORKSPACE, UPLOADS, WORKSPACE, SKILLS]
    assert result.cwd == SKILLS


# the shell ----------------------------------------------------------------------------------------------------------


async def test_directory_variables_and_functions_carry_over(local: Local) -> None:
    await local.sandbox.exec(
        f"cd {OUTPUTS}; export GREETING='two\nlines'; hello() {{ echo \"hello $GREETING\"; }}; exit 3"
    )
    result = await local.sandbox.exec("hello; pwd; cd -")
    assert result.output == f"hello two\nlines\n{OUTPUTS}\n{WORKSPACE}\n"
    await local.sandbox.reset()
    assert (await local.sandbox.exec("pwd; echo [$GREETING]; type hello 2>&1")).output.startswith(f"{WORKSPACE}\n[]\n")


async def test_the_servers_environment_is_not_inherited(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-server")
    result = await local.sandbox.exec("env; cat /proc/$$/environ | tr '\\0' '\\n'")
    names = {line.split("=")[0] for line in result.output.splitlines() if "=" in line}
    assert "sk-server" not in result.output
    assert names <= {*BASE_ENVIRONMENT, "PATH", "PWD", "OLDPWD", "SHLVL", "_", "SBX_CWD"}


async def test_the_policys_environment_is_there_and_a_per_call_one_does_not_stay(tmp_path: Path) -> None:
    provider = LocalSandboxProvider(allow_host_bash=True)
    sandbox = await provider.acquire("t", user_id="u", policy=policy_over(tmp_path, environment={"FROM_CONFIG": "1"}))
    await sandbox.exec(f"export MINE=2; cd {OUTPUTS}")
    result = await sandbox.exec(
        "echo $FROM_CONFIG $TOKEN [$MINE] $PWD; export LEAK=$TOKEN; cd /", env={"TOKEN": "s3cret"}
    )
    assert result.output == f"1 s3cret [] {OUTPUTS}\n"
    result = await sandbox.exec("echo $FROM_CONFIG [$TOKEN$LEAK] $MINE; pwd")
    assert result.output == f"1 [] 2\n{OUTPUTS}\n"
    await provider.shutdown()


@pytest.mark.parametrize("name", ["LD_PRELOAD", "PATH", "BASH_ENV", "1X", "A B", "", "A=B"])
async def test_a_dangerous_variable_is_refused(local: Local, name: str) -> None:
    with pytest.raises(SandboxCommandError):
        await local.sandbox.exec("true", env={name: "x"})


async def test_a_nul_byte_and_a_missing_directory_are_refused(local: Local) -> None:
    with pytest.raises(SandboxCommandError):
        await local.sandbox.exec("echo a\0b")
    with pytest.raises(SandboxCommandError, match=f"no such directory: {WORKSPACE}/missing"):
        await local.sandbox.exec("true", cwd=f"{WORKSPACE}/missing")


async def test_a_command_is_not_bound_to_one_event_loop(local: Local) -> None:
    await local.sandbox.exec("export A=1")
    result = await asyncio.to_thread(lambda: asyncio.run(local.sandbox.exec("echo $A")))
    assert result.output == "1\n"


async def test_commands_run_side_by_side(local: Local) -> None:
    # Each waits for the other's file: one after the other they would never end.
    script = "touch {0}; until [ -e {1} ]; do sleep 0.02; done; echo {0}"
    both = await asyncio.gather(
        local.sandbox.exec(script.format("a", "b"), timeout=20), local.sandbox.exec(script.format("b", "a"), timeout=20)
    )
    assert [result.output for result in both] == ["a\n", "b\n"]


# output -------------------------------------------------------------------------------------------------------------


async def test_bytes_that_are_no_text_do_not_kill_the_result(local: Local) -> None:
    result = await local.sandbox.exec(r"printf 'a\xff\xfeb\n'; printf '\xc3'; printf '\xa9\n' >&2")
    assert result.output == "a\ufffd\ufffdb\né\n"


async def test_a_background_child_does_not_hold_the_result_and_does_not_block(local: Local) -> None:
    command = f"(while :; do echo {'x' * 1000}; sleep 0.001; done) & echo started"
    result = await local.sandbox.exec(command, timeout=20)
    assert "started" in result.output and not result.timed_out
    await local.sandbox.exec(
        "(for i in $(seq 2000); do echo 0123456789012345678901234567890123456789012345678901234567890123; done; touch all-written) & true"
    )
    for _ in range(200):
        if (local.workspace / "all-written").exists():
            break
        await asyncio.sleep(0.05)
    assert (local.workspace / "all-written").exists()
    await local.sandbox.reset()


async def test_all_output_before_the_end_is_there(local: Local) -> None:
    for _ in range(10):
        result = await local.sandbox.exec("seq 20000 & wait; echo last")
        assert result.output.splitlines()[-1] == "last" and len(result.output.splitlines()) == 20_001


async def test_output_is_heard_while_the_command_runs(local: Local) -> None:
    heard: list[str] = []

    async def hear(text: str) -> None:
        heard.append(text)
        if "ready" in text:
            (local.workspace / "go").touch()

    # The command ends only if its first line is heard before its end.
    result = await local.sandbox.exec(
        "echo ready $PWD; until [ -e go ]; do sleep 0.02; done; echo done", on_output=hear, timeout=20
    )
    assert not result.timed_out
    assert "".join(heard) == result.output == f"ready {WORKSPACE}\ndone\n"


async def test_huge_output_keeps_head_and_tail(local: Local) -> None:
    heard: list[str] = []
    result = await local.sandbox.exec(
        "echo first; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo last", max_output=10_000, on_output=heard.append
    )
    assert result.truncated and result.total_bytes == 5_000_012
    assert result.output.startswith("first\n") and result.output.endswith("x\nlast\n") and len(result.output) < 10_100
    assert sum(map(len, heard)) < 10_100


async def test_endless_output_is_stopped(local: Local) -> None:
    result = await local.sandbox.exec("exec -a flood-of-words yes", timeout=60, max_output=1000)
    assert (result.killed_for, result.exit_code, result.timed_out) == ("flood", None, False)
    assert await gone("flood-of-words")


# ends ---------------------------------------------------------------------------------------------------------------


TREE = "setsid nohup bash -c 'exec -a {0} sleep 300' & bash -c 'trap \"\" TERM; exec -a {0} sleep 300' & (bash -c 'exec -a {0} sleep 300' &) ; exec -a {0} sleep 300"


async def test_a_timeout_kills_the_whole_tree(local: Local) -> None:
    marker = f"deer-timeout-{os.getpid()}"
    result = await local.sandbox.exec("echo before; " + TREE.format(marker), timeout=0.7)
    assert (result.timed_out, result.exit_code, result.output) == (True, None, "before\n")
    assert await gone(marker)
    assert (await local.sandbox.exec("echo fine")).output == "fine\n"


async def test_cancelling_kills_the_whole_tree(local: Local) -> None:
    marker = f"deer-cancel-{os.getpid()}"
    for delay in (0, 0.01, 0.5):
        task = asyncio.create_task(local.sandbox.exec(TREE.format(marker)))
        await asyncio.sleep(delay)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await gone(marker)


async def test_reset_and_destroy_end_everything_and_other_threads_live_on(local: Local, tmp_path: Path) -> None:
    marker, other_marker = f"deer-mine-{os.getpid()}", f"deer-other-{os.getpid()}"
    other = await local.provider.acquire("other", user_id="user", policy=policy_over(tmp_path / "other"))
    await other.exec(f"bash -c 'exec -a {other_marker} sleep 300' >/dev/null 2>&1 &")
    await local.sandbox.exec(f"setsid bash -c 'exec -a {marker} sleep 300' >/dev/null 2>&1 &")
    process = await local.sandbox.start_process(f"exec -a {marker} sleep 300")
    assert await started(marker)
    await local.sandbox.reset()
    assert await gone(marker)
    with pytest.raises(SandboxNotFoundError):
        await local.sandbox.read_process(process.id)
    assert await started(other_marker)
    await local.provider.release(other.id, destroy=True)
    assert await gone(other_marker)
    assert local.provider.get(other.id) is None


async def test_limits_of_a_file_are_enforced(tmp_path: Path) -> None:
    provider = LocalSandboxProvider(allow_host_bash=True)
    sandbox = await provider.acquire("t", user_id="u", policy=policy_over(tmp_path, limits=Limits(file_size_mb=1)))
    result = await sandbox.exec("head -c 5000000 /dev/zero > big; stat -c %s big")
    assert result.output.splitlines()[-1] == str(1 << 20)
    unlimited = Limits(file_size_mb=0, memory_mb=0, open_files=0, cpu_seconds=0)
    sandbox = await provider.acquire("t", user_id="u", policy=policy_over(tmp_path, limits=unlimited))
    assert (await sandbox.exec("head -c 5000000 /dev/zero > big; stat -c %s big")).output == "5000000\n"
    await provider.shutdown()


LEFT_BEHIND = """
import asyncio, os, sys, tempfile, threading
from pathlib import Path
from deerflow.sandbox.interface import Mount, Policy, WORKSPACE
from deerflow.sandbox.local import LocalSandboxProvider

async def main(base):
    (base / "temp").mkdir(); (base / "workspace").mkdir()
    tempfile.tempdir = str(base / "temp")
    await asyncio.to_thread(int)  # asyncio's own thread and its descriptors are not ours
    descriptors = len(os.listdir("/proc/self/fd"))
    provider = LocalSandboxProvider(allow_host_bash=True)
    sandbox = await provider.acquire("t", user_id="u", policy=Policy((Mount(base / "workspace", WORKSPACE),)))
    for _ in range(5):
        assert (await sandbox.exec("echo x")).output == "x\\n"
    await sandbox.start_process("sleep 300")
    await provider.shutdown()
    await provider.shutdown()
    assert list((base / "temp").iterdir()) == []
    async with asyncio.timeout(20):
        while len(os.listdir("/proc/self/fd")) > descriptors or any(
            thread.name.startswith("sandbox-") for thread in threading.enumerate()
        ):
            await asyncio.sleep(0.02)

asyncio.run(main(Path(sys.argv[1])))
"""


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    # In a process of its own: other tests of this one come and go with descriptors and threads.
    done = subprocess.run(
        [sys.executable, "-c", LEFT_BEHIND, str(tmp_path)], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr


# background processes -----------------------------------------------------------------------------------------------


async def test_a_background_process_can_be_read_listed_and_killed(local: Local) -> None:
    started = await local.sandbox.start_process(f"cd {OUTPUTS}; echo $PWD; echo two; sleep 300")
    assert started.running
    text = ""
    async with asyncio.timeout(20):
        while "two" not in text:
            text += (await local.sandbox.read_process(started.id)).output
            await asyncio.sleep(0.02)
    assert text == f"{OUTPUTS}\ntwo\n"
    assert (await local.sandbox.read_process(started.id)).output == ""
    assert [process.id for process in await local.sandbox.list_processes()] == [started.id]
    killed = await local.sandbox.kill_process(started.id)
    assert not killed.running and killed.exit_code == 143
    for call in (local.sandbox.read_process, local.sandbox.kill_process):
        with pytest.raises(SandboxNotFoundError):
            await call("p999")


async def test_a_chatty_background_process_drops_the_oldest_output(local: Local) -> None:
    process = await local.sandbox.start_process("head -c 3000000 /dev/zero | tr '\\0' x; echo end; sleep 300")
    async with asyncio.timeout(20):
        while True:
            report = await local.sandbox.read_process(process.id)
            if report.output.endswith("end\n"):
                break
            await asyncio.sleep(0.3)
    assert len(report.output) <= 1 << 20


async def test_a_process_that_ends_tells_its_code(local: Local) -> None:
    process = await local.sandbox.start_process("exit 7")
    async with asyncio.timeout(20):
        while (report := await local.sandbox.read_process(process.id)).running:
            await asyncio.sleep(0.02)
    assert report.exit_code == 7


# files --------------------------------------------------------------------------------------------------------------


async def test_file_tools_and_commands_see_the_same_files(local: Local) -> None:
    sandbox = local.sandbox
    await sandbox.write(f"{WORKSPACE}/src/a.py", b"needle = 1\n")
    assert (
        await sandbox.exec("cat src/a.py; mkdir -p /tmp/x && echo t > /tmp/x/y; echo h > ~/z")
    ).output == "needle = 1\n"
    assert await sandbox.read("/tmp/x/y") == (b"t\n", 2)
    assert await sandbox.read("/home/agent/z") == (b"h\n", 2)
    assert await sandbox.glob(WORKSPACE, "**/*.py") == ([f"{WORKSPACE}/src/a.py"], False)
    assert await sandbox.grep(WORKSPACE, "NEEDLE") == ([GrepMatch(f"{WORKSPACE}/src/a.py", 1, "needle = 1")], False)
    await sandbox.remove(f"{WORKSPACE}/src")
    assert (await sandbox.list(WORKSPACE))[0] == []
    assert await sandbox.stat(f"{WORKSPACE}/src") is None


# the provider -------------------------------------------------------------------------------------------------------


async def test_commands_need_an_explicit_permission_and_files_do_not(tmp_path: Path) -> None:
    provider = LocalSandboxProvider()
    sandbox = await provider.acquire("t", user_id="u", policy=policy_over(tmp_path))
    for call in (sandbox.exec("true"), sandbox.start_process("true")):
        with pytest.raises(SandboxUnavailableError, match="allow_host_bash"):
            await call
    await sandbox.write(f"{WORKSPACE}/a", b"x")
    assert (await sandbox.grep(WORKSPACE, "x"))[0]
    assert (await asyncio.to_thread(provider.probe)).isolation == sandbox.isolation
    assert sandbox.isolation.level == "none" and "allow_host_bash" in sandbox.isolation.warnings[0]
    await provider.shutdown()


async def test_running_without_isolation_is_said_loudly(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        provider = LocalSandboxProvider(allow_host_bash=True)
    assert "No isolation" in caplog.text
    report = await asyncio.to_thread(provider.probe)
    assert report.ok and report.isolation is not None
    assert (report.isolation.level, report.isolation.real_paths, report.isolation.network) == ("none", False, "host")
    assert "No isolation" in report.isolation.warnings[0]


async def test_without_bash_the_probe_and_the_sandbox_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    provider = LocalSandboxProvider(allow_host_bash=True)
    assert [problem.code for problem in (await asyncio.to_thread(provider.probe)).problems] == ["no-bash"]
    sandbox = await provider.acquire("t", user_id="u", policy=policy_over(tmp_path / "data"))
    with pytest.raises(SandboxUnavailableError, match="bash was not found"):
        await sandbox.exec("true")
    await provider.shutdown()


async def test_each_thread_has_its_own_and_new_settings_reach_it(tmp_path: Path) -> None:
    provider = LocalSandboxProvider(allow_host_bash=True)
    policy = policy_over(tmp_path / "a")
    first = await provider.acquire("a", user_id="u", policy=policy)
    assert await provider.acquire("a", user_id="u", policy=policy) is first
    assert provider.get(first.id) is first
    second = await provider.acquire("b", user_id="u", policy=policy_over(tmp_path / "b"))
    foreign = await provider.acquire("a", user_id="v", policy=policy_over(tmp_path / "c"))
    assert len({first.id, second.id, foreign.id}) == 3
    await first.exec("echo mine > f")
    assert (await second.exec("cat f")).exit_code == 1
    await provider.release(first.id)
    assert await provider.acquire("a", user_id="u", policy=policy) is first
    changed = await provider.acquire("a", user_id="u", policy=policy_over(tmp_path / "a", environment={"NEW": "1"}))
    assert (await changed.exec("echo $NEW; cat f")).output == "1\nmine\n"
    await provider.release("unknown", destroy=True)
    await provider.shutdown()


@pytest.mark.parametrize("thread_id", ["", "a/b", "..", "a b", "x" * 200])
async def test_a_bad_id_is_refused(tmp_path: Path, thread_id: str) -> None:
    with pytest.raises(ValueError, match="thread id"):
        await LocalSandboxProvider().acquire(thread_id, user_id="u", policy=policy_over(tmp_path))


def test_both_import_paths_lead_to_the_same_class() -> None:
    from deerflow.sandbox.local.local_sandbox_provider import LocalSandboxProvider as direct

    assert direct is LocalSandboxProvider
