"""A gateway that is a process of its own meets clients that are broken, slow, greedy or malicious."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import httpx
import pytest
from bench.scripted_openai import ScriptedOpenAI, Text
from tests.support.gateway_process import GatewayProcess, gateway_process, until

PRIVATE = re.compile(r"Traceback|site-packages|\.py\b|secret-of-the-test|sqlite3\.|psycopg|/home\b|/tmp/")
DEEP = b'{"metadata":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001


@pytest.fixture(scope="module")
def endpoint() -> Iterator[ScriptedOpenAI]:
    with ScriptedOpenAI() as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def gateway(endpoint: ScriptedOpenAI, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with gateway_process(tmp_path_factory.mktemp("gateway"), model_url=endpoint.base_url) as process:
        yield process


@pytest.fixture
def client(gateway: GatewayProcess) -> Iterator[httpx.Client]:
    """Whatever a test did: afterwards the server is well and has not stumbled."""
    with gateway.client() as made:
        yield made
        assert made.get("/api/ok").json() == {"ok": True}
    assert "Traceback" not in gateway.output


@pytest.mark.parametrize(
    "path", ["/api/threads", "/api/runs/wait", "/api/assistants/search", "/api/store/items/search"]
)
@pytest.mark.parametrize(
    "body",
    [
        b"not json",
        b"{",
        b"\xff\xfe\x00",
        b"[1]",
        b'"text"',
        b"1e999",
        b"NaN",
        b'{"metadata": NaN}',
        DEEP,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"limit": ' + b"9" * 10_000 + b"}",
    ],
    ids=["text", "cut", "binary", "array", "string", "infinite", "nan", "nan-inside", "deep", "deep-array", "number"],
)
def test_a_body_that_makes_no_sense_is_refused_in_words(client: httpx.Client, path: str, body: bytes):
    answer = client.post(path, content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 413, 422), answer.text[:500]
    assert answer.json()["detail"] and not PRIVATE.search(answer.text)


def test_deep_and_wide_values_that_make_sense_are_kept_or_refused(client: httpx.Client):
    nested = b'{"metadata":' + b'{"a":' * 400 + b"1" + b"}" * 401
    answer = client.post("/api/threads", content=nested, headers={"content-type": "application/json"})
    assert answer.status_code in (200, 422), answer.text[:500]
    wide = client.post("/api/threads", json={"metadata": {str(number): number for number in range(20_000)}})
    assert wide.status_code in (200, 422), wide.text[:500]


@pytest.mark.parametrize(
    "head",
    [
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Large: " + b"x" * 200_000,
        b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(30_000)),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 500,
        b"GET /health HTTP/9.9\r\n\r\n",
        b"POST /api/threads HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /api/threads HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /health HTTP/1.1\r\nHost: a\x00b\r\n\r\n",
    ],
    ids=["header", "address", "headers", "tls", "version", "negative-length", "smuggled", "nul"],
)
def test_what_is_no_http_is_refused_and_the_connection_closed(
    gateway: GatewayProcess, client: httpx.Client, head: bytes
):
    with closing(_connect(gateway)) as connection:
        answer = _send_all(connection, head + b"\r\n\r\n")
    assert not answer.startswith(b"HTTP/1.1 2"), answer[:300]
    assert not PRIVATE.search(answer.decode(errors="replace"))


def test_a_thousand_idle_connections_and_a_slow_loris_keep_nobody_else_out(
    gateway: GatewayProcess, client: httpx.Client
):
    with ExitStack() as stack:
        idle = [stack.enter_context(closing(_connect(gateway))) for _ in range(800)]
        for number in range(200):
            slow = stack.enter_context(closing(_connect(gateway)))
            slow.sendall(b"POST /api/threads HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n"[: 10 + number % 60])
            idle.append(slow)
        thread = client.post("/api/threads", json={}).raise_for_status().json()["thread_id"]
        assert client.get(f"/api/threads/{thread}").status_code == 200
        for connection in idle[:400:10]:
            connection.sendall(b"x")  # a byte now and then
        assert client.get("/health").status_code == 200


def test_clients_that_never_read_hold_up_neither_the_run_nor_the_memory(
    gateway: GatewayProcess, endpoint: ScriptedOpenAI, client: httpx.Client
):
    thread = client.post("/api/threads", json={}).json()["thread_id"]
    endpoint.script(Text(chunks=["x" * 20_000] * 250), key="never-read")
    given = {"stream_mode": ["messages-tuple"], "input": {"messages": [{"role": "user", "content": "key:never-read"}]}}
    body = json.dumps(given)
    with ExitStack() as stack:
        head = (
            f"POST /api/threads/{thread}/runs/stream HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        )
        stack.enter_context(_unread(gateway, f"{head}Content-Length: {len(body)}\r\n\r\n{body}"))
        until(_ended(client, thread), lambda: gateway.output)
        run = client.get(f"/api/threads/{thread}/runs").json()[0]["run_id"]
        before = _memory(gateway.pid)
        for _ in range(40):
            line = (
                f"GET /api/threads/{thread}/runs/{run}/stream HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: -1\r\n\r\n"
            )
            stack.enter_context(_unread(gateway, line)).recv(1)
        assert client.get("/api/ok").status_code == 200
        assert _memory(gateway.pid) - before < 100_000_000, "40 times 5 MB would be 200"
    values = client.get(f"/api/threads/{thread}/state").json()["values"]
    assert len(values["messages"][-1]["content"]) == 5_000_000


def _unread(gateway: GatewayProcess, request: str) -> socket.socket:
    """A connection with as little room for an answer as there can be."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", gateway.port))
    connection.sendall(request.encode())
    return connection


def _ended(client: httpx.Client, thread: str) -> Callable[[], bool]:
    return lambda: [run["status"] for run in client.get(f"/api/threads/{thread}/runs").json()] == ["success"]


def _connect(gateway: GatewayProcess) -> socket.socket:
    return socket.create_connection(("127.0.0.1", gateway.port), 30)


def _send_all(connection: socket.socket, data: bytes) -> bytes:
    """What comes back until the other side closes; it may do so while we still send."""
    answer = b""
    try:
        connection.sendall(data)
    except OSError:
        pass
    try:
        while chunk := connection.recv(65536):
            answer += chunk
            if b"\r\n\r\n" in answer:
                break
    except ConnectionError:
        pass
    return answer


def _memory(pid: int) -> int:
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))
