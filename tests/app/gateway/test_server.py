"""The gateway as a process, over real sockets and signals."""

from __future__ import annotations

import json
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.warm_python import WarmPython

from deerflow_app.gateway import FILE_NAME, RunningServer, running_server
from deerflow_app.gateway.server import ServerError, serve

from .conftest import DATABASE, DatabaseOnly, Gateway, settings_for

PROGRAM = """
import sys
from pathlib import Path
from deerflow.storage.database import Database
from deerflow_app.gateway.server import serve
from deerflow_app.gateway.settings import GatewaySettings

data = Path(sys.argv[1])

class Runtime:
    packages = {}
    database = Database(data / "deerflow.db")

    async def start(self):
        await self.database.migrate()

    async def aclose(self):
        await self.database.aclose()
        print("closed", flush=True)

settings = GatewaySettings.from_environ({"GATEWAY_HOST": "127.0.0.1"}, data, port=0)
code = serve(Runtime.database, settings, Runtime, on_start=lambda url: print(url, flush=True))
print("ended", flush=True)
sys.exit(code)
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def start_one() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
        started.append(WarmPython(command, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start_one
    for process in started:
        process.kill()
        process.wait()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def test_a_local_program_finds_the_gateway_while_it_is_there(start: Callable[..., Any], tmp_path: Path) -> None:
    process = start()
    url = line(process)

    found = running_server(tmp_path)
    assert found and (found.url, found.pid) == (url, process.pid)
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "auth.secret").stat().st_mode) == 0o600
    assert found.token not in repr(found)
    headers = {"x-deerflow-internal-token": found.token}
    me = httpx.get(f"{url}/api/v1/auth/me", headers=headers, trust_env=False)
    assert me.json()["id"] == "default" and "server" not in me.headers

    process.terminate()

    assert (line(process), line(process), process.wait(60)) == ("closed", "ended", 0)
    assert not (tmp_path / FILE_NAME).exists()
    assert running_server(tmp_path) is None


def test_what_a_killed_gateway_left_behind_is_not_believed(start: Callable[..., Any], tmp_path: Path) -> None:
    process = start()
    line(process)

    process.kill()
    process.wait(60)

    assert (tmp_path / FILE_NAME).exists()
    assert running_server(tmp_path) is None


def test_a_runtime_that_cannot_start_is_an_exit_code(tmp_path: Path) -> None:
    class Unable(DatabaseOnly):
        async def start(self) -> None:
            raise RuntimeError("the queue is gone")

    runtime = Unable(tmp_path / DATABASE)
    assert serve(runtime.database, settings_for(tmp_path, port=0), lambda: runtime) == 1  # type: ignore[arg-type]
    assert not (tmp_path / FILE_NAME).exists()


def test_a_taken_port_is_told_with_a_remedy(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ServerError, match=f"Port {port} on 127.0.0.1 is taken.*--port {port + 1}"):
            serve(None, settings_for(tmp_path, port=port), DatabaseOnly)  # type: ignore[arg-type]


@pytest.mark.parametrize(("host", "words"), [("192.0.2.1", "does not have"), ("no.such.host.invalid", "unknown")])
def test_an_address_that_is_not_ours_is_told(tmp_path: Path, host: str, words: str) -> None:
    with pytest.raises(ServerError, match=words):
        serve(None, settings_for(tmp_path, host=host, port=0), DatabaseOnly)  # type: ignore[arg-type]


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"url": "x"}', '{"url": 1, "pid": 2, "token": "x"}'])
def test_a_damaged_announcement_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE_NAME).write_text(content)

    assert running_server(tmp_path) is None


def test_another_program_on_that_port_is_not_taken_for_a_gateway(tmp_path: Path) -> None:
    from bench.scripted_openai import ScriptedOpenAI

    with ScriptedOpenAI() as other:
        server = RunningServer(other.base_url.removesuffix("/v1"), 1, "secret")
        (tmp_path / FILE_NAME).write_text(json.dumps({"url": server.url, "pid": 1, "token": "secret"}))
        assert running_server(tmp_path) is None


async def test_sockets_see_the_same_gateway(live_gateway: Gateway) -> None:
    assert (await live_gateway.user.get("/api/v1/auth/me")).json()["email"] == "user@example.org"
    assert (await live_gateway.anonymous.get("/threads/x")).status_code == 401
    big = await live_gateway.user.post("/api/v1/auth/tokens", content=b"x" * (33 << 20))
    assert big.status_code == 413


@pytest.mark.parametrize("length", [b"9" * 5000, b"-1", b"1e9", b"9999999999999999999999"])
async def test_an_absurd_content_length_is_answered_with_4xx_or_the_connection_closed(
    live_gateway: Gateway, length: bytes
) -> None:
    import asyncio

    url = httpx.URL(live_gateway.url)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(b"POST /api/v1/auth/logout HTTP/1.1\r\nhost: localhost\r\ncontent-length: " + length + b"\r\n\r\n{}")
    writer.write_eof()
    async with asyncio.timeout(60):
        answer = await reader.read()
    writer.close()
    assert not answer or answer.split(b" ")[1].startswith((b"4", b"2"))
    assert (await live_gateway.anonymous.get("/health")).status_code == 200


ALLOCATING = """
import ctypes
import threading
from deerflow_app.gateway.server import share_arenas

share_arenas()
all_run = threading.Barrier(8)
threads = [threading.Thread(target=lambda: (all_run.wait(), bytes(4000))) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
libc = ctypes.CDLL(None)
libc.malloc_info(0, ctypes.c_void_p.in_dll(libc, "stdout"))
libc.fflush(None)
"""


def test_threads_share_two_arenas():
    done = subprocess.run([sys.executable, "-c", ALLOCATING], capture_output=True, text=True, check=True)
    assert done.stdout.count("<heap nr=") == 2
