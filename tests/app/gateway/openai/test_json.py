"""An answer that must be JSON of a schema is that, or an error."""

from __future__ import annotations

import json

import openai
import pytest
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from pydantic import BaseModel


class City(BaseModel):
    name: str
    inhabitants: int


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
FORMAT = {"type": "json_schema", "json_schema": {"name": "number", "schema": SCHEMA, "strict": True}}
ASKED = [{"role": "user", "content": "How many?"}]


async def test_an_agent_answers_with_json_and_is_asked_again_until_it_does(
    client: openai.AsyncOpenAI, scripted: ScriptedOpenAI
):
    scripted.script(
        ToolCalls(("bash", {"command": "echo 3"}), text="Let me count."),
        Text("There are three."),
        Text('{"n": "three"}'),
        Text('```json\n{"n": 3}\n```'),
    )
    answer = await client.chat.completions.create(model="lead_agent", messages=ASKED, response_format=FORMAT)
    assert json.loads(answer.choices[0].message.content) == {"n": 3}
    assert '"additionalProperties": false' in str(scripted.requests[0]["messages"])
    assert "not JSON" in scripted.requests[2]["messages"][-1]["content"]
    assert "'three' is not of type 'integer'" in scripted.requests[3]["messages"][-1]["content"]

    scripted.script(Text("Let me see."), Text('{"name": "Rome", "inhabitants": 2750000}'))
    parsed = await client.responses.parse(model="lead_agent", input="Rome?", text_format=City)
    assert parsed.output_parsed == City(name="Rome", inhabitants=2750000)
    assert (await client.responses.retrieve(parsed.id)).output_text == parsed.output_text

    scripted.script(Text("Hm."), Text('{"n": 4}'))
    stream = await client.chat.completions.create(
        model="lead_agent", messages=ASKED, response_format={"type": "json_object"}, stream=True
    )
    text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
    assert json.loads(text) == {"n": 4}, "nothing but the JSON, also in a stream"


async def test_an_agent_that_never_answers_with_json_is_an_error(client: openai.AsyncOpenAI, scripted: ScriptedOpenAI):
    scripted.script(*[Text("Three.")] * 3)
    with pytest.raises(openai.UnprocessableEntityError, match="not JSON of the schema") as failed:
        await client.chat.completions.create(model="lead_agent", messages=ASKED, response_format=FORMAT)
    assert failed.value.code == "invalid_json" and scripted.unused == 0
    scripted.script(*[Text("Three.")] * 3)
    with pytest.raises(openai.APIError, match="not JSON of the schema"):
        async for _ in await client.chat.completions.create(
            model="lead_agent", messages=ASKED, response_format=FORMAT, stream=True
        ):
            pass
    scripted.script(*[Text("Three.")] * 3)
    text = {"format": {"type": "json_schema", "name": "number", "schema": SCHEMA}}
    stream = await client.responses.create(model="lead_agent", input="How many?", text=text, stream=True)
    last = [event async for event in stream][-1].response
    assert last.status == "failed" and last.output_text == ""
    found = await client.responses.retrieve(last.id)
    assert found.status == "failed" and "not JSON" in found.error.message and found.text.format.name == "number"


async def test_a_model_alone_answers_with_json_too(client: openai.AsyncOpenAI, scripted: ScriptedOpenAI):
    scripted.script(Text("Three."), Text('{"n": 3}'))
    answer = await client.chat.completions.create(model="lead_agent:text", messages=ASKED, response_format=FORMAT)
    assert json.loads(answer.choices[0].message.content) == {"n": 3}
    scripted.script(*[Text("Three.")] * 3)
    with pytest.raises(openai.UnprocessableEntityError, match="asked 3 times"):
        await client.chat.completions.create(model="lead_agent:text", messages=ASKED, response_format=FORMAT)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nope"},
        {"$ref": "https://example.org/schema"},
        {"pattern": "("},
        {"patternProperties": {"a": {}}},
        {"type": "string", "description": "x" * 200_000},
    ],
)
async def test_a_schema_that_cannot_be_checked_is_refused(client: openai.AsyncOpenAI, schema: dict[str, object]):
    given = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    for model in ("lead_agent", "lead_agent:text"):
        with pytest.raises(openai.UnprocessableEntityError, match="schema"):
            await client.chat.completions.create(model=model, messages=ASKED, response_format=given)
