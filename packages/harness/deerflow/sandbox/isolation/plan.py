"""From a policy to what a sandbox needs at its start: environment, limits, mounts, and an /etc without the host's secrets."""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import json
import os
import re
import secrets
import shutil
import sqlite3
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from deerflow.sandbox.interface import WORKSPACE, Isolation, Limits, Mount, Policy, SandboxRuntimeError
from deerflow.sandbox.session import Launch, Shell

HOME = "/home/agent"
SOCKET_DIRECTORY = "/run/sbx"
SYSTEM_DIRECTORIES = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
SUPERVISOR_SOURCE = Path(__file__).parents[1] / "supervisor.py"
PYTHON_FLAGS = ("-I", "-S", "-B")

PROXY_PORT = 3128
PROXY_SOCKET = "proxy.sock"
LEAST_OPEN_FILES = 256
"""The supervisor hands the shell its script and state by descriptors near 200, out of a command's way."""
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"

BASE_ENVIRONMENT = {
    "HOME": HOME,
    "USER": "agent",
    "LOGNAME": "agent",
    "SHELL": "/bin/bash",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "TMPDIR": "/tmp",
    "MPLBACKEND": "Agg",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "PYTHONUNBUFFERED": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """One sandbox to be started."""

    policy: Policy
    uid: int | None = None
    """Host uid and gid to run as; None: this process's own."""
    shell: Shell = field(default_factory=Shell)
    for_one_command: bool = False
    """Beside the thread's session, which it must not disturb."""
    proxy_directory: Path | None = None
    """Holds the egress proxy's socket; None: no proxy."""


class Launcher(Protocol):
    """How one kind of sandbox is started."""

    def isolation(self, policy: Policy) -> Isolation:
        """What a sandbox of this policy will be confined by."""
        ...

    def prepare(self, request: LaunchRequest, control: int) -> Launch:
        """Everything up to the fork. ``control`` is the supervisor's socket. Blocks. Raises SandboxRuntimeError or OSError."""
        ...

    def prepare_program(self, request: LaunchRequest, argv: Sequence[str]) -> Launch:
        """The same for a program in the supervisor's place."""
        ...


def refuse_root(request: LaunchRequest) -> None:
    """Raises SandboxRuntimeError if the sandbox would run as root."""
    if request.uid is None and os.geteuid() == 0:
        raise SandboxRuntimeError("Refusing to start a sandbox as root without a uid of its own.")


def launcher_command(
    script: str, arguments: Sequence[str], uid: int | None, program: str | None = None, stage: Sequence[str] = ("",)
) -> list[str]:
    """What to execute for a launcher.

    Args:
        script: of ours, in this directory.
        arguments: for the launcher.
        uid: what the root launcher becomes first.
        program: to be executed instead of the script.
        stage: where the root launcher stages directories, and which.
    """
    here, python = Path(__file__).parent, [sys.executable, *PYTHON_FLAGS]
    own = str(here / script)
    if uid is None:
        return [*([program] if program else [*python, own]), *arguments]
    where, *sources = stage
    options = [str(uid), where, "" if program else own, *sources, "--", *([program] if program else [])]
    return [*python, str(here / "root_launcher.py"), *options, *arguments]


def thread_mounts(policy: Policy) -> tuple[Mount, ...]:
    """The policy's mounts with the home and temporary directories."""
    own = [(policy.home, HOME), (policy.tmp, "/tmp")]
    return policy.mounts + tuple(Mount(host, path) for host, path in own if host is not None)


def writable_directories(policy: Policy) -> list[Path]:
    """The host directories that the sandbox may fill."""
    return [mount.host for mount in thread_mounts(policy) if not mount.read_only]


def ensure_directories(policy: Policy) -> None:
    """Make the writable directories that do not exist yet."""
    for directory in writable_directories(policy):
        if not directory.is_dir():
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)


def start_message(
    request: LaunchRequest, *, home: str = WORKSPACE, overrides: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The supervisor's first message. Nothing of it appears in an argument list or in /proc.

    Args:
        home: the directory that commands begin in, as the sandbox sees it.
        overrides: environment variables that differ where paths are not virtual.
    """
    policy = request.policy
    environment = BASE_ENVIRONMENT | {"PATH": _search_path(policy)} | dict(overrides or {})
    message: dict[str, Any] = {
        "home": home,
        "cwd": request.shell.cwd,
        "state": request.shell.state,
        "limits": _resource_limits(policy.limits),
    }
    if policy.tools_dir is not None:
        message["venv"] = {"path": f"{environment['HOME']}/venv", "tools": str(policy.tools_dir)}
    if request.proxy_directory is not None:
        environment |= _proxy_environment()
        message["proxy"] = {"port": PROXY_PORT, "socket": f"{SOCKET_DIRECTORY}/{PROXY_SOCKET}"}
    message["environment"] = environment | dict(policy.environment)
    return message


def _search_path(policy: Policy) -> str:
    if policy.tools_dir is None:
        return SYSTEM_PATH
    return f"{HOME}/venv/bin:{policy.tools_dir}/bin:{SYSTEM_PATH}"


def _resource_limits(limits: Limits) -> dict[str, int]:
    """By the names of ``RLIMIT_*``. DATA rather than AS, which breaks programs that only reserve addresses."""
    wanted = {
        "FSIZE": limits.file_size_mb << 20,
        "NPROC": limits.processes,
        "NOFILE": max(limits.open_files, LEAST_OPEN_FILES) if limits.open_files else 0,
        "DATA": limits.memory_mb << 20,
        "CPU": limits.cpu_seconds,
    }
    return {"CORE": 0} | {name: value for name, value in wanted.items() if value}


def _proxy_environment() -> dict[str, str]:
    url = f"http://127.0.0.1:{PROXY_PORT}"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    own = "localhost,127.0.0.1,::1"
    return dict.fromkeys(names, url) | {"NO_PROXY": own, "no_proxy": own}


# the curated /etc --------------------------------------------------------------------------------------------------------

PATTERNS = [
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "ssl",
    "ca-certificates",
    "pki",
    "mime.types",
    "localtime",
    "timezone",
    "fonts",
    "terminfo",
    "protocols",
    "services",
    "magic",
    "magic.mime",
    "inputrc",
    "debian_version",
    "os-release",
    "mailcap",
    "java*",
    "chromium*",
    "perl",
    "python3*",
    "ImageMagick*",
    "libreoffice*",
    "R",
    "texmf*",
    "texlive*",
    "ghostscript*",
    "papersize",
    "paperspecs",
]
_CURATED = re.compile("|".join(map(fnmatch.translate, PATTERNS)))

SYNTHETIC = {
    "passwd": "root:x:0:0:root:/root:/usr/sbin/nologin\n"
    "agent:x:1000:1000:agent:/home/agent:/bin/bash\n"
    "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
    "group": "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nservices: files\n",
    "resolv.conf": "# No name server: names are resolved by the sandbox's proxy.\n",
}

LARGEST_FILE = 16 << 20


def ensure_etc_tree(directory: Path, extra: Sequence[str] = (), *, source: Path = Path("/etc")) -> Path:
    """The curated tree below ``directory``, built if the host's /etc or ``extra`` changed since; bound read-only.

    It holds what programs need to run (linker cache, certificates, fonts, time zone) and nothing about the host: accounts,
    hosts and resolver are synthetic. Only files that everybody on the host may read are copied.

    Args:
        directory: where trees are kept.
        extra: further files or directories below /etc, as absolute paths.

    Raises:
        ValueError: an extra path is not below /etc.
    """
    roots = list(_roots(source, extra))
    tree = directory / f"etc-{_fingerprint(roots)}"
    if tree.is_dir():
        return tree
    directory.mkdir(0o711, parents=True, exist_ok=True)
    building = directory / f".etc-{secrets.token_hex(8)}"
    try:
        _make_directory(building)
        for root in roots:
            _copy_root(root, building / root.relative_to(source))
        for name, content in SYNTHETIC.items():
            target = building / name
            target.unlink(missing_ok=True)
            target.write_text(content)
            target.chmod(0o644)
        try:
            building.rename(tree)
        except OSError:
            if not tree.is_dir():  # otherwise another process was faster
                raise
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return tree


def curated_entries(source: Path, more: Sequence[str] = ()) -> list[Path]:
    """Return what programs need of ``source``, which is /etc, and ``more`` of its entries; without links that lead nowhere."""
    try:
        names = [name for name in os.listdir(source) if _CURATED.match(name) or name in more]  # noqa: PTH208 - 200 paths
    except OSError:  # test_an_etc_that_nobody_may_list_...: files can be opened by their names all the same
        names = [*PATTERNS, *more]
    return [source / name for name in sorted(names) if os.path.exists(source / name)]  # noqa: PTH110 - as below


def _roots(source: Path, extra: Sequence[str]) -> Iterator[Path]:
    yield from curated_entries(source)
    for name in sorted(extra, key=os.path.normpath):  # a directory before what it holds
        path = Path(os.path.normpath(name))
        if not path.is_relative_to(source) or path == source:
            raise ValueError(f"sandbox.etc_extra: {name!r} is not a path below {source}.")
        if os.path.exists(path):  # noqa: PTH110 - pathlib's raises where the path may not be looked at
            yield path


def _fingerprint(roots: Iterable[Path]) -> str:
    facts: list[object] = [SYNTHETIC]
    for root in roots:
        status = root.lstat()
        target = str(root.resolve()) if stat.S_ISLNK(status.st_mode) else str(root)
        facts.append([str(root), status.st_mtime_ns, status.st_size, target])
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _copy_root(path: Path, target: Path) -> None:
    if os.path.lexists(target):  # copied with the directory that holds it
        return
    for parent in reversed(target.parents):
        if not parent.exists():
            _make_directory(parent)
    _copy(path, target)


def _copy(path: Path, target: Path) -> None:
    """Copy ``path`` to ``target``; what not everybody may read is left out."""
    link = path.readlink() if path.is_symlink() else None
    if link and _visible(path.parent, link):
        target.symlink_to(link)
        return
    try:
        status = path.stat()
    except OSError:
        return
    if stat.S_ISDIR(status.st_mode) and status.st_mode & 0o005 == 0o005 and not link:
        _make_directory(target)
        for child in path.iterdir():
            _copy(child, target / child.name)
    elif stat.S_ISREG(status.st_mode) and status.st_mode & 0o004 and status.st_size <= LARGEST_FILE:
        shutil.copyfile(path, target)
        target.chmod(0o644)


def _make_directory(path: Path) -> None:
    path.mkdir()
    path.chmod(0o755)  # whatever the umask


def _visible(directory: Path, link: Path) -> bool:
    """Whether a link of ``directory`` leads to what exists inside too: below /usr, or the same directory of /etc."""
    destination = directory / link
    return Path(os.path.normpath(destination)).parent == directory or destination.resolve().is_relative_to("/usr")


# as root: a host uid of its own for every thread, and its directories handed over to it ----------------------------------

FIRST_UID = 200_000
LAST_UID = 2_000_000_000
RANGES, RANGE = 4000, 100_000
MAX_ADOPTED = 200_000


def thread_uid(database: Path, owner: str, first: int = FIRST_UID) -> int:
    """The stable uid of ``owner``, allotted on first use; several processes agree on it by ``database``. Blocks.

    Raises:
        RuntimeError: every uid is taken.
    """
    database.parent.mkdir(0o711, parents=True, exist_ok=True)
    database.touch(0o600)
    database.chmod(0o600)  # one of an earlier version
    connecting = contextlib.closing(sqlite3.connect(database, timeout=30, isolation_level=None))
    with connecting as connection, connection:  # the second commits, or rolls back
        connection.execute("PRAGMA page_size = 512")  # pages are written whole, for a short row a thread
        connection.execute(
            "CREATE TABLE IF NOT EXISTS identities (owner TEXT PRIMARY KEY, uid INTEGER UNIQUE NOT NULL)"
        )
        connection.execute("BEGIN IMMEDIATE")
        row = connection.execute("SELECT uid FROM identities WHERE owner = ?", (owner,)).fetchone()
        if row is None:
            row = connection.execute("SELECT coalesce(max(uid) + 1, ?) FROM identities", (first,)).fetchone()
            if row[0] > LAST_UID:
                raise RuntimeError(f"No sandbox uid is left; delete {database} and the threads it names.")
            connection.execute("INSERT INTO identities VALUES (?, ?)", (owner, row[0]))
        return int(row[0])


def range_of(directory: Path) -> int:
    """Where the uids of the installation in ``directory`` begin.

    The kernel counts processes by uid: threads of two installations on one machine must not share one.
    """
    return FIRST_UID + zlib.crc32(os.fsencode(directory)) % RANGES * RANGE


def adopt(directory: Path, uid: int) -> None:
    """Give ``directory`` and what lies in it to ``uid`` without following any link.

    Directories that belong to ``uid`` already are looked at only at the top level: below them the sandbox itself wrote.
    """
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    waiting = [opened]
    seen = 0
    if os.fstat(opened).st_uid != uid:
        os.fchown(opened, uid, uid)
        os.fchmod(opened, 0o700)
    try:
        while waiting:
            parent = waiting.pop()
            try:
                for name in os.listdir(parent):  # noqa: PTH208 - by descriptor
                    seen += 1
                    if seen > MAX_ADOPTED:
                        return
                    child = _adopt_entry(parent, name, uid)
                    if child is not None:
                        waiting.append(child)
            finally:
                os.close(parent)
    finally:
        for parent in waiting:
            os.close(parent)


def _adopt_entry(parent: int, name: str, uid: int) -> int | None:
    """Chown one entry; a descriptor of it if it is a directory that was somebody else's."""
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if status.st_uid == uid:
            return None
        # The directory belongs to the sandbox: hold on to what was looked at, it may swap the name meanwhile.
        entry = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except OSError:
        return None
    try:
        status = os.fstat(entry)
        # A second hard link may lie outside of the sandbox.
        if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            return None
        os.chown(f"/proc/self/fd/{entry}", uid, uid) if not stat.S_ISLNK(status.st_mode) else None
        if stat.S_ISDIR(status.st_mode):
            return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=entry)
        return None
    except OSError:
        return None
    finally:
        os.close(entry)
