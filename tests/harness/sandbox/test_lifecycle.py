"""Sessions come and go: idle ones end, too many are refused, dead ones are replaced, and nothing stays behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import cast

import pytest
from tests.contracts.sandbox.environment import host_processes
from tests.contracts.sandbox.exhaustion import appeared, survivors
from tests.harness.sandbox.conftest import Sandboxes

from deerflow.config import Paths
from deerflow.sandbox.interface import (
    SKILLS,
    UPLOADS,
    WORKSPACE,
    Limits,
    Mount,
    Network,
    Policy,
    SandboxRuntimeError,
)
from deerflow.sandbox.isolation.namespaces import BwrapSandboxProvider, find_interpreter
from deerflow.sandbox.isolation.plan import LaunchRequest
from deerflow.sandbox.local import LocalSandboxProvider
from deerflow.sandbox.provider import IsolatingProvider, Watch, disk_usage, kill_largest_over
from deerflow.sandbox.session import Session, Shell
from deerflow.sandbox.spawner import Spawner, process_tree

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="this is about a gateway that runs as root")


def with_provider(**options: object) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("sandboxes", [options], indirect=True, ids=str)


async def reap(sandboxes: Sandboxes, after: float = 1e6) -> None:
    """As if ``after`` seconds had passed."""
    await sandboxes.provider.spawner.call(sandboxes.provider.reap(time.monotonic() + after))


# idle -------------------------------------------------------------------------------------------------------------------


async def test_an_idle_shell_ends_and_its_state_comes_back(sandboxes: Sandboxes) -> None:
    sandbox = await sandboxes.acquire()
    await sandbox.exec("cd /tmp; export A=kept; f() { echo function; }")
    await reap(sandboxes)
    assert sandbox.launcher_pid is None
    result = await sandbox.exec("pwd; echo $A; f")
    assert (result.output, result.notice) == ("/tmp\nkept\nfunction\n", "")


async def test_a_command_that_has_just_ended_is_no_background_process(sandboxes: Sandboxes) -> None:
    sandbox = await sandboxes.acquire()
    left = []
    for _ in range(40):
        await sandbox.exec("true")
        assert sandbox._session is not None
        left.append((await sandboxes.provider.spawner.call(sandbox._session.shell()))[1])
    assert not any(left)


async def test_a_command_that_comes_while_its_shell_is_ended_finds_the_state(
    sandboxes: Sandboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = await sandboxes.acquire()
    await sandbox.exec("cd /tmp; export A=kept")
    asked, answer = threading.Event(), threading.Event()
    shell = Session.shell

    async def slow(session: Session) -> tuple[Shell, bool]:
        state = await shell(session)
        asked.set()
        await asyncio.to_thread(answer.wait)
        return state

    monkeypatch.setattr(Session, "shell", slow)
    reaping = asyncio.create_task(reap(sandboxes))
    await asyncio.to_thread(asked.wait)
    coming = [asyncio.create_task(sandbox.exec("pwd; echo $A", env=env)) for env in ({}, {"A": "given"})]
    await asyncio.sleep(0)
    await sandboxes.provider.spawner.call(asyncio.sleep(0))
    answer.set()
    await reaping
    assert [(await one).output for one in coming] == ["/tmp\nkept\n", "/tmp\ngiven\n"]


async def test_the_loss_is_told_also_when_a_dead_shell_was_taken_for_an_idle_one(sandboxes: Sandboxes) -> None:
    sandbox = await sandboxes.acquire()
    await sandbox.exec("export A=1")
    await reap(sandboxes)
    await sandbox.exec("export A=2")
    assert sandbox.launcher_pid is not None
    await asyncio.to_thread(subprocess.run, ["kill", "-9", str(sandbox.launcher_pid)], check=True)
    while sandbox.launcher_pid is not None:
        await asyncio.sleep(0.01)
    await reap(sandboxes)
    result = await sandbox.exec("echo [$A]")
    assert result.output == "[]\n"
    assert "environment are gone" in result.notice


@pytest.mark.parametrize("start", ["exec", "start_process"])
async def test_lost_background_processes_are_told_of_once(sandboxes: Sandboxes, start: str) -> None:
    sandbox = await sandboxes.acquire()
    if start == "exec":
        await sandbox.exec("sleep 300 &")
    else:
        await sandbox.start_process("sleep 300")
    await reap(sandboxes)
    assert "background processes are gone" in (await sandbox.exec("true")).notice
    assert (await sandbox.exec("true")).notice == ""


async def test_a_shell_that_works_or_was_used_lately_does_not_end(sandboxes: Sandboxes) -> None:
    busy, recent = await sandboxes.acquire("busy"), await sandboxes.acquire("recent")
    running = asyncio.create_task(busy.exec("while [ ! -e go ]; do sleep 0.02; done; echo done"))
    await recent.exec("true")
    await reap(sandboxes, after=100)
    assert recent.launcher_pid is not None
    await reap(sandboxes)
    await busy.write(f"{WORKSPACE}/go", b"")
    assert (await running).output == "done\n"


@with_provider(idle_timeout=0, sleep_after=0)
async def test_a_timeout_of_zero_keeps_shells(sandboxes: Sandboxes) -> None:
    sandbox = await sandboxes.acquire()
    await sandbox.exec("true")
    await reap(sandboxes)
    assert sandbox.launcher_pid is not None


async def test_a_shell_without_background_processes_sleeps_and_wakes_as_it_was(sandboxes: Sandboxes) -> None:
    sandbox = await sandboxes.acquire()
    await sandbox.exec("cd /tmp; export A=kept")
    await reap(sandboxes, after=119)
    assert sandbox.launcher_pid is not None
    await reap(sandboxes, after=121)
    assert sandbox.launcher_pid is None
    assert (await sandbox.exec("pwd; echo $A")).output == "/tmp\nkept\n"


@pytest.mark.parametrize("start", ["exec", "start_process"])
async def test_a_shell_with_background_processes_does_not_sleep(sandboxes: Sandboxes, start: str) -> None:
    sandbox = await sandboxes.acquire()
    if start == "exec":
        await sandbox.exec("exec -a sleepless sleep 300 &")
    else:
        await sandbox.start_process("exec -a sleepless sleep 300")
    await appeared("sleepless")
    await reap(sandboxes, after=121)
    assert sandbox.launcher_pid is not None
    assert (await sandbox.exec("pgrep -c sleep")).output == "1\n"


async def test_of_many_idle_shells_those_used_longest_ago_sleep_early(
    sandboxes: Sandboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deerflow.sandbox.provider.WARM_SESSIONS", 1)
    first, second = [await sandboxes.acquire(name) for name in ("a", "b")]
    await first.exec("true")
    await second.exec("true")
    await reap(sandboxes, after=20)
    assert (first.launcher_pid is None, second.launcher_pid is None) == (True, False)


# room -------------------------------------------------------------------------------------------------------------------


@with_provider(max_sessions=2)
async def test_the_shell_that_was_used_longest_ago_makes_room(sandboxes: Sandboxes) -> None:
    first, second, third = [await sandboxes.acquire(name) for name in ("a", "b", "c")]
    await first.exec("export A=1")
    await second.exec("true")
    await third.exec("true")
    assert (first.launcher_pid, second.launcher_pid is None, third.launcher_pid is None) == (None, False, False)
    assert (await first.exec("echo $A")).output == "1\n"


@with_provider(max_sessions=1)
async def test_when_all_are_busy_the_newcomer_is_told_so(sandboxes: Sandboxes) -> None:
    busy, newcomer = await sandboxes.acquire("busy"), await sandboxes.acquire("new")
    running = asyncio.create_task(busy.exec("while [ ! -e go ]; do sleep 0.02; done"))
    while busy.launcher_pid is None:
        await asyncio.sleep(0.01)
    with pytest.raises(SandboxRuntimeError, match="max_sessions"):
        await newcomer.exec("true")
    await busy.write(f"{WORKSPACE}/go", b"")
    await running
    assert (await newcomer.exec("echo now")).output == "now\n"


@with_provider(max_sessions=3)
async def test_many_starting_at_once_stay_within_the_limit(sandboxes: Sandboxes) -> None:
    threads = [await sandboxes.acquire(f"t{number}") for number in range(8)]
    results = await asyncio.gather(*(one.exec("echo ok") for one in threads), return_exceptions=True)
    assert all(getattr(one, "output", None) == "ok\n" or isinstance(one, SandboxRuntimeError) for one in results), (
        results
    )
    assert sum(one.launcher_pid is not None for one in threads) <= 3


# acquiring --------------------------------------------------------------------------------------------------------------


async def test_a_thread_has_one_sandbox_however_often_it_is_acquired(sandboxes: Sandboxes) -> None:
    got = await asyncio.gather(*(sandboxes.acquire() for _ in range(10)))
    assert len({id(one) for one in got}) == 1
    assert sandboxes.provider.get(got[0].id) is got[0]


@pytest.mark.parametrize("bad", ["../x", "", "a/b", "a:b", "a" * 200])
async def test_ids_that_could_name_something_else_are_refused(sandboxes: Sandboxes, bad: str) -> None:
    policy = await asyncio.to_thread(sandboxes.policy)
    for ids in ((bad, "u"), ("t", bad)):
        with pytest.raises(ValueError, match="Invalid"):
            await sandboxes.provider.acquire(ids[0], user_id=ids[1], policy=policy)


async def test_users_with_the_same_thread_id_do_not_share_a_sandbox(sandboxes: Sandboxes) -> None:
    policies = [await asyncio.to_thread(sandboxes.policy, name) for name in ("one", "two")]
    one, two = [
        await sandboxes.provider.acquire("same", user_id=user, policy=policy)
        for user, policy in zip(("a", "b"), policies, strict=True)
    ]
    await one.exec("export A=1; touch mine")
    assert (await two.exec("echo [$A]; ls")).output == "[]\n"


async def test_a_changed_policy_takes_effect_and_state_is_kept(sandboxes: Sandboxes) -> None:
    sandbox = await sandboxes.acquire(environment={"COLOUR": "red"})
    await sandbox.exec("export A=1; sleep 300 &")
    assert await sandboxes.acquire(environment={"COLOUR": "blue"}, limits=Limits(open_files=300)) is sandbox
    result = await sandbox.exec("echo $A; ulimit -n")
    assert result.output == "1\n300\n"
    assert "new settings" in result.notice


async def test_a_destroyed_sandbox_is_gone_with_its_processes(sandboxes: Sandboxes) -> None:
    sandbox = await sandboxes.acquire()
    await sandbox.start_process("exec -a destroyed-process sleep 300")
    await appeared("destroyed-process")
    await sandboxes.provider.release(sandbox.id)
    assert sandboxes.provider.get(sandbox.id) is sandbox
    await sandboxes.provider.release(sandbox.id, destroy=True)
    assert sandboxes.provider.get(sandbox.id) is None
    assert await survivors("destroyed-process") == []


async def test_after_shutdown_nothing_is_left_and_nothing_starts(sandboxes: Sandboxes) -> None:
    sandbox = await sandboxes.acquire()
    await sandbox.start_process("exec -a shutdown-process sleep 300")
    await appeared("shutdown-process")
    mounts = await asyncio.to_thread(Path("/proc/self/mountinfo").read_text)
    await sandboxes.provider.shutdown()
    await sandboxes.provider.shutdown()
    assert await survivors("shutdown-process") == []
    assert await survivors(str(sandboxes.data_dir)) == []
    assert await asyncio.to_thread(Path("/proc/self/mountinfo").read_text) == mounts
    assert str(sandboxes.data_dir) not in mounts
    with pytest.raises(SandboxRuntimeError, match="shut down"):
        await sandbox.exec("true")


async def test_a_shutdown_waits_for_what_is_just_starting(sandboxes: Sandboxes) -> None:
    sandbox = await sandboxes.acquire()
    starting = asyncio.create_task(sandbox.exec("true"))
    while not sandboxes.provider._unfinished:
        await asyncio.sleep(0)
    starting.cancel()
    await sandboxes.provider.shutdown()
    assert not sandboxes.provider._watches
    assert await survivors(str(sandboxes.data_dir)) == []


async def test_what_is_under_way_when_the_spawner_closes_is_ended() -> None:
    spawner = Spawner()
    waiting = asyncio.create_task(spawner.call(asyncio.Event().wait()))
    await asyncio.sleep(0)
    await spawner.call(asyncio.sleep(0))
    spawner.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_descriptors_do_not_pile_up(sandboxes: Sandboxes) -> None:
    sandbox = await sandboxes.acquire()
    await sandbox.exec("true", env={"A": "1"})
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await sandbox.exec("true", env={"A": "1"})
        await reap(sandboxes)
        await sandbox.exec("true")
    # A session that was ended closes its last descriptors on the sandbox loop, a moment later.
    async with asyncio.timeout(10):
        while len(os.listdir("/proc/self/fd")) > before + 2:
            await asyncio.sleep(0.05)


# death ------------------------------------------------------------------------------------------------------------------


async def test_a_supervisor_that_does_not_answer_is_killed_by_the_hosts_own_clock(
    sandboxes: Sandboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deerflow.sandbox.session.HOST_CLOCK_GRACE", 0.5)
    sandbox = await sandboxes.acquire()
    await sandbox.exec("true")
    assert sandbox.launcher_pid is not None
    await asyncio.to_thread(stop_tree, sandbox.launcher_pid)
    result = await sandbox.exec("echo never", timeout=0.2)
    assert (result.killed_for, result.timed_out, result.exit_code) == ("host-clock", True, None)
    assert (await sandbox.exec("echo again")).output == "again\n"


def stop_tree(pid: int) -> None:
    for each in process_tree(pid):
        with contextlib.suppress(ProcessLookupError):  # what the last command left may end meanwhile
            os.kill(each, signal.SIGSTOP)


async def test_a_session_that_died_is_replaced_and_the_loss_is_told(sandboxes: Sandboxes) -> None:
    sandbox = await sandboxes.acquire()
    await sandbox.exec("export A=1; echo data >file")
    assert sandbox.launcher_pid is not None
    await asyncio.to_thread(subprocess.run, ["kill", "-9", str(sandbox.launcher_pid)], check=True)
    while sandbox.launcher_pid is not None:
        await asyncio.sleep(0.01)
    result = await sandbox.exec("echo [$A]; cat file")
    assert result.output == "[]\ndata\n"
    assert "ended" in result.notice


async def test_a_sandbox_that_cannot_start_says_why(sandboxes: Sandboxes, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = await sandboxes.acquire()
    monkeypatch.setattr(
        "deerflow.sandbox.isolation.namespaces.PYTHON_FLAGS", ("-c", "import sys; sys.exit('a broken python')")
    )
    with pytest.raises(SandboxRuntimeError, match=r"could not be started.*a broken python"):
        await sandbox.exec("true")
    monkeypatch.undo()
    assert (await sandbox.exec("echo now")).output == "now\n"


# must not happen --------------------------------------------------------------------------------------------------------


async def test_only_the_spawners_own_thread_may_spawn() -> None:
    spawner = Spawner()

    async def spawn() -> None:
        spawner._spawn(["true"], [], 2)

    with pytest.raises(AssertionError, match="spawner's own thread"):
        await spawner.call(spawn())
    failures: list[BaseException] = []

    def from_a_dying_thread() -> None:
        try:
            spawner._spawn(["true"], [], 2)
        except AssertionError as error:
            failures.append(error)

    thread = threading.Thread(target=from_a_dying_thread)
    thread.start()
    await asyncio.to_thread(thread.join)
    assert len(failures) == 1
    spawner.close()


@as_root
async def test_a_sandbox_is_never_started_as_root(sandboxes: Sandboxes) -> None:
    assert isinstance(sandboxes.provider, BwrapSandboxProvider)
    launcher = await asyncio.to_thread(sandboxes.provider._launcher, "/usr/bin/bwrap")
    policy = await asyncio.to_thread(sandboxes.policy)
    with pytest.raises(SandboxRuntimeError, match="as root"):
        await asyncio.to_thread(launcher.prepare, LaunchRequest(policy), 9)


@as_root
@pytest.mark.parametrize("uid", ["0", "-1"])
def test_the_root_launcher_refuses_to_stay_root(uid: str) -> None:
    import deerflow.sandbox.isolation.root_launcher as launcher

    command = [sys.executable, launcher.__file__, uid, "", "", "--", "/bin/echo", "started"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode != 0
    assert "refusing" in run.stderr
    assert run.stdout == ""


@as_root
async def test_every_process_inside_runs_under_the_threads_own_uid(sandboxes: Sandboxes) -> None:
    one, two = await sandboxes.acquire("one"), await sandboxes.acquire("two")
    await one.start_process("exec -a uid-of-one sleep 300")
    await two.start_process("exec -a uid-of-two sleep 300")
    uids = set()
    for name in ("uid-of-one", "uid-of-two"):
        [pid, *_] = await appeared(name)
        status = await asyncio.to_thread(Path(f"/proc/{pid}/status").read_text)
        [line] = [line for line in status.splitlines() if line.startswith("Uid:")]
        uids |= set(line.split()[1:])
    assert len(uids) == 2
    assert all(int(uid) >= 200_000 for uid in uids)


async def test_no_signal_that_pid_1_handles_can_end_the_session(sandboxes: Sandboxes) -> None:
    sandbox = await sandboxes.acquire()
    result = await sandbox.exec(
        "grep -E '^(SigCgt|ShdPnd)' /proc/1/status; for s in $(seq 1 64); do kill -$s 1 2>/dev/null; done; echo alive"
    )
    caught = int(result.output.split()[1], 16)
    # SIGCHLD, and what Python ignores does not count: SIGPIPE, SIGXFSZ.
    assert caught & ~(1 << 16) == 0, hex(caught)
    assert result.output.endswith("alive\n")


# where data lies ----------------------------------------------------------------------------------------------------------


@as_root
async def test_data_below_a_directory_that_only_root_may_enter_works(
    namespace_provider: type[IsolatingProvider], data_dir: Path
) -> None:
    hidden = data_dir / "root-only"
    hidden.mkdir(mode=0o700)
    sandboxes = Sandboxes(namespace_provider(hidden / "data"), hidden / "data")
    sandbox = await sandboxes.acquire()
    await sandbox.write(f"{WORKSPACE}/f", b"x")
    assert (await sandbox.exec("cat f; echo y >>f; stat -c %U f")).output == "xagent\n"
    assert (await sandbox.read(f"{WORKSPACE}/f"))[0] == b"xy\n"
    await sandboxes.provider.shutdown()


async def test_without_a_system_python_our_own_runs_the_supervisor(
    namespace_provider: type[IsolatingProvider], data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find_interpreter, "__defaults__", ("/nonexistent/python3",))
    sandboxes = Sandboxes(namespace_provider(data_dir), data_dir)
    sandbox = await sandboxes.acquire()
    result = await sandbox.exec("tr '\\0' ' ' </proc/1/cmdline | cut -d' ' -f1")
    assert result.output.strip() == os.path.realpath(sys.executable)
    await sandboxes.provider.shutdown()


async def test_a_path_with_spaces_and_quotes_works(namespace_provider: type[IsolatingProvider], data_dir: Path) -> None:
    odd = data_dir / 'it\'s a "dir" ünïcödé'
    sandboxes = Sandboxes(namespace_provider(odd), odd)
    sandbox = await sandboxes.acquire()
    assert (await sandbox.exec("echo x >f; cat f")).output == "x\n"
    await sandboxes.provider.shutdown()


async def test_what_the_host_uploads_later_can_be_used(sandboxes: Sandboxes) -> None:
    sandbox = await sandboxes.acquire()
    await sandbox.exec("true")
    upload = sandboxes.data_dir / "threads/t/uploads/later.csv"
    await asyncio.to_thread(upload.write_text, "a,b\n")
    sandbox = await sandboxes.acquire()
    assert (await sandbox.exec(f"cat {UPLOADS}/later.csv; echo c,d >>{UPLOADS}/later.csv")).output == "a,b\n"
    assert (await asyncio.to_thread(upload.read_text)) == "a,b\nc,d\n"


async def test_a_mount_that_does_not_exist_is_left_out_if_read_only_and_made_if_not(sandboxes: Sandboxes) -> None:
    policy = await asyncio.to_thread(sandboxes.policy)
    extra = (Mount(sandboxes.data_dir / "no-such", "/mnt/missing", True), Mount(sandboxes.data_dir / "new", "/mnt/new"))
    sandbox = await sandboxes.acquire(mounts=policy.mounts + extra)
    assert (
        await sandbox.exec(f"ls /mnt; echo x >/mnt/new/f; ls {SKILLS}")
    ).output == "new\nskills\nuser-data\nSKILL.md\n"


async def test_without_directories_of_their_own_home_and_tmp_are_in_memory(sandboxes: Sandboxes) -> None:
    sandbox = await sandboxes.acquire(home=None, tmp=None)
    result = await sandbox.exec("echo x >~/f && echo y >/tmp/f && cat ~/f /tmp/f && stat -fc %T /tmp ~ | sort -u")
    assert result.output == "x\ny\ntmpfs\n"


async def test_configured_variables_are_set_for_every_command_and_hidden_from_the_hosts_process_list(
    sandboxes: Sandboxes,
) -> None:
    sandbox = await sandboxes.acquire(environment={"API_KEY": "k3y-of-the-policy"})
    assert (await sandbox.exec("echo $API_KEY")).output == "k3y-of-the-policy\n"
    assert (await sandbox.exec("echo $API_KEY", env={"X": "y"})).output == "k3y-of-the-policy\n"
    assert await asyncio.to_thread(host_processes, "k3y-of-the-policy") == []


# tool image -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def tool_image(data_dir: Path) -> Path:
    tools = data_dir / "tools" / "image"
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", str(tools)], check=True)
    [packages] = tools.glob("lib/python*/site-packages")
    (packages / "shared_tool.py").write_text("VALUE = 'from the image'\n")
    (tools / "bin/greet").write_text("#!/bin/sh\necho greetings\n")
    (tools / "bin/greet").chmod(0o755)
    return tools


async def test_the_tool_image_is_on_the_path_and_the_thread_has_a_layer_of_its_own(
    sandboxes: Sandboxes, tool_image: Path
) -> None:
    sandbox = await sandboxes.acquire(tools_dir=tool_image)
    result = await sandbox.exec(
        "greet; python -c 'import sys, shared_tool; print(sys.prefix, shared_tool.VALUE)'; which pip"
    )
    assert result.output == "greetings\n/home/agent/venv from the image\n/home/agent/venv/bin/pip\n"
    assert (await sandbox.exec(f"touch {tool_image}/x")).exit_code != 0
    site = "$(python -c 'import site; print(site.getsitepackages()[0])')"
    await sandbox.exec(f"echo 'VALUE = 1' >{site}/own.py")
    await reap(sandboxes)
    assert (await sandbox.exec("python -c 'import own; print(own.VALUE)'")).output == "1\n"


async def test_a_hostile_home_does_not_keep_the_sandbox_from_starting(sandboxes: Sandboxes, tool_image: Path) -> None:
    home = sandboxes.data_dir / "threads/t/home"
    home.mkdir(parents=True)
    os.mkfifo(home / "venv")
    sandbox = await sandboxes.acquire(tools_dir=tool_image)
    assert (await sandbox.exec("echo up")).output == "up\n"


# watched limits -----------------------------------------------------------------------------------------------------------


async def test_processes_that_hold_too_much_memory_together_are_killed(sandboxes: Sandboxes) -> None:
    sandbox = await sandboxes.acquire(limits=Limits(memory_mb=200))
    hog = "b = bytearray(120 << 20)\nimport time\ntime.sleep(60)"
    result = await sandbox.exec(
        f"for i in 1 2 3; do python3 -c '{hog}' & done; wait -n; code=$?; kill %1 %2 %3; exit $code", timeout=50
    )
    assert (result.killed_for, result.exit_code) == ("memory", None), result
    assert (await sandbox.exec("echo alive")).output == "alive\n"


async def test_memory_shared_by_many_processes_counts_once(sandboxes: Sandboxes) -> None:
    sandbox = await sandboxes.acquire(limits=Limits(memory_mb=300))
    code = "import os, time; b = bytearray(100 << 20); [os.fork() for _ in range(3)]; time.sleep(60)"
    await sandbox.start_process(f"exec python3 -c '{code}'")
    while int((await sandbox.exec("pgrep -cf bytearray; true")).output) < 8:
        await asyncio.sleep(0.05)
    pid = sandbox.launcher_pid
    assert pid is not None
    assert not await asyncio.to_thread(kill_largest_over, pid, 300 << 20, 2)
    assert await asyncio.to_thread(kill_largest_over, pid, 50 << 20, 2)


async def test_a_command_that_fills_the_disk_is_killed(sandboxes: Sandboxes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deerflow.sandbox.provider.DISK_INTERVAL", 0.0)
    monkeypatch.setattr("deerflow.sandbox.provider.MEMORY_INTERVAL", 0.1)
    sandbox = await sandboxes.acquire(limits=Limits(disk_mb=30))
    await sandbox.exec("true")
    fill = "i=0; while :; do i=$((i+1)); head -c 2M /dev/zero >fill$i; sleep 0.05; done"
    result = await sandbox.exec(fill, timeout=50)
    assert result.killed_for == "disk", result
    used = await asyncio.to_thread(disk_usage, [sandboxes.data_dir / "threads/t/workspace"])
    assert used is not None and used < 500 << 20
    assert (await sandbox.exec("rm fill*; ls")).output == ""


def test_disk_use_counts_what_is_there_and_follows_no_link(data_dir: Path) -> None:
    directory = data_dir / "d"
    (directory / "sub").mkdir(parents=True)
    (directory / "sub/file").write_bytes(b"x" * (3 << 20))
    (directory / "link").symlink_to("/usr")
    used = disk_usage([directory, data_dir / "missing"])
    assert used is not None and 3 << 20 <= used < 4 << 20
    assert disk_usage([directory], count_files=True) == 4


class Full:
    """A sandbox whose directories are as the test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, directory: Path, **limits: int) -> None:
        self.used: int | None = 0
        self.files: int | None = 0
        self.free = 1 << 40
        self.no_files_left = False
        monkeypatch.setattr("deerflow.sandbox.provider.disk_usage", self.usage)
        monkeypatch.setattr("deerflow.sandbox.provider.free_space", lambda directory: self.free)
        monkeypatch.setattr("deerflow.sandbox.provider.files_run_out", lambda directory: self.no_files_left)
        self._watch = Watch(cast("Session", None), Limits(**limits), [directory])
        self.check()

    def usage(self, directories: object, *, count_files: bool = False) -> int | None:
        return self.files if count_files else self.used

    def check(self, **changes: object) -> bool:
        vars(self).update(changes)
        return self._watch._full()


def test_more_files_than_can_be_counted_do_not_hide_a_disk_that_fills(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    disk = Full(monkeypatch, tmp_path, min_free_disk_mb=512)
    assert not disk.check(used=None)
    assert disk.check(used=None, free=100 << 20)
    assert not disk.check(used=None, free=100 << 20)


def test_who_makes_files_until_none_can_be_made_is_stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    disk = Full(monkeypatch, tmp_path)
    assert not disk.check(no_files_left=True, files=200_000)
    assert disk.check(files=200_001)
    assert not disk.check(files=150_000)
    assert not disk.check(files=5)
    assert not disk.check(files=50)
    assert disk.check(files=None)


async def test_a_sandbox_whose_directories_another_process_removes_ends_quietly(
    sandboxes: Sandboxes, caplog: pytest.LogCaptureFixture
) -> None:
    sandbox = await sandboxes.acquire()
    await sandbox.exec("(while :; do date > $RANDOM; mkdir $RANDOM; done) 2>/dev/null >/dev/null &")
    thread = (await asyncio.to_thread(sandboxes.policy)).mounts[0].host.parent

    await asyncio.to_thread(Paths(sandboxes.data_dir).remove, thread)

    assert not thread.exists() and [*(sandboxes.data_dir / "deleted").iterdir()] == []
    while sandboxes.provider.get(sandbox.id) is not None:
        await asyncio.sleep(0.05)
    assert not [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]
    assert (await (await sandboxes.acquire()).exec("ls")).output == ""


async def test_priorities_keep_the_host_responsive(sandboxes: Sandboxes) -> None:
    sandbox = await sandboxes.acquire()
    assert (
        await sandbox.exec("nice; cat /proc/self/oom_score_adj; ulimit -c; ulimit -Hn")
    ).output == "10\n800\n0\n1024\n"


# network ------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def web_server():  # type: ignore[no-untyped-def]
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"hello from outside")

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


async def test_an_allowed_name_is_reached_through_the_proxy_and_nothing_else(
    sandboxes: Sandboxes, web_server: int
) -> None:
    network = Network("allowlist", allow=("localhost",), ports=(web_server,), allow_nets=("127.0.0.0/8", "::1/128"))
    sandbox = await sandboxes.acquire(network=network)
    assert sandbox.isolation.network == "allowlist"
    # localhost is in no_proxy, being the sandbox's own.
    fetch = "NO_PROXY= no_proxy= python3 -c \"import sys, urllib.request as u; o = u.build_opener(u.ProxyHandler({'http': 'http://127.0.0.1:3128'})); print(o.open(sys.argv[1]).read().decode())\""
    assert (await sandbox.exec(f"{fetch} http://localhost:{web_server}/")).output == "hello from outside\n"
    refused = await sandbox.exec(f"{fetch} http://example.com/ 2>&1 | tail -1")
    assert "403" in refused.output, refused
    direct = f"python3 -c \"import socket; socket.create_connection(('127.0.0.1', {web_server}), 2)\" 2>&1 | tail -1"
    assert "refused" in (await sandbox.exec(direct)).output
    assert (await sandbox.exec("env | grep -i ^http_proxy | sort")).output == (
        "HTTP_PROXY=http://127.0.0.1:3128\nhttp_proxy=http://127.0.0.1:3128\n"
    )


async def test_a_flood_of_connections_does_not_end_the_shell(sandboxes: Sandboxes) -> None:
    sandbox = await sandboxes.acquire(network=Network("internet"))
    await sandbox.exec("export A=kept")
    program = """
import socket, time
held = []
for _ in range(700):
    held.append(sock := socket.socket())
    sock.connect(('127.0.0.1', 3128))
print(len(held), flush=True)
time.sleep(300)
"""
    process = await sandbox.start_process(f"exec python3 -c {shlex.quote(program)}")
    while not (await sandbox.read_process(process.id)).output:
        await asyncio.sleep(0.05)
    for _ in range(3):
        assert (await sandbox.exec("echo $A; export A")).output == "kept\n"


async def test_a_large_answer_comes_through_the_bridge_whole(sandboxes: Sandboxes) -> None:
    """The supervisor's relay, in both directions at once, with a peer that echoes and then closes."""
    sandbox = await sandboxes.acquire()
    program = """
import importlib.util, selectors, socket, sys, threading
spec = importlib.util.spec_from_file_location('supervisor', '/run/agent.pyc')
supervisor = importlib.util.module_from_spec(spec); spec.loader.exec_module(supervisor)
selector = selectors.DefaultSelector()
client, inner = socket.socketpair(); outer, upstream = socket.socketpair()
supervisor.Relay(selector, inner, outer)
size = 5_000_000
def echo():
    while data := upstream.recv(70000): upstream.sendall(data)
    upstream.close()
def send():
    client.sendall(b'x' * size); client.shutdown(socket.SHUT_WR)
got = []
def receive():
    while data := client.recv(70000): got.append(len(data))
threads = [threading.Thread(target=one, daemon=True) for one in (echo, send, receive)]
for thread in threads: thread.start()
while threads[2].is_alive():
    for key, mask in selector.select(0.05): key.data(key.fileobj, mask)
print(sum(got) == size, len(selector.get_map()))
"""
    result = await sandbox.exec(f"python3 - <<'END'\n{program}\nEND")
    assert result.output == "True 0\n", result


async def test_the_proxys_socket_is_taken_away_with_the_session(
    sandboxes: Sandboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(sandboxes.data_dir))
    sandbox = await sandboxes.acquire(network=Network("internet"))
    await sandbox.exec("true")
    [directory] = sandboxes.data_dir.glob("deerflow-*")
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_ISSOCK((directory / "proxy.sock").stat().st_mode)
    await reap(sandboxes)
    assert list(sandboxes.data_dir.glob("deerflow-*")) == []


async def test_mode_host_shares_the_network_and_says_so(sandboxes: Sandboxes, web_server: int) -> None:
    sandbox = await sandboxes.acquire(network=Network("host"))
    assert sandbox.isolation.network == "host"
    assert any("network" in warning for warning in sandbox.isolation.warnings)
    fetch = (
        f"python3 -c \"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{web_server}').read().decode())\""
    )
    assert (await sandbox.exec(fetch)).output == "hello from outside\n"


@pytest.mark.parametrize("shape", ["tree", "detached"])
async def test_too_many_processes_are_ended_where_the_kernel_does_not_limit_them(tmp_path: Path, shape: str) -> None:
    # Bounded by itself: at most 4,095 processes that sleep.
    grow = "for _ in range(11):\n os.fork()\n"
    detach = "for _ in range(600):\n if os.fork() == 0:\n  os.setsid()\n  os.fork() and os._exit(0)\n  break\n"
    code = f"import os, time\n{grow if shape == 'tree' else detach}time.sleep(50)"
    provider = LocalSandboxProvider(tmp_path, allow_host_bash=True)
    workspace = tmp_path / "workspace"
    policy = Policy((Mount(workspace, WORKSPACE),), limits=Limits(processes=100))
    try:
        sandbox = await provider.acquire("t1", user_id="u", policy=policy)
        assert "process-watch" in sandbox.isolation.limits
        await sandbox.write(f"{WORKSPACE}/{shape}_bomb.py", code.encode())
        result = await sandbox.exec(f"exec python3 {shape}_bomb.py", timeout=60)
        assert result.killed_for == "processes"
        assert await survivors(f"{shape}_bomb.py") == []
    finally:
        await provider.shutdown()
