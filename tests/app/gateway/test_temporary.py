"""Temporary chats: in no list, no search, no memory, and gone after a day."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from bench.scripted_openai import ScriptedOpenAI, Text
from sqlalchemy import text, update
from tests.app.gateway.conftest import WithRuntime
from tests.app.gateway.test_agents import tools_of
from tests.app.gateway.test_switches import MEMORY, say, thread

from deerflow.features.retention import delete_belongings
from deerflow.storage.tables import threads, utc_now


@pytest.fixture
def opened(with_runtime: WithRuntime) -> WithRuntime:
    return partial(with_runtime, memory={"mode": "both"})


async def count_of(runtime: Any, table: str) -> int:
    return await runtime.database.read(lambda c: c.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())


async def test_a_temporary_chat_is_neither_listed_nor_searched_nor_remembered_and_goes_after_a_day(
    opened: WithRuntime, scripted: ScriptedOpenAI
):
    async with opened() as gateway:
        user, runtime = gateway.user, gateway.runtime
        scripted.script(Text("A kept word: heron."), Text("A passing word: falcon."), Text("Falcon."))
        kept = await thread(user)
        assert (await say(user, kept, "I always measure in metric units, heron.")).is_success
        passing = await thread(user, temporary=True)
        learned = await count_of(runtime, "jobs WHERE kind = 'memory'")
        assert (await say(user, passing, "I always measure in imperial units, falcon.")).is_success
        assert not tools_of(scripted.requests[-1]) & MEMORY
        assert await count_of(runtime, "jobs WHERE kind = 'memory'") == learned

        for body in ({}, {"metadata": {"temporary": True}}, {"status": "idle"}):
            found = (await user.post("/api/threads/search", json=body)).json()
            assert passing not in {one["thread_id"] for one in found}, body
        assert (await user.post("/api/threads/count", json={})).json() == 1
        (found,) = (await user.post("/api/threads/search", json={"ids": [passing]})).json()
        assert found["metadata"]["temporary"] is True
        for words, there in (("heron", [kept]), ("falcon", [])):
            hits = (await user.get("/api/search/messages", params={"q": words})).json()
            assert sorted({hit["thread_id"] for hit in hits["data"]}) == there, hits
        copied = (await user.post(f"/api/threads/{passing}/copy")).json()
        assert (await user.post("/api/threads/count", json={})).json() == 1
        assert await count_of(runtime, "message_search WHERE text LIKE '%alcon%'") == 0

        over = update(threads).values(expires_at=utc_now() - timedelta(seconds=1))
        soon = await runtime.database.read(lambda c: c.execute(text("SELECT expires_at FROM threads")).scalars().all())
        assert len([moment for moment in soon if moment is not None]) == 2
        await runtime.database.write(lambda c: c.execute(over.where(threads.c.expires_at.is_not(None))) and None)
        await runtime.threads.finish_deletions()
        for gone in (passing, copied["thread_id"]):
            assert (await user.get(f"/api/threads/{gone}")).status_code == 404
        assert (await user.get(f"/api/threads/{kept}")).is_success


async def test_a_chat_becomes_temporary_before_its_first_run_alone(opened: WithRuntime, scripted: ScriptedOpenAI):
    async with opened() as gateway:
        user = gateway.user
        odd = await user.post("/api/threads", json={"metadata": {"temporary": "yes"}})
        assert odd.status_code == 422 and "temporary must be true or false" in odd.text
        made, begun = await thread(user), await thread(user)
        chosen = {"metadata": {"temporary": True}}
        assert (await user.patch(f"/api/threads/{made}", json=chosen)).is_success
        scripted.script(Text("Hello."), Text("Hello."))
        for where in (made, begun):
            assert (await say(user, where)).is_success
        assert (await user.post("/api/threads/count", json={})).json() == 1
        for where, value in ((begun, True), (made, False)):
            refused = await user.patch(f"/api/threads/{where}", json={"metadata": {"temporary": value}})
            assert refused.status_code == 422 and "has begun" in refused.text
        # Longer than a day it cannot be kept.
        assert (await user.patch(f"/api/threads/{made}", json={"ttl": 100_000})).is_success
        rows = await gateway.runtime.database.read(lambda c: c.execute(threads.select()).all())
        (expires,) = (row.expires_at for row in rows if row.thread_id == made)
        assert expires <= utc_now() + timedelta(days=1)


async def test_who_leaves_takes_temporary_chats_along(opened: WithRuntime):
    async with opened() as gateway:
        where = await thread(gateway.user, temporary=True)
        me = (await gateway.user.get("/api/v1/auth/me")).json()["id"]
        runtime = gateway.runtime
        await delete_belongings(runtime.database, runtime.threads, runtime.agent_provider.harness.paths, me)
        left = await runtime.database.read(lambda c: c.execute(threads.select()).all())
        assert where not in {row.thread_id for row in left}
