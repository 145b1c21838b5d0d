"""Baits that the contract suite lays out on the host: if a sandbox touches one, it leaks."""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "DEERFLOW_CONTRACT_SECRET"
IPC_CREAT, IPC_RMID = 0o1000, 0


@dataclass(slots=True)
class Baits:
    """What is out there, and whether somebody came for it."""

    secret: str
    secret_file: Path
    """World-readable and world-writable, outside of every sandbox; holds ``secret``."""
    socket_path: Path
    abstract_name: str
    port: int
    """A service on the host's loopback."""
    shared_memory_key: int
    victim: subprocess.Popen[bytes]
    hits: list[str]
    """Connections that reached any of the services."""

    def look(self) -> tuple[str, list[str]]:
        """What the secret file holds now and what lies in its directory. Blocks."""
        return self.secret_file.read_text(), [child.name for child in self.secret_file.parent.iterdir()]


@contextmanager
def set_baits() -> Iterator[Baits]:
    """Set the baits on this host and in this process; take them away at the end.

    They lie open to everybody: it is the sandbox that must keep them out, not their modes. And not below /tmp, which
    is another directory inside.
    """
    secret = secrets.token_hex(16)
    private = Path(tempfile.mkdtemp(prefix="deerflow-bait-", dir="/var/tmp"))
    private.chmod(0o777)
    secret_file = private / "id_rsa"
    secret_file.write_text(secret)
    secret_file.chmod(0o666)
    socket_path = Path(f"/var/tmp/deerflow-{secrets.token_hex(6)}.sock")
    abstract_name = f"deerflow-{secrets.token_hex(6)}"
    hits: list[str] = []
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, private)
        stack.enter_context(_variable(secret))
        port = stack.enter_context(_service(socket.AF_INET, ("127.0.0.1", 0), "loopback", hits)).getsockname()[1]
        stack.enter_context(_service(socket.AF_UNIX, str(socket_path), "path socket", hits))
        stack.callback(socket_path.unlink, missing_ok=True)
        socket_path.chmod(0o777)
        stack.enter_context(_service(socket.AF_UNIX, "\0" + abstract_name, "abstract socket", hits))
        key = stack.enter_context(_shared_memory())
        victim = stack.enter_context(subprocess.Popen(["sleep", "3600"], stdin=subprocess.DEVNULL))
        stack.callback(victim.kill)
        yield Baits(secret, secret_file, socket_path, abstract_name, port, key, victim, hits)


@contextmanager
def _variable(secret: str) -> Iterator[None]:
    os.environ[VARIABLE] = secret
    try:
        yield
    finally:
        del os.environ[VARIABLE]


@contextmanager
def _service(family: int, address: str | tuple[str, int], name: str, hits: list[str]) -> Iterator[socket.socket]:
    """A listener that notes who connects."""
    with socket.socket(family) as listener:
        listener.bind(address)
        listener.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                hits.append(name)
                connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@contextmanager
def _shared_memory() -> Iterator[int]:
    """A System V segment that everybody on the host may attach."""
    libc = ctypes.CDLL(None, use_errno=True)
    key = secrets.randbelow(1 << 30) + 1
    segment = libc.shmget(key, 4096, IPC_CREAT | 0o666)
    if segment < 0:
        raise OSError(ctypes.get_errno(), "shmget")
    try:
        yield key
    finally:
        libc.shmctl(segment, IPC_RMID, None)
