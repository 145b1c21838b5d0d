from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from ipaddress import ip_address
from typing import Any

import orjson
import pytest

from deerflow.errors import InvalidRequestError, NotFoundError
from deerflow.features.webhooks.job import WEBHOOK, WebhookJob, WebhookPolicy, enqueue_webhook
from deerflow.identity import Principal
from deerflow.security import outbound
from deerflow.storage.database import Database
from deerflow.storage.tables import utc_now
from deerflow.tasks import jobs
from deerflow.tasks.jobs import HopelessError, Job

ALICE = Principal("alice")
LOCAL = WebhookPolicy(("127.0.0.0/8", "::1/128"))


class Receiver:
    """A bare HTTP server that notes what it gets."""

    def __init__(self) -> None:
        self.status = 200
        self.headers: list[dict[str, str]] = []
        self.bodies: list[dict[str, Any]] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lines = head.strip().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
        body = await reader.readexactly(int(headers["content-length"]))
        self.headers.append({"line": lines[0], **headers})
        self.bodies.append(orjson.loads(body))
        more = "Location: http://169.254.169.254/\r\n" if self.status == 302 else ""
        writer.write(f"HTTP/1.1 {self.status} X\r\n{more}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://localhost:{server.sockets[0].getsockname()[1]}/hook?x=1"
    async with server:
        yield made


async def describe(principal: Principal, run_id: str) -> Mapping[str, Any]:
    if (principal.user_id, run_id) != ("alice", "r1"):
        raise NotFoundError("There is no such run.")
    return {"run_id": run_id, "status": "success", "values": {"messages": ["☃"]}}


def job(url: str, *, user_id: str = "alice", run_id: str = "r1") -> Job:
    return Job(1, WEBHOOK, run_id, {"user_id": user_id, "url": url}, 1, utc_now())


async def test_the_run_is_told_to_the_address_that_was_given(receiver: Receiver) -> None:
    await WebhookJob(describe, LOCAL)(job(receiver.url))
    (headers,), (body,) = receiver.headers, receiver.bodies
    assert headers["line"] == "POST /hook?x=1 HTTP/1.1"
    assert headers["host"].startswith("localhost:") and headers["idempotency-key"] == "r1"
    assert body["status"] == "success" and body["values"] == {"messages": ["☃"]} and "webhook_sent_at" in body


@pytest.mark.parametrize("status", [408, 429, 500, 503])
async def test_a_service_that_is_busy_is_told_again(receiver: Receiver, status: int) -> None:
    receiver.status = status
    with pytest.raises(OSError, match=str(status)):
        await WebhookJob(describe, LOCAL)(job(receiver.url))


@pytest.mark.parametrize("status", [302, 400, 401, 404, 410])
async def test_a_service_that_refuses_is_left_alone_and_redirects_are_not_followed(
    receiver: Receiver, status: int
) -> None:
    receiver.status = status
    with pytest.raises(HopelessError, match=str(status)):
        await WebhookJob(describe, LOCAL)(job(receiver.url))
    assert len(receiver.bodies) == 1


async def test_no_private_address_is_called(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    port = receiver.url.split(":")[2].split("/")[0]
    # A proxy of the machine would call it for us.
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
    for host in (
        "localhost",
        "127.0.0.1",
        "[::1]",
        "0.0.0.0",
        "2130706433",
        "[::ffff:127.0.0.1]",
        "169.254.169.254",
        "10.1.2.3",
    ):
        with pytest.raises(HopelessError, match="private"):
            await WebhookJob(describe, WebhookPolicy())(job(f"http://{host}:{port}/"))
    assert receiver.bodies == []


async def test_one_private_address_of_a_name_is_enough_to_refuse_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def lookup(host: str, port: int, **options: Any) -> list[Any]:
        return [(0, 0, 0, "", (address, port)) for address in ("93.184.216.34", "10.0.0.1")]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", lookup)
    with pytest.raises(HopelessError, match="private"):
        await WebhookJob(describe, WebhookPolicy())(job("http://rebinding.example/"))


async def test_a_service_that_is_not_there_is_tried_again() -> None:
    server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    with pytest.raises(Exception) as caught:
        await WebhookJob(describe, LOCAL)(job(f"http://127.0.0.1:{port}/"))
    assert not isinstance(caught.value, HopelessError)


async def test_a_run_that_is_gone_or_of_someone_else_is_told_to_nobody(receiver: Receiver) -> None:
    hook = WebhookJob(describe, LOCAL)
    for lost in (job(receiver.url, run_id="r2"), job(receiver.url, user_id="bob")):
        with pytest.raises(HopelessError):
            await hook(lost)
    assert receiver.bodies == []


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/relative",
        "ftp://example.org/",
        "file:///etc/passwd",
        "http://",
        "http://u:p@example.org/",
        "http://\0/",
        "http://localhost/",
        "http://x.localhost/",
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0/",
        "http://169.254.169.254/",
        "http://10.1.2.3/",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://example.org:22/",
        "https://93.184.216.34:6379/",
    ],
)
def test_an_address_that_cannot_be_called_is_refused_when_the_run_is_made(url: str) -> None:
    with pytest.raises(InvalidRequestError, match="webhook"):
        WebhookPolicy().check(url)


def test_networks_that_the_operator_lists_may_be_called_on_any_port() -> None:
    for url in ("http://127.0.0.1:8080/", "http://localhost:3000/", "http://inside.example:9000/"):
        assert str(LOCAL.check(url)) == url
    with pytest.raises(InvalidRequestError, match="private"):
        LOCAL.check("http://10.0.0.1/")
    with pytest.raises(InvalidRequestError, match="Port 22"):
        LOCAL.check("http://93.184.216.34:22/")


async def test_a_port_is_looked_at_again_with_the_addresses_of_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    async def lookup(host: str, port: int, **options: Any) -> list[Any]:
        return [(0, 0, 0, "", ("93.184.216.34", port))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", lookup)
    with pytest.raises(HopelessError, match="Port 6379"):
        await WebhookJob(describe, LOCAL)(job("http://outside.example:6379/"))


def test_an_address_of_this_machine_is_known() -> None:
    assert outbound._is_ourselves(ip_address("127.0.0.1"))
    assert not outbound._is_ourselves(ip_address("192.0.2.1"))


def test_an_ordinary_address_is_taken() -> None:
    for url in (
        "https://example.org/hook?a=b",
        "http://bücher.example:80/",
        "http://[2606:4700::1]/",
        "http://4chan.org/",
    ):
        assert WebhookPolicy().check(url) == url


async def test_a_webhook_is_asked_for_once_a_run() -> None:
    database = Database(":memory:")
    for _ in range(2):
        await database.write(lambda c: enqueue_webhook(c, ALICE, "r1", "https://example.org/"))
    now = utc_now()
    (found,) = await database.write(lambda c: jobs.lease(c, {WEBHOOK: 5}, now=now, until=now))
    assert found.payload == {"user_id": "alice", "url": "https://example.org/"}
    await database.aclose()
