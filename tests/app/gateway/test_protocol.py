"""The agent streaming protocol over real sockets: what clients get of a real run, by HTTP and by WebSocket."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import httpx
import pytest
import pytest_asyncio
import websockets
from bench.scripted_openai import Delay, ScriptedOpenAI, Text, ToolCalls
from langgraph_sdk import get_client
from tests.app.gateway.conftest import Gateway, listening, settings_for

from deerflow.config import ConfigSource, Paths
from deerflow.runtime import Runtime

pytestmark = pytest.mark.asyncio(loop_scope="module")

EVERYTHING = ["values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "tasks", "custom"]


@dataclass
class Server:
    gateway: Gateway
    http: httpx.AsyncClient
    model: ScriptedOpenAI

    def thread(self) -> Thread:
        return Thread(self, str(uuid.uuid4()))


@dataclass
class Thread:
    server: Server
    id: str

    async def command(self, method: str, id_: int = 1, **params: Any) -> httpx.Response:
        body = {"id": id_, "method": method, "params": params}
        return await self.server.http.post(f"/threads/{self.id}/commands", json=body)

    async def start(self, text: str = "Hello", **params: Any) -> dict[str, Any]:
        given = {"messages": [{"role": "user", "content": text}]}
        answer = await self.command("run.start", assistant_id="lead_agent", input=given, **params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def events(
        self, since: int | None = None, channels: list[str] | None = None
    ) -> AsyncGenerator[dict[str, Any], None]:
        body = {"channels": channels or EVERYTHING, "since": since}
        url = f"/threads/{self.id}/stream/events"
        async with self.server.http.stream("POST", url, json=body) as answer:
            assert answer.status_code == 200
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))

    async def until_end(self, since: int | None = None, channels: list[str] | None = None) -> list[dict[str, Any]]:
        seen: list[dict[str, Any]] = []
        async with asyncio.timeout(60), aclosing(self.events(since, channels)) as events:
            async for event in events:
                seen.append(event)
                if ends_run(event):
                    break
        return seen


def command(id_: int, method: str, **params: Any) -> str:
    return json.dumps({"id": id_, "method": method, "params": params})


def ends_run(event: dict[str, Any]) -> bool:
    params = event["params"]
    over = ("completed", "failed", "interrupted")
    return event["method"] == "lifecycle" and not params["namespace"] and params["data"]["event"] in over


def data_of(events: list[dict[str, Any]], method: str) -> list[Any]:
    return [event["params"]["data"] for event in events if event["method"] == method]


def ids_of(events: list[dict[str, Any]]) -> list[str]:
    """Without those of snapshots: of these, a replay has the newest only."""
    return [event["event_id"] for event in events if event["method"] not in ("values", "checkpoints")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """One for all tests: each has a thread of its own, and scripts the model before it starts a run."""
    folder = tmp_path_factory.mktemp("gateway")
    with ScriptedOpenAI() as scripted:
        model = {"name": "scripted", "use": "langchain_openai:ChatOpenAI", "model": "scripted-model"}
        model |= {"base_url": scripted.base_url, "api_key": "test-key"}
        config = ConfigSource(cwd=folder, overrides={"models": [model], "title": {"enabled": False}})
        runtime = await asyncio.to_thread(Runtime, config, Paths(folder))
        async with listening(settings_for(folder, authentication=False), runtime) as gateway:
            yield Server(gateway, await gateway.client(), scripted)


async def test_a_run_on_a_new_thread_is_told_from_start_to_end(server: Server) -> None:
    thread = server.thread()
    server.model.script(
        ToolCalls(("ls", {"description": "look", "path": "/mnt/user-data"}), text="I look. "), Text("Hello there.")
    )
    answer = await thread.start()
    events = await thread.until_end()

    assert answer["type"] == "success" and answer["meta"] == {"applied_through_seq": 0}
    assert [data["event"] for data in data_of(events, "lifecycle")] == ["running", "completed"]
    assert [data["event"] for data in data_of(events, "tools")] == ["tool-started", "tool-finished"]
    roles = [data["role"] for data in data_of(events, "messages") if data["event"] == "message-start"]
    assert roles == ["ai", "tool", "ai"]
    last = data_of(events, "values")[-1]["messages"]
    assert [message["type"] for message in last] == ["human", "ai", "tool", "ai"]
    assert last[-1]["content"] == "Hello there."
    assert answer["result"]["run_id"] in events[0]["event_id"]


async def test_each_subagent_has_a_namespace_of_its_own(server: Server) -> None:
    """With a life cycle, messages and tools below it, told as they happen and the same in a replay."""
    thread, model = server.thread(), server.model
    asked = [
        ("task", {"description": k, "prompt": f"key:{k}", "subagent_type": "general-purpose"}) for k in ("v1", "v2")
    ]
    model.script(ToolCalls(*asked), Text("Both are done."))
    for key in ("v1", "v2"):
        model.script(ToolCalls(("ls", {"description": "look", "path": "/mnt"})), Text(f"{key} ready"), key=key)
    await thread.start(config={"configurable": {"subagent_enabled": True}})
    events = await thread.until_end()

    started = [data["payload"] for data in data_of(events, "custom") if data.get("name") == "task_started"]
    namespaces = {one["description"]: one["namespace"] for one in started}
    assert len({tuple(namespace) for namespace in namespaces.values()}) == 2
    for key, namespace in namespaces.items():
        inner = [event for event in events if event["params"]["namespace"] == namespace]
        (task_id,) = [one["task_id"] for one in started if one["description"] == key]
        begins, ends = data_of(inner, "lifecycle")
        assert (begins["event"], ends["event"]) == ("started", "completed")
        assert begins["cause"] == {"type": "toolCall", "tool_call_id": task_id}
        assert [data["event"] for data in data_of(inner, "tools")] == ["tool-started", "tool-finished"]
        roles = [data["role"] for data in data_of(inner, "messages") if data["event"] == "message-start"]
        assert roles == ["ai", "tool", "ai"]
        said = [data for data in data_of(inner, "messages") if data["event"] == "content-block-finish"]
        assert said[-1]["content"]["text"] == f"{key} ready"
    assert ids_of(await thread.until_end(since=0)) == ids_of(events)


async def test_events_carry_ids_and_the_stream_may_not_be_stored_on_its_way(server: Server) -> None:
    thread = server.thread()
    server.model.script(Text("Hi."))
    await thread.start()
    body = {"channels": ["lifecycle"]}
    async with server.http.stream("POST", f"/threads/{thread.id}/stream/events", json=body) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert (answer.headers["cache-control"], answer.headers["x-accel-buffering"]) == ("no-store", "no")
        lines = answer.aiter_lines()
        id_, data = await anext(lines), await anext(lines)
    assert id_.removeprefix("id: ") == json.loads(data.removeprefix("data: "))["event_id"]


async def test_going_on_from_anywhere_gives_exactly_the_rest(server: Server) -> None:
    thread = server.thread()
    server.model.script(Text("One two three four."))
    await thread.start()
    everything = await thread.until_end()

    for index in range(0, len(everything) - 1, 5):
        rest = await thread.until_end(since=everything[index]["seq"])
        assert ids_of(rest) == ids_of(everything[index + 1 :])
        assert data_of(rest, "values")[-1] == data_of(everything, "values")[-1]


async def test_the_next_turn_goes_on_where_the_command_says(server: Server) -> None:
    thread = server.thread()
    server.model.script(Text("One."), Text("Two."))
    await thread.start("first")
    first = await thread.until_end()
    answer = await thread.start("second")
    position = answer["meta"]["applied_through_seq"]
    second = await thread.until_end(since=position)

    assert first[-1]["seq"] <= position < second[0]["seq"]
    assert len(data_of(second, "values")[-1]["messages"]) == 4
    assert {"id", "parent_id"} <= data_of(second, "checkpoints")[0].keys()


async def test_the_state_of_a_thread_on_which_a_run_has_only_just_started_says_that_there_is_more_to_come(
    server: Server,
) -> None:
    thread = server.thread()
    server.model.script(Delay(0.5, Text("One.")))
    await thread.start()
    state = (await server.http.get(f"/threads/{thread.id}/state")).json()
    assert state["next"]
    await thread.until_end()
    assert (await server.http.get(f"/threads/{thread.id}/state")).json()["next"] == []


async def test_a_turn_can_be_asked_again_from_the_checkpoint_before_it(server: Server) -> None:
    thread = server.thread()
    server.model.script(Text("One."), Text("Two."), Text("Another two."))
    await thread.start("first")
    await thread.until_end()
    answer = await thread.start("second")
    second = await thread.until_end(since=answer["meta"]["applied_through_seq"])
    before = data_of(second, "checkpoints")[0]["parent_id"]
    config = {"configurable": {"checkpoint_id": before}}
    answer = await thread.start("second, edited", config=config)
    edited = await thread.until_end(since=answer["meta"]["applied_through_seq"])

    contents = [message["content"] for message in data_of(edited, "values")[-1]["messages"]]
    assert contents == ["first", "One.", "second, edited", "Another two."]


async def test_commands_show_the_state_and_its_past(server: Server) -> None:
    thread = server.thread()
    server.model.script(Text("One."))
    await thread.start()
    await thread.until_end()

    state = (await thread.command("state.get", namespace=[])).json()["result"]
    listed = (await thread.command("state.listCheckpoints", limit=2)).json()["result"]["checkpoints"]
    tree = (await thread.command("agent.getTree")).json()["result"]["tree"]
    assert len(state["values"]["messages"]) == 2
    assert listed[0]["id"] == state["checkpoint"]["id"] and len(listed) == 2
    assert (tree["namespace"], tree["status"]) == ([], "completed")


@pytest.mark.parametrize(
    ("method", "params", "status", "code"),
    [
        ("run.start", {"assistant_id": "nobody"}, 422, "invalid_argument"),
        ("run.start", {"assistant_id": "lead_agent", "temperature": 1}, 422, "invalid_argument"),
        ("state.get", {"namespace": []}, 404, "no_such_run"),
        ("subscription.subscribe", {"channels": ["values"]}, 422, "not_supported"),
        ("run.stop", {}, 400, "unknown_command"),
    ],
)
async def test_refusals_have_the_shape_of_the_protocol_and_a_fitting_status(
    server: Server, method: str, params: dict[str, Any], status: int, code: str
) -> None:
    answer = await server.thread().command(method, 9, **params)

    assert answer.status_code == status, answer.text
    body = answer.json()
    assert (body["type"], body["id"], body["error"]) == ("error", 9, code) and body["message"]


async def test_a_thread_that_is_not_there_cannot_be_followed(server: Server) -> None:
    answer = await server.http.post(f"/threads/{uuid.uuid4()}/stream/events", json={"channels": ["values"]})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_an_unknown_channel_is_refused_by_name(server: Server) -> None:
    answer = await server.http.post(f"/threads/{uuid.uuid4()}/stream/events", json={"channels": ["everything"]})
    assert answer.status_code == 422 and "everything" in answer.text


async def test_one_socket_carries_commands_answers_and_events(server: Server) -> None:
    thread = server.thread()
    server.model.script(Text("Hello there."))
    url = server.gateway.url.replace("http", "ws") + f"/threads/{thread.id}/stream/events"
    async with asyncio.timeout(60), websockets.connect(url) as socket:

        async def ask(id_: int, method: str, **params: Any) -> dict[str, Any]:
            await socket.send(command(id_, method, **params))
            return json.loads(await socket.recv())

        assert "subscription_id" in (await ask(1, "subscription.subscribe", channels=EVERYTHING))["result"]
        given = {"messages": [{"role": "user", "content": "Hi"}]}
        await socket.send(command(2, "run.start", assistant_id="lead_agent", input=given))
        heard = [json.loads(await socket.recv())]
        while not (heard[-1]["type"] == "event" and ends_run(heard[-1])):
            heard.append(json.loads(await socket.recv()))

    [started] = [message for message in heard if message["type"] != "event"]
    assert (started["type"], started["id"]) == ("success", 2)
    events = [message for message in heard if message["type"] == "event"]
    assert ids_of(events) == ids_of(await thread.until_end())


@pytest.mark.parametrize("transport", ["sse", "websocket"])
async def test_the_python_sdk_follows_a_run(server: Server, transport: str) -> None:
    server.model.script(Text("Hello there."), Text("And again."))
    client = get_client(url=server.gateway.url)
    stream = partial(client.threads.stream, assistant_id="lead_agent", transport=cast(Any, transport))
    async with asyncio.timeout(60), stream() as thread:
        await thread.run.start(input={"messages": [{"role": "user", "content": "Hi"}]})
        texts = [await message.text for message in [message async for message in thread.messages]]
        output = await thread.output
        assert texts == ["Hello there."]
        assert [message["type"] for message in output["messages"]] == ["human", "ai"]
    async with asyncio.timeout(60), stream(thread.thread_id) as again:
        await again.run.start(input={"messages": [{"role": "user", "content": "Again"}]})
        texts = [await message.text for message in [message async for message in again.messages]]
        assert texts == ["And again."]
        assert len((await again.output)["messages"]) == 4


async def test_browsers_are_told_which_lists_are_out_of_date(server: Server) -> None:
    thread = server.thread()
    server.model.script(Text("Hello."))
    seen: list[dict[str, Any]] = []
    async with asyncio.timeout(60), server.http.stream("GET", "/api/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.aiter_lines()
        assert await anext(lines) == ": heartbeat"
        await thread.start()
        async for line in lines:
            if line.startswith("data: "):
                seen.append(json.loads(line.removeprefix("data: ")))
                if seen[-1].get("status") == "success":
                    break

    assert {"type": "threads", "thread_id": thread.id} in seen
