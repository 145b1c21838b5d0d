"""Clients that are not on this machine: who may set a server up, and who can lock whom out."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import HTTPConnection

from deerflow_app.gateway.auth import passwords
from deerflow_app.gateway.auth.throttle import client_of

from ..conftest import ADMIN, PASSWORD, USER, Gateway, opened, settings_for, with_csrf

LOGIN, SETUP = "/api/v1/auth/login/local", "/api/v1/auth/initialize"
STATUS = "/api/v1/auth/setup-status"
FIRST = {"email": ADMIN, "password": PASSWORD}


@asynccontextmanager
async def coming_from(gateway: Gateway, address: str, **headers: str) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(gateway.app, client=(address, 4711))
    async with httpx.AsyncClient(base_url="http://localhost", transport=transport, headers=headers) as client:
        yield client


# set-up -------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def new(tmp_path: Path) -> AsyncIterator[Gateway]:
    """A gateway that listens for everybody and that nobody has set up."""
    async with opened(settings_for(tmp_path, host="0.0.0.0")) as gateway:
        yield gateway


async def test_from_another_machine_setting_up_needs_the_code(new: Gateway) -> None:
    async with coming_from(new, "192.0.2.7") as client:
        status = (await client.get(STATUS)).json()
        without = await client.post(SETUP, json=FIRST)
        wrong = await client.post(SETUP, json=FIRST | {"setup_code": "AAAA-BBBB-CCCC"})
        still = (await client.get(STATUS)).json()
        typed = (new.settings.setup_code or "").lower().replace("-", " ")
        right = await client.post(SETUP, json=FIRST | {"setup_code": typed})
        after = (await client.get(STATUS)).json()

    assert (status["needs_setup"], status["code_required"]) == (True, True)
    assert (without.status_code, without.json()["code"]) == (403, "setup_code_required")
    assert "deerflow serve" in without.json()["detail"]
    assert (wrong.status_code, wrong.json()["code"]) == (403, "setup_code_wrong")
    assert still["needs_setup"] is True
    assert right.status_code == 201
    assert (after["needs_setup"], after["code_required"]) == (False, False)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"])
async def test_on_this_machine_the_code_is_not_needed(new: Gateway, address: str) -> None:
    async with coming_from(new, address) as client:
        assert (await client.get(STATUS)).json()["code_required"] is False
        assert (await client.post(SETUP, json=FIRST)).status_code == 201


@pytest.mark.parametrize("header", ["x-forwarded-for", "x-real-ip", "forwarded"])
async def test_what_comes_through_a_proxy_does_not_come_from_this_machine(new: Gateway, header: str) -> None:
    async with coming_from(new, "127.0.0.1", **{header: "127.0.0.1"}) as client:
        assert (await client.get(STATUS)).json()["code_required"] is True
        assert (await client.post(SETUP, json=FIRST)).status_code == 403


async def test_the_code_cannot_be_guessed_for_long(new: Gateway) -> None:
    async with coming_from(new, "2001:db8::1") as client, coming_from(new, "2001:db8::2") as neighbour:
        bodies = [FIRST | {"setup_code": f"AAAA-BBBB-{number:04}"} for number in range(12)]
        answers = [await client.post(SETUP, json=body) for body in bodies]
        right = await neighbour.post(SETUP, json=FIRST | {"setup_code": new.settings.setup_code})

    assert [answer.status_code for answer in answers] == [403] * 10 + [429] * 2
    assert right.status_code == 429


@pytest.mark.parametrize(
    ("changes", "exists"),
    [
        ({}, False),
        ({"host": "::1"}, False),
        ({"host": "10.0.0.5"}, True),
        ({"host": "::"}, True),
        ({"allowed_hosts": ("deerflow.example.com",)}, True),
        ({"trusted_proxies": (ip_network("127.0.0.1"),)}, True),
        ({"host": "0.0.0.0", "authentication": False, "open_to_network": True}, False),
    ],
)
def test_there_is_a_code_where_others_can_come(tmp_path: Path, changes: dict[str, Any], exists: bool) -> None:
    assert (settings_for(tmp_path, **changes).setup_code is not None) is exists


def test_all_processes_of_a_site_have_one_code_and_it_does_not_show_the_secret(tmp_path: Path) -> None:
    one, same = [settings_for(tmp_path, host="0.0.0.0").setup_code for _ in range(2)]
    other = settings_for(tmp_path, host="0.0.0.0", auth_secret="t" * 40).setup_code

    assert one == same != other
    assert one and len(one) == 14


# trying from many places ----------------------------------------------------------------------------------------------


async def attempts(gateway: Gateway, addresses: list[str], email: str = USER) -> list[int]:
    codes = []
    for number, address in enumerate(addresses):
        async with coming_from(gateway, address) as client:
            answer = await client.post(LOGIN, data={"username": email, "password": f"guess {number}"})
            codes.append(answer.status_code)
    return codes


async def test_the_addresses_of_one_ipv6_network_count_as_one(gateway: Gateway) -> None:
    assert await attempts(gateway, [f"2001:db8:0:1:{n}::1" for n in range(7)]) == [401] * 5 + [429] * 2
    assert await attempts(gateway, ["2001:db8:0:2::1"]) == [401]


async def test_an_ipv4_address_is_the_same_however_it_is_written(gateway: Gateway) -> None:
    assert await attempts(gateway, ["192.0.2.1", "::ffff:192.0.2.1"] * 3) == [401] * 5 + [429]


async def test_who_signed_in_before_is_not_locked_out_by_others(gateway: Gateway) -> None:
    known, unknown = gateway.user, gateway.anonymous
    assert (await known.post(LOGIN, data={"username": USER, "password": PASSWORD})).status_code == 200
    await with_csrf(known).post("/api/v1/auth/logout")

    codes = await attempts(gateway, [f"198.51.100.{n}" for n in range(60)])

    assert codes == [401] * 50 + [429] * 10
    assert (await unknown.post(LOGIN, data={"username": USER, "password": PASSWORD})).status_code == 429
    assert (await known.post(LOGIN, data={"username": USER, "password": PASSWORD})).status_code == 200
    assert await attempts(gateway, ["203.0.113.9"], ADMIN) == [401]


async def test_a_known_browser_does_not_guess_for_ever_either(gateway: Gateway) -> None:
    known = await gateway.sign_in(USER)

    answers = [await known.post(LOGIN, data={"username": USER, "password": f"guess {n}"}) for n in range(12)]

    assert [answer.status_code for answer in answers] == [401] * 10 + [429] * 2
    assert (await gateway.anonymous.post(LOGIN, data={"username": USER, "password": PASSWORD})).status_code == 200


async def test_a_browser_is_known_for_its_own_account_alone(gateway: Gateway) -> None:
    known = await gateway.sign_in(USER)

    answers = [await known.post(LOGIN, data={"username": ADMIN, "password": f"guess {n}"}) for n in range(7)]

    assert [answer.status_code for answer in answers] == [401] * 5 + [429] * 2


async def test_what_a_browser_is_known_by_opens_nothing(gateway: Gateway) -> None:
    known = await gateway.sign_in(USER)
    marks = [cookie for cookie in known.cookies.jar if cookie.name == "known_device"]
    [mark] = marks
    stranger = await gateway.client(cookie=f"access_token={mark.value}")
    forged = await gateway.client(cookie=f"known_device={known.cookies['access_token']}")

    assert mark.path == "/api/v1/auth" and mark.has_nonstandard_attr("HttpOnly")
    assert (await stranger.get("/api/v1/auth/me")).status_code == 401
    codes = [
        (await forged.post(LOGIN, data={"username": USER, "password": f"guess {n}"})).status_code for n in range(7)
    ]
    assert codes == [401] * 5 + [429] * 2


@pytest.mark.parametrize(
    ("address", "network", "is_local"),
    [
        ("192.0.2.1", "192.0.2.1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", False),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64", False),
        ("fe80::1%eth0", "fe80::/64", False),
        ("127.0.0.1", "127.0.0.1", True),
        ("::1", "::/64", True),
        ("unix:", "unix:", False),
        (None, "unknown", False),
    ],
)
def test_networks_of_clients(address: str | None, network: str, is_local: bool) -> None:
    scope = {"type": "http", "headers": [], "client": (address, 1) if address else None}
    client = client_of(HTTPConnection(scope))
    assert (client.network, client.is_local) == (network, is_local)


# the queue ------------------------------------------------------------------------------------------------------------


async def test_beyond_twenty_who_wait_strangers_come_again_later_and_known_browsers_do_not_wait(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, verify, answered = await gateway.sign_in(USER), passwords._verify, threading.Event()

    def slowly(password: str, hashed: str) -> bool:
        return (password != "wrong" or answered.wait(60)) and verify(password, hashed)

    async def stranger(number: int) -> httpx.Response:
        async with coming_from(gateway, f"192.0.2.{number}") as client:
            return await client.post(LOGIN, data={"username": f"{number}@example.org", "password": "wrong"})

    monkeypatch.setattr(passwords, "_verify", slowly)
    ends = asyncio.as_completed([stranger(number) for number in range(30)])
    refused = [await next(ends) for _ in range(8)]
    owner = await known.post(LOGIN, data={"username": USER, "password": PASSWORD})
    answered.set()
    others = [await one for one in ends]

    assert {(answer.status_code, answer.headers["retry-after"]) for answer in refused} == {(429, "5")}
    assert "signing in" in refused[0].json()["detail"]
    assert owner.status_code == 200
    assert [answer.status_code for answer in others] == [401] * 22
