"""What every route has in common: one shape of errors, limits, headers, prefixes, documentation."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request
from pydantic import BaseModel
from sqlalchemy import text
from starlette.responses import StreamingResponse

from deerflow.errors import ConflictError
from deerflow.storage.database import Database
from deerflow.storage.errors import DatabaseError
from deerflow_app.gateway.app import create_app
from deerflow_app.gateway.routes import CurrentPrincipal

from .conftest import DATABASE, USER, DatabaseOnly, Gateway, Population, opened, settings_for

LIMIT = 10_000


class Body(BaseModel):
    count: int
    secret: str = ""


def add_odd_routes(app: FastAPI) -> None:
    async def broken(principal: CurrentPrincipal) -> None:
        raise RuntimeError("password=hunter2 in /srv/private/file")

    async def conflict() -> None:
        raise ConflictError("It is being changed just now.")

    async def unusable() -> None:
        raise DatabaseError("/srv/private/deerflow.db cannot be opened")

    async def unstorable(request: Request) -> None:
        await request.app.state.runtime.database.write(lambda c: c.execute(text("SELECT :x"), {"x": "\ud800"}))

    async def breaks_off() -> StreamingResponse:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"half of it"
            raise RuntimeError("the disk is gone")

        return StreamingResponse(chunks())

    async def echo(body: Body) -> Body:
        return body

    async def size(request: Request) -> int:
        return len(await request.body())

    for name, route in (("broken", broken), ("conflict", conflict), ("unusable", unusable), ("unstorable", unstorable)):
        app.add_api_route(f"/api/odd/{name}", route)
    app.add_api_route("/api/odd/breaks-off", breaks_off)
    app.add_api_route("/api/odd/echo", echo, methods=["POST"])
    app.add_api_route("/api/odd/size", size, methods=["POST"])
    app.add_api_route("/api/threads/{thread_id}/echo", echo, methods=["POST"])


@pytest.fixture
async def odd(tmp_path: Path, population: Population) -> AsyncIterator[Gateway]:
    population.copy_to(tmp_path)
    async with opened(settings_for(tmp_path, max_body_bytes=LIMIT)) as gateway:
        await gateway.resume(population)
        add_odd_routes(gateway.app)
        yield gateway


# errors ---------------------------------------------------------------------------------------------------------------


async def test_a_fault_of_ours_is_told_by_a_reference_id_alone(odd: Gateway, caplog: pytest.LogCaptureFixture) -> None:
    answer = await odd.user.get("/api/odd/broken")

    assert answer.status_code == 500
    body = answer.json()
    assert body["code"] == "internal"
    assert "hunter2" not in answer.text and "/srv" not in answer.text and "RuntimeError" not in answer.text
    reference = body["detail"].rstrip(".").rsplit(" ", 1)[-1]
    assert reference in caplog.text and "hunter2" in caplog.text


async def test_a_service_names_status_and_code(odd: Gateway) -> None:
    answer = await odd.user.get("/api/odd/conflict")

    assert (answer.status_code, answer.json()) == (409, {"detail": "It is being changed just now.", "code": "conflict"})


async def test_a_database_out_of_order_is_told_without_its_path(odd: Gateway, caplog: pytest.LogCaptureFixture) -> None:
    answer = await odd.user.get("/api/odd/unusable")

    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert "/srv" not in answer.text and "/srv/private/deerflow.db" in caplog.text


async def test_text_that_cannot_be_stored_is_the_fault_of_the_request(odd: Gateway) -> None:
    assert (await odd.user.get("/api/odd/unstorable")).status_code == 422


async def test_an_answer_that_breaks_off_does_not_look_complete(odd: Gateway) -> None:
    with pytest.raises(RuntimeError):
        await odd.user.get("/api/odd/breaks-off")


@pytest.mark.parametrize(
    ("content", "content_type", "status", "code"),
    [
        (b"{", "application/json", 400, "invalid_json"),
        (b"", "application/json", 422, "invalid_request"),
        (b"null", "application/json", 422, "invalid_request"),
        (b"[]", "application/json", 422, "invalid_request"),
        (b'"x"', "application/json", 422, "invalid_request"),
        (b"\xff\xfe", "application/json", 400, "invalid_json"),
        (b'{"count": 1}', "text/plain", 415, "unsupported_media_type"),
        (b'{"count": 1}', "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
        (b'{"count": 1}', None, 415, "unsupported_media_type"),
        (b"[" * 9_000, "application/json", 400, "bad_request"),
        (b'{"count": ' + b"9" * 5_000 + b"}", "application/json", 400, "bad_request"),
    ],
)
async def test_a_body_that_is_not_what_it_should_be_is_refused_in_words(
    odd: Gateway, content: bytes, content_type: str | None, status: int, code: str
) -> None:
    headers = {"content-type": content_type} if content_type else {}

    answer = await odd.user.post("/api/odd/echo", content=content, headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text


async def test_validation_names_the_fields_and_repeats_no_values(odd: Gateway) -> None:
    answer = await odd.user.post("/api/odd/echo", json={"count": "hunter2", "secret": ["hunter2"]})

    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == ["count", "secret"]
    assert "hunter2" not in answer.text


async def test_odd_unicode_in_a_message_can_be_told(odd: Gateway) -> None:
    answer = await odd.user.post(
        "/api/odd/echo", content=b'{"\\ud800": 1}', headers={"content-type": "application/json"}
    )

    assert answer.status_code == 422


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/api/nothing", 404), ("DELETE", "/health", 405)])
async def test_unknown_paths_and_methods_have_the_same_shape(
    gateway: Gateway, method: str, path: str, status: int
) -> None:
    answer = await gateway.user.request(method, path)

    assert answer.status_code == status
    assert set(answer.json()) == {"detail", "code"}


# limits ---------------------------------------------------------------------------------------------------------------


async def test_a_body_that_announces_too_much_is_refused_unread(odd: Gateway) -> None:
    answer = await odd.user.post("/api/odd/size", content=b"x" * (LIMIT + 1))

    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


@pytest.mark.parametrize("route", ["/api/odd/size", "/api/odd/echo"])
async def test_a_body_that_announces_nothing_is_stopped_while_it_is_read(odd: Gateway, route: str) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 100 * LIMIT:
            sent += 1000
            yield b"x" * 1000

    answer = await odd.user.post(route, content=endless(), headers={"content-type": "application/json"})

    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert sent < 3 * LIMIT


async def test_a_body_of_just_the_limit_is_let_through(odd: Gateway) -> None:
    assert (await odd.user.post("/api/odd/size", content=b"x" * LIMIT)).json() == LIMIT


# prefixes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/api/langgraph/threads/t/echo", "/threads/t/echo", "/api/threads/t/echo"])
async def test_a_route_is_found_where_each_client_looks(odd: Gateway, path: str) -> None:
    assert (await odd.user.post(path, json={"count": 3})).json()["count"] == 3
    assert (await odd.anonymous.post(path, json={"count": 3})).status_code == 401


@pytest.mark.parametrize(
    "path", ["/threadsx", "/api/langgraphx/ok", "/api/langgraph/api/langgraph/ok", "/api/langgraph/langgraph/ok"]
)
async def test_only_whole_segments_are_prefixes_and_only_once(gateway: Gateway, path: str) -> None:
    assert (await gateway.user.get(path)).status_code == 404


@pytest.mark.parametrize("path", ["/ok", "/api/ok", "/api/langgraph/ok"])
async def test_ok_is_public(gateway: Gateway, path: str) -> None:
    assert (await gateway.anonymous.get(path)).json() == {"ok": True}


async def test_a_server_that_cannot_begin_runs_is_not_ready(gateway: Gateway) -> None:
    state = gateway.app.state
    assert (await gateway.anonymous.get("/ready")).json() == {"ok": True}
    opened, state.opening = state.opening, asyncio.get_running_loop().create_future()
    answer = await gateway.anonymous.get("/ready")
    state.opening.set_result(None)
    state.start_error = RuntimeError("the queue is gone")
    failed = await gateway.anonymous.get("/ready")
    state.opening, state.start_error = opened, None
    assert answer.status_code == failed.status_code == 503
    assert "is starting" in answer.text and "could not start" in failed.text and "queue" not in failed.text


async def test_health_and_versions_are_public(gateway: Gateway) -> None:
    assert (await gateway.anonymous.get("/health")).json() == {"status": "healthy", "service": "deer-flow-gateway"}
    info = (await gateway.anonymous.get("/info")).json()
    assert info["version"] and info["langgraph_py_version"] and info["flags"]["assistants"]


# headers and documentation --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/health", "/api/threads", "/api/v1/auth/me"])
async def test_every_answer_carries_the_security_headers(gateway: Gateway, path: str) -> None:
    headers = (await gateway.anonymous.get(path)).headers

    assert headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors" in headers["content-security-policy"]
    assert headers["referrer-policy"] == "same-origin"
    assert "server" not in headers


async def test_answers_of_the_api_are_not_cached(gateway: Gateway) -> None:
    assert (await gateway.user.get("/api/v1/auth/me")).headers["cache-control"] == "no-store"


async def test_the_documentation_is_complete_and_names_every_operation_once(gateway: Gateway) -> None:
    document = (await gateway.anonymous.get("/openapi.json")).json()

    assert document["info"]["title"] == "DeerFlow API Gateway"
    operations = [
        (path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if method in ("get", "post", "put", "patch", "delete")
    ]
    names = [operation["operationId"] for _, operation in operations]
    assert sorted(names) == sorted(set(names))
    for path, operation in operations:
        assert operation.get("summary"), path
        assert operation.get("tags"), path
        assert {"401", "422", "500"} <= set(operation["responses"]), path
    assert "HTTPValidationError" not in json.dumps(document)


async def test_what_shows_the_documentation_comes_from_elsewhere_and_can_do_nothing_here(gateway: Gateway) -> None:
    page = await gateway.anonymous.get("/docs")

    policy = page.headers["content-security-policy"]
    assert "sandbox allow-scripts" in policy and "allow-same-origin" not in policy
    assert "default-src 'none'" in policy and "connect-src" not in policy
    [spec] = re.findall(r"SwaggerUIBundle\(\{spec: (.*), dom_id", page.text)
    assert json.loads(spec) == (await gateway.anonymous.get("/openapi.json")).json()
    assert page.text.count("</script>") == 2
    assert "/openapi.json" in page.text.split("<script")[0], "for who cannot load the viewer"


async def test_the_documentation_can_be_turned_off(tmp_path: Path) -> None:
    async with opened(settings_for(tmp_path, enable_docs=False)) as gateway:
        client = await gateway.client()
        for path in ("/docs", "/redoc", "/openapi.json"):
            assert (await client.get(path)).status_code == 404


# other sites ----------------------------------------------------------------------------------------------------------


async def preflight(client: httpx.AsyncClient, origin: str) -> httpx.Response:
    asked = {"access-control-request-method": "POST", "access-control-request-headers": "content-type,x-csrf-token"}
    return await client.options("/api/threads", headers={"origin": origin} | asked)


async def test_no_other_site_may_read_answers_unless_it_is_listed(tmp_path: Path) -> None:
    async with opened(settings_for(tmp_path, cors_origins=("https://app.example.com",))) as gateway:
        client = await gateway.client()
        allowed, refused = (
            await preflight(client, "https://app.example.com"),
            await preflight(client, "https://evil.com"),
        )
        error = await client.get("/api/threads", headers={"origin": "https://app.example.com"})

    assert allowed.headers["access-control-allow-origin"] == "https://app.example.com"
    assert allowed.headers["access-control-allow-credentials"] == "true"
    assert "access-control-allow-origin" not in refused.headers
    assert error.status_code == 401
    assert error.headers["access-control-allow-origin"] == "https://app.example.com"


async def test_without_a_list_there_are_no_cors_headers(gateway: Gateway) -> None:
    answer = await preflight(gateway.anonymous, "https://app.example.com")

    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("localhost", True),
        ("LOCALHOST:8001", True),
        ("127.0.0.1:8001", True),
        ("[::1]:8001", True),
        ("192.168.1.7:8001", True),
        ("deer.localhost", True),
        ("box.example.com", True),
        ("evil.com", False),
        ("localhost.evil.com", False),
        ("127.0.0.1.evil.com", False),
        ("evil.com:8001", False),
        ("", False),
    ],
)
async def test_a_local_gateway_answers_only_to_local_names(tmp_path: Path, host: str, allowed: bool) -> None:
    async with opened(settings_for(tmp_path, allowed_hosts=("box.example.com",))) as gateway:
        client = await gateway.client()
        answer = await client.get("/health", headers={"host": host})

    assert answer.status_code == (200 if allowed else 403)


async def test_a_gateway_on_the_network_answers_to_any_name_unless_told_otherwise(tmp_path: Path) -> None:
    for hosts, status in (((), 200), (("box.example.com",), 403)):
        async with opened(settings_for(tmp_path, host="0.0.0.0", allowed_hosts=hosts)) as gateway:
            client = await gateway.client()
            assert (await client.get("/health", headers={"host": "x.example.com"})).status_code == status


async def test_the_runtime_is_closed_also_when_it_cannot_start(tmp_path: Path) -> None:
    class Unable:
        database = Database(tmp_path / "deerflow.db")
        packages = MappingProxyType[str, object]({})
        closed = False

        async def start(self) -> None:
            raise RuntimeError("no")

        async def aclose(self) -> None:
            self.closed = True

    runtime = Unable()
    with pytest.raises(RuntimeError):
        async with opened(settings_for(tmp_path), runtime):
            pass
    assert runtime.closed


async def test_health_and_sign_in_answer_before_the_runtime_is_open(tmp_path: Path, population: Population) -> None:
    population.copy_to(tmp_path)
    settings, may_open = settings_for(tmp_path), threading.Event()
    runtime = DatabaseOnly(settings.data_dir / DATABASE)

    def make_runtime() -> Any:
        may_open.wait()
        return runtime

    app = await asyncio.to_thread(create_app, runtime.database, settings, make_runtime)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(app.router.lifespan_context(app))
        gateway = Gateway(app, settings, stack, transport=lambda: httpx.ASGITransport(app))
        try:
            anonymous = await gateway.client()
            assert (await anonymous.get("/health")).json()["status"] == "healthy"
            user = await gateway.sign_in(USER)
            waiting = asyncio.create_task(user.get("/openapi.json"))
            assert (await user.get("/api/v1/auth/me")).json()["email"] == USER
            assert not waiting.done()
        finally:
            may_open.set()
        assert "/api/threads" in (await waiting).json()["paths"]


async def test_what_needs_a_runtime_that_cannot_open_fails_with_it(tmp_path: Path, population: Population) -> None:
    population.copy_to(tmp_path)
    settings = settings_for(tmp_path)

    def make_runtime() -> Any:
        raise RuntimeError("no")

    database = Database(settings.data_dir / DATABASE)
    app = await asyncio.to_thread(create_app, database, settings, make_runtime)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(app.router.lifespan_context(app))
        gateway = Gateway(app, settings, stack, transport=lambda: httpx.ASGITransport(app))
        user = await gateway.sign_in(USER)
        assert (await user.get("/api/threads/t/state")).status_code == 503


def loaded_by(imports: str, *libraries: str) -> str:
    """Those of the libraries that a new process has when it has imported these modules."""
    code = f"import sys, {imports}; print(*({set(libraries)} & set(sys.modules)))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_gateway_loads_no_parser_of_files():
    imports = "deerflow_app.gateway.app, deerflow_app.gateway.server, deerflow.client, deerflow.runtime"
    parsers = "lxml", "PIL", "html_to_markdown", "cchardet", "pypdfium2", "openpyxl", "ddgs", "numpy"
    assert loaded_by(imports, *parsers) == ""


def test_the_gateway_answers_before_the_agents_libraries_are_loaded():
    libraries = "langchain_core", "langgraph", "langsmith", "openai", "markdown_it", "httpx"
    assert loaded_by("deerflow_app.gateway.app, deerflow_app.gateway.server", *libraries) == ""
