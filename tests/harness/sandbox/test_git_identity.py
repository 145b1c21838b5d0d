"""Commits that agents make are the person's."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from deerflow.accounts import UserRepository
from deerflow.config import AppConfig, Paths
from deerflow.context.run_options import RunOptions
from deerflow.harness import Harness
from deerflow.identity import Principal
from deerflow.storage.database import Database

COMMIT = "git init -q && git commit -q --allow-empty -m x && git log -1 --format='%an <%ae>'"


async def test_commits_have_the_name_and_mail_of_the_account(database: Database, tmp_path: Path) -> None:
    config = AppConfig.model_validate({"sandbox": {"tool_image": {"enabled": False}}})
    harness = await asyncio.to_thread(Harness.build, config, Paths(tmp_path), ())
    harness = replace(harness, accounts=UserRepository(database))
    ada = Principal((await UserRepository(database).create('Ada.\\Love"lace@example.org', "hash")).id)

    async def run(command: str, principal: Principal) -> str:
        fresh = harness.with_config(harness.config)
        context = await fresh.run_context("t", RunOptions(), principal=principal)
        return (await (await context.sandbox()).exec(command)).output.strip()

    try:
        assert await run(COMMIT, ada) == "ada.lovelace <ada.lovelace@example.org>"
        assert await run(COMMIT, Principal("nobody-known")) == "agent <agent@localhost>"
        await run("git config --global user.name Bot", ada)
        assert await run(COMMIT, ada) == "Bot <ada.lovelace@example.org>", "what the agent changed stays"
        assert await run(
            "git config user.name Repo; git commit -q --allow-empty -m y; git log -1 --format=%an", ada
        ) == ("Repo")
    finally:
        await harness.sandbox_provider.shutdown()
