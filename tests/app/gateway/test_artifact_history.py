"""What runs did to files, and earlier versions of what was delivered, over HTTP."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.support.files_app import FilesApp, files_app

from deerflow.config import ConfigSource, Paths
from deerflow.files.content import thread_files
from deerflow.files.versions import versions_of
from deerflow.runtime import Runtime

from .conftest import Gateway, opened, settings_for

THREAD = "/api/threads/t1"
REPORT = "/mnt/user-data/outputs/report.md"
FILE = f"{THREAD}/artifacts{REPORT}"


@pytest.fixture
async def site(tmp_path: Path, sqlite_template: Path) -> AsyncIterator[FilesApp]:
    database = await asyncio.to_thread(shutil.copy, sqlite_template, tmp_path / "deerflow.db")
    async with files_app(tmp_path / "home", Path(database)) as app:
        yield app


def run_ends(site: FilesApp, run_id: str) -> None:
    with thread_files(site.paths, "t1", "anna") as files:
        versions_of(site.paths, "t1", "anna").record_run(files, run_id, since=None)


@pytest.fixture
async def report(site: FilesApp) -> Path:
    """Written by two runs."""
    report = await site.thread() / "outputs" / "report.md"
    for run_id, text in (("r1", "# One"), ("r2", "# Zwölf")):
        await asyncio.to_thread(report.write_text, text, "utf-8")
        await asyncio.to_thread(run_ends, site, run_id)
    return report


async def test_versions_are_listed_and_read(site: FilesApp, report: Path):
    listed = (await site.client.get(f"{THREAD}/artifacts/versions", params={"path": REPORT})).json()
    assert [(one["version"], one["run_id"], one["size"]) for one in listed] == [(2, "r2", 8), (1, "r1", 5)]
    assert set(listed[0]) == {"version", "run_id", "created_at", "size"}
    first = await site.client.get(FILE, params={"version": 1})
    assert (first.text, first.headers["content-type"]) == ("# One", "text/markdown; charset=utf-8")
    part = await site.client.get(FILE, params={"version": 2}, headers={"range": "bytes=2-"})
    assert (part.status_code, part.text) == (206, "Zwölf")


async def test_changes_are_listed_by_run(site: FilesApp, report: Path):
    changes = (await site.client.get(f"{THREAD}/changes")).json()
    assert [(one["run_id"], one["files"]) for one in changes] == [
        ("r2", [{"path": REPORT, "change": "modified", "size": 8}]),
        ("r1", [{"path": REPORT, "change": "created", "size": 5}]),
    ]


async def test_an_edit_keeps_what_it_replaces(site: FilesApp, report: Path):
    assert (await site.client.put(FILE, content=b"mine", headers={"if-match": "*"})).status_code == 200
    listed = (await site.client.get(f"{THREAD}/artifacts/versions", params={"path": REPORT})).json()
    assert [(one["version"], one["run_id"]) for one in listed] == [(3, None), (2, "r2"), (1, "r1")]


async def test_an_edit_is_saved_even_if_its_version_cannot_be_kept(site: FilesApp, report: Path):
    versions = site.paths.thread_dir("t1", "anna") / "versions"
    await asyncio.to_thread(shutil.rmtree, versions)
    await asyncio.to_thread(versions.write_text, "in the way")
    assert (await site.client.put(FILE, content=b"mine", headers={"if-match": "*"})).status_code == 200
    assert report.read_text() == "mine"


@pytest.mark.parametrize(
    ("url", "status"),
    [
        (f"{FILE}?version=3", 404),
        (f"{FILE}?version=-1", 404),
        (f"{THREAD}/artifacts/mnt/user-data/outputs/none?version=1", 404),
        (f"{THREAD}/artifacts/mnt/user-data/outputs/../report.md?version=1", 404),
        (f"{THREAD}/artifacts/etc/passwd?version=1", 400),
        (f"{THREAD}/artifacts/versions?path=/etc/passwd", 400),
        (f"{THREAD}/artifacts/versions", 422),
    ],
)
async def test_what_is_not_kept_is_not_there(site: FilesApp, report: Path, url: str, status: int):
    answer = await site.client.get(url)
    assert answer.status_code == status and str(site.paths.base_dir) not in answer.text


async def test_nobody_else_sees_anything_of_it(site: FilesApp, report: Path):
    for url in (f"{FILE}?version=1", f"{THREAD}/artifacts/versions?path={REPORT}", f"{THREAD}/changes"):
        assert (await site.client.get(url, headers={"x-user": "bert"})).status_code == 404


async def test_a_run_leaves_what_it_did_to_files_and_the_thread_takes_it_along(
    tmp_path: Path, scripted: ScriptedOpenAI
):
    model = {"name": "m", "use": "langchain_openai:ChatOpenAI", "model": "m", "api_key": "k"}
    overrides = {
        "models": [model | {"base_url": scripted.base_url}],
        "title": {"enabled": False},
        "sandbox": {"tool_image": {"enabled": False}},
    }
    source = ConfigSource(cwd=tmp_path, overrides=overrides)
    runtime = await asyncio.to_thread(lambda: Runtime(source, Paths(tmp_path)))
    scripted.script(
        ToolCalls(("write_file", {"description": "a report", "path": REPORT, "content": "# Hi"})), Text("Done.")
    )
    async with opened(settings_for(tmp_path), runtime) as gateway:
        await gateway.populate()
        url = await _thread_with_a_run(gateway)
        async with asyncio.timeout(60):
            while not (changes := (await gateway.user.get(f"{url}/changes")).json()):
                await asyncio.sleep(0.02)
        runs = (await gateway.user.get(f"{url}/runs")).json()
        assert [(one["run_id"], one["files"]) for one in changes] == [
            (runs[0]["run_id"], [{"path": REPORT, "change": "created", "size": 4}])
        ]
        assert (await gateway.user.get(f"{url}/artifacts{REPORT}", params={"version": 1})).text == "# Hi"
        kept = list(tmp_path.rglob("versions"))
        assert len(kept) == 1
        assert (await gateway.user.delete(url)).status_code < 300
        assert not kept[0].exists()


async def _thread_with_a_run(gateway: Gateway) -> str:
    thread: dict[str, Any] = (await gateway.user.post("/api/threads", json={})).json()
    url = f"/api/threads/{thread['thread_id']}"
    body = {"assistant_id": "lead_agent", "input": {"messages": [{"role": "user", "content": "Write a report."}]}}
    answer = await gateway.user.post(f"{url}/runs/wait", json=body)
    assert answer.status_code == 200, answer.text
    return url
