"""People take everything of their own away in one archive, and delete their account with everything that belongs to it."""

from __future__ import annotations

import asyncio
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import httpx
from bench.scripted_openai import Delay, ScriptedOpenAI, Text
from sqlalchemy import Connection, select
from tests.app.gateway.conftest import PASSWORD, USER, Gateway, WithRuntime

from deerflow.config import Paths
from deerflow.storage.database import Database
from deerflow.storage.tables import metadata

SKILL = "---\nname: mine\ndescription: Mine.\n---\nWrite {word} in capitals.\n"
KEPT = {"daily_usage"}
"""Sums of the site, under an id that names nobody any more."""


def run_of(text: str) -> dict[str, Any]:
    return {"assistant_id": "lead_agent", "input": {"messages": [{"role": "user", "content": text}]}}


async def ok(answer: httpx.Response) -> Any:
    assert answer.is_success, (answer.request.url, answer.text)
    return answer.json() if answer.content else None


async def with_things(gateway: Gateway, owner: httpx.AsyncClient, word: str) -> str:
    """Let the owner have one of each, with ``word`` in it, and return the owner's id."""
    user_id = (await ok(await owner.get("/api/v1/auth/me")))["id"]
    for _ in range(2):
        thread = (await ok(await owner.post("/api/threads", json={})))["thread_id"]
        await ok(await owner.post(f"/api/threads/{thread}/runs/wait", json=run_of(f"Remember {word}")))
    await ok(await owner.post(f"/api/threads/{thread}/uploads", files={"files": ("note.txt", word.encode())}))
    await ok(await owner.post("/api/memory/facts", json={"content": f"The user likes {word}"}))
    await ok(await owner.post("/api/agents", json={"name": f"agent-{word}", "soul": word}))
    await ok(await owner.post("/api/runs/crons", json={**run_of(word), "schedule": "0 0 1 1 *"}))
    await ok(await owner.put("/api/store/items", json={"namespace": ["n"], "key": "k", "value": {"note": word}}))
    await ok(await owner.put("/api/user-profile", json={"content": f"I am {word}"}))
    await ok(await owner.post("/api/v1/auth/tokens", json={"name": "mine"}))
    bot = {"kind": "telegram", "values": {"bot_token": f"bot-secret-{word}"}, "own": True}
    await ok(await owner.post("/api/channels/bots", json=bot))

    def files() -> None:
        paths = Paths(gateway.settings.data_dir)
        skill = paths.ensure_skills_dir(user_id) / "mine"
        skill.mkdir()
        (skill / "SKILL.md").write_text(SKILL.format(word=word))
        (skill / "passwd").symlink_to("/etc/passwd")
        (paths.user_skills_dir(user_id) / "secrets").write_text(f"skill-secret-{word}")
        (paths.outputs(thread, user_id) / "big.bin").write_bytes(b"\0" * (3 << 20))
        (paths.workspace(thread, user_id) / "draft.md").write_text(f"# {word}")

    await asyncio.to_thread(files)
    return user_id


async def test_the_archive_holds_everything_of_ones_own_no_secret_and_nothing_of_others(
    with_runtime: WithRuntime,
) -> None:
    async with with_runtime() as gateway:
        await with_things(gateway, gateway.admin, "tangerine")
        await with_things(gateway, gateway.user, "marigold")
        largest, pieces = 0, []
        async with gateway.user.stream("GET", "/api/v1/auth/me/archive") as answer:
            assert answer.status_code == 200
            async for piece in answer.aiter_raw():
                largest = max(largest, len(piece))
                pieces.append(piece)
    with zipfile.ZipFile(io.BytesIO(b"".join(pieces))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    names = "\n".join(members)
    assert all(
        part in names for part in ("note.txt", "big.bin", "draft.md", "conversation.json", "skills/mine/SKILL.md")
    )
    assert b"marigold" in members["USER.md"]
    assert b"marigold" in members["agents/agent-marigold.json"]
    assert b"marigold" in members["memory/memory.json"]
    assert b"marigold" in members["schedules.json"]
    manifest = json.loads(members["manifest.json"])
    assert manifest["person"]["email"] == USER
    assert manifest["holds"] == {"chats": 2, "files": 3, "facts": 1, "agents": 1, "skills": 1, "schedules": 1}
    assert manifest["left_out"] == []
    assert [*members][-1] == "manifest.json"
    everything = names.encode() + b"".join(members.values())
    for foreign in (b"tangerine", b"secret-", b"df_", b"$2b$", b"root:", b"s" * 40):
        assert foreign not in everything
    assert largest < 1 << 20


async def test_a_chat_that_cannot_be_read_is_named_and_the_rest_is_there(with_runtime: WithRuntime) -> None:
    async with with_runtime() as gateway:
        threads = [(await ok(await gateway.user.post("/api/threads", json={})))["thread_id"] for _ in range(2)]
        for thread in threads:
            await ok(await gateway.user.post(f"/api/threads/{thread}/runs/wait", json=run_of("Hello")))
        spoil = "UPDATE checkpoint_steps SET checkpoint = x'00' WHERE line IN (SELECT line FROM checkpoint_lines WHERE thread_id = :t)"
        await gateway.runtime.database.write(lambda connection: connection.exec_driver_sql(spoil, {"t": threads[0]}))
        await gateway.runtime.checkpointer.aget_tuple({"configurable": {"thread_id": threads[1]}})
        answer = await gateway.user.get("/api/v1/auth/me/archive")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    assert [each["chat"] for each in manifest["left_out"]] == [threads[0]]
    assert manifest["holds"]["chats"] == 1


async def until_gone(database: Database, user_id: str, home: Path) -> dict[str, int]:
    """Return how many rows of the person each table has, once everything else should be gone."""

    def left(connection: Connection) -> dict[str, int]:
        tables = [table for table in metadata.sorted_tables if "user_id" in table.c]
        found = {
            table.name: len(connection.execute(select(table.c.user_id).where(table.c.user_id == user_id)).all())
            for table in tables
        }
        return {name: count for name, count in found.items() if count and name not in KEPT}

    async with asyncio.timeout(60):
        while (rows := await database.read(left)) or await asyncio.to_thread(home.exists):
            await asyncio.sleep(0.05)
    return rows


async def test_who_deletes_the_account_leaves_nothing_behind_though_a_run_is_on_its_way(
    with_runtime: WithRuntime, scripted: ScriptedOpenAI
) -> None:
    async with with_runtime() as gateway:
        user_id = await with_things(gateway, gateway.user, "marigold")
        others = await with_things(gateway, gateway.admin, "tangerine")
        program = await gateway.token(gateway.user, "read", "write")
        scripted.script(Delay(0, Text(chunks=["word "] * 2000), between=0.05))
        thread = (await ok(await gateway.user.post("/api/threads", json={})))["thread_id"]
        await ok(await gateway.user.post(f"/api/threads/{thread}/runs", json=run_of("go on")))
        path = "/api/v1/auth/delete-account"
        assert (await program.post(path, json={"password": PASSWORD})).status_code == 403
        wrong = await gateway.user.post(path, json={"password": "not it"})
        assert (wrong.status_code, wrong.json()["code"]) == (400, "invalid_credentials")
        await ok(await gateway.user.post(path, json={"password": PASSWORD}))
        for gone in (gateway.user, program):
            assert (await gone.get("/api/v1/auth/me")).status_code == 401
        home = gateway.settings.data_dir / "users"
        await until_gone(gateway.runtime.database, user_id, home / user_id)
        assert not gateway.runtime.executor.active
        assert (await ok(await gateway.admin.post("/api/threads/count", json={}))) == 2
        assert await asyncio.to_thread((home / others).exists)


async def test_the_last_administrator_stays_with_a_sentence_and_everything(with_runtime: WithRuntime) -> None:
    async with with_runtime() as gateway:
        thread = (await ok(await gateway.admin.post("/api/threads", json={})))["thread_id"]
        answer = await gateway.admin.post("/api/v1/auth/delete-account", json={"password": PASSWORD})
        assert (answer.status_code, answer.json()["code"]) == (409, "last_administrator")
        assert "Make another user an administrator first" in answer.json()["detail"]
        assert (await gateway.admin.get(f"/api/threads/{thread}")).status_code == 200
