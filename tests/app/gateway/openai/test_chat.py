"""The official package of OpenAI talks to our agents."""

from __future__ import annotations

import asyncio
import base64

import httpx
import openai
import pytest
from bench.scripted_openai import Cut, HttpError, ScriptedOpenAI, Text, ToolCalls
from tests.app.gateway.conftest import Gateway
from tests.app.gateway.openai.conftest import threads

REPORT = ("write_file", {"path": "/mnt/user-data/outputs/report.md", "content": "# Report"})
PRESENT = ("present_files", {"filepaths": ["/mnt/user-data/outputs/report.md"]})


async def test_agents_are_models_of_their_owner(gateway: Gateway, client: openai.AsyncOpenAI):
    assert (await gateway.user.post("/api/agents", json={"name": "poet"})).is_success
    assert (await gateway.admin.post("/api/agents", json={"name": "other"})).is_success
    assert [model.id async for model in client.models.list()] == ["lead_agent", "poet"]
    assert (await client.models.retrieve("poet")).owned_by == "deerflow"
    with pytest.raises(openai.NotFoundError):
        await client.models.retrieve("other")


async def test_a_chat_with_all_its_messages_goes_on_in_one_thread(
    gateway: Gateway, client: openai.AsyncOpenAI, scripted: ScriptedOpenAI
):
    scripted.script(ToolCalls(REPORT), ToolCalls(PRESENT), Text("Here  it is."))
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "A report, please"}]
    first = await client.chat.completions.create(model="lead_agent", messages=chat)
    said = first.choices[0].message
    (annotation,) = said.annotations
    link = said.content[annotation.url_citation.start_index : annotation.url_citation.end_index]
    assert link == f"[report.md]({annotation.url_citation.url})" and said.content.startswith("Here  it is.\n\n[")
    assert (await gateway.user.get(annotation.url_citation.url)).text == "# Report"
    assert first.usage.prompt_tokens > 0 and first.choices[0].finish_reason == "stop"
    asked = [message["content"] for message in scripted.requests[0]["messages"] if message["role"] == "user"]
    assert "Be brief." in asked[0] and "A report, please" in asked[1]

    scripted.script(Text("Shorter."))
    chat += [{"role": "assistant", "content": said.content.replace("  ", " ")}, {"role": "user", "content": "Shorter"}]
    await client.chat.completions.create(model="lead_agent", messages=chat)
    assert len(await threads(gateway)) == 1
    assert [m["role"] for m in scripted.requests[-1]["messages"]].count("tool") == 2, (
        "its own history, not the client's"
    )

    scripted.script(Text("Another."))
    chat[1] = {"role": "user", "content": "Something else"}
    await client.chat.completions.create(model="lead_agent", messages=chat)
    assert len(await threads(gateway)) == 2
    assert [m["content"] for m in scripted.requests[-1]["messages"] if m["role"] == "assistant"] == [chat[2]["content"]]


async def test_a_stream_says_what_is_said_as_it_is_said(
    gateway: Gateway, client: openai.AsyncOpenAI, scripted: ScriptedOpenAI
):
    scripted.script(ToolCalls(("bash", {"command": "echo 1"}), text="Let me see."), Text("It is one."))
    messages = [{"role": "user", "content": "Count"}]
    stream = await client.chat.completions.create(
        model="lead_agent", messages=messages, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "Let me see.\n\nIt is one." and len(chunks) > 5
    assert chunks[-2].choices[0].finish_reason == "stop" and chunks[-1].usage.total_tokens > 0


async def test_a_call_that_needs_a_decision_is_answered_with_where_to_decide(
    gateway: Gateway, client: openai.AsyncOpenAI, scripted: ScriptedOpenAI
):
    scripted.script(ToolCalls(("bash", {"command": "rm -rf /mnt/user-data/uploads/*"}), text="I clean up."))
    said = [{"role": "user", "content": "Clean up"}]
    answer = await client.chat.completions.create(model="lead_agent", messages=said)
    [thread] = await threads(gateway)
    where = f"{gateway.url}/chats/{thread}"
    text = f"I clean up.\n\nA call needs your decision before I go on: {where}"
    assert answer.choices[0].message.content == text
    [waiting] = (await gateway.user.get(f"/api/threads/{thread}/waiting")).json()["interrupts"]
    assert waiting["value"]["action_requests"][0]["name"] == "bash"


async def test_a_thread_can_be_named(gateway: Gateway, client: openai.AsyncOpenAI, scripted: ScriptedOpenAI):
    headers = {"X-DeerFlow-Thread": "mine"}
    for text in ("One", "Two"):
        scripted.script(Text("Yes."))
        messages = [{"role": "user", "content": text}]
        answer = await client.chat.completions.with_raw_response.create(
            model="lead_agent", messages=messages, extra_headers=headers
        )
        assert answer.headers["x-deerflow-thread"] == "mine"
    assert len([m for m in scripted.requests[-1]["messages"] if m["role"] == "user"]) == 2
    state = (await gateway.user.get("/api/threads/mine/state")).json()
    assert [each["type"] for each in state["values"]["messages"]] == ["human", "ai", "human", "ai"]
    assert (await gateway.admin.get("/api/threads/mine")).status_code == 404


async def test_responses_follow_each_other(gateway: Gateway, client: openai.AsyncOpenAI, scripted: ScriptedOpenAI):
    scripted.script(ToolCalls(REPORT), ToolCalls(PRESENT), Text("Done."))
    first = await client.responses.create(model="lead_agent", input="A report", instructions="Be brief.")
    assert first.status == "completed" and first.output_text.startswith("Done.") and first.usage.input_tokens > 0
    assert first.output[0].content[0].annotations[0].title == "report.md"
    scripted.script(Text("Two."))
    parts = [{"type": "input_text", "text": "And two"}]
    stream = await client.responses.create(
        model="lead_agent", input=[{"role": "user", "content": parts}], previous_response_id=first.id, stream=True
    )
    events = [event async for event in stream]
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "Two."
    assert events[-1].type == "response.completed" and events[-1].response.output_text == "Two."
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert len(await threads(gateway)) == 1 and "A report" in str(scripted.requests[-1]["messages"])
    scripted.script(Text("Three."))
    await client.responses.create(model="lead_agent", input="Three", conversation="named")
    assert set(await threads(gateway)) >= {"named"}


async def test_files_of_a_message_are_uploads(gateway: Gateway, client: openai.AsyncOpenAI, scripted: ScriptedOpenAI):
    data = f"data:text/csv;base64,{base64.b64encode(b'a,b').decode()}"
    content = [
        {"type": "text", "text": "Look"},
        {"type": "file", "file": {"filename": "table.csv", "file_data": data}},
    ]
    scripted.script(ToolCalls(("read_file", {"path": "/mnt/user-data/uploads/table.csv"})), Text("Two columns."))
    messages = [{"role": "user", "content": content}]
    await client.chat.completions.create(
        model="lead_agent", messages=messages, extra_headers={"X-DeerFlow-Thread": "files"}
    )
    assert "a,b" in scripted.requests[-1]["messages"][-1]["content"]
    content[1]["file"]["file_data"] = "no base64!"
    with pytest.raises(openai.UnprocessableEntityError, match="base64"):
        await client.chat.completions.create(model="lead_agent", messages=messages)


async def test_what_cannot_be_is_said_in_openais_way(
    gateway: Gateway, client: openai.AsyncOpenAI, scripted: ScriptedOpenAI
):
    user = [{"role": "user", "content": "Hi"}]
    for model in ("gpt-unknown", "gpt-unknown:text"):
        with pytest.raises(openai.NotFoundError) as unknown:
            await client.chat.completions.create(model=model, messages=user)
        assert (unknown.value.code, unknown.value.param) == ("model_not_found", "model")
        with pytest.raises(openai.NotFoundError, match="does not exist"):
            await client.responses.create(model=model, input="Hi")
    assert await threads(gateway) == []
    with pytest.raises(openai.UnprocessableEntityError, match="must end with"):
        await client.chat.completions.create(model="lead_agent", messages=[{"role": "system", "content": "Hi"}])
    with pytest.raises(openai.AuthenticationError):
        await client.with_options(api_key="df_wrong").models.list()
    scripted.script(*[HttpError(401)] * 3)
    with pytest.raises(openai.UnprocessableEntityError) as failed:
        await client.chat.completions.create(model="lead_agent", messages=user)
    assert failed.value.code == "auth"
    scripted.script(*[HttpError(401)] * 3)
    with pytest.raises(openai.APIError):
        async for _ in await client.chat.completions.create(model="lead_agent", messages=user, stream=True):
            pass


async def test_whoever_leaves_stops_the_run(gateway: Gateway, client: openai.AsyncOpenAI, scripted: ScriptedOpenAI):
    scripted.script(Text("word " * 2000))
    scripted.delay = 0.02
    stream = await client.chat.completions.create(
        model="lead_agent",
        messages=[{"role": "user", "content": "Talk"}],
        stream=True,
        extra_headers={"X-DeerFlow-Thread": "left"},
    )
    async for chunk in stream:
        if chunk.choices[0].delta.content:
            break
    await stream.close()
    async with asyncio.timeout(30):
        while (await _newest(gateway.user))["status"] in ("pending", "running"):
            await asyncio.sleep(0.05)
    assert (await _newest(gateway.user))["stop_reason"] == "cancelled"


async def _newest(client: httpx.AsyncClient) -> dict[str, str]:
    return (await client.get("/api/threads/left/runs")).json()[0]


HALF = Cut(3, "half an answer that never ends")


async def test_what_was_streamed_of_an_answer_that_broke_off_is_kept(
    gateway: Gateway, client: openai.AsyncOpenAI, scripted: ScriptedOpenAI
):
    scripted.script(HALF, Text("The whole."), Text("More."))
    chat = [{"role": "user", "content": "Tell me"}]
    stream = await client.chat.completions.create(model="lead_agent", messages=chat, stream=True)
    text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
    assert text.startswith("half an answer ") and "broke off" in text and text.endswith("The whole.")
    [thread] = await threads(gateway)
    state = (await gateway.user.get(f"/api/threads/{thread}/state")).json()
    assert [each["content"] for each in state["values"]["messages"]] == ["Tell me", "half an answer ", "The whole."]
    chat += [{"role": "assistant", "content": text}, {"role": "user", "content": "More"}]
    await client.chat.completions.create(model="lead_agent", messages=chat)
    assert await threads(gateway) == [thread], "the same thread"
    assert "half" not in str(scripted.requests[-1]["messages"])

    scripted.script(HALF, Text("The whole."))
    whole = await client.responses.create(model="lead_agent", input="Tell me")
    assert whole.output_text == "The whole.", "nothing was sent yet that could not give way"

    scripted.script(HALF, HttpError(401), Text("the rest"))
    events = [each async for each in await client.responses.create(model="lead_agent", input="Tell me", stream=True)]
    said = "".join(each.delta for each in events if each.type == "response.output_text.delta")
    failed = events[-1].response
    assert (failed.status, failed.output[0].status, failed.output_text) == ("failed", "incomplete", said)
    assert said.startswith("half an answer ")
    await client.responses.create(model="lead_agent", input="continue", previous_response_id=failed.id)
    assert "half an answer " in [m["content"] for m in scripted.requests[-1]["messages"]]
