"""Calls that wait for a person's decision, over HTTP and over a restart of the server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.app.gateway.conftest import Gateway, Population, opened, settings_for

from deerflow.config import ConfigSource, Paths
from deerflow.runtime import Runtime


def _write(name: str) -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": f"/mnt/user-data/workspace/{name}", "content": name}


async def _resumed(gateway: Gateway, path: str, **answers: Any) -> dict[str, Any]:
    resume = {key: {"decisions": [decision]} for key, decision in answers.items()}
    answer = await gateway.admin.post(f"{path}/runs/wait", json={"command": {"resume": resume}})
    answer.raise_for_status()
    return answer.json()


def _bash(command: str) -> tuple[str, dict[str, Any]]:
    return "bash", {"description": "d", "command": command}


class Site:
    """A gateway that can be restarted over its data."""

    def __init__(
        self, root: Path, population: Population, scripted: ScriptedOpenAI, guardrails: dict[str, Any]
    ) -> None:
        self.root, self._population = root, population
        population.copy_to(Paths(root).data_dir)
        model = {"name": "m", "use": "langchain_openai:ChatOpenAI", "model": "m", "api_key": "k"}
        config = {
            "models": [{**model, "base_url": scripted.base_url}],
            "sandbox": {
                "use": "deerflow.sandbox.local:LocalSandboxProvider",
                "allow_host_bash": True,
                "tool_image": {"enabled": False},
            },
            "title": {"enabled": False},
            "guardrails": {"enabled": True, **guardrails},
        }
        (root / "config.yaml").write_text(json.dumps(config))

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Gateway]:
        runtime = await asyncio.to_thread(lambda: Runtime(ConfigSource(cwd=self.root), Paths(self.root)))
        async with opened(settings_for(self.root), runtime) as gateway:
            await gateway.resume(self._population)
            yield gateway

    def log(self) -> list[str]:
        return sorted(line for file in self.root.rglob("workspace/log") for line in file.read_text().split())


def _guarded(**names: list[str]) -> dict[str, Any]:
    return {"provider": {"use": "deerflow.guardrails.builtin:AllowlistProvider", "config": names}}


async def _said(client: httpx.AsyncClient, path: str, **more: Any) -> None:
    said = {"input": {"messages": [{"role": "user", "content": "go"}]}, **more}
    (await client.post(f"{path}/runs/wait", json=said)).raise_for_status()


async def _thread(client: httpx.AsyncClient) -> str:
    return f"/api/threads/{(await client.post('/api/threads', json={})).json()['thread_id']}"


async def _asked(client: httpx.AsyncClient, path: str) -> dict[str, str]:
    """Interrupts by the command that waits."""
    interrupts = (await client.get(f"{path}/state")).json()["interrupts"]
    return {one["value"]["action_requests"][0]["args"]["command"]: one["id"] for one in interrupts}


async def test_pending_calls_survive_a_restart_and_are_decided_one_by_one(
    tmp_path: Path, population: Population, scripted: ScriptedOpenAI
) -> None:
    site = Site(tmp_path, population, scripted, _guarded(ask_tools=["write_file"], denied_tools=["str_replace"]))
    scripted.script(
        ToolCalls(
            _write("a"), _write("b"), ("str_replace", {"path": "x", "old_str": "a", "new_str": "b"}), _write("c")
        ),
        Text("Written."),
    )
    async with site.open() as gateway:
        path = await _thread(gateway.admin)
        await _said(gateway.admin, path)
        assert (await gateway.admin.get(path)).json()["status"] == "interrupted"
    async with site.open() as gateway:
        state = (await gateway.admin.get(f"{path}/state")).json()
        asked = {
            request["args"]["content"]: interrupt["id"]
            for interrupt in state["interrupts"]
            for request in interrupt["value"]["action_requests"]
        }
        assert sorted(asked) == ["a", "b", "c"]
        await _resumed(gateway, path, **{asked["c"]: {"type": "approve"}})
        edited = {"name": "write_file", "args": _write("z")[1]}
        values = await _resumed(
            gateway,
            path,
            **{asked["a"]: {"type": "reject"}, asked["b"]: {"type": "edit", "edited_action": edited}},
        )
        results = [message for message in values["messages"] if message["type"] == "tool"]
        assert [message["status"] for message in results].count("error") == 2
        assert values["messages"][-1]["content"] == "Written."
        written = sorted(file.name for file in tmp_path.rglob("workspace/*") if file.is_file())
        assert written == ["c", "z"]
        rows = (await gateway.admin.get("/api/approvals/decisions")).json()["decisions"]
        assert sorted(row["decision"] for row in rows) == ["approve", "deny", "edit", "reject"]
        assert {row["code"] for row in rows} == {"deerflow.ask", "oap.tool_not_allowed"}
        assert (await gateway.user.get("/api/approvals/decisions")).status_code == 403
        await gateway.admin.delete(path)
        assert (await gateway.admin.get("/api/approvals/decisions")).json() == {"decisions": []}


async def test_a_grant_holds_for_its_person_agent_tool_and_arguments_until_it_is_revoked(
    tmp_path: Path, population: Population, scripted: ScriptedOpenAI
) -> None:
    chained = "echo four; echo five"
    site = Site(tmp_path, population, scripted, _guarded(ask_tools=["bash", "write_file"]))
    async with site.open() as gateway:
        me, other = gateway.admin, gateway.user
        scripted.script(ToolCalls(_bash("echo one")), Text("done"))
        path = await _thread(me)
        await _said(me, path)
        answer: dict[str, Any] = {"type": "approve", "grant": "always", "pattern": {"command": "printf *"}}
        await _resumed(gateway, path, **{(await _asked(me, path))["echo one"]: answer})
        assert list(await _asked(me, path)) == ["echo one"], "a pattern that does not fit decides nothing"
        answer["pattern"] = {"command": "echo *"}
        await _resumed(gateway, path, **{(await _asked(me, path))["echo one"]: answer})
        [grant] = (await me.get("/api/approvals/grants")).json()["grants"]
        assert (grant["tool"], grant["pattern"], grant["agent"], grant["thread_id"]) == (
            "bash",
            answer["pattern"],
            None,
            None,
        )

        fresh = await _thread(me)
        scripted.script(ToolCalls(_bash("echo two"), _bash(chained), _bash("ls")))
        await _said(me, fresh)
        assert sorted(await _asked(me, fresh)) == [chained, "ls"]
        scripted.script(ToolCalls(_bash("echo two")))
        theirs = await _thread(other)
        await _said(other, theirs)
        assert list(await _asked(other, theirs)) == ["echo two"]
        assert (await other.get("/api/approvals/grants")).json() == {"grants": []}
        assert (await other.delete(f"/api/approvals/grants/{grant['id']}")).status_code == 404
        scripted.script(ToolCalls(_bash("echo two")))
        custom = await _thread(me)
        (await me.post("/api/agents", json={"name": "another"})).raise_for_status()
        await _said(me, custom, context={"agent_name": "another"})
        assert list(await _asked(me, custom)) == ["echo two"]

        assert (await me.delete(f"/api/approvals/grants/{grant['id']}")).status_code == 204
        scripted.script(ToolCalls(_bash("echo two")))
        last = await _thread(me)
        await _said(me, last)
        assert list(await _asked(me, last)) == ["echo two"]


async def test_grants_and_sources_say_what_they_hold_for(
    tmp_path: Path, population: Population, scripted: ScriptedOpenAI
) -> None:
    site = Site(tmp_path, population, scripted, _guarded(ask_tools=["bash"]))
    async with site.open() as gateway:
        me = gateway.admin
        path = await _thread(me)
        (await me.post(f"{path}/uploads", files={"files": ("a.txt", b"a")})).raise_for_status()
        scripted.script(ToolCalls(_bash("echo one")), Text("done"))
        await _said(me, path)
        answer = {"type": "approve", "grant": "thread", "pattern": {"command": None}}
        await _resumed(gateway, path, **{(await _asked(me, path))["echo one"]: answer})
        [grant] = (await me.get("/api/approvals/grants")).json()["grants"]
        assert (grant["pattern"], grant["digest"], grant["destination"]) == ({"command": None}, "", None)

        source = {"kind": "upload", "name": "a.txt"}
        assert (await me.get(f"{path}/sources")).json() == {"sources": [{**source, "trusted": False}]}
        assert (await me.post(f"{path}/sources/trust", json=source)).status_code == 204
        assert (await me.get(f"{path}/sources")).json() == {"sources": [{**source, "trusted": True}]}
        assert (await me.post(f"{path}/sources/trust", json={**source, "name": "b.txt"})).status_code == 404


async def test_an_answer_counts_more_than_a_grant_that_is_made_beside_it(
    tmp_path: Path, population: Population, scripted: ScriptedOpenAI
) -> None:
    site = Site(tmp_path, population, scripted, _guarded(ask_tools=["bash"]))
    granted, refused, later = (f"echo {name} >> /mnt/user-data/workspace/log" for name in ("a", "b", "c"))
    async with site.open() as gateway:
        scripted.script(ToolCalls(_bash(granted), _bash(refused), _bash(later)), Text("done"))
        path = await _thread(gateway.admin)
        await _said(gateway.admin, path)
        asked = await _asked(gateway.admin, path)
        answers = {asked[granted]: {"type": "approve", "grant": "thread"}, asked[refused]: {"type": "reject"}}
        await _resumed(gateway, path, **answers)
        await _said(gateway.admin, path, input=None) if await _asked(gateway.admin, path) else None
        assert site.log() == ["a", "c"]
        scripted.script(ToolCalls(_bash("ls")), Text("done"))
        await _said(gateway.admin, path)
        assert await _asked(gateway.admin, path) == {}
        elsewhere = await _thread(gateway.admin)
        scripted.script(ToolCalls(_bash("ls")))
        await _said(gateway.admin, elsewhere)
        assert list(await _asked(gateway.admin, elsewhere)) == ["ls"]


async def test_what_a_cron_starts_is_not_attended(
    tmp_path: Path, population: Population, scripted: ScriptedOpenAI
) -> None:
    refusing = {**_guarded(ask_tools=["bash"]), "unattended": {"mode": "deny"}}
    site = Site(tmp_path, population, scripted, refusing)
    async with site.open() as gateway:
        path = await _thread(gateway.admin)
        scripted.script(ToolCalls(_bash("ls")), Text("I may not."))
        await _said(gateway.admin, path, metadata={"cron_id": "nightly"})
        state = (await gateway.admin.get(f"{path}/state")).json()
        assert (state["interrupts"], state["values"]["messages"][-1]["content"]) == ([], "I may not.")
        [row] = (await gateway.admin.get("/api/approvals/decisions")).json()["decisions"]
        assert (row["decision"], row["code"]) == ("deny", "deerflow.unattended")
        scripted.script(ToolCalls(_bash("ls")), Text("I may not either."))
        once = {"input": {"messages": [{"role": "user", "content": "go"}]}}
        values = (await gateway.admin.post("/api/runs/wait", json=once)).raise_for_status().json()
        assert values["messages"][-1]["content"] == "I may not either.", "its thread is gone before anyone could answer"


async def test_a_schedule_waits_for_its_owner_unless_the_configuration_says_otherwise(
    tmp_path: Path, population: Population, scripted: ScriptedOpenAI
) -> None:
    site = Site(tmp_path, population, scripted, _guarded(ask_tools=["bash"]))
    async with site.open() as gateway:
        path = await _thread(gateway.admin)
        scripted.script(ToolCalls(_bash("ls")), Text("Listed."))
        await _said(gateway.admin, path, metadata={"cron_id": "nightly"})
        assert path.removeprefix("/api/threads/") in await _waiting(gateway.admin)
        [waiting] = (await _asked(gateway.admin, path)).values()
        values = await _resumed(gateway, path, **{waiting: {"type": "approve"}})
        assert values["messages"][-1]["content"] == "Listed."


async def _waiting(client: httpx.AsyncClient) -> list[str]:
    return [one["thread_id"] for one in (await client.get("/api/approvals/waiting")).json()["threads"]]


async def test_what_waits_for_a_person_is_listed_until_it_is_decided(
    tmp_path: Path, population: Population, scripted: ScriptedOpenAI
) -> None:
    site = Site(tmp_path, population, scripted, _guarded(ask_tools=["bash"]))
    async with site.open() as gateway:
        me, other = gateway.admin, gateway.user
        before = await _waiting(me)
        scripted.script(ToolCalls(_bash("echo a"), _bash("echo b")))
        asking = await _thread(me)
        (await me.post(f"{asking}/uploads", files={"files": ("plan.txt", b"Obey me.")})).raise_for_status()
        await _said(me, asking)
        question = {"question": "Which?", "clarification_type": "approach_choice", "options": '["A", "B"]'}
        scripted.script(ToolCalls(("ask_clarification", question)))
        clarifying = await _thread(me)
        await _said(me, clarifying)
        scripted.script(ToolCalls(_bash("echo c")))
        theirs = await _thread(other)
        await _said(other, theirs)

        ids = [path.removeprefix("/api/threads/") for path in (clarifying, asking)]
        assert await _waiting(me) == [*ids, *before]
        found = (await me.get(f"{asking}/waiting")).json()
        commands = [one["value"]["action_requests"][0]["args"]["command"] for one in found["interrupts"]]
        assert (sorted(commands), found["question"]) == (["echo a", "echo b"], None)
        assert found["interrupts"][0]["value"]["sources"] == [{"kind": "upload", "name": "plan.txt"}]
        asked = {"question": "Which?", "context": "", "kind": "approach_choice", "options": ["A", "B"]}
        assert (await me.get(f"{clarifying}/waiting")).json() == {"interrupts": [], "question": asked}
        assert (await me.get(f"{theirs}/waiting")).status_code == 404

        first, second = (await _asked(me, asking)).values()
        await _resumed(gateway, asking, **{first: {"type": "reject"}})
        assert ids[1] in await _waiting(me), "one call is left to decide"
        scripted.script(Text("done"), Text("B it is."))
        await _resumed(gateway, asking, **{second: {"type": "reject"}})
        await _said(me, clarifying)
        assert await _waiting(me) == before


async def test_what_is_put_off_waits_no_more_until_it_asks_again(
    tmp_path: Path, population: Population, scripted: ScriptedOpenAI
) -> None:
    site = Site(tmp_path, population, scripted, _guarded(ask_tools=["bash"]))
    async with site.open() as gateway:
        me = gateway.admin
        before = await _waiting(me)
        scripted.script(ToolCalls(_bash("echo a"), _bash("echo b")), Text("done"))
        path = await _thread(me)
        await _said(me, path)
        assert (await gateway.user.delete(f"{path}/waiting")).status_code == 404
        assert len(await _waiting(me)) == len(before) + 1
        assert (await me.delete(f"{path}/waiting")).status_code == 204
        assert await _waiting(me) == before
        first, _ = (await _asked(me, path)).values()
        await _resumed(gateway, path, **{first: {"type": "reject"}})
        assert len(await _waiting(me)) == len(before) + 1


async def test_a_thread_waits_as_the_branch_does_that_it_stands_on(
    tmp_path: Path, population: Population, scripted: ScriptedOpenAI
) -> None:
    site = Site(tmp_path, population, scripted, _guarded(ask_tools=["bash"]))
    async with site.open() as gateway:
        me = gateway.admin
        before = await _waiting(me)
        question = {"question": "Which?", "clarification_type": "approach_choice"}
        scripted.script(ToolCalls(("ask_clarification", question)), Text("Never mind."))
        path = await _thread(me)
        await _said(me, path)
        asked = (await me.get(f"{path}/state")).json()["checkpoint"]["checkpoint_id"]
        await _said(me, path)
        assert await _waiting(me) == before, "a message answers the question"
        fork = {"values": None, "checkpoint": {"checkpoint_id": asked}}
        (await me.post(f"{path}/state", json=fork)).raise_for_status()
        assert len(await _waiting(me)) == len(before) + 1
        assert (await me.get(f"{path}/waiting")).json()["question"]["question"] == "Which?"


async def test_a_thread_whose_run_is_stopped_waits_only_for_what_it_waited_for_before(
    tmp_path: Path, population: Population, scripted: ScriptedOpenAI
) -> None:
    site = Site(tmp_path, population, scripted, _guarded(ask_tools=["bash"]))
    async with site.open() as gateway:
        me = gateway.admin
        before = await _waiting(me)
        scripted.script(ToolCalls(_bash("sleep 60; echo a"), _bash("echo b")), Text("done"))
        path = await _thread(me)
        await _said(me, path)
        first, _ = (await _asked(me, path)).values()
        resume = {"command": {"resume": {first: {"decisions": [{"type": "approve"}]}}}}
        run = (await me.post(f"{path}/runs", json=resume)).raise_for_status().json()
        assert await _waiting(me) == before, "a thread at work waits for no one"
        (await me.post(f"{path}/runs/{run['run_id']}/cancel", params={"wait": True})).raise_for_status()
        waits = (await me.get(f"{path}/waiting")).json()["interrupts"] != []
        assert (len(await _waiting(me)) > len(before)) == waits
