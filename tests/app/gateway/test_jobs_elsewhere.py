"""Jobs that a gateway asks for and a worker does."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from deerflow.config import ConfigSource, Paths
from deerflow.identity import LOCAL_PRINCIPAL
from deerflow.runtime import Runtime
from deerflow.storage import sql
from deerflow.tasks import jobs
from deerflow.uploads import Upload


async def test_a_job_begins_at_once_where_it_can_be_done(
    migrated_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "POLL_SECONDS", 3600.0)
    shared = {
        "database": {"backend": "postgres", "postgres_url": migrated_url},
        "uploads": {"auto_convert_documents": True},
    }

    def made(executes: bool) -> Runtime:
        return Runtime(ConfigSource(cwd=tmp_path, overrides=shared), Paths(tmp_path), executes=executes)

    gateway, worker = [await asyncio.to_thread(made, executes) for executes in (False, True)]
    try:
        await gateway.start()
        await worker.start()
        upload = Upload("gone.docx", 1, 0.0)
        async with asyncio.timeout(120):
            while not worker.notifier or not worker.notifier.is_connected:
                await asyncio.sleep(0.02)
            await gateway.documents.begin(LOCAL_PRINCIPAL, "thread", [upload])
            waiting = "SELECT count(*) FROM jobs WHERE kind = 'document'"
            while await worker.database.read(lambda c: sql.execute(c, waiting).fetchone()[0]):
                await asyncio.sleep(0.05)
    finally:
        await gateway.aclose()
        await worker.aclose()
