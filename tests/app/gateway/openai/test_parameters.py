"""Parameters that have no effect are not passed over in silence."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from bench.scripted_openai import ScriptedOpenAI, Text
from tests.app.gateway.conftest import Gateway
from tests.app.gateway.openai.conftest import threads

ASKED = [{"role": "user", "content": "Hi"}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
CHAT: list[dict[str, Any]] = [
    {"n": 2},
    {"tools": [TOOL], "tool_choice": "required"},
    {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "f"}}},
    {"stop": ["\n"]},
    {"logprobs": True},
    {"logit_bias": {"50256": -100}},
    {"modalities": ["text", "audio"]},
    {"response_format": {"type": "grammar"}},
]
RESPONSES: list[dict[str, Any]] = [
    {"tool_choice": "required"},
    {"top_logprobs": 3},
    {"prompt": {"id": "pmpt_1"}},
    {"background": True, "store": False},
    {"conversation": "a", "previous_response_id": "resp_b"},
    {"model": "lead_agent:text", "background": True},
]


async def test_what_would_be_missed_is_refused_by_its_name(gateway: Gateway, client: openai.AsyncOpenAI):
    for given in CHAT:
        with pytest.raises(openai.BadRequestError) as refused:
            await client.chat.completions.create(**{"model": "lead_agent", "messages": ASKED, **given})
        error = refused.value
        assert error.param.partition(".")[0] in given and error.param in str(error), given
        assert (error.code, error.type) == ("unsupported_parameter", "invalid_request_error")
    for given in RESPONSES:
        with pytest.raises(openai.BadRequestError) as refused:
            await client.responses.create(**{"model": "lead_agent", "input": "Hi", **given})
        assert refused.value.param in given, given
    assert await threads(gateway) == []


async def test_what_only_hints_is_named_in_a_header(client: openai.AsyncOpenAI, scripted: ScriptedOpenAI):
    scripted.script(Text("Yes."), Text("Yes."))
    answer = await client.chat.completions.with_raw_response.create(
        model="lead_agent", messages=ASKED, n=1, temperature=0.5, tools=[TOOL], tool_choice="auto"
    )
    assert sorted(answer.headers["x-deerflow-ignored"].split(", ")) == ["temperature", "tools"]
    plain = await client.responses.with_raw_response.create(model="lead_agent", input="Hi", metadata={"a": "b"})
    assert "x-deerflow-ignored" not in plain.headers
