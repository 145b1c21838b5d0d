"""What every version of the Python client in use must be able to do: ``python versions_client.py URL``. Run by ``test_versions.py``."""

import asyncio
import sys

from langgraph_sdk import get_client

ASSISTANT = "lead_agent"


async def main(url: str, key: str) -> None:
    client = get_client(url=url)
    given = {"messages": [{"role": "user", "content": f"key:{key}"}]}
    thread = await client.threads.create()
    thread_id = thread["thread_id"]
    parts = [
        part
        async for part in client.runs.stream(
            thread_id, ASSISTANT, input=given, stream_mode=["values", "messages-tuple", "updates"]
        )
    ]
    assert {"values", "messages", "updates"} <= {part.event for part in parts}, [part.event for part in parts]
    assert [part for part in parts if part.event == "values"][-1].data["messages"][-1]["content"] == "One."

    values = await client.runs.wait(thread_id, ASSISTANT, input=given)
    assert values["messages"][-1]["content"] == "Two."
    run = await client.runs.create(thread_id, ASSISTANT, input=given, multitask_strategy="enqueue")
    joined = [part.event async for part in client.runs.join_stream(thread_id, run["run_id"])]
    assert "values" in joined, joined
    await client.runs.join(thread_id, run["run_id"])
    assert (await client.runs.get(thread_id, run["run_id"]))["status"] == "success"

    state = await client.threads.get_state(thread_id)
    assert len(state["values"]["messages"]) == 6
    assert len(await client.threads.get_history(thread_id, limit=3)) == 3
    await client.threads.update_state(thread_id, {"title": "Mine"})
    assert (await client.threads.get_state(thread_id))["values"]["title"] == "Mine"
    found = await client.threads.search(metadata={"graph_id": ASSISTANT}, limit=10)
    assert thread_id in [each["thread_id"] for each in found]
    assert (await client.assistants.search(graph_id=ASSISTANT))[0]["graph_id"] == ASSISTANT
    copied = await client.threads.copy(thread_id)
    assert copied is None or copied["thread_id"] != thread_id
    await client.store.put_item(["notes"], key="k", value={"v": 1})
    assert (await client.store.get_item(["notes"], key="k"))["value"] == {"v": 1}
    await client.threads.delete(thread_id)
    assert thread_id not in [each["thread_id"] for each in await client.threads.search(limit=100)]


asyncio.run(main(*sys.argv[1:]))
