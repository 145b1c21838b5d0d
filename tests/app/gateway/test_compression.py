"""What is compressed, how, and what is left alone."""

from __future__ import annotations

import gzip
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from deerflow_app.gateway.http.compression import CompressionMiddleware, negotiate

LONG = {"text": "all work and no play " * 200}


@pytest.fixture
def client(tmp_path: Path) -> httpx.AsyncClient:
    file = tmp_path / "page.html"
    file.write_text("<p>hello</p>" * 1000)

    async def json(request: Request) -> Response:
        return JSONResponse(LONG)

    async def short(request: Request) -> Response:
        return JSONResponse({"ok": True})

    async def picture(request: Request) -> Response:
        return Response(b"x" * 5000, media_type="image/png")

    async def compressed(request: Request) -> Response:
        return Response(gzip.compress(b"x" * 500_000), media_type="text/plain", headers={"content-encoding": "gzip"})

    async def untouched(request: Request) -> Response:
        return JSONResponse(LONG, headers={"cache-control": "no-transform"})

    async def page(request: Request) -> Response:
        return FileResponse(file, media_type="text/html")

    async def pieces(request: Request) -> Response:
        return StreamingResponse((f"line {number}\n" for number in range(1000)), media_type="text/plain")

    async def big(request: Request) -> Response:
        return JSONResponse(["y" * 100] * 20_000)

    async def none(request: Request) -> Response:
        return Response(status_code=204)

    endpoints = [json, short, picture, compressed, untouched, page, pieces, big, none]
    routes = [Route(f"/{endpoint.__name__}", endpoint, methods=["GET"]) for endpoint in endpoints]
    transport = httpx.ASGITransport(CompressionMiddleware(Starlette(routes=routes)))
    return httpx.AsyncClient(transport=transport, base_url="http://test")


@pytest.mark.parametrize("coding", ["zstd", "br", "gzip"])
async def test_json_is_compressed(client: httpx.AsyncClient, coding: str) -> None:
    response = await client.get("/json", headers={"Accept-Encoding": coding})
    assert response.headers["content-encoding"] == coding
    assert response.headers["vary"] == "Accept-Encoding"
    assert response.json() == LONG
    assert response.num_bytes_downloaded < 400


@pytest.mark.parametrize("path", ["/pieces", "/big", "/page"])
@pytest.mark.parametrize("coding", ["zstd", "br", "gzip"])
async def test_bodies_of_any_length_and_number_of_pieces_arrive_whole(
    client: httpx.AsyncClient, path: str, coding: str
) -> None:
    plain = await client.get(path, headers={"Accept-Encoding": "identity"})
    response = await client.get(path, headers={"Accept-Encoding": coding})
    assert response.headers["content-encoding"] == coding
    assert "content-length" not in response.headers
    assert response.content == plain.content


@pytest.mark.parametrize("path", ["/short", "/picture", "/untouched", "/none"])
async def test_what_gains_nothing_or_must_not_be_changed_is_left_alone(client: httpx.AsyncClient, path: str) -> None:
    response = await client.get(path, headers={"Accept-Encoding": "zstd, br, gzip"})
    assert "content-encoding" not in response.headers


async def test_what_is_compressed_is_not_compressed_again(client: httpx.AsyncClient) -> None:
    response = await client.get("/compressed", headers={"Accept-Encoding": "zstd, gzip"})
    assert response.headers["content-encoding"] == "gzip"
    assert response.content == b"x" * 500_000


async def test_ranges_of_files_are_ranges_of_the_file(client: httpx.AsyncClient) -> None:
    response = await client.get("/page", headers={"Accept-Encoding": "gzip", "Range": "bytes=3-7"})
    assert (response.status_code, response.content) == (206, b"hello")
    assert "content-encoding" not in response.headers


async def test_a_compressed_file_has_a_weak_tag(client: httpx.AsyncClient) -> None:
    assert (await client.get("/page", headers={"Accept-Encoding": "br"})).headers["etag"].startswith('W/"')
    assert (await client.get("/page", headers={"Accept-Encoding": "identity"})).headers["etag"].startswith('"')


async def test_who_takes_nothing_gets_nothing_compressed_but_caches_are_told(client: httpx.AsyncClient) -> None:
    response = await client.get("/json", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in response.headers
    assert response.headers["vary"] == "Accept-Encoding"


@pytest.mark.parametrize(
    ("accepted", "chosen"),
    [
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip, deflate, br", "br"),
        ("gzip;q=1.0, br;q=0.5", "gzip"),
        ("GZIP", "gzip"),
        ("x-gzip", "gzip"),
        ("*", "zstd"),
        ("*;q=0.1, zstd;q=0", "br"),
        ("zstd;q=0", None),
        ("identity, gzip;q=0.5", None),
        ("gzip, identity;q=0", "gzip"),
        ("gzip;q=nonsense", None),
        ("deflate", None),
        ("", None),
    ],
)
def test_the_client_decides_and_we_prefer_the_better(accepted: str, chosen: str | None) -> None:
    assert negotiate(accepted) == chosen


@given(st.text())
def test_no_header_is_an_error(accepted: str) -> None:
    assert negotiate(accepted) in (None, "zstd", "br", "gzip")
