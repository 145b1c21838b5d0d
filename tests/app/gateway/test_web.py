from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from deerflow_app.gateway.http import errors
from deerflow_app.gateway.routes import web

NO_PAGE = Path(web.__file__).parent.parent / "no_page"
INLINE = "self.x=1"


@pytest.fixture
def export(tmp_path: Path) -> Path:
    out = tmp_path / "out"
    for name, content in {
        "index.html": "home",
        "chats.html": f"<script>{INLINE}</script><script src='/_next/static/a.js'></script>shell",
        "chats.txt": "rsc",
        "chats/__next._tree.txt": "segment",
        "login.html": "login",
        "docs/index.html": "nested",
        "404.html": "nothing here",
        "_next/static/a.js": "js",
        "_next/static/a.js.br": "BR",
        "_next/static/a.js.gz": "GZ",
        "fonts/x.woff2": "font",
    }.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(content)
    (tmp_path / "secret.txt").write_text("secret")
    (out / "link.txt").symlink_to(tmp_path / "secret.txt")
    return out


def app_of(directory: Path) -> FastAPI:
    app = FastAPI(openapi_url=None)
    errors.install(app)

    @app.post("/api/only-post")
    async def only_post() -> str:
        return "posted"

    app.include_router(web.web_router(directory))
    return app


@pytest.fixture
async def client(export: Path) -> AsyncIterator[httpx.AsyncClient]:
    app = await asyncio.to_thread(app_of, export)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://web") as client:
        yield client


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/", 200, "home"),
        ("/login", 200, "login"),
        ("/login/", 200, "login"),
        ("/login.html", 200, "login"),
        ("/docs", 200, "nested"),
        ("/chats/0b5e", 200, None),
        ("/chats/0b5e/deeper", 200, None),
        ("/chats/0b5e.txt", 200, "rsc"),
        ("/chats/0b5e/__next._tree.txt", 200, "segment"),
        ("/chats/__next._tree.txt", 200, "segment"),
        ("/nothing", 404, "nothing here"),
        ("/login/below", 404, "nothing here"),
        ("/_next/static/none.js", 404, "nothing here"),
        ("/fonts", 404, "nothing here"),
        ("/link.txt", 404, "nothing here"),
        ("/..%2fsecret.txt", 404, "nothing here"),
        ("/chats/..%2f..%2fsecret.txt", 200, "rsc"),
        ("/%2e%2e/%2e%2e/etc/passwd", 404, "nothing here"),
        ("/%00", 404, "nothing here"),
        ("/a%0ab", 404, "nothing here"),
        ("/..%5csecret.txt", 404, "nothing here"),
        ("/" + "x" * 5000, 404, "nothing here"),
    ],
)
async def test_addresses_lead_to_pages_and_never_out(
    client: httpx.AsyncClient, path: str, status: int, text: str | None
):
    answer = await client.get(path)
    assert answer.status_code == status
    assert answer.text == text if text else "shell" in answer.text


async def test_the_api_is_never_answered_with_a_page(client: httpx.AsyncClient):
    for path in ("/api", "/api/none", "/api/threads/x/none", "/preview/x/y", "/health"):
        answer = await client.get(path)
        assert answer.status_code == 404 and answer.json()["code"] == "not_found"
    assert (await client.get("/api/only-post")).status_code == 405
    assert (await client.post("/login")).status_code == 405
    assert (await client.get("/apiary")).text == "nothing here"


async def test_only_what_never_changes_is_kept_by_browsers(client: httpx.AsyncClient):
    assert "immutable" in (await client.get("/_next/static/a.js")).headers["cache-control"]
    for path in ("/", "/fonts/x.woff2", "/nothing", "/chats/x"):
        assert (await client.get(path)).headers["cache-control"] == "no-cache"
    assert "immutable" not in (await client.get("/_next/static/none.js")).headers["cache-control"]
    first = await client.get("/login")
    assert (await client.get("/login", headers={"if-none-match": first.headers["etag"]})).status_code == 304


@pytest.mark.parametrize(
    ("accepted", "encoding", "body"),
    [
        ("gzip, deflate, br", "br", b"BR"),
        ("gzip", "gzip", b"GZ"),
        ("br;q=0, gzip;q=0.5", "gzip", b"GZ"),
        ("identity", None, b"js"),
        ("", None, b"js"),
    ],
)
async def test_what_was_compressed_when_it_was_built_is_sent_so(
    client: httpx.AsyncClient, accepted: str, encoding: str | None, body: bytes
):
    async with client.stream("GET", "/_next/static/a.js", headers={"accept-encoding": accepted}) as answer:
        raw = b"".join([chunk async for chunk in answer.aiter_raw()])
    assert (raw, answer.headers.get("content-encoding")) == (body, encoding)
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["vary"] == "accept-encoding"


async def test_a_page_may_run_its_own_scripts_and_no_others(client: httpx.AsyncClient):
    policy = (await client.get("/chats/x")).headers["content-security-policy"]
    scripts = next(part for part in policy.split("; ") if part.startswith("script-src"))
    digest = base64.b64encode(hashlib.sha256(INLINE.encode()).digest()).decode()
    assert scripts == f"script-src 'self' 'wasm-unsafe-eval' 'sha256-{digest}'"


async def test_a_page_that_is_built_anew_gets_a_new_policy(client: httpx.AsyncClient, export: Path):
    before = (await client.get("/chats/x")).headers["content-security-policy"]
    (export / "chats.html").write_text("<script>other()</script>")
    after = await client.get("/chats/x")
    assert after.headers["content-security-policy"] != before and "other()" in after.text


async def test_head_tells_what_get_would(client: httpx.AsyncClient):
    head = await client.head("/login")
    assert (head.status_code, head.headers["content-length"], head.content) == (200, "5", b"")


async def test_without_a_build_every_address_says_how_to_build_it():
    app = await asyncio.to_thread(app_of, NO_PAGE)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://web") as client:
        for path in ("/", "/chats", "/chats/x", "/settings/models"):
            page = await client.get(path, headers={"accept": "text/html"})
            assert page.status_code == 404 and "<code>make page</code>" in page.text
