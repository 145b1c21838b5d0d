from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, insert, select

from deerflow.agents import create_deerflow_agent
from deerflow.config import AppConfig, Paths
from deerflow.errors import ConflictError, ForbiddenError, InvalidRequestError, NotFoundError
from deerflow.features.assistants.agents import AgentService
from deerflow.features.assistants.rows import AssistantQuery
from deerflow.features.assistants.service import LEAD_AGENT_ID, AssistantChanges, AssistantRequest, AssistantService
from deerflow.identity import Principal
from deerflow.models.demo import DemoChatModel
from deerflow.storage.database import Database
from deerflow.storage.list_page import ListPage
from deerflow.storage.tables import assistant_versions, threads, utc_now

ALICE, BOB = Principal("alice"), Principal("bob")


class World:
    def __init__(self, database: Database, paths: Paths) -> None:
        self.deleted: list[tuple[str, str]] = []
        self.refuses = False
        self.agents = AgentService(database, paths, self.config, self.forget)
        self.service = AssistantService(database, self.agent, self.delete_thread, self.agents)
        for name, description in (("writer", "Writes."), ("coder", "Codes.")):
            directory = paths.user_agents_dir(ALICE.user_id) / name
            directory.mkdir(parents=True)
            (directory / "config.yaml").write_text(f"description: {description}")

    async def agent(self) -> Any:
        return await asyncio.to_thread(lambda: create_deerflow_agent(DemoChatModel(), plan_mode=True))

    async def delete_thread(self, principal: Principal, thread_id: str) -> None:
        if self.refuses:
            raise ConflictError("A run is active.")
        self.deleted.append((principal.user_id, thread_id))

    async def config(self) -> AppConfig:
        return AppConfig()

    async def forget(self, principal: Principal, document: Mapping[str, Any], agent: str) -> None:
        """There is no memory."""


@pytest.fixture
def world(database: Database, tmp_path: Path) -> World:
    return World(database, Paths(tmp_path))


@pytest.fixture
def service(world: World) -> AssistantService:
    return world.service


def request(**more: Any) -> AssistantRequest:
    return AssistantRequest(**({"graph_id": "lead_agent"} | more))


async def test_the_lead_agent_has_many_names_and_one_id(service: AssistantService) -> None:
    for name in ("lead_agent", "agent", LEAD_AGENT_ID):
        found, agent = await service.resolve(BOB, name)
        assert (found.assistant_id, found.graph_id, agent) == (LEAD_AGENT_ID, "lead_agent", None)


async def test_a_custom_agent_is_an_assistant_of_those_who_may_use_it(service: AssistantService) -> None:
    found, agent = await service.resolve(ALICE, "coder")
    assert (found.graph_id, found.context) == ("lead_agent", {"agent_name": "coder"})
    assert agent is not None and agent.name == "coder"
    assert await service.resolve(ALICE, found.assistant_id) == (found, agent)
    for name in ("coder", found.assistant_id):
        with pytest.raises(InvalidRequestError):
            await service.resolve(BOB, name)


async def test_an_unknown_assistant_cannot_run(service: AssistantService) -> None:
    for name in ("", "nope", "00000000-0000-0000-0000-000000000000", "LEAD_AGENT", "../x"):
        with pytest.raises(InvalidRequestError, match="no assistant"):
            await service.resolve(ALICE, name)


async def test_an_assistant_brings_its_settings_into_runs(service: AssistantService) -> None:
    made = await service.create(
        ALICE, request(config={"configurable": {"agent_name": "coder"}, "recursion_limit": 9}, context={"mode": "pro"})
    )
    found, agent = await service.resolve(ALICE, made.assistant_id)
    assert (found.config["recursion_limit"], found.context) == (9, {"mode": "pro"})
    assert agent is not None and agent.name == "coder"


async def test_a_user_never_sees_or_changes_assistants_of_another_one(service: AssistantService) -> None:
    made = await service.create(ALICE, request(assistant_id="mine", name="Mine"))
    for call in (
        service.get(BOB, "mine"),
        service.update(BOB, "mine", AssistantChanges(name="His")),
        service.delete(BOB, "mine"),
        service.versions(BOB, "mine"),
        service.set_latest(BOB, "mine", 1),
        service.graph(BOB, "mine"),
        service.schemas(BOB, "mine"),
    ):
        with pytest.raises(NotFoundError):
            await call
    with pytest.raises(InvalidRequestError):
        await service.resolve(BOB, "mine")
    with pytest.raises(ConflictError):
        await service.create(BOB, request(assistant_id="mine", if_exists="do_nothing"))
    assert (await service.search(BOB, AssistantQuery(name="mine")))[1] == 0
    assert await service.get(ALICE, "mine") == made


async def test_an_id_that_is_taken_is_refused_or_what_is_there_is_given(service: AssistantService) -> None:
    made = await service.create(ALICE, request(assistant_id="one", name="One"))
    for taken in ("one", LEAD_AGENT_ID, "lead_agent", "coder"):
        with pytest.raises(ConflictError):
            await service.create(ALICE, request(assistant_id=taken))
    assert await service.create(ALICE, request(assistant_id="one", name="Two", if_exists="do_nothing")) == made
    there = await service.create(ALICE, request(assistant_id="lead_agent", if_exists="do_nothing"))
    assert there.assistant_id == LEAD_AGENT_ID


async def test_what_is_built_in_cannot_be_changed(service: AssistantService) -> None:
    for name in ("lead_agent", LEAD_AGENT_ID, "coder"):
        for call in (
            service.update(ALICE, name, AssistantChanges(name="x")),
            service.delete(ALICE, name),
            service.set_latest(ALICE, name, 1),
        ):
            with pytest.raises(ForbiddenError):
                await call
        assert [found.version for found in await service.versions(ALICE, name)] == [1]


async def test_what_cannot_be_is_refused(service: AssistantService) -> None:
    for unfit in (
        {"graph_id": "nope"},
        {"assistant_id": "../x"},
        {"assistant_id": "a b"},
        {"config": {"configurable": ["x"]}},
    ):
        with pytest.raises(InvalidRequestError):
            await service.create(ALICE, request(**unfit))
    made = await service.create(ALICE, request(graph_id="agent"))
    assert made.graph_id == "lead_agent"
    with pytest.raises(InvalidRequestError):
        await service.update(ALICE, made.assistant_id, AssistantChanges(graph_id="nope"))


async def test_each_change_is_a_version_and_one_can_go_back(service: AssistantService) -> None:
    made = await service.create(ALICE, request(name="A", description="d", metadata={"a": 1}, context={"mode": "pro"}))
    ident = made.assistant_id
    second = await service.update(ALICE, ident, AssistantChanges(name="B", metadata={"b": 2}))
    assert (second.version, second.name, second.metadata, second.context) == (2, "B", {"a": 1, "b": 2}, {"mode": "pro"})
    back = await service.set_latest(ALICE, ident, 1)
    assert (back.version, back.name, back.metadata) == (1, "A", {"a": 1})
    third = await service.update(ALICE, ident, AssistantChanges(description=None, context={}))
    assert (third.version, third.name, third.description, third.context) == (3, "A", None, {})
    assert await service.get(ALICE, ident) == third
    assert [found.version for found in await service.versions(ALICE, ident)] == [3, 2, 1]
    assert [found.version for found in await service.versions(ALICE, ident, page=ListPage(limit=1, offset=1))] == [2]
    assert [found.version for found in await service.versions(ALICE, ident, metadata={"b": 2})] == [2]
    with pytest.raises(NotFoundError):
        await service.set_latest(ALICE, ident, 4)


async def test_changes_at_once_are_versions_of_their_own(service: AssistantService) -> None:
    made = await service.create(ALICE, request())
    changes = (AssistantChanges(name=f"n{n}") for n in range(8))
    await asyncio.gather(*(service.update(ALICE, made.assistant_id, change) for change in changes))
    assert [found.version for found in await service.versions(ALICE, made.assistant_id)] == list(range(9, 0, -1))


async def test_pages_show_the_built_in_ones_first_and_everything_once(service: AssistantService) -> None:
    for n in range(5):
        await service.create(ALICE, request(name=f"own {n}", metadata={"odd": bool(n % 2)}))
    names: list[str] = []
    for offset in range(0, 10, 2):
        page, total = await service.search(
            ALICE, AssistantQuery(), ListPage(limit=2, offset=offset, sort_by="name", descending=False)
        )
        assert total == 8
        names += [found.name for found in page]
    assert names == ["lead_agent", "coder", "writer", *(f"own {n}" for n in range(5))]


async def test_assistants_are_found_by_name_graph_and_metadata(service: AssistantService) -> None:
    for n in range(3):
        await service.create(ALICE, request(name=f"Own 100% {n}", metadata={"team": {"n": n}}))

    async def names(**query: Any) -> list[str]:
        return sorted(found.name for found in (await service.search(ALICE, AssistantQuery(**query)))[0])

    assert await names(name="own 100%") == ["Own 100% 0", "Own 100% 1", "Own 100% 2"]
    assert await names(name="100_") == []
    assert await names(name="AGENT") == ["lead_agent"]
    assert await names(metadata={"team": {"n": 1}}) == ["Own 100% 1"]
    assert await names(metadata={"created_by": "system"}) == ["coder", "lead_agent", "writer"]
    assert len(await names(graph_id="agent")) == 6
    assert await names(graph_id="nope") == []
    for unfit in ({"sort_by": "config"},):
        with pytest.raises(InvalidRequestError):
            await service.search(ALICE, AssistantQuery(), ListPage(**unfit))
    with pytest.raises(InvalidRequestError):
        await names(metadata={'"': 1})


async def test_a_deleted_assistant_leaves_nothing_and_takes_its_threads_if_told_to(
    world: World, service: AssistantService, database: Database
) -> None:
    first = await service.create(ALICE, request(assistant_id="first"))
    await service.create(ALICE, request(assistant_id="second"))
    now = utc_now()
    times = {"metadata": {}, "created_at": now, "updated_at": now}
    rows = [
        {"thread_id": "t1", "user_id": "alice", "assistant_id": "first", **times},
        {"thread_id": "t2", "user_id": "alice", "assistant_id": "second", **times},
        {"thread_id": "t3", "user_id": "bob", "assistant_id": "first", **times},
    ]
    await database.write(lambda c: c.execute(insert(threads), rows))
    world.refuses = True
    with pytest.raises(ConflictError):
        await service.delete(ALICE, "first", delete_threads=True)
    assert await service.get(ALICE, "first") == first
    world.refuses = False
    await service.delete(ALICE, "first", delete_threads=True)
    await service.delete(ALICE, "second")
    assert world.deleted == [("alice", "t1")]
    with pytest.raises(NotFoundError):
        await service.delete(ALICE, "first")
    count = select(func.count()).select_from(assistant_versions)
    assert await database.read(lambda c: c.execute(count).scalar_one()) == 0


async def test_schemas_say_what_clients_may_send_and_hide_what_they_never_see(service: AssistantService) -> None:
    found = await service.schemas(ALICE, "lead_agent")
    assert found["graph_id"] == "lead_agent"
    assert {"messages", "title", "artifacts", "todos"} <= found["state_schema"]["properties"].keys()
    for schema in ("input_schema", "output_schema", "state_schema"):
        assert not {"thread_data", "sandbox"} & found[schema]["properties"].keys()
    assert {"model_name", "mode", "thinking_enabled"} <= found["context_schema"]["properties"].keys()
    assert "configurable" in found["config_schema"]["properties"]


async def test_the_graph_shows_the_model_and_the_tools(service: AssistantService) -> None:
    for xray in (False, True, 2):
        drawn = await service.graph(ALICE, "lead_agent", xray=xray)
        assert {"model", "tools"} <= {node["id"] for node in drawn["nodes"]}
        assert {"source", "target"} <= drawn["edges"][0].keys()
    assert await service.subgraphs(ALICE, "lead_agent", recurse=True) == {}
