"""A thread's sandbox as a container: what it is made of, and how one is started."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from deerflow.community.aio_sandbox.engine import ContainerEngine, EngineError, EngineOutput
from deerflow.config.document import write_text
from deerflow.config.paths import on_host
from deerflow.sandbox.interface import Isolation, Policy, SandboxUnavailableError
from deerflow.sandbox.isolation.plan import (
    HOME,
    PYTHON_FLAGS,
    SOCKET_DIRECTORY,
    SUPERVISOR_SOURCE,
    SYNTHETIC,
    LaunchRequest,
    ensure_directories,
    refuse_root,
    start_message,
    thread_mounts,
)
from deerflow.sandbox.isolation.seccomp import build_filter
from deerflow.sandbox.session import Launch, Session, SessionDiedError

SUPERVISOR = "/opt/agent.py"
ENTRY = ("python3", *PYTHON_FLAGS, SUPERVISOR)
LABEL = "deerflow.sandbox"
LABEL_OF_DATA = "deerflow.data"
SHM_BYTES = 64 << 20
SCRATCH = "size=256m,mode=1777,nosuid,nodev"
"""/tmp and the home directory where the policy gives no directory on disk for them."""
MEMORY_OF_OURS = 64
"""MB that the supervisor and the page cache of a command get beyond the limit of its processes."""
# As Docker masks them by default, and all of /sys: nothing inside needs to know the machine.
MASKED = (
    *(f"/proc/{name}" for name in ("acpi", "asound", "kcore", "keys", "latency_stats", "sched_debug", "scsi")),
    *("/proc/timer_list", "/proc/timer_stats", "/sys"),
)
READ_ONLY = tuple(f"/proc/{name}" for name in ("bus", "fs", "irq", "sys", "sysrq-trigger"))


class ContainerProcess:
    """A started container as the process that a session lives and dies with."""

    def __init__(self, engine: ContainerEngine, container: str, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._removing = threading.Thread(target=_remove, args=(engine, container), name="sandbox-remove", daemon=True)

    def kill(self) -> None:
        if self.returncode is None:
            self.returncode = -9
            self._removing.start()

    def wait(self) -> int:
        self.kill()
        self._removing.join()
        assert self.returncode is not None
        return self.returncode


def _remove(engine: ContainerEngine, container: str) -> None:
    # An engine that does not answer: the end of its input ends the supervisor, and the container with it.
    with contextlib.suppress(EngineError):
        engine.remove(container)


@dataclass(frozen=True, slots=True)
class ContainerLauncher:
    """Starts sandboxes as containers of ``image``."""

    engine: ContainerEngine
    image: str
    prefix: str
    state_dir: Path
    host_paths: Mapping[Path, Path] = field(default_factory=dict[Path, Path])
    """Directories of ours, and where the engine's machine has them: we may be in a container ourselves."""
    machine: str = ""
    """The engine's, as the kernel names it; empty: as ours."""
    rootless: bool = False
    """The engine runs as an ordinary user, whom its root inside is."""
    python: str = ""
    """The image's Python, as directories are named: ``python3.11``; empty until it was tried."""

    def isolation(self, policy: Policy) -> Isolation:
        warnings: list[str] = []
        if policy.network.mode == "host":
            warnings.append("The sandbox shares the host's network: local services and cloud metadata are reachable.")
        if policy.tools_dir is not None and not self._fits(policy.tools_dir):
            warnings.append(f"The Python libraries were made for another Python than the image's {self.python}.")
        return Isolation(
            level="container",
            real_paths=True,
            network=policy.network.mode,
            pid=True,
            limits=frozenset({"nproc", "fsize", "data", "cgroup-memory", "cgroup-pids", "memory-watch", "disk-watch"}),
            warnings=tuple(warnings),
        )

    def prepare(self, request: LaunchRequest, control: int) -> Launch:
        raise SandboxUnavailableError("A container is started by its engine.")

    def prepare_program(self, request: LaunchRequest, argv: Sequence[str]) -> Launch:
        raise SandboxUnavailableError("A container is started by its engine.")

    async def open(self, request: LaunchRequest, owner: str) -> Session:
        """Start a container and wait for its supervisor. Raises SessionDiedError."""
        container = ""
        try:
            request = await asyncio.to_thread(self._with_fitting_tools, request)
            container = await asyncio.to_thread(self._create, request, owner)
            output, writer = await self.engine.attach(container)
            await asyncio.to_thread(self.engine.start, container)
            pid = await asyncio.to_thread(self._pid, container)
        except BaseException as error:
            if container:
                await asyncio.shield(asyncio.to_thread(_remove, self.engine, container))
            if not isinstance(error, EngineError | OSError):
                raise
            raise SessionDiedError("The sandbox could not be started.", reason=str(error)) from error
        process = ContainerProcess(self.engine, container, pid)
        launch = Launch([], [], self._start_message(request))
        return await Session.begin(process, output, writer, launch, lambda: _complaint(output))

    def try_out(self, request: LaunchRequest, program: str) -> int:
        """Run a Python program in a sandbox without a supervisor and return its exit code. Blocks. Raises EngineError, OSError."""
        body = self.body(request, "probe", ["python3", *PYTHON_FLAGS, "-c", program])
        body["HostConfig"]["AutoRemove"] = False
        container = self.engine.create(self._name("probe"), body)
        try:
            self.engine.start(container)
            return self.engine.wait(container)
        finally:
            self.engine.remove(container)

    def body(self, request: LaunchRequest, owner: str, command: Sequence[str] = ENTRY) -> dict[str, Any]:
        """Return the container as the engine is asked to make it. Writes the files that are bound. Blocks."""
        refuse_root(request)
        policy, limits = request.policy, request.policy.limits
        uid, gid = (request.uid, request.uid) if request.uid is not None else (os.getuid(), os.getgid())
        is_open = policy.network.mode == "host"
        memory = (limits.memory_mb + MEMORY_OF_OURS) << 20 if limits.memory_mb else 0
        return {
            "Image": self.image,
            "Entrypoint": list(command),
            "Cmd": [],
            "User": "0:0" if self.rootless else f"{uid}:{gid}",
            "WorkingDir": "/",
            # "none" has a namespace, too, which Docker's own network code then fills with nothing: a third of the start's time.
            **({} if is_open else {"Hostname": "sandbox", "NetworkDisabled": True}),
            **dict.fromkeys(("OpenStdin", "StdinOnce", "AttachStdin", "AttachStdout", "AttachStderr"), True),
            "Labels": {LABEL: owner, LABEL_OF_DATA: str(self.state_dir)},
            "HostConfig": {
                "AutoRemove": True,
                "NetworkMode": "host" if is_open else "none",
                "ReadonlyRootfs": True,
                "CapDrop": ["ALL"],
                "SecurityOpt": ["no-new-privileges"],
                "MaskedPaths": list(MASKED),
                "ReadonlyPaths": list(READ_ONLY),
                "PidsLimit": limits.processes or None,
                "Memory": memory,
                "MemorySwap": memory,
                "ShmSize": SHM_BYTES,
                "IpcMode": "private",
                "CgroupnsMode": "private",
                "LogConfig": {"Type": "none"},
                "Mounts": self._mounts(request, 0 if self.rootless else uid),
                "Tmpfs": {path: SCRATCH for host, path in ((policy.tmp, "/tmp"), (policy.home, HOME)) if host is None},
            },
        }

    def _with_fitting_tools(self, request: LaunchRequest) -> LaunchRequest:
        tools = request.policy.tools_dir
        if tools is None or self._fits(tools):
            return request
        return replace(request, policy=replace(request.policy, tools_dir=None))

    def _create(self, request: LaunchRequest, owner: str) -> str:
        ensure_directories(request.policy)
        return self.engine.create(self._name(owner), self.body(request, owner))

    def _name(self, owner: str) -> str:
        # A sandbox lives and dies with the process that holds its input: no other one may find and take it by its name.
        return f"{self.prefix}-{hashlib.sha256(owner.encode()).hexdigest()[:16]}-{secrets.token_hex(4)}"

    def _mounts(self, request: LaunchRequest, uid: int) -> list[dict[str, Any]]:
        policy = request.policy
        binds = [
            (mount.host, mount.path, mount.read_only)
            for mount in thread_mounts(policy)
            if mount.host.is_dir() or not mount.read_only
        ]
        binds += [(file, target, True) for file, target in self._files(uid)]
        if policy.tools_dir is not None:
            binds.append((policy.tools_dir, str(policy.tools_dir), True))
        if request.proxy_directory is not None:
            binds.append((request.proxy_directory, SOCKET_DIRECTORY, False))
        return [
            {"Type": "bind", "Source": str(on_host(source, self.host_paths)), "Target": target, "ReadOnly": read_only}
            for source, target, read_only in binds
        ]

    def _files(self, uid: int) -> list[tuple[Path, str]]:
        """The supervisor, and accounts, hosts and name service that say nothing of the machine."""
        directory = self.state_dir / "containers"
        directory.mkdir(mode=0o711, parents=True, exist_ok=True)
        files = {SUPERVISOR: SUPERVISOR_SOURCE.read_text("utf-8")}
        files |= {f"/etc/{name}": text.replace(":1000:", f":{uid}:") for name, text in SYNTHETIC.items()}
        bound: list[tuple[Path, str]] = []
        for target, text in files.items():
            file = directory / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}-{Path(target).name}"
            if not file.exists():
                write_text(file, text)
            bound.append((file, target))
        return bound

    def _start_message(self, request: LaunchRequest) -> dict[str, Any]:
        message = start_message(request)
        # The kernel counts a user's processes on the whole machine; the container's own count is the limit here.
        message["limits"].pop("NPROC", None)
        return message | {"filter": base64.b64encode(build_filter(self.machine or None)).decode()}

    def _pid(self, container: str) -> int:
        """The first process's number here; 0 where the engine's processes are not ours to see: another machine, or above our container."""
        pid = self.engine.pid(container)
        with contextlib.suppress(OSError):
            if container in Path(f"/proc/{pid}/cgroup").read_text():
                return pid
        return 0

    def _fits(self, tools: Path) -> bool:
        """Return whether a tool image was made with a Python as the image has it, at the same place."""
        if not self.python or not (tools / "lib" / self.python).is_dir():
            return False
        settings = (tools / "pyvenv.cfg").read_text("utf-8").splitlines()
        return any(line.replace(" ", "") == "home=/usr/bin" for line in settings)


def _complaint(output: EngineOutput) -> str:
    return output.complaint.decode("utf-8", "replace").strip()
