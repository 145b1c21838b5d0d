"""Who is believed about who asks."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest

from deerflow_app.gateway.http.requests import TrustedProxies

TRUSTED = (ip_network("10.0.0.0/8"), ip_network("::1"))


async def seen(peer: str | None, headers: dict[str, str], kind: str = "http") -> tuple[Any, str, str]:
    found: dict[str, Any] = {}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        found.update(scope)

    raw = [(name.encode(), value.encode()) for name, value in {"host": "inner", **headers}.items()]
    client = (peer, 5) if peer else None
    await TrustedProxies(app, TRUSTED)({"type": kind, "client": client, "scheme": "http", "headers": raw}, None, None)  # type: ignore[arg-type]
    host = next(value.decode() for name, value in found["headers"] if name == b"host")
    return found["client"] and found["client"][0], found["scheme"], host


@pytest.mark.parametrize(
    ("peer", "headers", "client"),
    [
        ("9.9.9.9", {"x-forwarded-for": "1.1.1.1", "x-real-ip": "1.1.1.1"}, "9.9.9.9"),
        ("10.0.0.1", {}, "10.0.0.1"),
        ("10.0.0.1", {"x-real-ip": "1.1.1.1"}, "1.1.1.1"),
        ("10.0.0.1", {"x-forwarded-for": "1.1.1.1"}, "1.1.1.1"),
        ("10.0.0.1", {"x-forwarded-for": "6.6.6.6, 1.1.1.1"}, "1.1.1.1"),
        ("10.0.0.1", {"x-forwarded-for": "6.6.6.6, 1.1.1.1, 10.0.0.7"}, "1.1.1.1"),
        ("10.0.0.1", {"x-forwarded-for": "6.6.6.6, 1.1.1.1", "x-real-ip": "6.6.6.6"}, "1.1.1.1"),
        ("10.0.0.1", {"x-forwarded-for": "10.0.0.7"}, "10.0.0.7"),
        ("10.0.0.1", {"x-forwarded-for": "6.6.6.6, nonsense"}, "10.0.0.1"),
        ("10.0.0.1", {"x-real-ip": "nonsense"}, "10.0.0.1"),
        ("::1", {"x-real-ip": "2001:db8::1"}, "2001:db8::1"),
        ("::ffff:10.0.0.1", {"x-real-ip": "1.1.1.1"}, "1.1.1.1"),
        (None, {"x-real-ip": "1.1.1.1"}, None),
        ("nonsense", {"x-real-ip": "1.1.1.1"}, "nonsense"),
    ],
)
async def test_the_client_is_the_last_one_that_is_no_proxy_of_ours(
    peer: str | None, headers: dict[str, str], client: str | None
) -> None:
    assert (await seen(peer, headers))[0] == client


@pytest.mark.parametrize("proto", ["https", "HTTPS", "https, http"])
async def test_only_a_trusted_proxy_says_https_and_names_the_host(proto: str) -> None:
    headers = {"x-forwarded-proto": proto, "x-forwarded-host": "outer"}

    assert (await seen("10.0.0.1", headers))[1:] == ("https", "outer")
    assert (await seen("10.0.0.1", headers, "websocket"))[1] == "wss"
    assert (await seen("9.9.9.9", headers))[1:] == ("http", "inner")
    assert (await seen("10.0.0.1", {"x-forwarded-proto": "gopher"}))[1] == "http"
