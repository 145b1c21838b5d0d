"""Side requests of chat interfaces are answered by the model alone."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from bench.scripted_openai import HttpError, ScriptedOpenAI, Text
from tests.app.gateway.conftest import Gateway, WithRuntime
from tests.app.gateway.openai.conftest import threads

HISTORY = "\n### Chat History:\n<chat_history>\nUSER: Hi\nASSISTANT: Hello\n</chat_history>"
CHAT = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
SIDE_REQUESTS: dict[str, list[dict[str, Any]]] = {
    "a title of Open WebUI": [
        {
            "role": "user",
            "content": f"### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.{HISTORY}",
        }
    ],
    "tags of Open WebUI": [
        {
            "role": "user",
            "content": "### Task:\nGenerate 1-3 broad tags categorizing the main themes of the chat history, along with "
            f"1-3 more specific subtopic tags.\n{HISTORY}",
        }
    ],
    "follow-ups of Open WebUI": [
        {
            "role": "user",
            "content": [
                {
                    "type": "text",
                    "text": "### Task:\nSuggest 3-5 relevant follow-up questions or prompts that the user might naturally ask",
                }
            ],
        }
    ],
    "a title of LibreChat": [
        {
            "role": "user",
            "content": "Provide a concise, 5-word-or-less title for the conversation, using title case conventions. "
            "Only return the title itself.\n\nConversation:\nUser: Hi\nAI: Hello",
        }
    ],
    "a title of NextChat": [
        *CHAT,
        {
            "role": "user",
            "content": "Please generate a four to five word title summarizing our conversation without any",
        },
    ],
    "a summary of NextChat": [
        *CHAT,
        {
            "role": "system",
            "content": "Summarize the discussion briefly in 200 words or less to use as a prompt for future context.",
        },
    ],
    "a title of LobeChat": [
        {
            "role": "system",
            "content": "You are a professional conversation summarizer. Generate a concise title that captures the essence",
        },
        {"role": "user", "content": "<user>Hi</user>"},
    ],
}


async def used(gateway: Gateway) -> dict[str, int]:
    rows = (await gateway.user.get("/api/usage", params={"by": "agent"})).json()["rows"]
    return {row["key"]: row["total_tokens"] for row in rows}


async def test_side_requests_make_no_thread_and_use_no_tools(
    gateway: Gateway, client: openai.AsyncOpenAI, scripted: ScriptedOpenAI
):
    tokens = 0
    for name, messages in SIDE_REQUESTS.items():
        scripted.script(Text("<think>Hm.</think>A Title"))
        answer = await client.chat.completions.create(model="lead_agent", messages=messages)
        assert answer.choices[0].message.content == "A Title", name
        assert [message["role"] for message in scripted.requests[-1]["messages"]] == [m["role"] for m in messages], name
        assert not scripted.requests[-1].get("tools"), name
        tokens += answer.usage.total_tokens
    assert await threads(gateway) == []
    assert await used(gateway) == {"text_agent": tokens}

    scripted.script(Text("An answer."))
    await client.chat.completions.create(
        model="lead_agent", messages=[{"role": "user", "content": "What does '### Task:' mean in a prompt?"}]
    )
    assert len(await threads(gateway)) == 1 and scripted.requests[-1]["tools"]


async def test_a_model_is_asked_alone_by_its_name(
    gateway: Gateway, client: openai.AsyncOpenAI, scripted: ScriptedOpenAI
):
    await gateway.user.post("/api/agents", json={"name": "poet", "model": "other"})
    assert (await client.models.retrieve("poet:text")).id == "poet:text"
    scripted.script(Text("Roses are red."))
    stream = await client.chat.completions.create(
        model="poet:text", messages=CHAT[:1], stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Roses are red."
    assert chunks[-1].usage.total_tokens > 0 and scripted.requests[-1]["model"] == "other"

    scripted.script(Text("Violets."), Text("Blue."))
    response = await client.responses.create(model="poet:text", input="Go on", instructions="Rhyme.")
    assert response.output_text == "Violets." and response.status == "completed"
    assert [message["role"] for message in scripted.requests[-1]["messages"]] == ["system", "user"]
    events = [event async for event in await client.responses.create(model="poet:text", input="On", stream=True)]
    assert events[-1].response.output_text == "Blue."
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(response.id)
    assert await threads(gateway) == []

    scripted.script(*[HttpError(401)] * 3)
    with pytest.raises(openai.InternalServerError) as failed:
        await client.chat.completions.create(model="poet:text", messages=CHAT[:1])
    assert failed.value.code == "model_failed"


async def test_the_person_s_limit_holds_for_side_requests(with_runtime: WithRuntime, scripted: ScriptedOpenAI):
    spending = {"per_person_day": {"tokens": 10}}
    async with with_runtime(memory={"enabled": False}, spending=spending) as gateway:
        made = await gateway.user.post("/api/v1/auth/tokens", json={"name": "t", "scopes": ["read", "write"]})
        client = openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=made.json()["token"], max_retries=0)
        scripted.script(Text("Yes."), Text("No."))
        with pytest.raises(openai.InternalServerError, match="Not asked"):
            for _ in range(2):
                await client.chat.completions.create(model="lead_agent:text", messages=CHAT[:1])
        assert len(scripted.requests) <= 1
