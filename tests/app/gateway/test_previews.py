from __future__ import annotations

import asyncio
import base64
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.files_app import SECRET, FilesApp, files_app

from deerflow.files.previews import LIFETIME, PreviewService
from deerflow_app.gateway.routes.files import preview_service

OUT = "/mnt/user-data/outputs"


@pytest.fixture
async def site(tmp_path: Path, sqlite_template: Path) -> AsyncIterator[FilesApp]:
    database = await asyncio.to_thread(shutil.copy, sqlite_template, tmp_path / "deerflow.db")
    async with files_app(tmp_path / "home", Path(database)) as app:
        yield app


@pytest.fixture
async def pages(site: FilesApp) -> Path:
    """A site of several files, and a secret beside it."""
    outputs = await site.thread() / "outputs"
    for name, content in {
        "site/index.html": "<script type=module src=js/app.js></script>",
        "site/js/app.js": "import './x.mjs'",
        "site/style.css": "*{}",
        "site/sub/index.html": "sub",
        "site/a b#?.html": "odd",
        "secret.txt": "secret",
    }.items():
        (outputs / name).parent.mkdir(parents=True, exist_ok=True)
        (outputs / name).write_text(content)
    return outputs


async def opened(site: FilesApp, path: str, **options) -> str:
    answer = await site.client.post("/api/threads/t1/preview", json={"path": path, **options})
    assert answer.status_code == 200, answer.text
    return answer.json()["url"]


async def test_a_page_and_the_files_it_links_to_are_served_with_their_types(site: FilesApp, pages: Path):
    url = await opened(site, f"{OUT}/site/index.html")
    base = url.removesuffix("index.html")
    found = {}
    for name in ("index.html", "js/app.js", "style.css", "sub/", ""):
        answer = await site.client.get(base + name)
        found[name] = (answer.status_code, answer.headers["content-type"])
    assert found == {
        "index.html": (200, "text/html; charset=utf-8"),
        "js/app.js": (200, "text/javascript; charset=utf-8"),
        "style.css": (200, "text/css; charset=utf-8"),
        "sub/": (200, "text/html; charset=utf-8"),
        "": (200, "text/html; charset=utf-8"),
    }
    directory = await site.client.get(base + "sub")
    assert (directory.status_code, directory.headers["location"]) == (307, "./sub/")
    assert await opened(site, f"{OUT}/site") != url
    odd = await opened(site, f"{OUT}/site/a b#?.html")
    assert (await site.client.get(odd)).text == "odd"


async def test_a_page_has_no_origin_no_cookies_and_no_network(site: FilesApp, pages: Path):
    for url, network in (
        (await opened(site, f"{OUT}/site"), False),
        (await opened(site, f"{OUT}/site", allow_network=True), True),
    ):
        answer = await site.client.get(url)
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("sandbox allow-scripts") and "allow-same-origin" not in policy
        assert ("https:" in policy) == network
        assert "set-cookie" not in answer.headers
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-resource-policy"] == "cross-origin"


@pytest.mark.parametrize(("network", "places"), [(False, "frame-src 'self';"), (True, "frame-src 'self' https:;")])
async def test_a_page_in_a_tab_of_its_own_stands_in_a_sandboxed_frame(
    site: FilesApp, pages: Path, network: bool, places: str
):
    url = await opened(site, f"{OUT}/site/index.html", allow_network=network)

    alone = await site.client.get(url, headers={"sec-fetch-dest": "document"})
    framed = await site.client.get(f"{url}?framed", headers={"sec-fetch-dest": "iframe"})
    missing = await site.client.get(f"{url}x", headers={"sec-fetch-dest": "document"})

    assert '<iframe sandbox="allow-scripts ' in alone.text and 'src="?framed"' in alone.text
    assert "top-navigation" not in alone.text and "same-origin" not in alone.text and "app.js" not in alone.text
    assert places in alone.headers["content-security-policy"] and alone.headers["cache-control"] == "no-store"
    assert alone.headers["vary"] == framed.headers["vary"] == "sec-fetch-dest"
    assert "app.js" in framed.text and framed.headers["content-security-policy"].startswith("sandbox ")
    assert missing.status_code == 404


async def test_nothing_beside_the_site_is_served(site: FilesApp, pages: Path):
    (pages / "site" / "link.txt").symlink_to(pages / "secret.txt")
    (pages / "site" / "virtual.txt").symlink_to(f"{OUT}/secret.txt")
    (pages / "site" / "up").symlink_to("..")
    (pages / "site" / "passwd").symlink_to("/etc/passwd")
    (pages / "site2").mkdir()
    (pages / "site2" / "x").write_text("secret")
    base = await opened(site, f"{OUT}/site")
    for path in (
        "..%2fsecret.txt",
        "sub/..%2f..%2fsecret.txt",
        "link.txt",
        "virtual.txt",
        "up/secret.txt",
        "passwd",
        "..%2fsite2/x",
        "%00",
        "none",
        "index.html/x",
    ):
        answer = await site.client.get(base + path)
        assert answer.status_code == 404 and "secret" not in answer.text, path


async def test_a_site_behind_a_link_is_served_from_where_it_really_is(site: FilesApp, pages: Path):
    workspace = pages.parent / "workspace"
    (workspace / "dist").mkdir()
    (workspace / "dist" / "index.html").write_text("built")
    (pages / "built").symlink_to("/mnt/user-data/workspace/dist")
    url = await opened(site, f"{OUT}/built/index.html")
    assert (await site.client.get(url)).text == "built"
    (workspace / "dist").rename(workspace / "away")
    (workspace / "dist").symlink_to("/mnt/user-data/outputs")
    assert (await site.client.get(url.replace("index.html", "secret.txt"))).status_code == 404


async def test_forged_and_expired_addresses_do_not_exist(site: FilesApp, pages: Path):
    moment = [1_000_000.0]
    service = PreviewService(site.paths, site.threads, SECRET, now=lambda: moment[0])
    site.app.dependency_overrides[preview_service] = lambda: service
    url = await opened(site, f"{OUT}/site/index.html")
    token = url.split("/")[2]
    head, payload, mac = token.split(".")
    other = base64.urlsafe_b64encode(
        base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)).replace(b"/site", b"")
    ).decode()
    for forged in (
        f"{head}.{other.rstrip('=')}.{mac}",
        f"{head}.{payload}.",
        payload,
        f"{head}.{payload}.{mac[:-2]}",
        "x",
        ".",
        "é.é",
        "a.b.c",
    ):
        assert (await site.client.get(f"/preview/{forged}/index.html")).status_code == 404, forged
    with_other_secret = PreviewService(site.paths, site.threads, "o" * 40, now=lambda: moment[0])
    site.app.dependency_overrides[preview_service] = lambda: with_other_secret
    assert (await site.client.get(url)).status_code == 404
    site.app.dependency_overrides[preview_service] = lambda: service
    assert (await site.client.get(url)).status_code == 200
    moment[0] += LIFETIME - 1
    assert (await site.client.get(url)).status_code == 200
    moment[0] += 1
    assert (await site.client.get(url)).status_code == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"path": "/etc"}, 400),
        ({"path": f"{OUT}/none"}, 404),
        ({"path": f"{OUT}/../../../etc"}, 403),
        ({"path": "/mnt/user-data"}, 403),
        ({"path": f"{OUT}/site", "surprise": 1}, 422),
        ({}, 422),
    ],
)
async def test_what_cannot_be_previewed_is_refused(site: FilesApp, pages: Path, body: dict, status: int):
    assert (await site.client.post("/api/threads/t1/preview", json=body)).status_code == status


async def test_a_thread_of_someone_else_cannot_be_previewed(site: FilesApp, pages: Path):
    answer = await site.client.post("/api/threads/t1/preview", json={"path": f"{OUT}/site"}, headers={"x-user": "bert"})
    assert answer.status_code == 404


async def test_parts_of_a_film_in_a_page_can_be_asked_for(site: FilesApp, pages: Path):
    (pages / "site" / "film.mp4").write_bytes(b"0123456789")
    base = await opened(site, f"{OUT}/site")
    answer = await site.client.get(f"{base}film.mp4", headers={"range": "bytes=2-3"})
    assert (answer.status_code, answer.content, answer.headers["content-type"]) == (206, b"23", "video/mp4")
    assert (await site.client.head(f"{base}film.mp4")).headers["content-length"] == "10"
