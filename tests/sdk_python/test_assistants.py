"""``client.assistants``."""

from __future__ import annotations

from uuid import uuid4

import pytest
from langgraph_sdk.errors import ConflictError, NotFoundError, PermissionDeniedError, UnprocessableEntityError
from tests.sdk_python.conftest import ASSISTANT, Sdk, covers


async def make(sdk: Sdk, **options: object) -> dict:
    return await sdk.assistants.create("lead_agent", **{"name": "Mine", **options})


@covers("assistants.create", "assistants.get")
async def test_an_assistant_is_made_and_found_by_its_id(sdk: Sdk):
    given = {"config": {"recursion_limit": 50}, "context": {"is_plan_mode": True}, "metadata": {"a": {"b": 1}}}
    made = await make(sdk, description="Plans.", assistant_id=(chosen := str(uuid4())), **given)
    assert made == await sdk.assistants.get(chosen)
    assert made["assistant_id"] == chosen and made["version"] == 1 and made["name"] == "Mine"
    assert made["description"] == "Plans." and made["graph_id"] == "lead_agent"
    assert made["context"]["is_plan_mode"] is True and made["metadata"]["a"] == {"b": 1}
    with pytest.raises(ConflictError):
        await make(sdk, assistant_id=chosen)
    assert await make(sdk, assistant_id=chosen, name="Other", if_exists="do_nothing") == made
    with pytest.raises(UnprocessableEntityError):
        await sdk.assistants.create("nonsense")
    with pytest.raises(NotFoundError):
        await sdk.assistants.get(str(uuid4()))


@covers("assistants.get")
async def test_the_built_in_assistant_has_a_name_and_an_id(sdk: Sdk):
    by_name = await sdk.assistants.get(ASSISTANT)
    assert await sdk.assistants.get(by_name["assistant_id"]) == by_name
    assert by_name["graph_id"] == "lead_agent"


@covers("assistants.update", "assistants.get_versions", "assistants.set_latest")
async def test_each_change_is_a_version_and_one_can_go_back(sdk: Sdk):
    made = await make(sdk, metadata={"kept": 1})
    own = made["assistant_id"]
    changed = await sdk.assistants.update(own, name="New", context={"mode": "pro"}, metadata={"added": 2})
    assert (changed["version"], changed["name"]) == (2, "New")
    assert changed["metadata"] == {"kept": 1, "added": 2} and changed["context"] == {"mode": "pro"}
    assert [one["version"] for one in await sdk.assistants.get_versions(own)] == [2, 1]
    assert [one["version"] for one in await sdk.assistants.get_versions(own, limit=1, offset=1)] == [1]
    assert [one["version"] for one in await sdk.assistants.get_versions(own, metadata={"added": 2})] == [2]
    back = await sdk.assistants.set_latest(own, 1)
    assert back["name"] == "Mine" == (await sdk.assistants.get(own))["name"]
    assert (await sdk.assistants.update(own, name="Third"))["version"] == 3
    with pytest.raises(NotFoundError):
        await sdk.assistants.set_latest(own, 99)
    with pytest.raises(PermissionDeniedError):
        await sdk.assistants.update(ASSISTANT, name="Hijacked")


@covers("assistants.search", "assistants.count")
async def test_assistants_are_found_by_what_they_are(sdk: Sdk):
    mark = uuid4().hex
    ids = [(await make(sdk, name=name, metadata={"mark": mark}))["assistant_id"] for name in ("Zoe", "Ann")]
    found = await sdk.assistants.search(metadata={"mark": mark}, sort_by="name", sort_order="asc")
    assert [one["name"] for one in found] == ["Ann", "Zoe"]
    page = await sdk.assistants.search(metadata={"mark": mark}, limit=1, response_format="object")
    assert len(page["assistants"]) == 1 and page["next"] == "1"
    rest = await sdk.assistants.search(metadata={"mark": mark}, limit=1, offset=1, response_format="object")
    assert rest["next"] is None
    assert {page["assistants"][0]["assistant_id"], rest["assistants"][0]["assistant_id"]} == set(ids)
    only = await sdk.assistants.search(metadata={"mark": mark}, name="zo", select=["name"])
    assert only == [{"name": "Zoe"}]
    assert await sdk.assistants.count(metadata={"mark": mark}) == 2
    assert await sdk.assistants.count(metadata={"mark": mark}, name="ann", graph_id="lead_agent") == 1
    assert ASSISTANT in [one["graph_id"] for one in await sdk.assistants.search(graph_id="agent")]


@covers("assistants.delete")
async def test_a_deleted_assistant_is_gone_with_its_threads_if_wanted(sdk: Sdk):
    own = (await make(sdk))["assistant_id"]
    thread_id = await sdk.thread()
    await sdk.runs.wait(thread_id, own, input=sdk.script())
    await sdk.assistants.delete(own, delete_threads=True)
    for gone in (sdk.assistants.get(own), sdk.threads.get(thread_id), sdk.assistants.delete(own)):
        with pytest.raises(NotFoundError):
            await gone
    with pytest.raises(PermissionDeniedError):
        await sdk.assistants.delete(ASSISTANT)


@covers("assistants.get_graph", "assistants.get_schemas", "assistants.get_subgraphs")
async def test_the_graph_can_be_drawn_and_its_schemas_read(sdk: Sdk):
    graph = await sdk.assistants.get_graph(ASSISTANT, xray=True)
    assert {"__start__", "model", "tools"} <= {node["id"] for node in graph["nodes"]}
    assert {"source", "target"} <= graph["edges"][0].keys()
    assert (await sdk.assistants.get_graph(ASSISTANT, xray=2))["nodes"]
    schemas = await sdk.assistants.get_schemas(ASSISTANT)
    assert "messages" in schemas["input_schema"]["properties"] and schemas["context_schema"]
    assert await sdk.assistants.get_subgraphs(ASSISTANT, recurse=True) == {}
    assert await sdk.assistants.get_subgraphs(ASSISTANT, "model") == {}
