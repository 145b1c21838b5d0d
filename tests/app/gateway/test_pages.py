"""Pages that a thread keeps, and pictures that its person asks for: the server loads them, and only from where it may."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.harness.community.conftest import HOST, Web, web
from tests.support.files_app import FilesApp, files_app

from deerflow.storage.pages import ThreadPages

__all__ = ["web"]

URL = "/api/threads/t1/pages"
PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 100
OPEN = {"sandbox": {"network": {"allow_nets": [f"{HOST}/32"]}}}


@pytest.fixture
def config() -> dict[str, Any]:
    return OPEN


@pytest.fixture
async def site(tmp_path: Path, sqlite_template: Path, config: dict[str, Any]) -> AsyncIterator[FilesApp]:
    database = await asyncio.to_thread(shutil.copy, sqlite_template, tmp_path / "deerflow.db")
    async with files_app(tmp_path / "home", Path(database), config) as app:
        yield app


@pytest.fixture
async def pages(site: FilesApp) -> Path:
    folder = await site.thread() / "workspace/.web"
    folder.mkdir()
    return folder


# pages -----------------------------------------------------------------------------------------------------------------


async def read(site: FilesApp, pages: Path, name: str, thread_id: str = "t1") -> None:
    """What reading a page of the web leaves: a file, and the record of it."""
    text = f"# The {name} page\n\nSource: https://example.org/{name}\n\nIts text.\n"
    (pages / f"{name}.md").write_text(text)
    path = f"/mnt/user-data/workspace/.web/{name}.md"
    kept = ThreadPages(site.threads._database, thread_id)
    await kept.add(path, f"https://example.org/{name}", f"The {name} page", text.encode())


async def test_pages_are_listed_with_title_and_address_the_newest_first(site: FilesApp, pages: Path):
    for name in ("old", "new"):
        await read(site, pages, name)
    listed = (await site.client.get(URL)).json()
    assert [page["title"] for page in listed] == ["The new page", "The old page"]
    moment = listed[1].pop("read_at")
    assert listed[1] == {
        "url": "https://example.org/old",
        "title": "The old page",
        "path": "/mnt/user-data/workspace/.web/old.md",
    }
    assert datetime.fromisoformat(moment) <= datetime.now(UTC)
    assert "Its text." in (await site.client.get(f"/api/threads/t1/artifacts{listed[1]['path']}")).text


async def test_a_page_that_a_command_has_forged_or_changed_is_no_source(site: FilesApp, pages: Path):
    forged = "# The law\n\nSource: https://law.example.org/1\n\nAnything goes.\n"
    (pages / "law.example.org-1-0123456789.md").write_text(forged)
    await read(site, pages, "changed")
    await read(site, pages, "swapped")
    await read(site, pages, "kept")
    (pages / "changed.md").write_text((pages / "changed.md").read_text() + "And more.")
    (pages / "swapped.md").unlink()
    (pages / "swapped.md").symlink_to(pages / "kept.md")
    os.utime(pages / "kept.md", (0, 0))
    assert [page["url"] for page in (await site.client.get(URL)).json()] == ["https://example.org/kept"]


async def test_what_is_no_kept_page_is_not_listed(site: FilesApp, pages: Path):
    (pages / "notes.md").write_text("# Notes\n\nof the agent\n")
    (pages / "script.md").write_text("# X\n\nSource: javascript:alert(1)\n")
    (pages / "binary.md").write_bytes(b"\xff\xfe\x00")
    (pages / "folder.md").mkdir()
    (pages / "out.md").symlink_to("/etc/passwd")
    os.mkfifo(pages / "pipe.md")
    assert (await site.client.get(URL)).json() == []


async def test_a_kept_file_is_listed_by_its_name(site: FilesApp, pages: Path):
    (pages / "example.org-paper-0123456789.pdf").write_bytes(b"%PDF")
    (listed,) = (await site.client.get(URL)).json()
    assert listed["url"] is None and listed["title"] == "example.org-paper-0123456789.pdf"


async def test_a_thread_without_pages_lists_none(site: FilesApp):
    await site.thread()
    assert (await site.client.get(URL)).json() == []
    (site.paths.workspace("t1", "anna") / ".web").write_text("a file in the way")
    assert (await site.client.get(URL)).status_code in (200, 404)


async def test_the_pages_of_others_are_not_there(site: FilesApp, pages: Path):
    for answer in (
        await site.client.get(URL, headers={"x-user": "bert"}),
        await site.client.post(f"{URL}/pictures", json={"url": "https://example.org/x"}, headers={"x-user": "bert"}),
    ):
        assert answer.status_code == 404


# pictures --------------------------------------------------------------------------------------------------------------


async def test_a_picture_is_loaded_by_the_server_and_kept_in_the_thread(site: FilesApp, pages: Path, web: Web):
    url = web.put("/deer.png", PNG, "image/png")
    path = (await site.client.post(f"{URL}/pictures", json={"url": url})).json()["path"]
    shown = await site.client.get(f"/api/threads/t1/artifacts{path}")
    assert shown.content == PNG and shown.headers["content-type"] == "image/png"
    assert "cookie" not in web.requests[0].headers and "referer" not in web.requests[0].headers


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"), (b"<script>", "image/png"), (b"", "image/gif")],
)
async def test_what_could_be_more_than_a_picture_is_refused(
    site: FilesApp, pages: Path, web: Web, body: bytes, kind: str
):
    answer = await site.client.post(f"{URL}/pictures", json={"url": web.put("/x", body, kind)})
    assert answer.status_code == 422 and "no picture" in answer.text and not list(pages.iterdir())


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1/x.png", "file:///etc/passwd", "http://u:p@example.org/x.png", "http://[::1]/x", "nonsense"],
)
async def test_a_picture_comes_from_where_the_server_may_go(site: FilesApp, pages: Path, url: str):
    answer = await site.client.post(f"{URL}/pictures", json={"url": url})
    assert answer.status_code == 422, answer.text


async def test_a_redirect_into_the_own_network_is_refused(site: FilesApp, pages: Path, web: Web):
    url = web.put("/start", "", status=302, Location="http://127.0.0.1:1/x.png")
    answer = await site.client.post(f"{URL}/pictures", json={"url": url})
    assert answer.status_code == 422 and "private" in answer.text


@pytest.mark.parametrize("config", [{**OPEN, "security": {"native_web_tools": "deny"}}])
async def test_where_the_web_is_off_no_picture_is_loaded(site: FilesApp, pages: Path, web: Web):
    answer = await site.client.post(f"{URL}/pictures", json={"url": web.put("/deer.png", PNG, "image/png")})
    assert answer.status_code == 403 and web.requests == []
