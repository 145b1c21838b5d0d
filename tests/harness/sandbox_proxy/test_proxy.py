"""The egress proxy over real sockets: what it carries, what it refuses, what it survives."""

from __future__ import annotations

import asyncio
import os
import ssl
import stat
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from deerflow.sandbox.egress import Decision, EgressProxy, ProxyLimits
from deerflow.sandbox.interface import Network, SandboxRuntimeError
from deerflow.security.addresses import Address

Handler = Callable[[StreamReader, StreamWriter], Awaitable[None]]


@dataclass
class Upstream:
    """A real TCP server that keeps what it was sent."""

    handler: Handler | None = None
    port: int = 0
    received: list[bytes] = field(default_factory=list)
    connections: int = 0

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        self.connections += 1
        try:
            if self.handler:
                await self.handler(reader, writer)
            else:
                await self.answer(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def answer(self, reader: StreamReader, writer: StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.received.append(head)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\nX-Up: 1\r\n\r\nhello")
        await writer.drain()
        # A server that keeps the connection: the proxy must not wait for its end.
        while data := await reader.read(65536):
            self.received.append(data)


@asynccontextmanager
async def upstream(handler: Handler | None = None) -> AsyncIterator[Upstream]:
    made = Upstream(handler)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()


class Proxy:
    """A started proxy, its decisions, and how to talk to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.decisions: list[Decision] = []

    async def connect(self) -> tuple[StreamReader, StreamWriter]:
        return await asyncio.open_unix_connection(str(self.path))

    async def ask(self, request: bytes) -> bytes:
        """Send, then read to the end."""
        reader, writer = await self.connect()
        writer.write(request)
        try:
            return await asyncio.wait_for(reader.read(), 20)
        finally:
            writer.close()


@asynccontextmanager
async def started(tmp_path: Path, network: Network, **options: object) -> AsyncIterator[Proxy]:
    made = Proxy(tmp_path / "proxy.sock")
    egress = EgressProxy(network, log=made.decisions.append, **options)  # type: ignore[arg-type]
    await egress.start(made.path)
    try:
        yield made
    finally:
        await egress.close()


def local(port: int, **changes: object) -> Network:
    """Everything on this machine's loopback, which only ``allow_nets`` can open."""
    settings: dict[str, object] = {"mode": "internet", "ports": (port,), "allow_nets": ("127.0.0.0/8",)}
    return Network(**(settings | changes))  # type: ignore[arg-type]


def status(response: bytes) -> int:
    return int(response.split(b" ", 2)[1])


def unchunked(response: bytes) -> bytes:
    rest, body = response.rpartition(b"Transfer-Encoding: chunked\r\n\r\n")[2], b""
    while size := int(rest.split(b"\r\n", 1)[0], 16):
        rest = rest.split(b"\r\n", 1)[1]
        body, rest = body + rest[:size], rest[size + 2 :]
    return body


# what it carries ----------------------------------------------------------------------------------------------------


async def test_a_plain_request_arrives_rewritten_and_its_answer_comes_back(tmp_path: Path) -> None:
    async with upstream() as server, started(tmp_path, local(server.port)) as proxy:
        response = await proxy.ask(
            f"GET http://127.0.0.1:{server.port}/path?q=1 HTTP/1.1\r\nHost: evil.example\r\nProxy-Authorization: secret\r\n"
            "Proxy-Connection: keep-alive\r\nConnection: X-Hop\r\nX-Hop: 1\r\nUpgrade: websocket\r\nAccept: */*\r\n\r\n".encode()
        )
        assert response.startswith(b"HTTP/1.1 200") and response.endswith(b"\r\n\r\nhello")
        assert b"x-up: 1" in response.lower() and b"connection: close" in response.lower()
        [head] = server.received
        assert head.startswith(b"GET /path?q=1 HTTP/1.1\r\n")
        lowered = head.lower()
        assert f"host: 127.0.0.1:{server.port}\r\n".encode() in lowered and b"accept: */*" in lowered
        for dropped in (b"evil.example", b"secret", b"x-hop", b"upgrade", b"proxy-"):
            assert dropped not in lowered
        assert proxy.decisions == [Decision(True, "GET", "127.0.0.1", server.port, address="127.0.0.1")]


async def test_a_body_is_carried_whole_by_length_and_in_chunks(tmp_path: Path) -> None:
    async def echo(reader: StreamReader, writer: StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        body = b""
        if b"chunked" in head.lower():
            while size := int(await reader.readline(), 16):
                body += await reader.readexactly(size)
                await reader.readline()
        else:
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            body = await reader.readexactly(length)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
        await writer.drain()
        await reader.read()

    async with upstream(echo) as server, started(tmp_path, local(server.port)) as proxy:
        target = f"POST http://127.0.0.1:{server.port}/ HTTP/1.1\r\nHost: x\r\n".encode()
        big = b"0123456789" * 30_000
        answers = [
            await proxy.ask(target + b"Content-Length: %d\r\n\r\n" % len(big) + big),
            await proxy.ask(
                target + b"Transfer-Encoding: chunked\r\n\r\n" + b"%x\r\n" % len(big) + big + b"\r\n0\r\n\r\n"
            ),
        ]
        for answer in answers:
            assert unchunked(answer) == big


async def test_a_client_that_asks_first_is_told_to_go_on(tmp_path: Path) -> None:
    received: list[bytes] = []

    async def take(reader: StreamReader, writer: StreamWriter) -> None:
        received.extend([await reader.readuntil(b"\r\n\r\n"), await reader.readexactly(4)])
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        await writer.drain()
        await reader.read()

    async with upstream(take) as server, started(tmp_path, local(server.port)) as proxy:
        reader, writer = await proxy.connect()
        head = f"POST http://127.0.0.1:{server.port}/ HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"
        writer.write(head.encode())
        assert (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)).startswith(b"HTTP/1.1 100 ")
        writer.write(b"body")
        assert (await asyncio.wait_for(reader.read(), 10)).endswith(b"hello")
        assert received[1] == b"body" and b"expect" not in received[0].lower()
        writer.close()


async def test_a_tunnel_carries_both_ways_and_one_side_may_end_first(tmp_path: Path) -> None:
    async def reverse(reader: StreamReader, writer: StreamWriter) -> None:
        # Answers only when the client has ended its side.
        writer.write((await reader.read())[::-1])
        await writer.drain()

    async with upstream(reverse) as server, started(tmp_path, local(server.port)) as proxy:
        reader, writer = await proxy.connect()
        writer.write(f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\nHost: x\r\n\r\nearly ".encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        writer.write(b"and late")
        writer.write_eof()
        assert await asyncio.wait_for(reader.read(), 10) == b"early and late"[::-1]
        writer.close()


async def test_bytes_in_a_tunnel_are_never_touched(tmp_path: Path) -> None:
    async def echo(reader: StreamReader, writer: StreamWriter) -> None:
        while data := await reader.read(70_000):
            writer.write(data)
            await writer.drain()

    payload = os.urandom(3 << 20)
    async with upstream(echo) as server, started(tmp_path, local(server.port)) as proxy:
        reader, writer = await proxy.connect()
        writer.write(f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        writer.write(payload)
        assert await asyncio.wait_for(reader.readexactly(len(payload)), 20) == payload
        writer.close()


async def test_an_old_client_and_a_head_request_are_served(tmp_path: Path) -> None:
    async with upstream() as server, started(tmp_path, local(server.port)) as proxy:
        old = await proxy.ask(f"GET http://127.0.0.1:{server.port} HTTP/1.0\r\n\r\n".encode())
        assert old.endswith(b"hello") and server.received[0].startswith(b"GET / HTTP/1.1")
        head = await proxy.ask(f"HEAD http://127.0.0.1:{server.port}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert head.endswith(b"\r\n\r\n") and b"content-length: 5" in head.lower()


async def test_many_connections_at_once(tmp_path: Path) -> None:
    async with upstream() as server, started(tmp_path, local(server.port)) as proxy:
        request = f"GET http://127.0.0.1:{server.port}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        answers = await asyncio.gather(*(proxy.ask(request) for _ in range(60)))
        assert {answer[-5:] for answer in answers} == {b"hello"}


# what it refuses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_line",
    [
        "CONNECT 127.0.0.1:{port}",
        "CONNECT localhost:{port}",
        "GET http://127.0.0.1:{port}/",
        "GET http://localhost:{port}/",
        "CONNECT [::1]:{port}",
        "CONNECT 169.254.169.254:80",
        "CONNECT [::ffff:127.0.0.1]:{port}",
        "CONNECT 127.1:{port}",
        "CONNECT 2130706433:{port}",
        "CONNECT 0x7f000001:{port}",
        "CONNECT LOCALHOST.:{port}",
        "GET http://0:{port}/",
    ],
)
async def test_this_machine_cannot_be_reached_by_any_spelling(tmp_path: Path, request_line: str) -> None:
    async with upstream() as server, started(tmp_path, Network("internet", ports=(80, server.port))) as proxy:
        line = request_line.format(port=server.port)
        response = await proxy.ask(f"{line} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert status(response) in (403, 502)
        assert server.connections == 0
        assert not any(decision.address for decision in proxy.decisions)


async def test_a_refusal_is_readable_and_logged(tmp_path: Path) -> None:
    async with started(tmp_path, Network("allowlist", allow=("packages.test",))) as proxy:
        response = await proxy.ask(b"CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n")
        assert response.startswith(b"HTTP/1.1 403 Blocked by sandbox network policy\r\n")
        assert b"example.com is not on the allow list" in response and b"Allowed: packages.test" in response
        [decision] = proxy.decisions
        assert (decision.allowed, decision.host, decision.port) == (False, "example.com", 443)


@pytest.mark.parametrize("request_line", ["CONNECT new.test:443", "GET http://NEW.test./?q=secret"])
async def test_the_gate_is_asked_before_a_name_is_resolved_and_its_sentence_is_the_answer(
    tmp_path: Path, request_line: str
) -> None:
    asked, resolved = list[str](), list[str]()

    async def resolve(host: str, port: int) -> list[str]:
        resolved.append(host)
        return ["127.0.0.1"]

    async def gate(host: str) -> str | None:
        asked.append(host)
        return f"{host} is new here." if len(asked) == 1 else None

    async with started(tmp_path, Network("internet"), resolve=resolve, gate=gate) as proxy:
        request = f"{request_line} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        refused = await proxy.ask(request)
        assert status(refused) == 403 and refused.endswith(b"\r\n\r\nnew.test is new here.\n")
        assert (asked, resolved) == (["new.test"], [])
        assert [(each.allowed, each.reason) for each in proxy.decisions] == [(False, "new.test is new here.")]
        assert status(await proxy.ask(request)) == 403
        assert (asked, resolved) == (["new.test"] * 2, ["new.test"]), "addresses are judged after it as before"


async def test_a_gate_that_fails_lets_nothing_pass(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def gate(host: str) -> str | None:
        raise RuntimeError("the database is away")

    async with upstream() as server, started(tmp_path, local(server.port), gate=gate) as proxy:
        response = await proxy.ask(f"GET http://127.0.0.1:{server.port}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert status(response) == 403 and b"could not decide" in response
        assert server.connections == 0 and "the database is away" in caplog.text


async def test_the_gate_does_not_see_hosts_that_the_network_forbids(tmp_path: Path) -> None:
    asked: list[str] = []

    async def gate(host: str) -> str | None:
        asked.append(host)
        return None

    async with started(tmp_path, Network("internet", deny=("denied.test",)), gate=gate) as proxy:
        for host in ("denied.test", "10.0.0.1", "127.1", "[::1]"):
            assert status(await proxy.ask(f"CONNECT {host}:443 HTTP/1.1\r\nHost: x\r\n\r\n".encode())) == 403
        assert asked == []


async def test_a_name_is_resolved_once_and_dialled_by_the_address_that_was_checked(tmp_path: Path) -> None:
    answers = iter([["93.184.216.34"], ["127.0.0.1"], ["127.0.0.1", "10.0.0.1"]])
    dialled: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        return next(answers)

    async with upstream() as server:

        async def connect(address: Address, port: int) -> tuple[StreamReader, StreamWriter]:
            dialled.append(str(address))
            return await asyncio.open_connection("127.0.0.1", server.port, local_addr=("127.0.0.2", 0))

        async with started(tmp_path, Network("internet"), resolve=resolve, connect=connect) as proxy:
            request = b"GET http://rebind.example/ HTTP/1.1\r\nHost: x\r\n\r\n"
            assert status(await proxy.ask(request)) == 200
            # The name has turned to this machine meanwhile: refused, and never dialled.
            assert status(await proxy.ask(request)) == 403
            assert status(await proxy.ask(request)) == 403
            assert dialled == ["93.184.216.34"]


async def test_a_public_address_of_this_machine_itself_is_refused(tmp_path: Path) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["93.184.216.34"]

    async with upstream() as server:

        async def connect(address: Address, port: int) -> tuple[StreamReader, StreamWriter]:
            # As if that address were ours: both ends of the connection are the same machine's.
            return await asyncio.open_connection("127.0.0.1", server.port)

        async with started(tmp_path, Network("internet"), resolve=resolve, connect=connect) as proxy:
            response = await proxy.ask(b"GET http://myself.example/ HTTP/1.1\r\nHost: x\r\n\r\n")
            assert status(response) == 403 and b"this machine itself" in response
            assert server.received == []


SMUGGLED = "GET http://127.0.0.1:{port}/hidden HTTP/1.1\r\nHost: hidden\r\n\r\n"


@pytest.mark.parametrize(
    "headers",
    [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 4\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 4x\r\n",
        "Content-Length : 4\r\n",
        "Transfer-Encoding\x0b: chunked\r\n",
        "X: a\rTransfer-Encoding: chunked\r\n",
        "X: \0\r\n",
        "Host: second\r\n",
    ],
)
async def test_ambiguous_requests_are_refused(tmp_path: Path, headers: str) -> None:
    async with upstream() as server, started(tmp_path, local(server.port)) as proxy:
        request = f"POST http://127.0.0.1:{server.port}/ HTTP/1.1\r\nHost: x\r\n{headers}\r\n0\r\n\r\n"
        assert status(await proxy.ask((request + SMUGGLED.format(port=server.port)).encode("latin1"))) >= 400
        assert server.connections == 0


@pytest.mark.parametrize(
    "body", ["", "Content-Length: 3\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"]
)
async def test_a_second_request_on_the_connection_is_never_sent(tmp_path: Path, body: str) -> None:
    async with upstream() as server, started(tmp_path, local(server.port)) as proxy:
        first = f"POST http://127.0.0.1:{server.port}/first HTTP/1.1\r\nHost: x\r\n{body or chr(13) + chr(10)}"
        response = await proxy.ask((first + SMUGGLED.format(port=server.port)).encode())
        assert response.count(b"HTTP/1.1") == 1
        assert b"/hidden" not in b"".join(server.received) and server.connections == 1


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET https://example.com/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET ftp://example.com/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http://user:password@example.com/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http://example.com:99999/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http:///path HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT example.com HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT http://example.com:80 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT example.com:0 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
        b"CONNECT evil.com#.example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 200 + b"\r\n\r\n",
        b"rubbish\r\n\r\n",
        b"GET http://x/ HTTP/2.0\r\nHost: x\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.0\r\n\r\n",
    ],
)
async def test_what_is_no_proxy_request_gets_a_400(tmp_path: Path, request_bytes: bytes) -> None:
    async with started(tmp_path, Network("internet")) as proxy:
        assert status(await proxy.ask(request_bytes)) == 400
        assert proxy.decisions == []


# what it survives ---------------------------------------------------------------------------------------------------


async def test_an_endless_head_is_cut_off(tmp_path: Path) -> None:
    async with started(tmp_path, Network("internet")) as proxy:
        reader, writer = await proxy.connect()
        writer.write(b"GET http://a.com/ HTTP/1.1\r\n" + b"X: " + b"a" * (1 << 20))
        assert status(await asyncio.wait_for(reader.read(), 10)) == 431
        writer.close()


async def test_a_slow_head_is_cut_off(tmp_path: Path) -> None:
    limits = ProxyLimits(head_timeout=0.2)
    async with started(tmp_path, Network("internet"), limits=limits) as proxy:
        reader, writer = await proxy.connect()
        writer.write(b"GET http://a")
        assert status(await asyncio.wait_for(reader.read(), 10)) == 408
        writer.close()


async def test_a_crowd_beyond_the_limit_is_cut_before_it_uses_up_the_hosts_descriptors(tmp_path: Path) -> None:
    async def answer(reader: StreamReader, writer: StreamWriter) -> bytes:
        try:
            return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()

    limits = ProxyLimits(connections=3, head_timeout=1)
    async with started(tmp_path, Network("internet"), limits=limits) as proxy:
        crowd = [await proxy.connect() for _ in range(150)]
        answers = await asyncio.gather(*(answer(*one) for one in crowd))
        assert 0 < sum(map(bool, answers)) <= 3 + 32


async def test_too_many_connections_are_told_so(tmp_path: Path) -> None:
    async with started(tmp_path, Network("internet"), limits=ProxyLimits(connections=3)) as proxy:
        held = [await proxy.connect() for _ in range(3)]
        await asyncio.sleep(0.05)
        assert status(await proxy.ask(b"")) == 503
        for _, writer in held:
            writer.close()
        await asyncio.sleep(0.1)
        assert status(await proxy.ask(b"rubbish\r\n\r\n")) == 400


async def test_an_idle_tunnel_is_ended_but_a_busy_one_is_not(tmp_path: Path) -> None:
    async def trickle(reader: StreamReader, writer: StreamWriter) -> None:
        await reader.read(1)
        for _ in range(8):
            writer.write(b".")
            await writer.drain()
            await asyncio.sleep(0.1)
        await reader.read()

    limits = ProxyLimits(idle_timeout=0.4)
    async with upstream(trickle) as server, started(tmp_path, local(server.port), limits=limits) as proxy:
        reader, writer = await proxy.connect()
        writer.write(f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\nHost: x\r\n\r\nx".encode())
        await reader.readuntil(b"\r\n\r\n")
        # Eight dots take twice the idle time, with nothing from the client's side; then silence ends it.
        assert await asyncio.wait_for(reader.read(), 10) == b"." * 8
        writer.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"rubbish\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\n" + b"x" * 100_000,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    ],
)
async def test_a_broken_answer_becomes_a_502(tmp_path: Path, answer: bytes) -> None:
    async def broken(reader: StreamReader, writer: StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()

    async with upstream(broken) as server, started(tmp_path, local(server.port)) as proxy:
        response = await proxy.ask(f"GET http://127.0.0.1:{server.port}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert status(response) == 502


async def test_an_answer_cut_short_is_seen_as_such(tmp_path: Path) -> None:
    async def cut(reader: StreamReader, writer: StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")
        await writer.drain()

    async with upstream(cut) as server, started(tmp_path, local(server.port)) as proxy:
        response = await proxy.ask(f"GET http://127.0.0.1:{server.port}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert b"content-length: 100" in response.lower() and response.endswith(b"only this")


async def test_an_unreachable_host_is_named(tmp_path: Path) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        raise OSError("Name or service not known")

    async with started(tmp_path, Network("internet"), resolve=resolve) as proxy:
        response = await proxy.ask(b"CONNECT nowhere.example:443 HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (
            status(response) == 502 and b"nowhere.example:443 cannot be reached: Name or service not known" in response
        )
        assert proxy.decisions[0].reason.startswith("unreachable")


async def test_clients_that_vanish_leave_nothing_behind(tmp_path: Path) -> None:
    async def endless(reader: StreamReader, writer: StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    async with upstream(endless) as server, started(tmp_path, local(server.port)) as proxy:
        before = len(asyncio.all_tasks())
        for _ in range(10):
            reader, writer = await proxy.connect()
            writer.write(f"GET http://127.0.0.1:{server.port}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            await reader.readexactly(1000)
            writer.transport.abort()
        async with asyncio.timeout(10):
            while len(asyncio.all_tasks()) > before:
                await asyncio.sleep(0.02)


# its life -----------------------------------------------------------------------------------------------------------


async def test_closing_cuts_connections_and_removes_the_socket(tmp_path: Path) -> None:
    egress = EgressProxy(Network("internet"))
    path = tmp_path / "proxy.sock"
    await egress.start(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    reader, _ = await asyncio.open_unix_connection(str(path))
    await asyncio.sleep(0.05)
    await egress.close()
    await egress.close()
    assert await asyncio.wait_for(reader.read(), 5) == b""
    assert not path.exists()


async def test_a_stale_socket_is_replaced_and_a_file_is_not(tmp_path: Path) -> None:
    for _ in range(2):
        await EgressProxy(Network("none")).start(tmp_path / "proxy.sock")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(SandboxRuntimeError, match="cannot listen"):
        await EgressProxy(Network("none")).start(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


async def test_a_long_path_is_no_obstacle(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    egress = EgressProxy(Network("none"))
    await egress.start(deep / "proxy.sock")
    assert stat.S_ISSOCK((deep / "proxy.sock").stat().st_mode)
    await egress.close()


# names behind names -------------------------------------------------------------------------------------------------


def client_hello(name: str | None) -> bytes:
    """What a real TLS client begins with."""
    outgoing = ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.check_hostname = False
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name).do_handshake()
    return outgoing.read()


async def resolved_here(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


async def through_a_tunnel(tmp_path: Path, *pieces: bytes) -> tuple[bytes, list[Decision]]:
    """What arrives behind a tunnel to good.example, and what the proxy decided."""
    arrived = b""

    async def keep(reader: StreamReader, writer: StreamWriter) -> None:
        nonlocal arrived
        while data := await reader.read(65536):
            arrived += data

    async with upstream(keep) as server, started(tmp_path, local(server.port), resolve=resolved_here) as proxy:
        reader, writer = await proxy.connect()
        writer.write(f"CONNECT good.example:{server.port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0.02)
        with suppress(OSError):
            writer.write_eof()
            await asyncio.wait_for(reader.read(), 10)
        writer.close()
        return arrived, proxy.decisions


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("name", ["good.example", "GOOD.example", None])
async def test_tls_that_asks_for_the_host_of_the_tunnel_passes_however_it_is_cut(tmp_path: Path, name, size) -> None:
    hello = client_hello(name)
    step = size if size > 1 else len(hello) // 40
    pieces = [hello[at : at + step] for at in range(0, len(hello), step)]
    arrived, decisions = await through_a_tunnel(tmp_path, *pieces, b"more")
    assert arrived == hello + b"more" and all(decision.allowed for decision in decisions)


def in_small_records(hello: bytes) -> bytes:
    body = hello[5:]
    return b"".join(b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in (body[:9], body[9:60], body[60:]))


@pytest.mark.parametrize("shape", [bytes, in_small_records])
async def test_tls_that_asks_for_another_host_is_cut(tmp_path: Path, shape: Callable[[bytes], bytes]) -> None:
    arrived, decisions = await through_a_tunnel(tmp_path, shape(client_hello("denied.example")), b"more")
    assert arrived == b"" and not decisions[-1].allowed and "denied.example" in decisions[-1].reason


@pytest.mark.parametrize(
    ("head", "passes"),
    [
        (b"GET / HTTP/1.1\r\nHost: good.example:80\r\nUpgrade: websocket\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nHost: denied.example\r\nUpgrade: websocket\r\n\r\n", False),
        (b"\r\nget / HTTP/1.1\r\nhost: denied.example\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\nHost: good.example\r\n\r\nGET / HTTP/1.1\r\nHost: denied.example\r\n\r\n", False),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", False),
        (b"EHLO there\r\n", True),
        (b"SSH-2.0-client\r\n", True),
    ],
)
async def test_http_in_a_tunnel_may_only_upgrade_and_names_its_host(tmp_path: Path, head: bytes, passes: bool) -> None:
    arrived, decisions = await through_a_tunnel(tmp_path, head[:5], head[5:])
    assert arrived == (head if passes else b"") and decisions[-1].allowed is passes


@pytest.mark.parametrize("literal", ["8.8.8.8", "134744072", "0x8.8.8.8", "8.2056", "[2001:4860:4860::8888]"])
async def test_addresses_are_refused_where_names_are_denied(tmp_path: Path, literal: str) -> None:
    async with started(tmp_path, Network("internet", deny=("denied.example",))) as proxy:
        answer = await proxy.ask(f"CONNECT {literal}:443 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert status(answer) in (400, 403) and not any(decision.allowed for decision in proxy.decisions)
