"""Confines this process with Landlock and a system-call filter, then runs the supervisor (or a trial command) in it.

Run as a script (``python -I -S -B landlock_launcher.py CONFIG``) or by ``main(arguments)`` after the root launcher has
dropped the uid. CONFIG is JSON:

    writable, readable  lists of paths
    least_abi           Landlock version without which this must not run
    open_network        whether TCP is left alone (the policy's mode is ``host``)
    filter              descriptor of the BPF program
    supervisor          path of supervisor.py
    control             descriptor of the control socket, or null
    command             what to execute when there is no control socket
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import json
import os
import signal
import stat
import struct
import sys
from collections.abc import Callable
from typing import Any, NoReturn

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION_FLAG = 1
RULE_PATH_BENEATH = 1

(
    EXECUTE,
    WRITE_FILE,
    READ_FILE,
    READ_DIR,
    REMOVE_DIR,
    REMOVE_FILE,
    MAKE_CHAR,
    MAKE_DIR,
    MAKE_REG,
    MAKE_SOCK,
    MAKE_FIFO,
    MAKE_BLOCK,
    MAKE_SYM,
    REFER,
    TRUNCATE,
    IOCTL_DEV,
) = (1 << bit for bit in range(16))
ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
NET_BIND_TCP, NET_CONNECT_TCP = 1, 2
SCOPE_ABSTRACT_UNIX_SOCKET, SCOPE_SIGNAL = 1, 2
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 36, 38

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def restrict(writable: list[str], readable: list[str], open_network: bool, least_abi: int) -> None:
    """Landlock this process and all it will start."""
    version = libc.syscall(CREATE_RULESET, None, 0, VERSION_FLAG)
    if version < least_abi:
        raise SystemExit(f"landlock launcher: version {version} is older than {least_abi}")
    rights = (1 << 13) - 1
    rights |= (REFER if version >= 2 else 0) | (TRUNCATE if version >= 3 else 0) | (IOCTL_DEV if version >= 5 else 0)
    network = 0 if open_network or version < 4 else NET_BIND_TCP | NET_CONNECT_TCP
    scopes = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL if version >= 6 else 0
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = check(
        libc.syscall(CREATE_RULESET, struct.pack("QQQ", rights, network, scopes), size, 0), "create ruleset"
    )
    for path in readable:
        add_path(ruleset, path, (EXECUTE | READ_FILE | READ_DIR) & rights)
    for path in writable:
        add_path(ruleset, path, rights & ~(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV))
    for name in DEVICES:
        add_path(ruleset, f"/dev/{name}", (READ_FILE | WRITE_FILE | TRUNCATE) & rights)
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    check(libc.syscall(RESTRICT_SELF, ruleset, 0), "restrict self")
    os.close(ruleset)


def add_path(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
        rights &= ON_FILES
    rule = struct.pack("=Qi", rights, descriptor)
    check(libc.syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, rule, 0), f"rule for {path}")
    os.close(descriptor)


def read_filter(descriptor: int) -> bytes:
    program = os.read(descriptor, 1 << 16)
    os.close(descriptor)
    return program


def load(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("supervisor", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"landlock launcher: {path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def enter(config: dict[str, Any], supervisor: Any) -> NoReturn:
    if os.geteuid() == 0:
        raise SystemExit("landlock launcher: refusing to run as root, whose rights Landlock does not cover")
    os.setsid()
    if config["control"] is not None:
        leave_a_guard(supervisor)
    restrict(config["writable"], config["readable"], config["open_network"], config["least_abi"])
    supervisor.install_filter(read_filter(config["filter"]))
    if config["control"] is not None:
        supervisor.Supervisor(config["control"], config["control"]).run()
    os.execve(config["command"][0], config["command"], {})


def leave_a_guard(supervisor: Any) -> None:
    """Go on in a child. We stay outside of the domain, where nothing inside may signal us, and outlive it.

    A command may kill the supervisor, which is in the same domain, and detach: its orphans become ours.
    """
    check(libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "subreaper")
    child = os.fork()
    if child == 0:
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123
            file.write("800")
        return

    def end(*_: object) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        supervisor.kill_below(os.getpid())
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    # The host takes the end of the control socket for the end of the sandbox.
    os.closerange(3, 4096)
    while os.waitpid(-1, 0)[0] != child:
        pass
    end()


def prepare(arguments: list[str]) -> Callable[[], NoReturn]:
    """Read everything that is needed, so that the root launcher may drop the uid before the rest."""
    config = json.loads(arguments[0])
    supervisor = load(config["supervisor"])
    return lambda: enter(config, supervisor)


if __name__ == "__main__":
    prepare(sys.argv[1:])()
