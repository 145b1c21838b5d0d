"""API tokens, local programs, gateways without authentication, and accounts as administrators manage them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from ..conftest import ADMIN, INTERNAL_TOKEN, PASSWORD, USER, Gateway, opened, settings_for

ME, TOKENS, USERS = "/api/v1/auth/me", "/api/v1/auth/tokens", "/api/v1/users"


def add_routes(gateway: Gateway) -> None:
    async def nothing() -> None:
        return None

    for path in ("/api/odd", "/api/threads/search", "/api/threads/{thread_id}/history"):
        gateway.app.router.routes.insert(0, _route(path, nothing, gateway.app.router.dependencies))


def _route(path: str, endpoint: Any, dependencies: list[Any]) -> Any:
    from fastapi.routing import APIRoute

    methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
    return APIRoute(path, endpoint, methods=methods, dependencies=dependencies)


# tokens ---------------------------------------------------------------------------------------------------------------


async def test_a_token_is_shown_once_and_stands_for_its_owner_without_csrf(gateway: Gateway) -> None:
    made = (await gateway.user.post(TOKENS, json={"name": "ci", "expires_in_days": 3})).json()
    listed = (await gateway.user.get(TOKENS)).json()["tokens"]
    client = await gateway.client(authorization=f"Bearer {made['token']}")
    by_key = await gateway.client(**{"x-api-key": made["token"]})

    assert "token" not in listed[0] and made["token"] not in str(listed)
    assert made["scopes"] == ["read", "write"] and made["expires_at"].endswith("+00:00")
    assert [(await one.get(ME)).json()["email"] for one in (client, by_key)] == [USER, USER]
    assert (await gateway.user.get(TOKENS)).json()["tokens"][0]["last_used_at"]


@pytest.mark.parametrize(
    "value", ["Bearer", "Bearer ", "Bearer x", "Bearer df_x", "bearer df_ü", "Basic YTpi", "df_x", "Bearer \ud800"]
)
async def test_what_is_no_token_is_401(gateway: Gateway, value: str) -> None:
    headers = [(b"authorization", value.encode(errors="surrogatepass"))]

    assert (await gateway.anonymous.get(ME, headers=headers)).status_code == 401


async def test_keys_for_other_servers_are_overlooked(gateway: Gateway) -> None:
    assert (await gateway.user.get(ME, headers={"x-api-key": "lsv2_pt_of_someone"})).status_code == 200
    assert (await gateway.anonymous.get(ME, headers={"x-api-key": "lsv2_pt_of_someone"})).status_code == 401


async def test_a_revoked_token_ends_at_once_and_only_its_owner_revokes_it(gateway: Gateway) -> None:
    token = await gateway.token(gateway.user, "read")
    token_id = (await gateway.user.get(TOKENS)).json()["tokens"][0]["id"]
    assert (await token.get(ME)).status_code == 200

    assert (await gateway.admin.delete(f"{TOKENS}/{token_id}")).status_code == 404
    assert (await token.get(ME)).status_code == 200
    assert (await gateway.user.delete(f"{TOKENS}/{token_id}")).status_code == 204
    assert (await token.get(ME)).status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("POST", "/api/threads/search", "read"),
        ("POST", "/threads/search", "read"),
        ("POST", "/api/langgraph/threads/search", "read"),
        ("POST", "/api/threads/t/history", "read"),
        ("GET", "/api/threads/t/history", "read"),
    ],
)
async def test_a_token_does_what_its_scopes_say(gateway: Gateway, method: str, path: str, scope: str) -> None:
    add_routes(gateway)
    for given in ("read", "write"):
        answer = await (await gateway.token(gateway.user, given)).request(method, path)
        allowed = given == scope
        assert answer.status_code == (200 if allowed else 403), (given, answer.text)
        assert allowed or answer.json()["code"] == "scope_missing"


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
async def test_a_route_without_a_declared_scope_is_not_for_tokens(gateway: Gateway, method: str) -> None:
    add_routes(gateway)
    token = await gateway.token(gateway.user, "read", "write")
    assert (await token.request(method, "/api/odd")).status_code == 403
    assert (await gateway.user.get("/api/odd")).status_code == 200


async def test_a_token_cannot_make_tokens_or_change_passwords(gateway: Gateway) -> None:
    token = await gateway.token(gateway.admin, "read", "write", "admin")

    assert (await token.post(TOKENS, json={"name": "x"})).status_code == 403
    assert (await token.get(TOKENS)).status_code == 403
    change = {"current_password": PASSWORD, "new_password": "another good one"}
    assert (await token.post("/api/v1/auth/change-password", json=change)).status_code == 403


async def test_administration_takes_an_administrator_and_the_scope(gateway: Gateway) -> None:
    assert (await gateway.user.get(USERS)).status_code == 403
    assert (await gateway.user.post(TOKENS, json={"name": "x", "scopes": ["admin"]})).status_code == 403
    assert (await (await gateway.token(gateway.admin, "read", "write")).get(USERS)).status_code == 403
    assert (await (await gateway.token(gateway.admin, "read", "admin")).get(USERS)).status_code == 200


async def test_a_token_of_who_is_no_longer_an_administrator_administers_nothing(gateway: Gateway) -> None:
    user_id = (await gateway.user.get(ME)).json()["id"]
    await gateway.admin.patch(f"{USERS}/{user_id}", json={"system_role": "admin"})
    token = await gateway.token(gateway.user, "read", "admin")
    assert (await token.get(USERS)).status_code == 200

    await gateway.admin.patch(f"{USERS}/{user_id}", json={"system_role": "user"})

    assert (await token.get(USERS)).status_code == 403


# local programs -------------------------------------------------------------------------------------------------------


async def test_a_local_program_is_the_local_user(gateway: Gateway) -> None:
    client = await gateway.client(**{"x-deerflow-internal-token": INTERNAL_TOKEN})

    assert (await client.get(ME)).json() == {
        "id": "default",
        "email": None,
        "system_role": "admin",
        "needs_setup": False,
    }
    assert (await client.get(USERS)).status_code == 200


@pytest.mark.parametrize("shown", ["", "x", "ü", INTERNAL_TOKEN + "x", INTERNAL_TOKEN[:-1]])
async def test_another_internal_token_is_nobody_even_with_a_session(gateway: Gateway, shown: str) -> None:
    headers = [(b"x-deerflow-internal-token", shown.encode())]

    assert (await gateway.user.get(ME, headers=headers)).status_code == 401


async def test_without_an_internal_token_none_is_accepted(tmp_path: Path) -> None:
    async with opened(settings_for(tmp_path, internal_token=None)) as gateway:
        for shown in ("", "None"):
            client = await gateway.client(**{"x-deerflow-internal-token": shown})
            assert (await client.get(ME)).status_code == 401


# without authentication -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {}, 200),
        ("POST", {}, 200),
        ("POST", {"origin": "http://localhost"}, 200),
        ("POST", {"x-api-key": "lsv2_x", "authorization": "Bearer whatever"}, 200),
        ("POST", {"origin": "https://evil.com"}, 403),
        ("GET", {"origin": "https://evil.com"}, 403),
        ("GET", {"origin": "null"}, 403),
        ("GET", {"origin": "http://localhost:3000"}, 403),
        ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, 403),
        ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 200),
        ("POST", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 403),
        ("GET", {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}, 200),
        ("GET", {"host": "evil.com"}, 403),
    ],
)
async def test_without_authentication_everyone_is_the_local_user_but_no_page_of_another_site(
    tmp_path: Path, method: str, headers: dict[str, str], status: int
) -> None:
    async with opened(settings_for(tmp_path, authentication=False)) as gateway:
        add_routes(gateway)
        answer = await (await gateway.client()).request(method, "/api/odd", headers=headers)

    assert answer.status_code == status, answer.text


async def test_without_authentication_there_is_nothing_to_set_up(tmp_path: Path) -> None:
    async with opened(settings_for(tmp_path, authentication=False)) as gateway:
        client = await gateway.client()
        status = (await client.get("/api/v1/auth/setup-status")).json()
        me = (await client.get(ME)).json()
        users, token = await client.get(USERS), await client.post(TOKENS, json={"name": "x"})

    assert not any(status.values()) and {"authentication", "needs_setup", "registration_enabled"} <= status.keys()
    assert (me["id"], me["system_role"]) == ("default", "admin")
    assert (users.status_code, token.status_code) == (200, 403)


# administration -------------------------------------------------------------------------------------------------------


async def user_id_of(client: httpx.AsyncClient) -> str:
    return (await client.get(ME)).json()["id"]


async def test_an_account_made_for_someone_gets_a_password_that_must_be_changed(gateway: Gateway) -> None:
    made = await gateway.admin.post(USERS, json={"email": "Eve@example.org"})
    assert made.status_code == 201 and made.json()["email"] == "eve@example.org"

    client = await gateway.sign_in("eve@example.org", made.json()["password"])

    assert (await client.get(ME)).json()["needs_setup"] is True
    change = {"current_password": made.json()["password"], "new_password": PASSWORD}
    assert (await client.post("/api/v1/auth/change-password", json=change)).status_code == 200
    assert (await client.get(ME)).json()["needs_setup"] is False


async def test_a_role_taken_away_is_gone_at_once(gateway: Gateway) -> None:
    url = f"{USERS}/{await user_id_of(gateway.user)}"

    assert (await gateway.admin.patch(url, json={"system_role": "admin"})).status_code == 200
    assert (await gateway.user.get(USERS)).status_code == 200
    await gateway.admin.patch(url, json={"system_role": "user"})
    assert (await gateway.user.get(USERS)).status_code == 403


async def test_the_last_administrator_stays(gateway: Gateway) -> None:
    url = f"{USERS}/{await user_id_of(gateway.admin)}"

    assert (await gateway.admin.delete(url)).status_code == 409
    assert (await gateway.admin.patch(url, json={"system_role": "user"})).status_code == 409
    assert (await gateway.admin.get(USERS)).status_code == 200


async def test_a_deleted_or_reset_account_is_out_at_once(gateway: Gateway) -> None:
    url, token = f"{USERS}/{await user_id_of(gateway.user)}", await gateway.token(gateway.user, "read")

    reset = await gateway.admin.post(f"{url}/reset-password")
    assert (await gateway.user.get(ME)).status_code == 401
    client = await gateway.sign_in(USER, reset.json()["password"])
    assert (await gateway.admin.delete(url)).status_code == 204

    assert {(await one.get(ME)).status_code for one in (client, token)} == {401}
    assert (await gateway.admin.post(f"{url}/reset-password")).status_code == 404
    assert {one["email"] for one in (await gateway.admin.get(USERS)).json()["users"]} == {ADMIN}


@pytest.mark.parametrize("path", ["", "/x", "/x/reset-password"])
async def test_users_manage_no_users(gateway: Gateway, path: str) -> None:
    for method in ("GET", "POST", "PATCH", "DELETE"):
        answer = await gateway.user.request(method, USERS + path, json={"system_role": "admin"})
        assert answer.status_code in (403, 405, 422), (method, path, answer.text)
        assert not re.search(r'"password": ?"', answer.text)
