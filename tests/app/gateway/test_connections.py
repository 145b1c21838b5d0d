"""What strangers may send before anybody knows who they are, over real sockets to a gateway in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from deerflow.events.hub import Hub
from deerflow_app.gateway.http import connections
from deerflow_app.gateway.http.connections import ConnectionLimits

from .conftest import DATABASE, DatabaseOnly, Population, listening, settings_for
from .test_server import PROGRAM

HEAD = b"POST /api/v1/auth/login/local HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\n1\r\nx\r\n0\r\n"
MANY = 20_000_000


class Process:
    def __init__(self, data_dir: Path, descriptors: int = 1024) -> None:
        limited = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({descriptors}, {descriptors}))\n"
        command = [sys.executable, "-c", limited + PROGRAM, str(data_dir)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self._process.stdout
        self.port = int(self._process.stdout.readline().rsplit(":", 1)[1])

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    @property
    def memory(self) -> int:
        return psutil.Process(self._process.pid).memory_info().rss

    @property
    def descriptors(self) -> int:
        return psutil.Process(self._process.pid).num_fds()

    def end(self) -> str:
        self._process.kill()
        return self._process.communicate()[1]


class Notices(DatabaseOnly):
    """The part of a runtime that `/api/events` needs."""

    def __init__(self, data_dir: Path) -> None:
        super().__init__(data_dir / DATABASE)
        self.hub = Hub()

    async def aclose(self) -> None:
        await self.hub.aclose()
        await super().aclose()


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


def test_two_host_headers_are_refused(process: Process) -> None:
    for second in (b"host: localhost", b"HOST: evil.example"):
        with process.connect() as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + second + b"\r\n\r\n")
            assert read(connection).split(b" ")[1] == b"400"


@pytest.mark.parametrize("method", [b"TRACE", b"CONNECT"])
def test_methods_that_echo_or_tunnel_are_refused(process: Process, method: bytes) -> None:
    for path in (b"/", b"/health", b"/api/v1/auth/setup-status", b"localhost:22"):
        with process.connect() as connection:
            connection.sendall(method + b" " + path + b" HTTP/1.1\r\nHost: localhost\r\nX-Secret: marked\r\n\r\n")
            answer = connection.recv(65_536)
            assert answer.split(b" ")[1] in (b"400", b"404", b"405") and b"marked" not in answer


def test_bodies_in_small_chunks_are_no_headers(process: Process) -> None:
    with process.connect() as connection:
        connection.sendall(CHUNKED[: -len(b"0\r\n")] + b"1\r\nx\r\n" * 30_000 + b"0\r\n\r\n")
        assert connection.recv(65_536).split(b" ")[1] == b"422"


def test_idle_sockets_shut_nobody_out(tmp_path: Path) -> None:
    process = Process(tmp_path, descriptors=256)
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(process.connect()) for _ in range(300)]
        for connection in idle:
            with contextlib.suppress(ConnectionError):
                connection.sendall(b"G")

        for _ in range(20):
            with process.connect() as connection:
                connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                assert read(connection).startswith(b"HTTP/1.1 200")

        assert process.descriptors < 200
    log = process.end()
    assert "Closed connections (too many from 127.0.0.1: 1). At most 192 may be open." in log
    assert "Too many open files" not in log


async def test_live_streams_are_kept_when_others_are_closed(tmp_path: Path, population: Population) -> None:
    population.copy_to(tmp_path)
    async with listening(
        settings_for(tmp_path), Notices(tmp_path), limits=ConnectionLimits(total=8, per_address=100)
    ) as gateway:
        await gateway.resume(population)
        port = httpx.URL(gateway.url).port
        async with gateway.admin.stream("GET", "/api/events") as stream:
            assert stream.status_code == 200
            idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(12)]

            closed = [await asyncio.wait_for(reader.read(), 60) for reader, _ in idle[:8]]
            answer = await (await gateway.client()).get("/health")

            assert closed == [b""] * 8 and answer.status_code == 200
            assert not stream.is_closed and await anext(stream.aiter_bytes())
        for _, writer in idle:
            writer.close()


async def test_an_address_without_room_is_told(tmp_path: Path, population: Population) -> None:
    population.copy_to(tmp_path)
    async with listening(
        settings_for(tmp_path), Notices(tmp_path), limits=ConnectionLimits(total=100, per_address=1)
    ) as gateway:
        await gateway.resume(population)
        async with gateway.admin.stream("GET", "/api/events"):
            refused = await gateway.anonymous.get("/health")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET /health HT", id="half-an-address"),
        pytest.param(HEAD, id="half-a-head"),
        pytest.param(HEAD + b"Content-Length: 100\r\n\r\nuser", id="half-a-body"),
        pytest.param(CHUNKED + b"x: y\r\n", id="half-of-the-trailers"),
        pytest.param(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET", id="half-of-a-second-one"),
    ],
)
async def test_a_request_that_does_not_go_on_ends(
    sent: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.2)
    async with listening(settings_for(tmp_path)) as gateway:
        reader, writer = await asyncio.open_connection("127.0.0.1", httpx.URL(gateway.url).port)
        writer.write(sent)

        answer = await asyncio.wait_for(reader.read(), 60)

        assert answer.startswith((b"HTTP/1.1 408", b"HTTP/1.1 422", b"HTTP/1.1 200")) or not sent
        assert "slow to send a request: 1" in caplog.text
        writer.close()


async def test_streams_and_sockets_outlast_the_deadlines(
    tmp_path: Path, population: Population, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.1)
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.1)
    population.copy_to(tmp_path)
    async with listening(settings_for(tmp_path), Notices(tmp_path)) as gateway:
        await gateway.resume(population)
        async with gateway.admin.stream("GET", "/api/events") as stream:
            pieces = stream.aiter_bytes()
            await anext(pieces)
            assert await anext(pieces)  # a heartbeat, seconds later


def test_a_server_takes_the_descriptors_that_it_may_have():
    code = (
        "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (256, 4096))\n"
        "from deerflow_app.gateway.http.connections import ConnectionLimits\n"
        "print(ConnectionLimits.of_process().total, resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split(" ", 1) == ["3072", "(4096, 4096)\n"]
