"""Administrators suspend people, see when they were here, and set what holds for everybody."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import httpx
from bench.scripted_openai import Delay, ScriptedOpenAI, Text
from tests.app.gateway.conftest import ADMIN, PASSWORD, USER, Gateway, WithRuntime

from deerflow.storage.tables import utc_now


def run_of(text: str) -> dict[str, Any]:
    return {"assistant_id": "lead_agent", "input": {"messages": [{"role": "user", "content": text}]}}


async def person(gateway: Gateway, email: str = USER) -> dict[str, Any]:
    found = (await gateway.admin.get("/api/v1/users")).json()["users"]
    return next(each for each in found if each["email"] == email)


async def set_suspended(gateway: Gateway, suspended: bool, email: str = USER) -> httpx.Response:
    user_id = (await person(gateway, email))["id"]
    return await gateway.admin.patch(f"/api/v1/users/{user_id}", json={"suspended": suspended})


async def test_of_who_is_suspended_sessions_tokens_and_runs_end_and_schedules_pause(
    with_runtime: WithRuntime, scripted: ScriptedOpenAI
) -> None:
    async with with_runtime() as gateway:
        program = await gateway.token(gateway.user, "read", "write")
        cron = {**run_of("every minute"), "schedule": "* * * * *"}
        cron_id = (await gateway.user.post("/api/runs/crons", json=cron)).json()["cron_id"]
        scripted.script(Delay(0, Text(chunks=["word "] * 2000), between=0.05))
        thread = (await gateway.user.post("/api/threads", json={})).json()["thread_id"]
        run = (await gateway.user.post(f"/api/threads/{thread}/runs", json=run_of("go on"))).json()
        answer = await set_suspended(gateway, True)
        assert answer.json()["suspended_at"] is not None
        for gone in (gateway.user, program):
            assert (await gone.get("/api/v1/auth/me")).status_code == 401
        refused = await gateway.anonymous.post(
            "/api/v1/auth/login/local", data={"username": USER, "password": PASSWORD}
        )
        assert (refused.status_code, refused.json()["code"]) == (403, "account_suspended")
        runtime = gateway.runtime
        async with asyncio.timeout(30):
            while not (await runtime._run_store.find(run["run_id"])).closed:
                await asyncio.sleep(0.02)
        later = utc_now() + timedelta(minutes=2)
        runtime._scheduler._clock = lambda: later
        await runtime._scheduler.tick()
        assert not await _jobs(gateway, "cron")
        await set_suspended(gateway, False)
        again = await gateway.sign_in(USER)
        assert (await again.get(f"/api/runs/crons/{cron_id}")).json()["enabled"]
        await runtime._scheduler.tick()
        found = await again.post("/api/threads/search", json={"limit": 10})
        assert found.status_code == 200
        assert (await again.get(f"/api/threads/{thread}")).status_code == 200


async def _jobs(gateway: Gateway, kind: str) -> list[Any]:
    query = "SELECT key FROM jobs WHERE kind = ?"
    return await gateway.runtime.database.read(lambda connection: connection.exec_driver_sql(query, (kind,)).all())


async def test_no_run_of_a_suspended_person_begins_wherever_it_comes_from(with_runtime: WithRuntime) -> None:
    from deerflow.errors import ForbiddenError
    from deerflow.identity import Principal
    from deerflow.runs.request import RunRequest

    async with with_runtime() as gateway:
        user = (await person(gateway))["id"]
        await set_suspended(gateway, True)
        request = RunRequest.model_validate(run_of("from a chat channel"))
        for source in ("channel", "internal"):
            try:
                await gateway.runtime.runs.start(Principal(user, source=source), request)
            except ForbiddenError as error:
                assert error.code == "account_suspended"
            else:
                raise AssertionError("A run began.")
        await gateway.runtime.runs.start(Principal((await person(gateway, ADMIN))["id"]), request)


async def test_the_last_administrator_is_not_suspended_and_a_suspended_one_does_not_count(
    with_runtime: WithRuntime,
) -> None:
    async with with_runtime() as gateway:
        assert (await set_suspended(gateway, True, ADMIN)).json()["code"] == "last_administrator"
        user_id = (await person(gateway))["id"]
        await gateway.admin.patch(f"/api/v1/users/{user_id}", json={"system_role": "admin"})
        assert (await set_suspended(gateway, True)).status_code == 200
        assert (await set_suspended(gateway, True, ADMIN)).json()["code"] == "last_administrator"


async def test_it_is_shown_when_people_were_last_here(with_runtime: WithRuntime) -> None:
    async with with_runtime() as gateway:
        assert (await person(gateway))["last_seen_at"] is None
        await gateway.user.get("/api/v1/auth/me")
        assert (await person(gateway))["last_seen_at"] is not None


async def test_what_administrators_set_for_everybody_holds_at_once(with_runtime: WithRuntime) -> None:
    async with with_runtime() as gateway:
        new = {"email": "new@example.org", "password": PASSWORD}
        register = "/api/v1/auth/register"
        assert (await gateway.anonymous.post(register, json=new)).json()["code"] == "registration_closed"
        assert (await gateway.user.patch("/api/v1/site", json={"registration": True})).status_code == 403
        changes = {"registration": True, "default_model": "other", "default_mode": "pro", "notice": "Back at 5 pm"}
        assert (await gateway.admin.patch("/api/v1/site", json=changes)).json() == changes
        assert (await gateway.user.get("/api/v1/site")).json() == changes
        assert (await gateway.anonymous.get("/api/v1/auth/setup-status")).json()["registration"]
        assert (await (await gateway.client()).post(register, json=new)).status_code == 201
        unknown = await gateway.admin.patch("/api/v1/site", json={"default_model": "none-such"})
        assert unknown.status_code == 422
        assert (await gateway.admin.patch("/api/v1/site", json={"notice": ""})).json()["notice"] is None
        assert (await gateway.user.get("/api/v1/site")).json()["default_mode"] == "pro"
