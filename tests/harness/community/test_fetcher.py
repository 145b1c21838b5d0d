"""Whoever names an address reaches no network of ours, and wears out nothing."""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import socket
import ssl
import zlib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.harness.community.conftest import HOST, Web
from tests.support.certificates import issued

from deerflow.security.addresses import Network
from deerflow.security.outbound import Outbound
from deerflow.tools.download import WebError, fetch

NAMES: dict[str, list[str]] = {
    "public.example": ["93.184.216.34"],
    "loop.example": ["127.0.0.1"],
    "loop6.example": ["::1"],
    "ten.example": ["10.0.0.5"],
    "meta.example": ["169.254.169.254"],
    "mixed.example": ["93.184.216.34", "192.168.1.1"],
    "mixed6.example": ["93.184.216.34", "fd00::1"],
    "zero.example": ["0.0.0.0"],
    "mapped.example": ["::ffff:10.0.0.1"],
    "scoped.example": ["fe80::1%eth0"],
    "xn--bcher-kva.example": ["10.0.0.9"],
    "router": ["192.168.0.1"],
    "metadata.google.internal": ["169.254.169.254"],
    "127.0.0.1.nip.example": ["127.0.0.1"],
}
FORBIDDEN = [
    # loopback, however it is written
    "http://127.0.0.1/", "http://127.0.0.1:80/", "http://127.1/", "http://127.0.1/", "http://127.255.255.254/", "http://2130706433/",
    "http://0x7f000001/", "http://0x7f.0.0.1/", "http://0x7f.1/", "http://017700000001/", "http://0177.0.0.1/", "http://0177.1/",
    "http://00000177.0.0.1/", "http://127.0.0.0x1/", "http://0/", "http://0.0.0.0/", "http://0x0/", "http://localhost/",
    "http://LOCALHOST/", "http://localhost./", "http://a.localhost/", "http://127.0.0.1./", "http://①②⑦.⓪.⓪.①/", "http://127。0。0。1/",
    "http://１２７.0.0.1/", "http://ⓛocalhost/", "http://loc\u00adalhost/",
    # private, link-local, shared, reserved
    "http://10.0.0.1/", "http://10.1/", "http://167772161/", "http://0xa.0.0.1/", "http://172.16.0.1/", "http://172.31.255.255/",
    "http://192.168.0.1/", "http://3232235521/", "http://169.254.169.254/latest/meta-data/", "http://2852039166/",
    "http://0xa9fea9fe/", "http://100.64.0.1/", "http://192.0.0.192/", "http://192.0.2.1/", "http://198.18.0.1/", "http://198.51.100.7/",
    "http://203.0.113.1/", "http://224.0.0.1/", "http://240.0.0.1/", "http://255.255.255.255/", "http://168.63.129.16/",
    # version 6
    "http://[::1]/", "http://[::]/", "http://[0:0:0:0:0:0:0:1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/",
    "http://[::ffff:10.0.0.1]/", "http://[::ffff:169.254.169.254]/", "http://[::127.0.0.1]/", "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b::169.254.169.254]/", "http://[2002:7f00:1::]/", "http://[2002:a00:1::]/", "http://[fe80::1]/", "http://[fc00::1]/",
    "http://[fd00:ec2::254]/", "http://[ff02::1]/", "http://[fec0::1]/", "http://[2001:db8::1]/", "http://[2001::1]/",
    "http://[fe80::1%25eth0]/",
    # names that lead there
    "http://loop.example/", "http://loop6.example/", "http://ten.example/", "http://meta.example/", "http://mixed.example/",
    "http://mixed6.example/", "http://zero.example/", "http://mapped.example/", "http://scoped.example/", "http://bücher.example/",
    "http://router/", "http://metadata.google.internal/computeMetadata/v1/", "http://127.0.0.1.nip.example/", "http://LOOP.example./",
    # user names, fragments, separators
    "http://public.example@127.0.0.1/", "http://public.example:80@127.0.0.1/", "http://127.0.0.1@public.example/",
    "http://user:pw@public.example/", "http://127.0.0.1#@public.example/", "http://127.0.0.1?@public.example/",
    "http://127.0.0.1\\@public.example/", "http://public.example\\@127.0.0.1/", "http://127.0.0.1%2f@public.example/",
    "http://127.0.0.1%00.public.example/", "http://public.example%00@127.0.0.1/", "http:///127.0.0.1/", "http:127.0.0.1/",
    "http://127.0.0.1\t.public.example/", "http://127.0.0.1\n/", " http://127.0.0.1/", "//127.0.0.1/",
    # ports and schemes
    "http://public.example:22/", "http://public.example:6379/", "https://public.example:8443/", "http://public.example:0/",
    "http://public.example:99999/", "ftp://public.example/", "file:///etc/passwd", "gopher://127.0.0.1:6379/_x", "data:text/html,x",
    "javascript:alert(1)", "unix:///var/run/docker.sock", "dict://127.0.0.1/", "jar:http://127.0.0.1!/", "http+unix://%2Fvar/",
    "view-source:http://127.0.0.1/", "", "http://", "https://", "nonsense", "/etc/passwd",
]  # fmt: skip

Connect = Callable[..., Awaitable[Any]]


@pytest.fixture
def reached(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Addresses that were called. Only the test's own server answers; names are those of the table."""
    calls: list[str] = []
    connect: Connect = anyio.connect_tcp

    async def recorded(**options: Any) -> Any:
        calls.append(str(options["remote_host"]))
        if calls[-1] != HOST:
            raise OSError("nothing is outside")
        return await connect(**options)

    lookup = asyncio.base_events.BaseEventLoop.getaddrinfo

    async def from_table(self: Any, host: Any, port: Any, **options: Any) -> Any:
        name = (host if isinstance(host, str) else host.decode()).lower().rstrip(".")
        try:
            return await lookup(self, host, port, **{**options, "flags": socket.AI_NUMERICHOST})
        except OSError:
            if name not in NAMES:
                raise
        return [(0, 0, 0, "", (address, port)) for address in NAMES[name]]

    monkeypatch.setattr(anyio, "connect_tcp", recorded)
    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", from_table)
    yield calls


def outbound(**settings: Any) -> Outbound:
    return Outbound(Network(**{"mode": "internet", "allow_nets": (f"{HOST}/32",), **settings}))


def test_the_table_is_long():
    assert len(set(FORBIDDEN)) >= 60


@pytest.mark.parametrize("url", FORBIDDEN)
@pytest.mark.parametrize("nets", [(), (f"{HOST}/32",)], ids=["closed", "one network open"])
async def test_what_is_not_public_is_not_called(reached: list[str], url: str, nets: tuple[str, ...]):
    with pytest.raises(WebError):
        await fetch(outbound(allow_nets=nets), url)
    assert reached == []


async def test_no_redirect_leads_there_either(reached: list[str], web: Web):
    for number, url in enumerate(FORBIDDEN):
        if not url.strip() or not url.isascii() or not url.isprintable() or ":" not in url:
            continue
        start = web.put(f"/{number}", "", status=(301, 302, 303, 307, 308)[number % 5], Location=url)
        with pytest.raises(WebError):
            await fetch(outbound(), start)
    assert len(web.requests) > 60 and set(reached) == {HOST}


async def test_a_redirect_without_a_scheme_or_host_stays_where_it_is(reached: list[str], web: Web):
    web.put("/there", "<p>here</p>")
    for target in ("/there", "there", f"//{HOST}:{web.port}/there", "?x#y"):
        start = web.put("/from", "", status=302, Location=target)
        if target == "?x#y":
            with pytest.raises(WebError, match="more than 5 redirects"):
                await fetch(outbound(), start)
        else:
            assert (await fetch(outbound(), start)).url == f"{web.base}/there"


async def test_a_name_is_looked_up_once_and_that_very_address_is_called(
    monkeypatch: pytest.MonkeyPatch, reached: list[str]
):
    """DNS rebinding: the second answer would be this machine."""
    answers = iter([["93.184.216.34"], ["127.0.0.1"], ["127.0.0.1"]])

    async def lookup(self: Any, host: Any, port: Any, **options: Any) -> Any:
        return [(0, 0, 0, "", (address, port)) for address in next(answers)]

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", lookup)
    with pytest.raises(WebError, match="cannot be reached"):
        await fetch(Outbound(Network("internet")), "http://rebinding.example/")
    assert reached == ["93.184.216.34"] and len(list(answers)) == 2


async def test_the_machines_proxy_is_not_asked(monkeypatch: pytest.MonkeyPatch, reached: list[str], web: Web):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, web.base)
    with pytest.raises(WebError):
        await fetch(outbound(), "http://public.example/")
    assert reached == ["93.184.216.34"] and web.requests == []


@pytest.mark.parametrize(
    ("settings", "url", "words"),
    [
        ({"mode": "allowlist", "allow": ("docs.example",)}, "http://public.example/", "not on the allow list"),
        ({"deny": ("*.example",)}, "http://public.example/", "deny list"),
        ({"deny": ("public.example",)}, "http://PUBLIC.example./", "deny list"),
    ],
)
async def test_the_operators_lists_of_hosts_hold(reached: list[str], settings: dict[str, Any], url: str, words: str):
    with pytest.raises(WebError, match=words):
        await fetch(outbound(**settings), url)
    assert reached == []


async def test_a_page_is_loaded_with_what_the_server_says_of_it(reached: list[str], web: Web):
    url = web.put("/a?x=1".partition("?")[0], "Grüße".encode("cp1252"), 'text/html; Charset="Windows-1252"')
    got = await fetch(outbound(), url + "?x=1#part")
    assert (got.media_type, got.charset, got.data) == ("text/html", "windows-1252", "Grüße".encode("cp1252"))
    sent = web.requests[0]
    assert sent.line == "GET /a?x=1 HTTP/1.1" and sent.headers["host"] == f"{HOST}:{web.port}"
    assert "cookie" not in sent.headers and "authorization" not in sent.headers


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, lambda data: zlib.compress(data)[2:-4]])
async def test_packed_pages_are_unpacked(web: Web, pack: Callable[[bytes], bytes]):
    data = b"<p>hello</p>" * 1000
    encoding = "gzip" if pack is gzip.compress else "deflate"
    assert (await fetch(outbound(), web.put("/z", pack(data), Content_Encoding=encoding))).data == data


async def test_a_bomb_is_no_larger_than_the_limit(web: Web):
    bomb = gzip.compress(bytes(200 << 20), 9)
    assert len(bomb) < 1 << 20
    import tracemalloc

    url = web.put("/bomb", bomb, Content_Encoding="gzip")
    tracemalloc.start()
    try:
        with pytest.raises(WebError, match="more than 4 MB"):
            await fetch(outbound(), url, max_bytes=4 << 20)
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress", "x" * 5000])
async def test_an_encoding_that_was_not_asked_for_is_not_unpacked(web: Web, encoding: str):
    with pytest.raises(WebError, match="not asked for"):
        await fetch(outbound(), web.put("/e", b"x" * 100, Content_Encoding=encoding))


async def test_a_long_page_and_an_endless_one_end(web: Web):
    with pytest.raises(WebError, match="more than 1 MB"):
        await fetch(outbound(), web.put("/long", bytes(2 << 20)), max_bytes=1 << 20)
    web.pages["/endless"] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + bytes(3 << 20)
    with pytest.raises(WebError, match="more than 1 MB"):
        await fetch(outbound(), f"{web.base}/endless", max_bytes=1 << 20)


async def test_a_server_that_does_not_answer_is_left(web: Web):
    with pytest.raises(WebError, match=r"did not answer within 0\.05 seconds"):
        await fetch(outbound(), f"{web.base}/hang", timeout=0.05)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "answered 404 Not Found"),
        (b"HTTP/1.1 500 \r\nContent-Length: 0\r\n\r\n", "answered 500"),
        (b"garbage\r\n\r\n", "cannot be reached"),
        (b"", "cannot be reached"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", "cannot be reached"),
        (b"HTTP/1.1 302 X\r\nLocation: http://[::1\r\nContent-Length: 0\r\n\r\n", "not a URL|cannot be reached"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 300_000 + b"\r\n\r\n", "cannot be reached"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd", "cannot be unpacked"),
    ],
)
async def test_a_bad_answer_becomes_a_sentence(web: Web, raw: bytes, words: str):
    web.pages["/bad"] = raw
    with pytest.raises(WebError, match=words):
        await fetch(outbound(), f"{web.base}/bad")


async def test_a_name_that_cannot_be_looked_up_becomes_a_sentence(reached: list[str]):
    with pytest.raises(WebError, match="has this machine a network"):
        await fetch(Outbound(Network("internet")), "http://unknown.example/")
    assert ipaddress.ip_address(HOST).is_loopback and reached == []


@pytest.mark.parametrize(
    ("trusted", "host", "words"),
    [
        (True, "secure.example", ""),
        (False, "secure.example", "certificate is not valid"),
        (True, "other.example", "certificate is not valid"),
    ],
)
async def test_the_certificate_is_that_of_the_name_though_the_address_is_called(
    web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trusted: bool, host: str, words: str
):
    certificate, authority = await asyncio.to_thread(issued, "secure.example", tmp_path)
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    client_side = ssl.create_default_context()
    await asyncio.to_thread(server_side.load_cert_chain, certificate)
    if trusted:
        await asyncio.to_thread(client_side.load_verify_locations, authority)
    monkeypatch.setattr("deerflow.security.outbound.tls", lambda: client_side)

    async def lookup(self: Any, name: Any, port: Any, **options: Any) -> Any:
        return [(0, 0, 0, "", (HOST, port))]

    web.put("/", "<p>safe</p>")
    server = await asyncio.start_server(web.serve, HOST, 0, ssl=server_side)
    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", lookup)
    async with server:
        url = f"https://{host}:{server.sockets[0].getsockname()[1]}/"
        if words:
            with pytest.raises(WebError, match=words):
                await fetch(outbound(), url)
        else:
            assert (await fetch(outbound(), url)).data == b"<p>safe</p>"
            assert web.requests[0].headers["host"].startswith("secure.example:")
