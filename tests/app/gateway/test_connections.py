"""What strangers may send before anybody knows who they are, over real sockets to a gateway in a process of its own."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from .test_server import PROGRAM

HEAD = b"POST /api/v1/auth/login/local HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\n1\r\nx\r\n0\r\n"
MANY = 20_000_000


class Process:
    def __init__(self, data_dir: Path) -> None:
        command = [sys.executable, "-c", PROGRAM, str(data_dir)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self._process.stdout
        self.port = int(self._process.stdout.readline().rsplit(":", 1)[1])

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    @property
    def memory(self) -> int:
        return psutil.Process(self._process.pid).memory_info().rss

    def end(self) -> str:
        self._process.kill()
        return self._process.communicate()[1]


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    one = Process(tmp_path_factory.mktemp("strangers"))
    yield one
    one.end()


def send_until_closed(connection: socket.socket, first: bytes, then: bytes) -> bytes:
    """What was answered to ``first`` and up to MANY bytes of ``then``, where the server closed the connection itself."""
    with contextlib.suppress(ConnectionError):
        connection.sendall(first)
        for _ in range(MANY // len(then)):
            connection.sendall(then)
    return read(connection)


def read(connection: socket.socket) -> bytes:
    answer = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65_536):
            answer += piece
    return answer


@pytest.mark.parametrize(
    ("first", "then"),
    [
        pytest.param(CHUNKED, b"x:y\r\n" * 10_000, id="trailers"),
        pytest.param(CHUNKED + b"x:", b"y" * 50_000, id="one-trailer"),
        pytest.param(HEAD, b"x:y\r\n" * 10_000, id="headers"),
        pytest.param(HEAD + b"x:", b"y" * 50_000, id="one-header"),
        pytest.param(b"GET /", b"y" * 50_000, id="address"),
        pytest.param(CHUNKED[:-3] + b"5;", b"y" * 50_000, id="extension"),
        pytest.param(b"", b"\r\n" * 20_000, id="empty-lines"),
        pytest.param(b"", b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 5_000, id="pipelined"),
    ],
)
def test_what_goes_around_bodies_is_bounded(process: Process, first: bytes, then: bytes) -> None:
    with process.connect() as before:  # whatever the first request loads
        before.sendall(CHUNKED + b"\r\n")
        assert before.recv(65_536).startswith(b"HTTP/1.1 422")
    memory = process.memory

    with process.connect() as connection:
        send_until_closed(connection, first, then)

    assert process.memory - memory < 8_000_000


@pytest.mark.parametrize("lines", [150, 201])
def test_lines_are_counted_in_the_first_packet_and_in_trailers(process: Process, lines: int) -> None:
    some = b"".join(b"x-%d: y\r\n" % number for number in range(lines))
    head = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    status = b"200" if lines < 200 else b"400"
    for request in (head + some + b"\r\n", head + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + some + b"\r\n"):
        with process.connect() as connection:
            connection.sendall(request)
            assert read(connection).split(b" ")[1] == status


def test_bodies_in_small_chunks_are_no_headers(process: Process) -> None:
    with process.connect() as connection:
        connection.sendall(CHUNKED[: -len(b"0\r\n")] + b"1\r\nx\r\n" * 30_000 + b"0\r\n\r\n")
        assert connection.recv(65_536).split(b" ")[1] == b"422"
