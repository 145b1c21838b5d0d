# Descriptors and system calls, not path objects: it runs where the file system cannot be trusted yet.
# ruff: noqa: PTH101, PTH102, PTH103, PTH108, PTH112, PTH115, PTH118, PTH120, PTH123, PTH208, PTH211
"""Runs inside the sandbox as pid 1: starts commands, carries the shell's state over, kills what must die.

Standard library only, Python 3.9 or newer; the host hands this file over and talks to it over two descriptors, which may be
one socket, in frames of ``u32 length + JSON``. The host trusts nothing that comes back (``deerflow.sandbox.protocol``).
"""

from __future__ import annotations

import binascii
import contextlib
import ctypes
import fcntl
import json
import os
import resource
import selectors
import signal
import socket
import struct
import sys
import time

TYPE_CHECKING = False  # Importing typing would cost every sandbox a megabyte.
if TYPE_CHECKING:
    from typing import Any, NoReturn

PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
STATE_IN, STATE_OUT, SCRIPT = 198, 199, 197
STATE_BYTES = 256 << 10
RING_BYTES = 1 << 20
MAX_FRAME = 4 << 20
MAX_PROCESSES = 64
MAX_RELAYS = 128
DRAIN_GRACE = 0.05
TERMINATE_GRACE = 1.0
KILL_ROUNDS = 50

# The script arrives by descriptor: no length limit, no quoting. eval, unlike `.`, reports errors as "bash: line 1:",
# if it stands in the first line itself. PWD is set by the cd, which must not count as one for `cd -`.
SHELL = "; ".join(
    (
        f"IFS= read -r -d '' -u {STATE_IN} __sbx",
        f"exec {STATE_IN}<&-",
        'eval "$__sbx" 2>/dev/null',
        "__sbx=$OLDPWD",
        'cd -- "$SBX_CWD" >/dev/null 2>&1',
        "OLDPWD=$__sbx",
        "unset SBX_CWD",
        "__sbx_end() { local code=$?; trap - EXIT; "
        "{ printf '%s\\0' \"$PWD\"; export -p; unset -f __sbx_end; declare -f; } "
        f">&{STATE_OUT} 2>/dev/null; exit $code; }}",
        "trap __sbx_end EXIT",
        f"IFS= read -r -d '' -u {SCRIPT} __sbx",
        f"exec {SCRIPT}<&-",
        'eval "unset __sbx; $__sbx"',
    )
)

libc = ctypes.CDLL(None, use_errno=True)
LINUX = sys.platform == "linux"
"""Elsewhere we run without isolation only: there is no /proc, and orphans are not given to us."""


def pipe() -> tuple[int, int]:
    """Neither end is inherited nor blocks."""
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    return ends


def adopt_orphans() -> None:
    if LINUX:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def memory_file(data: bytes = b"") -> int:
    """A file without a name; in memory, where the system has that."""
    if not LINUX:
        import tempfile

        fd, path = tempfile.mkstemp()
        os.unlink(path)
    else:
        fd = os.memfd_create("sbx", os.MFD_CLOEXEC)
    write_all(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def encoded(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode()


def to_bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def frame(message: dict[str, Any]) -> bytes:
    payload = json.dumps(message).encode()
    return struct.pack(">I", len(payload)) + payload


class ProcessTable:
    """Who descends from whom, by this pid namespace's numbers even where /proc belongs to an outer one."""

    def __init__(self) -> None:
        self.children: dict[int, list[int]] = {}
        self.inner: dict[int, int] = {}
        self.dead: set[int] = set()
        if not LINUX:
            self._ask_ps()
            return
        for name in os.listdir("/proc"):
            if name.isdigit():
                self._add(int(name))
        self.me = int(os.readlink("/proc/self"))

    def _ask_ps(self) -> None:
        self.me = os.getpid()
        for line in os.popen("ps -axo pid=,ppid=,stat="):
            pid, parent, state = line.split(None, 2)
            self.inner[int(pid)] = int(pid)
            self.children.setdefault(int(parent), []).append(int(pid))
            if state.startswith("Z"):
                self.dead.add(int(pid))

    def _add(self, outer: int) -> None:
        try:
            with open(f"/proc/{outer}/status", "rb") as file:
                fields = dict(line.split(b":", 1) for line in file.read().splitlines() if b":" in line)
            parent, inner = int(fields[b"PPid"]), int(fields[b"NSpid"].split()[-1])
        except (OSError, ValueError, LookupError):
            return
        self.inner[outer] = inner
        self.children.setdefault(parent, []).append(outer)
        if fields.get(b"State", b"").split()[:1] == [b"Z"]:
            self.dead.add(inner)

    def descendants(self, pid: int) -> list[int]:
        """Pids below one of our own descendants (or ourselves), parents first."""
        mine = self._below(self.me)
        roots = [self.me] if pid == os.getpid() else [outer for outer in mine if self.inner[outer] == pid]
        return [self.inner[outer] for root in roots for outer in self._below(root)]

    def own_children(self) -> list[int]:
        return [self.inner[outer] for outer in self.children.get(self.me, ())]

    def _below(self, outer: int) -> list[int]:
        found: list[int] = []
        waiting = [outer]
        while waiting:
            below = self.children.get(waiting.pop(), ())
            found += below
            waiting += below
        return found


def send_signal(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def install_filter(program: bytes) -> None:
    """Have every further system call of ours and of our children judged by a BPF program. Raises OSError."""

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    buffer = ctypes.create_string_buffer(program, len(program))
    instructions = Program(len(program) // 8, ctypes.addressof(buffer))
    if (
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
        or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(instructions), 0, 0) < 0
    ):
        raise OSError(ctypes.get_errno(), "the system-call filter could not be installed")


def own_channel() -> tuple[int, int]:
    """Return copies of standard input and output, which nothing that is started here shall have."""
    requests, events = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    return requests, events


def kill_below(pid: int) -> None:
    """SIGKILL everything below ``pid``. Stopping first leaves no time to fork away."""
    for _ in range(KILL_ROUNDS):
        pids = ProcessTable().descendants(pid)
        if not pids:
            return
        send_signal(pids, signal.SIGSTOP)
        send_signal(pids, signal.SIGKILL)
        time.sleep(0.002)


class RunningCommand:
    """One command with its runner, which is the reaper of everything that the command starts."""

    def __init__(self, request: dict[str, Any], runner: int, output: int, status: int, state: int) -> None:
        self.id: int = request["id"]
        self.runner: int | None = runner
        self.output: int | None = output
        self.status: int | None = status
        self.state: int | None = state
        self.background = bool(request.get("background"))
        self.persist = not self.background and not request.get("stateless")
        self.started = time.monotonic()
        self.deadline: float | None = None if self.background else self.started + request["timeout"]
        self.cap: int = request.get("max_output", RING_BYTES)
        self.head_left = 0 if self.background else self.cap // 2
        self.tail = bytearray()
        self.tail_size = RING_BYTES if self.background else self.cap - self.cap // 2
        self.total = self.dropped = 0
        self.exit_code: int | None = None
        self.ended: float | None = None
        self.reported = False
        self.stopping: str | None = None
        self.waiters: list[int] = []
        self.keep_path: str | None = request.get("keep")
        self.keep_after: int = request.get("keep_after", 0)
        self.early = bytearray()
        self.kept: int | None = None

    def keep(self, data: bytes) -> bytes:
        """Count ``data``; return what belongs to the head, keep the end of the rest."""
        if self.keep_path is not None:
            self.keep_whole(self.keep_path, data)
        self.total += len(data)
        head, rest = data[: self.head_left], data[self.head_left :]
        self.head_left -= len(head)
        self.tail += rest
        excess = len(self.tail) - self.tail_size
        if excess > 0:
            del self.tail[:excess]
            self.dropped += excess
        return head

    def keep_whole(self, path: str, data: bytes) -> None:
        """All of a long output to a file, from where a short one would have ended."""
        try:
            if self.kept is None:
                self.early += data
                if len(self.early) <= self.keep_after:
                    return
                os.makedirs(os.path.dirname(path), exist_ok=True)
                self.kept = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
                data, self.early = bytes(self.early), bytearray()
            write_all(self.kept, data)
        except OSError:
            self.end_kept()

    def end_kept(self) -> bool:
        """Close the file of the whole output, if there is one that holds it."""
        kept, self.kept, self.keep_path = self.kept, None, None
        if kept is not None:
            os.close(kept)
        return kept is not None

    def take_tail(self) -> tuple[str, int]:
        data, dropped = bytes(self.tail), self.dropped
        self.tail, self.dropped = bytearray(), 0
        return encoded(data), dropped


class Relay:
    """Two connected sockets, each one's input being the other's output."""

    LIMIT = 1 << 16

    def __init__(self, selector: selectors.BaseSelector, client: socket.socket, upstream: socket.socket) -> None:
        self.selector = selector
        self.pending = {client: b"", upstream: b""}
        self.peer = {client: upstream, upstream: client}
        self.open = {client, upstream}
        for sock in self.peer:
            sock.setblocking(False)
        self.update()

    def update(self) -> None:
        for sock, peer in self.peer.items():
            wanted = (selectors.EVENT_READ if sock in self.open and len(self.pending[peer]) < self.LIMIT else 0) | (
                selectors.EVENT_WRITE if self.pending[sock] else 0
            )
            registered = sock in self.selector.get_map()
            if wanted and registered:
                self.selector.modify(sock, wanted, self.on_event)
            elif wanted:
                self.selector.register(sock, wanted, self.on_event)
            elif registered:
                self.selector.unregister(sock)

    def on_event(self, sock: socket.socket, mask: int) -> None:
        peer = self.peer[sock]
        try:
            if mask & selectors.EVENT_WRITE:
                self.pending[sock] = self.pending[sock][sock.send(self.pending[sock]) :]
            if mask & selectors.EVENT_READ:
                data = sock.recv(self.LIMIT)
                self.pending[peer] += data
                if not data:
                    self.open.discard(sock)
            for side, other in self.peer.items():
                if other not in self.open and not self.pending[side]:
                    side.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            pass
        except OSError:
            self.close()
            return
        if not self.open and not any(self.pending.values()):
            self.close()
        else:
            self.update()

    @property
    def alive(self) -> bool:
        return any(sock.fileno() >= 0 for sock in self.peer)

    def close(self) -> None:
        for sock in self.peer:
            if sock.fileno() >= 0 and sock in self.selector.get_map():
                self.selector.unregister(sock)
            sock.close()


class Supervisor:
    """The loop around the host's requests and the jobs' pipes."""

    def __init__(self, requests: int, events: int) -> None:
        self.requests, self.events = requests, events
        self.received = b""
        self.selector = selectors.DefaultSelector()
        self.jobs: dict[int, RunningCommand] = {}
        self.processes: dict[str, RunningCommand] = {}

    # start-up ---------------------------------------------------------------------------------------------------

    def run(self) -> NoReturn:
        # Whatever else a launcher left open is nobody's business inside.
        for name in os.listdir("/proc/self/fd" if LINUX else "/dev/fd"):
            if int(name) > 2:
                with contextlib.suppress(OSError):
                    os.set_inheritable(int(name), False)
        messages: list[dict[str, Any]] = []
        while not messages:
            messages = self._receive()
        start = messages[0]
        self.environment: dict[str, str] = start["environment"]
        self.limits: dict[str, int] = start["limits"]
        self.bash: str = start.get("bash", "/bin/bash")
        self.home: str = start["home"]
        self.cwd: str = start["cwd"] or self.home
        self.state = to_bytes(start["state"])
        self._settle(start)
        self._listen(start.get("proxy"))
        wake, waker = pipe()
        # A handler other than SIGCHLD's would make pid 1 killable from inside.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.selector.register(wake, selectors.EVENT_READ, self._on_child)
        self.selector.register(self.requests, selectors.EVENT_READ, self._on_request)
        self._send({"event": "ready"})
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        while True:
            for key, mask in self.selector.select(self._next_deadline()):
                # An earlier callback of this round may have closed the descriptor, even reused its number.
                current = self.selector.get_map().get(key.fileobj)
                if current is not None and current.data is key.data:
                    key.data(key.fileobj, mask)
            self._advance()

    # A lost host ends the sandbox.

    def _send(self, message: dict[str, Any]) -> None:
        try:
            write_all(self.events, frame(message))
        except OSError:
            os._exit(0)

    def _receive(self) -> list[dict[str, Any]]:
        try:
            data = os.read(self.requests, 1 << 16)
        except OSError:
            data = b""
        if not data:
            if os.getpid() != 1:
                kill_below(os.getpid())
            os._exit(0)
        self.received += data
        messages = []
        while len(self.received) >= 4:
            (length,) = struct.unpack(">I", self.received[:4])
            if len(self.received) < 4 + length:
                break
            messages.append(json.loads(self.received[4 : 4 + length]))
            self.received = self.received[4 + length :]
        return messages

    def _settle(self, start: dict[str, Any]) -> None:
        # Ctrl-C in the server's terminal is not for us, where no launcher has begun a session.
        with contextlib.suppress(OSError):
            os.setsid()
        os.umask(0o022)
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write("800")
        with contextlib.suppress(OSError):
            os.nice(10)
        # Commands run under our uid: without this they could read /proc/1/{mem,fd,environ}.
        if LINUX:
            libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        if start.get("filter"):
            install_filter(binascii.a2b_base64(start["filter"]))
        if os.getpid() != 1:
            adopt_orphans()
        if start.get("venv"):
            with contextlib.suppress(OSError, ValueError, LookupError):
                make_environment(**start["venv"])

    def _listen(self, proxy: dict[str, Any] | None) -> None:
        if not proxy:
            return
        listener = socket.create_server(("127.0.0.1", proxy["port"]), backlog=1024)
        listener.setblocking(False)

        relays: list[Relay] = []

        def on_connection(sock: socket.socket, _mask: int) -> None:
            client = upstream = None
            relays[:] = [relay for relay in relays if relay.alive]
            try:
                client, _ = sock.accept()
                # Without descriptors left no command could be started any more.
                if len(relays) >= MAX_RELAYS:
                    raise OSError("too many connections")
                upstream = socket.socket(socket.AF_UNIX)
                upstream.connect(proxy["socket"])
            except OSError:
                for half in (client, upstream):
                    if half is not None:
                        half.close()
                return
            relays.append(Relay(self.selector, client, upstream))

        self.selector.register(listener, selectors.EVENT_READ, on_connection)

    # requests ---------------------------------------------------------------------------------------------------

    def _on_request(self, _requests: int, _mask: int) -> None:
        for message in self._receive():
            getattr(self, "_op_" + message["op"])(message)

    def _op_exec(self, request: dict[str, Any]) -> None:
        if not request.get("background"):
            self._start(request)
            return
        if len(self.processes) >= MAX_PROCESSES:
            finished = [key for key, job in self.processes.items() if job.runner is None]
            if not finished:
                self._fail(request, f"{MAX_PROCESSES} background processes are running; kill one first")
                return
            del self.processes[finished[0]]
        job = self._start(request)
        if job:
            self.processes[request["process"]] = job
            self._report(request["id"], job)

    def _op_read(self, request: dict[str, Any]) -> None:
        self._report(request["id"], self.processes.get(request["process"]), peek=bool(request.get("peek")))

    def _op_stop(self, request: dict[str, Any]) -> None:
        job = self.processes.get(request["process"])
        if job is None or job.runner is None:
            self._report(request["id"], job)
            return
        job.waiters.append(request["id"])
        self._stop(job, "cancelled", gently=True)

    def _op_kill(self, request: dict[str, Any]) -> None:
        for job in list(self.jobs.values()):
            if job.id == request["id"] and not job.background:
                self._stop(job, "cancelled")

    def _op_reset(self, request: dict[str, Any]) -> None:
        for job in self.jobs.values():
            job.stopping = job.stopping or "cancelled"
        if os.getpid() == 1:
            with contextlib.suppress(OSError):
                os.kill(-1, signal.SIGKILL)
        else:
            kill_below(os.getpid())
        if request.get("forget"):
            self.cwd, self.state = self.home, b""
            self.processes.clear()
        self._send({"event": "reset", "id": request["id"]})

    def _op_state(self, request: dict[str, Any]) -> None:
        state = self.state.decode("utf-8", "surrogateescape")
        # A command's runner lives a moment longer than its command.
        table = ProcessTable()
        background = any(pid not in self.jobs and pid not in table.dead for pid in table.descendants(os.getpid()))
        self._send({"event": "state", "id": request["id"], "cwd": self.cwd, "state": state, "background": background})

    # jobs -------------------------------------------------------------------------------------------------------

    def _start(self, request: dict[str, Any]) -> RunningCommand | None:
        cwd = request.get("cwd")
        if cwd is not None and not os.path.isdir(cwd):
            self._fail(request, f"no such directory: {cwd}")
            return None
        stateless = request.get("stateless")
        if cwd is None:
            cwd = self.cwd if not stateless and os.path.isdir(self.cwd) else self.home
        environment = dict(self.environment, SBX_CWD=cwd)
        environment.update(request.get("env") or {})
        argv: list[str] | None = request.get("argv")
        script = memory_file(to_bytes(request["command"]) + b"\n")
        state_in = memory_file(b"" if stateless else self.state)
        state_out = memory_file()
        output, output_end = pipe()
        status, status_end = pipe()
        os.set_blocking(output_end, True)
        try:
            runner = os.fork()
        except OSError as error:
            for fd in (script, state_in, state_out, output, output_end, status, status_end):
                os.close(fd)
            self._fail(request, f"cannot start a process: {error.strerror}")
            return None
        if runner == 0:
            # Out of the way of the numbers that they are about to get.
            script, state_in, state_out = (
                fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, STATE_OUT + 1) for fd in (script, state_in, state_out)
            )
            actions = [
                (os.POSIX_SPAWN_DUP2, output_end, 1),
                (os.POSIX_SPAWN_DUP2, output_end, 2),
                (os.POSIX_SPAWN_DUP2, script, SCRIPT),
                (os.POSIX_SPAWN_DUP2, state_in, STATE_IN),
                (os.POSIX_SPAWN_DUP2, state_out, STATE_OUT),
            ]
            self._run(actions, environment, status_end, output_end, argv)
        for fd in (script, state_in, output_end, status_end):
            os.close(fd)
        job = RunningCommand(request, runner, output, status, state_out)
        self.jobs[runner] = job
        self.selector.register(output, selectors.EVENT_READ, lambda *_: self._pump(job))
        self.selector.register(status, selectors.EVENT_READ, lambda *_: self._on_status(job))
        return job

    def _run(
        self,
        actions: list[tuple[int, int, int]],
        environment: dict[str, str],
        status: int,
        output: int,
        argv: list[str] | None,
    ) -> NoReturn:
        """The runner: reaps every descendant of one command, so that none escapes to pid 1. With ``argv`` no shell has a part in it."""
        try:
            adopt_orphans()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for name, value in self.limits.items():
                limit(getattr(resource, "RLIMIT_" + name), value)
            program, arguments = self.bash, ["bash", "--norc", "--noprofile", "-c", SHELL]
            try:
                if argv:
                    program, arguments, actions = argv[0], argv, actions[:2]
                    os.environ["PATH"] = environment["PATH"]  # where the program is searched
                    os.chdir(environment.pop("SBX_CWD"))
                bash = os.posix_spawnp(program, arguments, environment, file_actions=actions, setsid=True)
            except OSError as error:
                os.write(output, f"sandbox: cannot start {arguments[0]}: {error.strerror}\n".encode())
                os.write(status, struct.pack("i", 127 if argv else 126))
                os._exit(0)
            os.closerange(3, status)
            os.closerange(status + 1, 4096)
            while True:
                pid, code = os.waitpid(-1, 0)
                if pid == bash:
                    os.write(status, struct.pack("i", os.waitstatus_to_exitcode(code)))
                    os.close(status)
        finally:
            os._exit(0)

    def _pump(self, job: RunningCommand) -> None:
        for _ in range(16):
            if job.output is None:
                return
            try:
                data = os.read(job.output, 1 << 16)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self.selector.unregister(job.output)
                os.close(job.output)
                job.output = None
                return
            if job.reported and not job.background:
                continue
            head = job.keep(data)
            if head:
                self._send({"event": "output", "id": job.id, "data": encoded(head)})
            if not job.background and job.total > job.cap * 64 + (64 << 20):
                self._stop(job, "flood")

    def _on_status(self, job: RunningCommand) -> None:
        if job.status is None:
            return
        data = os.read(job.status, 4)
        self.selector.unregister(job.status)
        os.close(job.status)
        job.status = None
        job.exit_code = struct.unpack("i", data)[0] if len(data) == 4 else None
        job.ended = time.monotonic()

    def _stop(self, job: RunningCommand, reason: str, gently: bool = False) -> None:
        if job.stopping is None:
            job.stopping = reason
        if gently and job.runner is not None:
            send_signal(ProcessTable().descendants(job.runner), signal.SIGTERM)
            job.deadline = time.monotonic() + TERMINATE_GRACE
        else:
            self._destroy(job)

    def _destroy(self, job: RunningCommand) -> None:
        if job.runner is not None:
            kill_below(job.runner)
            send_signal([job.runner], signal.SIGKILL)
        job.deadline = time.monotonic() + TERMINATE_GRACE

    def _on_child(self, wake: int, _mask: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(wake, 4096)
        orphaned = False
        while True:
            try:
                pid, code = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if not pid:
                break
            job = self.jobs.pop(pid, None)
            if job:
                job.runner = None
                self._finish(job)
                orphaned = orphaned or os.WIFSIGNALED(code)
        if orphaned:
            self._kill_orphans()

    def _kill_orphans(self) -> None:
        """Whoever killed its runner is now our child: everything legitimate is below a runner."""
        for _ in range(KILL_ROUNDS):
            table = ProcessTable()
            orphans = [pid for pid in table.own_children() if pid not in self.jobs]
            victims = orphans + [below for pid in orphans for below in table.descendants(pid)]
            if not victims:
                return
            send_signal(victims, signal.SIGSTOP)
            send_signal(victims, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                for pid in orphans:
                    os.waitpid(pid, os.WNOHANG)
            time.sleep(0.002)

    def _advance(self) -> None:
        now = time.monotonic()
        for job in list(self.jobs.values()):
            if job.ended is None or job.background:
                if job.deadline is not None and now >= job.deadline:
                    if job.stopping is None:
                        self._stop(job, "timeout", gently=True)
                    else:
                        self._destroy(job)
            elif not job.reported:
                self._pump(job)
                if job.output is None or now >= job.ended + DRAIN_GRACE:
                    self._report_end(job)

    def _next_deadline(self) -> float | None:
        times: list[float] = []
        for job in self.jobs.values():
            if job.ended is None or job.background:
                times += [job.deadline] if job.deadline is not None else []
            elif not job.reported:
                times.append(job.ended + DRAIN_GRACE)
        return max(0.0, min(times) - time.monotonic()) + 0.001 if times else None

    # reports ----------------------------------------------------------------------------------------------------

    def _finish(self, job: RunningCommand) -> None:
        """The runner is gone and with it everything that the command started."""
        self._on_status(job)
        self._pump(job)
        if job.background:
            for waiter in job.waiters:
                self._report(waiter, job)
        elif not job.reported:
            self._report_end(job)
        if job.output is not None:
            self.selector.unregister(job.output)
            os.close(job.output)
        if job.state is not None:
            os.close(job.state)
        job.output = job.state = None

    def _report_end(self, job: RunningCommand) -> None:
        job.reported = True
        if job.persist and job.stopping is None:
            self._keep_state(job)
        if job.stopping and job.runner is not None:
            self._destroy(job)
        if job.stopping and job.keep_path is not None and job.early:
            # Whoever stopped it may not wait for its output.
            job.keep_after = -1
            job.keep_whole(job.keep_path, b"")
        kept = job.end_kept()
        data, dropped = job.take_tail()
        self._send(
            {
                "event": "end",
                "id": job.id,
                "exit_code": None if job.stopping else job.exit_code,
                "stopped": job.stopping,
                "tail": data,
                "dropped": dropped,
                "total": job.total,
                "kept": kept,
                "cwd": self.cwd,
                "ms": round((time.monotonic() - job.started) * 1000, 2),
            }
        )

    def _keep_state(self, job: RunningCommand) -> None:
        if job.state is None:
            return
        state = os.pread(job.state, STATE_BYTES + 1, 0)
        cwd, separator, rest = state.partition(b"\0")
        if separator and len(state) <= STATE_BYTES:
            self.cwd, self.state = cwd.decode("utf-8", "surrogateescape"), rest

    def _report(self, request_id: int, job: RunningCommand | None, peek: bool = False) -> None:
        message: dict[str, Any] = {"event": "process", "id": request_id, "known": job is not None}
        if job is not None:
            data, dropped = ("", 0) if peek else job.take_tail()
            message.update(running=job.runner is not None, exit_code=job.exit_code, data=data, dropped=dropped)
        self._send(message)

    def _fail(self, request: dict[str, Any], why: str) -> None:
        self._send({"event": "failed", "id": request["id"], "why": why})


def limit(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))


def make_environment(path: str, tools: str) -> None:
    """A Python environment of the thread's own above the read-only tool image, as ``venv --without-pip`` makes it."""
    with open(os.path.join(tools, "pyvenv.cfg"), encoding="utf-8") as file:
        lines = (line.partition("=") for line in file)
        base = {key.strip(): value.strip() for key, _, value in lines}
    [version] = [name for name in os.listdir(os.path.join(tools, "lib")) if name.startswith("python")]
    os.mkdir(path)
    packages = os.path.join(path, "lib", version, "site-packages")
    os.makedirs(packages)
    os.mkdir(os.path.join(path, "bin"))
    for name in ("python", "python3"):
        os.symlink(os.path.join(base["home"], "python3"), os.path.join(path, "bin", name))
    files = {
        "pyvenv.cfg": f"home = {base['home']}\ninclude-system-site-packages = false\n",
        os.path.join(packages, "_tools.pth"): os.path.join(tools, "lib", version, "site-packages") + "\n",
    }
    # The tool image's own pip would install into the image, which is read-only.
    for name in ("pip", "pip3"):
        files[os.path.join("bin", name)] = f'#!/bin/sh\nexec {path}/bin/python -m pip "$@"\n'
    for name, content in files.items():
        with open(os.path.join(path, name), "w", encoding="utf-8") as file:
            file.write(content)
        if name.startswith("bin"):
            os.chmod(os.path.join(path, name), 0o755)


if __name__ == "__main__":
    # A container gives us standard input and output, and its first process an environment of its own.
    channel = (int(sys.argv[1]),) * 2 if sys.argv[1:] else own_channel()
    os.environ.clear()
    Supervisor(*channel).run()
