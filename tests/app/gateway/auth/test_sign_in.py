"""Signing in and out, and what a session is worth."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from pathlib import Path

import bcrypt
import httpx
import jwt
import pytest
from sqlalchemy import select, update

from deerflow.storage.tables import users, utc_now

from ..conftest import ADMIN, PASSWORD, USER, Gateway, Population, opened, settings_for, with_csrf

LOGIN = "/api/v1/auth/login/local"
ME = "/api/v1/auth/me"
CHANGE = "/api/v1/auth/change-password"
NEW = "an even better horse"


async def attempt(client: httpx.AsyncClient, email: str, password: str, **headers: str) -> httpx.Response:
    return await client.post(LOGIN, data={"username": email, "password": password}, headers=headers)


def cookie(answer: httpx.Response, name: str) -> str:
    return next(one for one in answer.headers.get_list("set-cookie") if one.startswith(name + "="))


# set-up -----------------------------------------------------------------------------------------------------------


async def test_of_many_who_set_up_at_once_one_becomes_the_local_user(tmp_path: Path) -> None:
    async with opened(settings_for(tmp_path)) as gateway:
        client = await gateway.client()
        assert (await client.get("/api/v1/auth/setup-status")).json()["needs_setup"] is True
        bodies = [{"email": f"a{n}@example.org", "password": PASSWORD} for n in range(6)]
        answers = await asyncio.gather(*(client.post("/api/v1/auth/initialize", json=body) for body in bodies))
        status = [await client.get("/api/v1/auth/setup-status") for _ in range(30)]

    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 5
    assert next(a.json() for a in answers if a.status_code == 201)["id"] == "default"
    assert {(answer.status_code, answer.json()["needs_setup"]) for answer in status} == {(200, False)}


async def test_registration_is_closed_unless_it_was_opened(gateway: Gateway, tmp_path: Path) -> None:
    body = {"email": "eve@example.org", "password": PASSWORD}

    refused = await gateway.anonymous.post("/api/v1/auth/register", json=body)
    async with opened(settings_for(tmp_path / "open", registration=True)) as other:
        too_early = await (await other.client()).post("/api/v1/auth/register", json=body)
        await other.populate()
        client = await other.client()
        made = await client.post("/api/v1/auth/register", json=body)
        again = await other.anonymous.post("/api/v1/auth/register", json=body | {"email": "EVE@example.org"})
        me = (await client.get(ME)).json()

    assert (refused.status_code, refused.json()["code"]) == (403, "registration_closed")
    assert too_early.status_code == 403
    assert made.status_code == 201 and me == made.json() and me["system_role"] == "user"
    assert (again.status_code, again.json()["code"]) == (400, "email_already_exists")


@pytest.mark.parametrize("password", ["", "short", "password123", "PASSWORD1", "aaaaaaaaaaaa", "x" * 1025])
async def test_weak_passwords_are_refused_in_words(gateway: Gateway, password: str) -> None:
    answer = await gateway.admin.post("/api/v1/users", json={"email": "eve@example.org", "password": password})

    assert (answer.status_code, answer.json()["code"]) == (422, "weak_password")


@pytest.mark.parametrize("email", ["", "eve", "eve@", "@example.org", "eve@example.org\nx: y", "a b@example.org"])
async def test_addresses_that_nobody_has_are_refused(gateway: Gateway, email: str) -> None:
    answer = await gateway.admin.post("/api/v1/users", json={"email": email, "password": PASSWORD})

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_email")


# signing in ---------------------------------------------------------------------------------------------------------


async def test_signing_in_gives_two_cookies_that_live_as_long_as_each_other(gateway: Gateway) -> None:
    answer = await attempt(gateway.anonymous, " Admin@Example.org ", PASSWORD)

    assert answer.json() == {"expires_in": 604800, "needs_setup": False}
    session, csrf = cookie(answer, "access_token"), cookie(answer, "csrf_token")
    assert "HttpOnly" in session and "SameSite=lax" in session and "Max-Age=604800" in session
    assert "HttpOnly" not in csrf and "SameSite=strict" in csrf and "Max-Age=604800" in csrf
    assert "Secure" not in session + csrf


@pytest.mark.parametrize(
    ("email", "password"),
    [(ADMIN, "wrong"), ("nobody@example.org", PASSWORD), ("x" * 320, "x"), (ADMIN, PASSWORD + "\0")],
)
async def test_wrong_passwords_and_unknown_accounts_look_the_same(gateway: Gateway, email: str, password: str) -> None:
    answer = await attempt(gateway.anonymous, email, password)

    assert answer.status_code == 401
    assert answer.json() == {"detail": "Incorrect email or password.", "code": "invalid_credentials"}
    assert "set-cookie" not in answer.headers


async def test_an_unknown_account_costs_the_same_work(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[bytes] = []
    real = bcrypt.checkpw
    monkeypatch.setattr(bcrypt, "checkpw", lambda *arguments: checked.append(arguments[1]) or real(*arguments))

    await attempt(gateway.anonymous, ADMIN, "wrong")
    await attempt(gateway.anonymous, "nobody@example.org", "wrong")

    assert [hashed.split(b"$")[2] for hashed in checked] == [b"04", b"04"]


async def test_a_password_counts_beyond_72_bytes(gateway: Gateway) -> None:
    long = "p" * 71 + "äöü" + "q" * 50
    await gateway.admin.post("/api/v1/users", json={"email": "long@example.org", "password": long})

    assert (await attempt(gateway.anonymous, "long@example.org", long)).status_code == 200
    assert (await attempt(gateway.anonymous, "long@example.org", long[:-1] + "r")).status_code == 401


@pytest.mark.parametrize("prefix", ["", "$dfv1$"])
async def test_a_hash_of_an_older_version_works_and_is_renewed(gateway: Gateway, prefix: str) -> None:
    old = prefix + bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    await gateway.runtime.database.write(
        lambda c: c.execute(update(users).where(users.c.email == USER).values(password_hash=old))
    )

    await gateway.sign_in(USER)

    query = select(users.c.password_hash).where(users.c.email == USER)
    kept = await gateway.runtime.database.read(lambda c: c.execute(query).scalar_one())
    assert kept.startswith("$dfv2$")
    await gateway.sign_in(USER)


async def test_guessing_is_slowed_down_and_says_for_how_long(gateway: Gateway) -> None:
    answers = await asyncio.gather(*(attempt(gateway.anonymous, USER, f"guess {n}") for n in range(12)))
    right = await attempt(gateway.anonymous, USER, PASSWORD)

    assert sorted(answer.status_code for answer in answers) == [401] * 5 + [429] * 7
    assert right.status_code == 429
    assert 0 < int(right.headers["retry-after"]) <= 300
    assert (await attempt(gateway.anonymous, ADMIN, PASSWORD)).status_code == 200


async def test_one_client_cannot_try_many_accounts(gateway: Gateway) -> None:
    answers = [await attempt(gateway.anonymous, f"{n}@example.org", "guess guess") for n in range(25)]

    assert [answer.status_code for answer in answers] == [401] * 20 + [429] * 5


async def test_a_claimed_address_does_not_escape_the_throttle(gateway: Gateway) -> None:
    answers = [
        await attempt(gateway.anonymous, USER, "wrong", **{"x-real-ip": f"9.9.9.{n}", "x-forwarded-for": f"9.9.9.{n}"})
        for n in range(6)
    ]

    assert answers[-1].status_code == 429


# sessions -------------------------------------------------------------------------------------------------------------


async def test_after_signing_out_the_cookie_is_worth_nothing(gateway: Gateway) -> None:
    stolen = await gateway.client(cookie=f"access_token={gateway.user.cookies['access_token']}")
    other = await gateway.sign_in(USER)
    assert (await stolen.get(ME)).status_code == 200

    answer = await gateway.user.post("/api/v1/auth/logout")

    assert answer.status_code == 200
    assert "Max-Age=0" in cookie(answer, "access_token")
    assert (await stolen.get(ME)).json()["code"] == "token_invalid"
    assert (await other.get(ME)).status_code == 200


async def test_signing_out_without_a_session_is_no_error(gateway: Gateway) -> None:
    assert (await gateway.anonymous.post("/api/v1/auth/logout")).status_code == 200


async def test_changing_the_password_ends_all_other_sessions(gateway: Gateway) -> None:
    other = await gateway.sign_in(USER)
    old = await gateway.client(cookie=f"access_token={gateway.user.cookies['access_token']}")
    body = {"current_password": PASSWORD, "new_password": NEW, "new_email": "New@example.org"}

    answer = await gateway.user.post(CHANGE, json=body)

    assert answer.status_code == 200
    assert (await gateway.user.get(ME)).json()["email"] == "new@example.org"
    assert {(await client.get(ME)).status_code for client in (other, old)} == {401}
    with_csrf(gateway.user)
    assert (
        await gateway.user.post(CHANGE, json={"current_password": NEW, "new_password": PASSWORD})
    ).status_code == 200
    await gateway.sign_in("new@example.org")


async def test_other_sessions_stay_with_a_new_password_if_one_chooses(gateway: Gateway) -> None:
    elsewhere = await gateway.sign_in(USER)
    body = {"current_password": PASSWORD, "new_password": NEW, "end_sessions": False}

    assert (await gateway.user.post(CHANGE, json=body)).status_code == 200

    assert (await elsewhere.get(ME)).status_code == (await gateway.user.get(ME)).status_code == 200
    assert (await attempt(gateway.anonymous, USER, PASSWORD)).status_code == 401
    assert (await elsewhere.post(CHANGE, json=body)).status_code == 400


async def test_signing_out_everywhere_ends_all_of_ones_own_sessions(gateway: Gateway) -> None:
    elsewhere, third = await gateway.sign_in(USER), await gateway.sign_in(USER)

    assert (await third.post("/api/v1/auth/logout")).status_code == 200
    assert (await elsewhere.get(ME)).status_code == 200
    assert (await elsewhere.post("/api/v1/auth/logout?everywhere=true")).status_code == 200

    assert [(await one.get(ME)).status_code for one in (elsewhere, gateway.user, gateway.admin)] == [401, 401, 200]


async def test_a_password_is_changed_only_by_who_knows_it(gateway: Gateway) -> None:
    body = {"current_password": "wrong", "new_password": NEW}

    answers = [await gateway.user.post(CHANGE, json=body) for _ in range(6)]
    taken = await gateway.admin.post(
        CHANGE, json={"current_password": PASSWORD, "new_password": NEW, "new_email": USER}
    )

    assert [(answer.status_code, answer.json()["code"]) for answer in answers[:5]] == [(400, "invalid_credentials")] * 5
    assert answers[5].status_code == 429
    assert (taken.status_code, taken.json()["code"]) == (400, "email_already_exists")
    assert (await gateway.admin.get(ME)).status_code == 200


def forged(gateway: Gateway, **changes: object) -> str:
    claims = jwt.decode(gateway.user.cookies["access_token"], options={"verify_signature": False})
    return jwt.encode(claims | changes, gateway.settings.auth_secret, algorithm="HS256")


async def test_only_cookies_that_we_signed_for_a_living_session_count(gateway: Gateway) -> None:
    real = gateway.user.cookies["access_token"]
    claims = jwt.decode(real, options={"verify_signature": False})
    assert set(claims) == {"sub", "exp", "iat", "ver", "sid"}
    cookies = {
        "other secret": jwt.encode(claims, "x" * 40, algorithm="HS256"),
        "no signature": jwt.encode(claims, None, algorithm="none"),  # type: ignore[arg-type]
        "cut": real[:-3],
        "nonsense": "nonsense",
        "expired": forged(gateway, exp=utc_now() - timedelta(seconds=1)),
        "other user": forged(gateway, sub="default"),
        "older password": forged(gateway, ver=-1),
        "no session": forged(gateway, sid="x"),
        "odd version": forged(gateway, ver="x"),
        "no version": jwt.encode(
            {name: claims[name] for name in ("sub", "exp", "sid")}, gateway.settings.auth_secret, algorithm="HS256"
        ),
    }
    for name, value in cookies.items():
        answer = await (await gateway.client(cookie=f"access_token={value}")).get(ME)
        assert answer.status_code == 401, name
        assert answer.json()["code"] == ("token_expired" if name == "expired" else "token_invalid"), name
    assert (await (await gateway.client(cookie=f"access_token={forged(gateway)}")).get(ME)).status_code == 200


async def test_a_session_that_ended_elsewhere_ends_here_within_seconds(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    await gateway.user.get(ME)
    await gateway.runtime.database.write(lambda c: c.exec_driver_sql("DELETE FROM sessions"))
    now = time.monotonic()
    monkeypatch.setattr("deerflow_app.gateway.auth.time.monotonic", lambda: now + 5.1)

    assert (await gateway.user.get(ME)).status_code == 401


async def test_two_gateways_of_one_site_accept_each_others_sessions(gateway: Gateway, tmp_path: Path) -> None:
    async with opened(gateway.settings) as second:
        client = await second.client(cookie=f"access_token={gateway.user.cookies['access_token']}")
        assert (await client.get(ME)).json()["email"] == USER


async def test_cookies_are_secure_exactly_when_a_trusted_proxy_says_https(tmp_path: Path) -> None:
    from ipaddress import ip_network

    for trusted, secure in (((ip_network("127.0.0.0/8"),), True), ((), False)):
        async with opened(settings_for(tmp_path / str(secure), trusted_proxies=trusted)) as gateway:
            await gateway.populate()
            answer = await attempt(gateway.anonymous, ADMIN, PASSWORD, **{"x-forwarded-proto": "https"})
            assert ("Secure" in cookie(answer, "access_token")) is secure
            assert ("Secure" in cookie(answer, "csrf_token")) is secure


# who writes -----------------------------------------------------------------------------------------------------------


async def test_a_write_with_a_cookie_needs_the_token_that_only_our_pages_know(gateway: Gateway) -> None:
    url, body = "/api/v1/auth/tokens", {"name": "x"}
    other = (await gateway.sign_in(USER)).headers["x-csrf-token"]
    cases = {"": "csrf_missing", "x": "csrf_mismatch", "ü": "csrf_mismatch", other: "csrf_mismatch"}
    for shown, code in cases.items():
        answer = await gateway.user.post(url, json=body, headers=[(b"x-csrf-token", shown.encode())])
        assert (answer.status_code, answer.json()["code"]) == (403, code), shown
    assert (await gateway.user.post(url, json=body)).status_code == 201


async def test_a_lost_csrf_cookie_comes_back(gateway: Gateway) -> None:
    before = gateway.user.cookies["csrf_token"]
    gateway.user.cookies.delete("csrf_token")

    await gateway.user.get(ME)

    assert gateway.user.cookies["csrf_token"] == before


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, True),
        ({"origin": "http://localhost"}, True),
        ({"origin": "http://localhost:80"}, True),
        ({"origin": "https://app.example.com"}, True),
        ({"origin": "http://localhost:3000"}, False),
        ({"origin": "https://evil.com"}, False),
        ({"origin": "https://localhost.evil.com"}, False),
        ({"origin": "null"}, False),
        ({"origin": "http://[bad"}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "same-site"}, False),
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "none"}, True),
    ],
)
async def test_pages_of_other_sites_can_neither_write_nor_sign_someone_in(
    tmp_path: Path, population: Population, headers: dict[str, str], allowed: bool
) -> None:
    population.copy_to(tmp_path)
    async with opened(settings_for(tmp_path, trusted_origins=("https://app.example.com",))) as gateway:
        await gateway.resume(population)
        write = await gateway.user.post("/api/v1/auth/tokens", json={"name": "x"}, headers=headers)
        login = await attempt(gateway.anonymous, USER, PASSWORD, **headers)
        read = await gateway.user.get(ME, headers=headers)

    assert (write.status_code, login.status_code) == ((201, 200) if allowed else (403, 403))
    assert read.status_code == 200
