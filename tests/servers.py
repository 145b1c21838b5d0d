"""A real PostgreSQL server for tests: one a pytest process, started when the first test asks.

It listens on a free port of 127.0.0.1, keeps nothing, and dies with the process that started it, however it ends.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

STARTS_WITHIN = 60.0
_ROOM = 2 << 30
"""Bytes that must be free in memory. A server takes some hundred MB."""
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


class PostgresServer:
    """A running PostgreSQL. ``url`` is that of its database ``postgres``."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self.port = server.port
        self._base = f"postgresql://postgres@127.0.0.1:{server.port}/"
        self.url = self._base + "postgres"

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Cut everybody off and answer nobody, then be back with all data. Only for a server that no other test uses."""
        self._server.stop()
        try:
            yield
        finally:
            self._server.start()

    @contextmanager
    def fresh_database(self, template: str = "template1") -> Iterator[str]:
        """The URL of a new copy of ``template``, dropped in the end whoever is still connected."""
        name = f"test_{uuid4().hex}"
        self.create(name, template)
        try:
            yield self._base + name
        finally:
            self._execute("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)

    def create(self, name: str, template: str = "template1") -> str:
        """Make a database that stays as long as the server, and return its URL."""
        self._execute("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy", name, template)
        return self._base + name

    def _execute(self, statement: str, *names: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))  # pyright: ignore[reportArgumentType]


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    initdb, postgres = _postgres_binary("initdb"), _postgres_binary("postgres")
    # PostgreSQL refuses to run as root, and pytest's own directories are closed to others.
    user = "postgres" if os.geteuid() == 0 else None
    if user is not None and not _exists(user):
        _missing("PostgreSQL", "there is no user 'postgres' to run it as (root may not)")
    directory = Path(tempfile.mkdtemp(prefix="deerflow-test-postgres-", dir=_in_memory()))
    try:
        if user is not None:
            shutil.chown(directory, user)
        data, log = directory / "data", directory / "log"
        _run_to_end([initdb, "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"], user)
        options = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "off",
            "synchronous_commit": "off",
            "full_page_writes": "off",
            "autovacuum": "off",
            "shared_buffers": "32MB",
            "max_wal_size": "64MB",
            "max_connections": "200",
        }

        def command(port: int) -> list[str | Path]:
            settings = (option for name, value in options.items() for option in ("-c", f"{name}={value}"))
            return [postgres, "-D", data, "-p", str(port), *settings]

        with _serving(command, log, _answers_sql, user, stop=signal.SIGINT) as server:
            yield PostgresServer(server)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _in_memory() -> str | None:
    """Return a directory of a file system in memory, or None if there is no room. Elsewhere a new database takes 230 ms instead of 15: ext4
    looks at all files of the databases that were dropped in the last seconds before it creates one."""
    memory = "/dev/shm"
    return memory if os.path.isdir(memory) and shutil.disk_usage(memory).free > _ROOM else None


@contextmanager
def pooler(postgres: PostgresServer, mode: str = "transaction") -> Iterator[Callable[[str], str]]:
    """A PgBouncer in front of a server, with its defaults and few sessions. Yields what makes the URL of a database one through it."""
    binary = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if binary is None:
        _missing("PgBouncer", "pgbouncer was not found in PATH")
    user = "postgres" if os.geteuid() == 0 else None
    directory = Path(tempfile.mkdtemp(prefix="deerflow-test-pooler-"))
    file, log = directory / "pgbouncer.ini", directory / "log"

    def command(port: int) -> list[str | Path]:
        file.write_text(
            f"[databases]\n* = host=127.0.0.1 port={postgres.port} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
            f"listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = {mode}\ndefault_pool_size = 4\n"
            "max_client_conn = 1000\n"
        )
        return [binary, file]

    try:
        if user is not None:
            shutil.chown(directory, user)
        with _serving(command, log, _answers_sql, user, stop=signal.SIGINT) as server:
            yield lambda url: url.replace(f":{postgres.port}/", f":{server.port}/")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _postgres_binary(name: str) -> str:
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: float(path.parts[-3]))
    found = str(versions[-1]) if versions else shutil.which(name)
    if found is None:
        _missing("PostgreSQL", f"{name} was found neither in /usr/lib/postgresql/*/bin nor in PATH")
    return found


def _missing(server: str, reason: str) -> NoReturn:
    pytest.skip(f"{server} cannot be started for this test: {reason}. Install it to run the test.")


def _exists(user: str) -> bool:
    with suppress(KeyError):
        return bool(pwd.getpwnam(user))
    return False


class _Server:
    """A server on a port of its own, which it keeps when it is started anew."""

    def __init__(
        self,
        command: list[str | Path],
        port: int,
        log: Path,
        answers: Callable[[int], bool],
        user: str | None,
        stop: signal.Signals,
    ) -> None:
        self.port = port
        self._command, self._log, self._answers, self._user, self._stop = command, log, answers, user, stop
        self._process: subprocess.Popen[Any] | None = None

    def try_start(self) -> bool:
        """Whether it answers; it may have died."""
        self._process = _start(self._command, self._log, self._user)
        return _wait_for(self._process, lambda: self._answers(self.port))

    def start(self) -> None:
        if not self.try_start():
            raise RuntimeError(f"The server could not be started. It said:\n{_end_of(self._log)}")

    def stop(self) -> None:
        if self._process is not None:
            _end(self._process, self._stop)
            self._process = None


@contextmanager
def _serving(
    command: Callable[[int], list[str | Path]],
    log: Path,
    answers: Callable[[int], bool],
    user: str | None,
    *,
    stop: signal.Signals,
) -> Iterator[_Server]:
    """A server, as soon as it answers. Somebody else may take the port before it does: then on another one."""
    for _ in range(5):
        port = _free_port()
        server = _Server(command(port), port, log, answers, user, stop)
        try:
            if server.try_start():
                yield server
                return
        finally:
            server.stop()
    raise RuntimeError(f"The server could not be started. It said:\n{_end_of(log)}")


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-4000:]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _start(command: list[str | Path], log: Path, user: str | None) -> subprocess.Popen[Any]:
    parent = os.getpid()

    def die_with_parent() -> None:
        if sys.platform == "linux":
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)
        if os.getppid() != parent:
            os._exit(1)

    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            start_new_session=True,
            preexec_fn=die_with_parent,
            **_as(user),
        )


def _run_to_end(command: list[str | Path], user: str | None) -> None:
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, **_as(user))
    if done.returncode:
        raise RuntimeError(f"{Path(command[0]).name} failed:\n{done.stdout}{done.stderr}")


def _as(user: str | None) -> dict[str, Any]:
    return {} if user is None else {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}


def _wait_for(process: subprocess.Popen[Any], answers: Callable[[], bool]) -> bool:
    until = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < until and process.poll() is None:
        if answers():
            return True
        time.sleep(0.02)
    return False


def _end(process: subprocess.Popen[Any], stop: signal.Signals) -> None:
    process.send_signal(stop)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _answers_sql(port: int) -> bool:
    with suppress(psycopg.OperationalError):
        psycopg.connect(f"postgresql://postgres@127.0.0.1:{port}/postgres", connect_timeout=5).close()
        return True
    return False
