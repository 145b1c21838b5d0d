"""Documents become text in the background as they are uploaded."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from bench.scripted_openai import ScriptedOpenAI, Text
from tests.app.gateway.conftest import Gateway, WithRuntime
from tests.documents.conftest import documents, runner  # noqa: F401 - fixtures
from tests.skills.conftest import SkillRunner

from deerflow.storage import sql

SENT = ("report.pdf", "locked.pdf", "mail.eml")


@pytest.fixture
async def gateway(tmp_path: Path, with_runtime: WithRuntime, runner: SkillRunner) -> AsyncIterator[Gateway]:  # noqa: F811
    await asyncio.to_thread(lambda: os.symlink(runner.image.path().parent, tmp_path / "tools"))
    on = {"auto_convert_documents": True}
    async with with_runtime(uploads=on, sandbox={}, memory={"enabled": False}) as made:
        yield made


async def listed(gateway: Gateway) -> dict[str, dict[str, Any]]:
    answer = await gateway.user.get("/api/threads/t1/uploads/list")
    return {file["filename"]: file for file in answer.json()["files"]}


async def test_an_upload_becomes_text_which_the_model_is_pointed_to_and_which_goes_with_it(
    gateway: Gateway,
    documents: Path,  # noqa: F811
    scripted: ScriptedOpenAI,
):
    files = [("files", (name, await asyncio.to_thread((documents / name).read_bytes))) for name in SENT]
    sent = (await gateway.user.post("/api/threads/t1/uploads", files=files)).json()["files"]
    assert [file["conversion"] for file in sent] == ["running"] * 3
    async with asyncio.timeout(120):
        while any(file.get("conversion") == "running" for file in (await listed(gateway)).values()):
            await asyncio.sleep(0.1)
    found = await listed(gateway)
    assert found["report.pdf"]["conversion"] == found["mail.eml"]["conversion"] == "done"
    assert "needs its password" in found["locked.pdf"]["conversion_error"]
    text = await gateway.user.get(found["report.pdf"]["markdown_artifact_url"])
    assert "<!-- page 2 of 3 -->" in text.text

    scripted.script(Text("Three pages."))
    said = {"role": "user", "content": "How long is it?", "additional_kwargs": {"files": sent[:1]}}
    answer = await gateway.user.post("/api/threads/t1/runs/wait", json={"input": {"messages": [said]}})
    assert answer.status_code == 200
    asked = str(scripted.requests[-1]["messages"][-1]["content"])
    assert "Its text: /mnt/user-data/uploads/report.pdf.md" in asked and "L5: Harbours" in asked
    assert "report.pdf.md (" not in asked, "the text is not named as another file"

    await gateway.user.delete("/api/threads/t1/uploads/report.pdf")
    assert "report.pdf.md" not in await listed(gateway)

    jobs = "SELECT count(*) FROM jobs WHERE kind = 'document'"
    count = lambda connection: sql.execute(connection, jobs).fetchone()  # noqa: E731
    assert await gateway.runtime.database.read(count) == (1,), "why the locked one has no text is kept"
    await gateway.user.delete("/api/threads/t1")
    assert await gateway.runtime.database.read(count) == (0,)


async def test_nothing_is_converted_unless_the_configuration_says_so(
    with_runtime: WithRuntime,
    documents: Path,  # noqa: F811
):
    async with with_runtime() as gateway:
        data = await asyncio.to_thread((documents / "report.pdf").read_bytes)
        await gateway.user.post("/api/threads/t1/uploads", files={"files": ("report.pdf", data)})
        assert "conversion" not in (await listed(gateway))["report.pdf"]
        assert await gateway.runtime.jobs._take() > 1, "no job waits"
