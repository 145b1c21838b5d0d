# System calls, not path objects: this is handed over as text, for whatever Python the image has.
# ruff: noqa: PTH103, PTH108, PTH120, PTH123, PTH208
"""Run one command inside of a remote sandbox and print how it ended: a program of its own, for ``python3 -I -S -c``.

Its argument is the job as JSON, or ``@`` and the file that holds it. Needs Python 3.9 and bash. See ``remote_sandbox``.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38
SIGNALS = (signal.SIGCHLD, signal.SIGTERM)
GLANCE = 0.2
"""Seconds between two looks at the size of the output."""
KILL_ROUNDS = 50
WIDTH = 4000
"""Characters of a line: what carries it may send line by line."""
# A bash of its own for each command: one that exits or breaks its shell takes nothing with it. What it exports is kept. The
# command comes over a descriptor, since others can read arguments.
SHELL = """
[ "$1" = - ] || [ ! -f $1.env ] || . $1.env 2>/dev/null
cd -- "$2" 2>/dev/null || cd "$3" 2>/dev/null
trap 'c=$?; trap - EXIT; [ "$1" = - ] || { { export -p; declare -f; } >$1.env; printf %s "$PWD" >$1.cwd; }; exit $c' EXIT
set -- "$1" "$4" "$(</proc/self/fd/$4)"
eval "exec $2<&-"
eval "$3"
"""


def main(argument: str) -> None:
    if argument.startswith("@"):
        with open(argument[1:], encoding="utf-8") as file:
            text = file.read()
        os.unlink(argument[1:])
    else:
        text = argument
    job = json.loads(text)
    if os.getuid() == 0 and job["uid"]:
        os.setgroups([])
        os.setgid(job["uid"])
        os.setuid(job["uid"])
    with contextlib.suppress(OSError):
        os.setsid()  # who ends the shell that has started this does not end it, before it has ended what it runs
    # What leaves its parent stays below this process, where it is found when the time is over.
    for option in (PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS):
        ctypes.CDLL(None).prctl(option, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    os.makedirs(os.path.dirname(job["pid_file"]), exist_ok=True)
    with open(job["pid_file"], "w") as file:
        file.write(str(os.getpid()))
    # A file and no pipe: what a command leaves behind in the background keeps the answer from no one.
    with tempfile.TemporaryFile() as output:
        code, stopped = execute(job, output)
        if stopped:
            kill_below(os.getpid())
        report = {"code": code, "stopped": stopped, **shown(output, job), "cwd": directory(job)}
    os.unlink(job["pid_file"])
    encoded = base64.b64encode(json.dumps(report, ensure_ascii=False).encode()).decode()
    lines = [encoded[at : at + WIDTH] for at in range(0, len(encoded), WIDTH)]
    sys.stdout.write("\n".join(("deerflow:", *lines, ":end\n")))


def execute(job: dict[str, Any], output: IO[bytes]) -> tuple[int | None, str | None]:
    """Run the command; its exit code, and why it was stopped if it was."""
    until = time.monotonic() + job["timeout"]
    with tempfile.TemporaryFile() as command:
        command.write(job["command"].encode("utf-8", "surrogatepass"))
        command.flush()
        state = job["state"] or "-"
        run = subprocess.Popen(
            ["bash", "-c", SHELL, "bash", state, job["cwd"], job["home"], str(command.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=[command.fileno()],
            start_new_session=True,
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS),
        )
    while True:
        while (ended := reaped()) is not None:
            if ended[0] == run.pid:
                code = os.waitstatus_to_exitcode(ended[1])
                return (code if code >= 0 else 128 - code), None
        left = until - time.monotonic()
        if left <= 0:
            return None, "timeout"
        if os.fstat(output.fileno()).st_size > job["flood"]:
            return None, "flood"
        seen = signal.sigtimedwait(SIGNALS, min(left, GLANCE))
        if seen is not None and seen.si_signo == signal.SIGTERM:
            return None, "cancelled"


def reaped() -> tuple[int, int] | None:
    """A child that has ended, and its status."""
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, status) if pid else None


def kill_below(root: int) -> None:
    for _ in range(KILL_ROUNDS):
        below = descendants(root)
        for pid in below:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not below:
            return
        while reaped() is not None:
            pass
        time.sleep(0.01)


def descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/" + name + "/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def shown(output: IO[bytes], job: dict[str, Any]) -> dict[str, Any]:
    """What is reported of the output: all of it, or beginning and end."""
    total, most = os.fstat(output.fileno()).st_size, job["most"]
    kept = bool(job["keep"]) and total > job["keep_after"]
    output.seek(0)
    if kept:
        os.makedirs(os.path.dirname(job["keep"]), exist_ok=True)
        with open(job["keep"], "wb") as file:
            shutil.copyfileobj(output, file)
        output.seek(0)
    head = output.read(total if total <= most else most // 2)
    tail = b""
    if total > most:
        output.seek(total - most // 2)
        tail = output.read(most // 2)
    texts = {"head": head.decode("utf-8", "replace"), "tail": tail.decode("utf-8", "replace")}
    return {**texts, "total": total, "dropped": total - len(head) - len(tail), "kept": kept}


def directory(job: dict[str, Any]) -> str:
    """The directory that the session is in now."""
    try:
        with open(job["state"] + ".cwd", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


if __name__ == "__main__":
    main(sys.argv[1])
