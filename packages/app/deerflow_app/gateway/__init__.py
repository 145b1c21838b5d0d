"""How local programs find the gateway that serves a data directory: by a file, while it is there. Imports nothing heavy: a terminal
asks at each start."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

FILE_NAME = "server.json"


@dataclass(frozen=True, slots=True)
class RunningServer:
    """What a gateway tells programs of the same operating-system user. ``token`` goes into X-DeerFlow-Internal-Token."""

    url: str
    pid: int
    token: str = field(repr=False)
    config: str | None = None
    """The configuration file it uses; None: there was none when it started."""
    host: str = field(default_factory=socket.gethostname)
    network: str = field(default_factory=lambda: _network())
    """The network that ``url`` belongs to: 127.0.0.1 of another container is not ours."""

    def is_near(self) -> bool:
        """Return whether this process is in the same network, where its address leads to it."""
        return self.network == _network()

    def is_alive(self) -> bool:
        """Whether it answers. Blocks up to two seconds."""
        if not self.is_near():
            return False
        # Without the handler for proxies: this address is local, whatever HTTP_PROXY says.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"{self.url}/health", timeout=2.0) as answer:
                return json.load(answer).get("service") == "deer-flow-gateway"
        except (OSError, ValueError, AttributeError):
            return False


@contextmanager
def held(data_dir: Path) -> Iterator[bool]:
    """Hold ``data_dir`` against every other program that does. Whether it could be had; it goes with the process at the latest."""
    directory = os.open(data_dir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(directory)


def announce(data_dir: Path, server: RunningServer) -> None:
    """Tell local programs where the gateway is. Raises OSError."""
    data_dir.mkdir(parents=True, exist_ok=True)
    temporary = data_dir / f"{FILE_NAME}.{os.getpid()}"
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump({"directory": _identity(data_dir), **asdict(server)}, file)
    temporary.replace(data_dir / FILE_NAME)


def withdraw(data_dir: Path, server: RunningServer) -> None:
    """Unless another gateway of the same data has taken over since."""
    if announced(data_dir) == server:
        (data_dir / FILE_NAME).unlink(missing_ok=True)


def running_server(data_dir: Path) -> RunningServer | None:
    """The gateway that serves ``data_dir``, if one answers. Blocks on files and the network."""
    server = announced(data_dir)
    return server if server and server.is_alive() else None


def announced(data_dir: Path) -> RunningServer | None:
    """Return the gateway that was announced last for this directory. In a copy of a directory there is none: what lies there
    names the gateway of the original."""
    try:
        found = json.loads((data_dir / FILE_NAME).read_text())
        return RunningServer(**found) if found.pop("directory") == _identity(data_dir) else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _identity(directory: Path) -> str:
    status = directory.stat()
    return f"{status.st_dev}:{status.st_ino}"


def _network() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/net').readlink()}"
    except OSError:
        return socket.gethostname()
