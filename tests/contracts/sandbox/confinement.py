"""Checks 1-29, 57, 58, 62, 63: what a sandbox may see and touch."""

from __future__ import annotations

import asyncio
import platform

from tests.contracts.sandbox.baits import VARIABLE
from tests.contracts.sandbox.environment import Checks, Environment, Need, NotApplicable, system_call, system_calls

from deerflow.sandbox.interface import SKILLS, WORKSPACE

checks = Checks()

HIDDEN = ("ENOENT", "EACCES", "EPERM")
NO_SOCKET = ("EAFNOSUPPORT", "EPERM", "EACCES")


async def assert_unreadable(environment: Environment, path: str) -> None:
    [outcome] = await environment.python("print(attempt(open, sys.argv[1]))", path)
    assert outcome in HIDDEN, f"{path} can be opened: {outcome}"


async def refused_calls(environment: Environment, names: tuple[str, ...]) -> None:
    """Every system call of ``names`` must fail with EPERM."""
    calls = system_calls(names)
    lines = await environment.python(f"for name, number in {calls}.items(): print(name, call(number, 0, 0, 0, 0, 0))")
    assert lines == [f"{name} EPERM" for name in calls], lines


@checks("1", "the host's /etc/shadow cannot be read", Need.CONFINED)
async def shadow(environment: Environment) -> None:
    await assert_unreadable(environment, "/etc/shadow")


@checks("2", "the host's environment variables cannot be read", Need.CONFINED)
async def host_environment(environment: Environment) -> None:
    result = await environment.sh("env; cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; true")
    assert VARIABLE not in result.output
    assert environment.baits.secret not in result.output


@checks("3", "keys in a home directory of the host cannot be read", Need.CONFINED)
async def host_homes(environment: Environment) -> None:
    await assert_unreadable(environment, str(environment.baits.secret_file))
    await assert_unreadable(environment, "/root/.ssh/id_rsa")


@checks("4", "another thread's files cannot be reached by host path or by ..", Need.CONFINED)
async def other_threads(environment: Environment) -> None:
    await environment.other("neighbour")
    theirs = environment.data_dir / "threads" / "neighbour" / "workspace"
    await assert_unreadable(environment, str(theirs))
    result = await environment.sh(f"ls {WORKSPACE}/../../../neighbour/workspace ../../neighbour/workspace")
    assert result.exit_code not in (0, None), result


@checks("5", "the directory that the host keeps its data in cannot be listed", Need.CONFINED)
async def host_directories(environment: Environment) -> None:
    [outcome] = await environment.python("print(attempt(os.listdir, sys.argv[1]))", str(environment.data_dir))
    assert outcome in HIDDEN, outcome


@checks("6", "nothing outside of the thread's directories can be written", Need.CONFINED)
async def write_outside(environment: Environment) -> None:
    places = (
        "/",
        "/etc",
        "/usr",
        "/usr/bin",
        "/opt",
        "/var",
        "/run",
        "/mnt",
        "/proc",
        "/dev",
        "/home",
        "/root",
        "/sys",
    )
    code = "for place in sys.argv[1:]: print(place, attempt(open, place + '/probe', 'w'))"
    for line in await environment.python(code, *places):
        assert line.split()[1] in (*HIDDEN, "EROFS", "ENOTDIR"), line
    await environment.assert_bait_untouched()


@checks("7", "read-only mounts can be read and not written", Need.CONFINED)
async def read_only_mounts(environment: Environment) -> None:
    result = await environment.sh(f"cat {SKILLS}/SKILL.md")
    assert result.output == "a skill\n", result
    for command in (
        f"echo x >{SKILLS}/new",
        f"echo x >>{SKILLS}/SKILL.md",
        f"rm -f {SKILLS}/SKILL.md",
        f"mkdir {SKILLS}/d",
    ):
        result = await environment.sh(command)
        assert result.exit_code not in (0, None), (command, result)


@checks("8", "mounting and unmounting are refused", Need.CONFINED)
async def mounts(environment: Environment) -> None:
    names = ("mount", "umount2", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr")
    await refused_calls(environment, names)


@checks("9", "new namespaces are refused, by unshare, clone and clone3", Need.CONFINED)
async def new_namespaces(environment: Environment) -> None:
    unshare, clone, clone3 = system_call("unshare"), system_call("clone"), system_call("clone3")
    flags = (0x10000000, 0x00020000, 0x40000000, 0x20000000, 0x08000000, 0x04000000, 0x02000000)
    code = f"for flag in {flags}: print(call({unshare}, flag), call({clone}, flag | 17, 0, 0, 0, 0))\nprint(call({clone3}, 0, 0))"
    assert await environment.python(code) == [*["EPERM EPERM"] * len(flags), "ENOSYS"]


@checks("10", "another process's namespaces cannot be entered", Need.CONFINED)
async def enter_namespaces(environment: Environment) -> None:
    code = f"print(attempt(open, '/proc/1/ns/mnt')); print(call({system_call('setns')}, 0, 0))"
    lines = await environment.python(code)
    assert lines[0] in HIDDEN, lines
    assert lines[1] == "EPERM", lines


@checks("11", "chroot and pivot_root are refused", Need.CONFINED)
async def change_root(environment: Environment) -> None:
    await refused_calls(environment, ("chroot", "pivot_root"))


@checks("12", "neither pid 1 nor a sibling can be traced", Need.CONFINED)
async def tracing(environment: Environment) -> None:
    await refused_calls(environment, ("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd"))
    [outcome] = await environment.python("print(attempt(open, '/proc/1/mem', 'rb'))")
    assert outcome in HIDDEN, outcome


@checks("13", "processes of the host cannot be signalled", Need.CONFINED)
async def signal_host(environment: Environment) -> None:
    [outcome] = await environment.python(
        "print(attempt(os.kill, int(sys.argv[1]), 9))", str(environment.baits.victim.pid)
    )
    assert outcome in ("ESRCH", "EPERM"), outcome


@checks("13.1", "a victim on the host survives, and so does pid 1 inside", Need.OWN_PIDS)
async def signal_first(environment: Environment) -> None:
    await environment.sh(
        f"kill -9 {environment.baits.victim.pid}; for s in HUP INT TERM KILL STOP QUIT USR1; do kill -$s 1; done"
    )
    assert environment.baits.victim.poll() is None
    assert (await environment.sh("echo $PPID; echo alive")).output.endswith("alive\n")


@checks("14", "kill -9 -1 hits only what is inside", Need.OWN_PIDS)
async def kill_all(environment: Environment) -> None:
    sandbox = await environment.other("kill-all")
    await environment.sh("kill -9 -1", sandbox=sandbox)
    assert environment.baits.victim.poll() is None
    assert (await environment.sh("echo alive")).output == "alive\n"


@checks("14.1", "the session answers after kill -9 -1", Need.OWN_PIDS)
async def after_kill_all(environment: Environment) -> None:
    sandbox = await environment.other("kill-all")
    await environment.sh("export KEPT=yes", sandbox=sandbox)
    result = await environment.sh("kill -9 -1", sandbox=sandbox)
    assert result.exit_code != 0
    result = await environment.sh("echo $KEPT", sandbox=sandbox)
    assert (result.output, result.notice) == ("yes\n", "")


@checks("15", "sockets that lie in the host's file system cannot be reached", Need.CONFINED)
async def path_sockets(environment: Environment) -> None:
    code = (
        "for path in sys.argv[1:]:\n"
        "    try: s = socket.socket(socket.AF_UNIX)\n"
        "    except OSError as error: print(errno.errorcode[error.errno]); continue\n"
        "    print(attempt(s.connect, path))"
    )
    paths = (
        str(environment.baits.socket_path),
        "/var/run/docker.sock",
        "/run/docker.sock",
        "/run/dbus/system_bus_socket",
    )
    for outcome in await environment.python(code, *paths):
        assert outcome in (*HIDDEN, *NO_SOCKET), outcome


@checks("16", "abstract sockets of the host cannot be reached", Need.CONFINED, Need.OWN_NETWORK)
async def abstract_sockets(environment: Environment) -> None:
    code = (
        "try: s = socket.socket(socket.AF_UNIX)\n"
        "except OSError as error: print(errno.errorcode[error.errno])\n"
        "else: print(attempt(s.connect, chr(0) + sys.argv[1]))"
    )
    [outcome] = await environment.python(code, environment.baits.abstract_name)
    assert outcome in ("ECONNREFUSED", *NO_SOCKET), outcome


async def connect(environment: Environment, host: str, port: int) -> str:
    code = (
        "try: s = socket.socket(socket.AF_INET)\n"
        "except OSError as error: print(errno.errorcode[error.errno])\n"
        "else:\n"
        "    s.settimeout(5)\n"
        "    print(attempt(s.connect, (sys.argv[1], int(sys.argv[2]))))"
    )
    [outcome] = await environment.python(code, host, str(port))
    return outcome


@checks("17", "services on the host's loopback cannot be reached", Need.CONFINED, Need.OWN_NETWORK)
async def host_loopback(environment: Environment) -> None:
    outcome = await connect(environment, "127.0.0.1", environment.baits.port)
    assert outcome in ("ECONNREFUSED", *NO_SOCKET), outcome


@checks("18", "cloud metadata and everything else have no route", Need.CONFINED, Need.OWN_NETWORK)
async def no_route(environment: Environment) -> None:
    for address in ("169.254.169.254", "192.0.2.1", "10.0.0.1"):
        outcome = await connect(environment, address, 80)
        assert outcome in ("ENETUNREACH", *NO_SOCKET), (address, outcome)
    if Need.NAMESPACES.met(environment.sandbox.isolation):
        result = await environment.sh("tail -n +3 /proc/self/net/dev | cut -d: -f1; tail -n +2 /proc/self/net/route")
        assert result.output.split() == ["lo"], result


@checks("19", "names are not resolved", Need.CONFINED, Need.OWN_NETWORK)
async def no_names(environment: Environment) -> None:
    code = (
        "try: socket.getaddrinfo('example.com', 80); print('resolved')\n"
        "except socket.gaierror: print('no')\n"
        "except OSError: print('no')"
    )
    assert await environment.python(code) == ["no"]


@checks("20", "socket families that reach past the network namespace are refused", Need.CONFINED)
async def odd_families(environment: Environment) -> None:
    families = {"vsock": 40, "packet": 17, "alg": 38, "bluetooth": 31, "xdp": 44, "can": 29, "tipc": 30, "rds": 21}
    code = f"for name, family in {families}.items(): print(name, attempt(socket.socket, family, socket.SOCK_RAW))"
    for line in await environment.python(code):
        assert line.split()[1] == "EAFNOSUPPORT", line


@checks("21", "setuid programs bring no rights", Need.CONFINED)
async def setuid(environment: Environment) -> None:
    result = await environment.sh(
        "grep -E '^(NoNewPrivs|CapEff|CapPrm|Seccomp):' /proc/self/status; id -u; su -c 'id -u' </dev/null"
    )
    lines = result.output.splitlines()
    assert {"NoNewPrivs:\t1", "CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "Seccomp:\t2"} <= set(lines), (
        lines
    )
    assert "0" not in lines, lines


@checks("22", "no kernel setting can be written", Need.CONFINED)
async def kernel_settings(environment: Environment) -> None:
    places = (
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/printk",
        "/proc/sys/kernel/modprobe",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sys/vm/drop_caches",
        "/proc/sys/user/max_user_namespaces",
        "/proc/sysrq-trigger",
        "/sys/kernel/uevent_helper",
    )
    # Opening is the test: writing back what stands there would be harmless, writing anything else would not.
    for line in await environment.python("for p in sys.argv[1:]: print(p, attempt(os.open, p, os.O_WRONLY))", *places):
        assert line.split()[1] in (*HIDDEN, "EROFS"), line


@checks("23", "the kernel's keyrings are refused", Need.CONFINED)
async def keyrings(environment: Environment) -> None:
    await refused_calls(environment, ("add_key", "request_key", "keyctl"))


@checks("24", "kernel interfaces that nobody here needs are refused", Need.CONFINED)
async def kernel_surface(environment: Environment) -> None:
    names = (
        "bpf", "io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd", "perf_event_open", "kexec_load",
        "kexec_file_load", "init_module", "finit_module", "delete_module", "open_by_handle_at", "swapon", "swapoff",
        "reboot", "acct", "quotactl", "syslog", "lookup_dcookie", "iopl", "ioperm", "modify_ldt", "uselib",
    )  # fmt: skip
    await refused_calls(environment, names)


@checks("25", "devices of the host are absent and cannot be made", Need.CONFINED)
async def devices(environment: Environment) -> None:
    code = (
        "for path in sys.argv[1:]: print(attempt(os.open, path, os.O_RDWR))\n"
        "print(attempt(os.mknod, 'device', 0o20666, os.makedev(1, 1)))"
    )
    paths = (
        "/dev/mem",
        "/dev/kmem",
        "/dev/port",
        "/dev/kvm",
        "/dev/vsock",
        "/dev/sda",
        "/dev/vda",
        "/dev/nvme0n1",
        "/dev/fuse",
    )
    for outcome in await environment.python(code, *paths):
        assert outcome in HIDDEN, outcome


@checks("26", "other system-call tables do not bypass the filter", Need.CONFINED)
async def other_tables(environment: Environment) -> None:
    if platform.machine() != "x86_64":
        raise NotApplicable("only x86_64 has other tables")
    assert await environment.python("print(call(0x40000000 | 39))") == ["ENOSYS"]
    # mov eax, 20 (getpid of i386); int 0x80; ret
    code = (
        "import mmap\n"
        "m = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)\n"
        "m.write(bytes.fromhex('b814000000cd80c3'))\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()\n"
        "    os._exit(0)\n"
        "print(os.WTERMSIG(os.waitpid(pid, 0)[1]))"
    )
    [signal] = await environment.python(code)
    assert signal in ("31", "11"), f"an i386 system call was not stopped: {signal}"


@checks("27", "host name, clock and priority cannot be changed", Need.CONFINED)
async def host_name(environment: Environment) -> None:
    await refused_calls(environment, ("clock_settime", "settimeofday"))
    code = "print(attempt(socket.sethostname, 'x')); print(attempt(os.setpriority, os.PRIO_PROCESS, 0, -20))"
    for outcome in await environment.python(code):
        assert outcome in ("EPERM", "EACCES"), outcome


@checks("28", "shared memory of the host cannot be attached", Need.NAMESPACES)
async def shared_memory(environment: Environment) -> None:
    code = (
        "print(libc.shmget(int(sys.argv[1]), 0, 0), errno.errorcode[ctypes.get_errno()]); print(os.listdir('/dev/shm'))"
    )
    assert await environment.python(code, str(environment.baits.shared_memory_key)) == ["-1 ENOENT", "[]"]


@checks("29", "the supervisor's descriptors cannot be reached or inherited", Need.CONFINED)
async def descriptors(environment: Environment) -> None:
    code = "for fd in os.listdir('/proc/self/fd'):\n    try: print(fd, os.readlink('/proc/self/fd/' + fd))\n    except OSError: pass"
    for line in await environment.python(code):
        number, _, target = line.partition(" ")
        assert int(number) <= 2 or "memfd" in target, line
    [outcome] = await environment.python("print(attempt(os.listdir, '/proc/1/fd'))")
    assert outcome in HIDDEN, outcome


@checks("57", "known gap: /proc/self/mountinfo shows where the thread's directories lie on the host", Need.NAMESPACES)
async def mount_information(environment: Environment) -> None:
    result = await environment.sh("cat /proc/self/mountinfo")
    assert "/threads/main/workspace" in result.output, "the gap is closed: update docs/sandbox.md and this check"


@checks("58", "cgroups and /sys are absent or empty", Need.NAMESPACES)
async def cgroups(environment: Environment) -> None:
    result = await environment.sh("ls -A /sys /sys/fs/cgroup 2>/dev/null; cut -d: -f3 /proc/self/cgroup | sort -u")
    assert result.output.splitlines() in (["/"], ["/sys:", "/"]), result


@checks("62", "pid 1's command line shows no path of the host, in a session or for a single command", Need.OWN_PROC)
async def first_command_line(environment: Environment) -> None:
    command = "tr '\\0' ' ' </proc/1/cmdline"
    for env in (None, {"TOKEN": "x"}):
        result = await environment.sandbox.exec(command, env=env)
        assert "agent.py" in result.output, result
        assert str(environment.data_dir) not in result.output, result


@checks("63", "nothing reaches a service of the host, whatever is tried", Need.CONFINED, Need.OWN_NETWORK)
async def no_hits(environment: Environment) -> None:
    for check in (path_sockets, abstract_sockets, host_loopback):
        await check(environment)
    await asyncio.sleep(0.05)
    assert environment.baits.hits == []
