"""A Markdown file of a thread is saved as PDF or Word, by the skills' scripts in the thread's sandbox."""

from __future__ import annotations

import asyncio
import io
import json
import os
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from tests.app.gateway.conftest import Gateway, WithRuntime
from tests.documents.conftest import runner  # noqa: F401 - a fixture
from tests.skills.conftest import PUBLIC, SkillRunner

REPORT = """# Harbours

Ships *wait* for [berths](https://example.org).

| Port | Ships |
|---|---|
| Łódź | 7 |

![Not there](none.png)
"""
URL = "/api/threads/t1/reports"


@pytest.fixture
async def gateway(tmp_path: Path, with_runtime: WithRuntime, runner: SkillRunner) -> AsyncIterator[Gateway]:  # noqa: F811
    await asyncio.to_thread(lambda: os.symlink(runner.image.path().parent, tmp_path / "tools"))
    skills = {"path": str(PUBLIC.parent)}
    async with with_runtime(sandbox={}, skills=skills, memory={"enabled": False}) as made:
        yield made


async def uploaded(gateway: Gateway, name: str, data: bytes) -> str:
    sent = await gateway.user.post("/api/threads/t1/uploads", files={"files": (name, data)})
    assert sent.status_code == 200
    return sent.json()["files"][0]["virtual_path"]


async def test_a_report_is_made_whole_names_what_is_missing_and_leaves_nothing_behind(gateway: Gateway):
    path = await uploaded(gateway, "Häfen 'x' $(id).md", REPORT.encode())
    for form, kind in (("pdf", "application/pdf"), ("docx", "wordprocessingml.document")):
        made = await gateway.user.post(URL, json={"path": path, "format": form})
        assert made.status_code == 200, made.text
        assert kind in made.headers["content-type"]
        assert f"%24%28id%29.{form}" in made.headers["content-disposition"]
        assert "none.png" in json.loads(unquote(made.headers["x-problems"]))[0]
        if form == "docx":
            text = zipfile.ZipFile(io.BytesIO(made.content)).read("word/document.xml").decode()
            assert "Łódź" in text and "Ships " in text
        else:
            assert made.content.startswith(b"%PDF-")
    users = gateway.runtime.paths.users_dir
    assert await asyncio.to_thread(lambda: list(users.rglob(".report*"))) == []


@pytest.mark.parametrize(
    ("name", "data", "status", "words"),
    [
        ("notes.txt", b"x", 422, "Only a Markdown file"),
        ("latin.md", "größe".encode("latin-1"), 422, "not UTF-8"),
        ("broken.md", b"---\ntitle: [\n---\nx", 503, "could not be made"),
    ],
)
async def test_what_cannot_be_made_says_why(gateway: Gateway, name: str, data: bytes, status: int, words: str):
    path = await uploaded(gateway, name, data)
    made = await gateway.user.post(URL, json={"path": path, "format": "pdf"})
    assert (made.status_code, words in made.json()["detail"]) == (status, True), made.text
    gone = await gateway.user.post(URL, json={"path": "/mnt/user-data/outputs/none.md", "format": "pdf"})
    outside = await gateway.user.post(URL, json={"path": "/mnt/user-data/../../etc/x.md", "format": "pdf"})
    assert (gone.status_code, outside.status_code) == (404, 403)


async def test_a_sandbox_without_the_packages_says_what_to_do(with_runtime: WithRuntime):
    async with with_runtime(skills={"path": str(PUBLIC.parent)}, memory={"enabled": False}) as gateway:
        path = await uploaded(gateway, "report.md", REPORT.encode())
        made = await gateway.user.post(URL, json={"path": path, "format": "docx"})
        assert made.status_code == 503 and "deerflow setup" in made.json()["detail"], made.text
        off = await gateway.user.put("/api/skills/pdf", json={"enabled": False})
        assert off.status_code == 200
        made = await gateway.user.post(URL, json={"path": path, "format": "pdf"})
        assert made.status_code == 409 and "Turn it on" in made.json()["detail"]
