"""Habits of models and servers that no standard foresees, over the real wire."""

from __future__ import annotations

from typing import Any

import pytest
from bench.scripted_openai import RawChunks, ScriptedOpenAI, Text
from langchain_core.messages import AIMessage, HumanMessage
from tests.harness.models.openai_family.adapters import builder
from tests.harness.models.openai_family.contract import HELLO, WAYS, ask, bash
from tests.harness.models.openai_family.test_chunks import DONE, delta, event, read
from tests.harness.models.openai_family.test_providers import streamed, whole

from deerflow.models.openai import OpenAIChatModel

build = builder(OpenAIChatModel)
JSON = {"content-type": "application/json"}


def fragment(id_: str | None, name: str | None, arguments: Any, index: int | None = 0) -> dict[str, Any]:
    return {"index": index, "id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


ONE, TWO = '{"command":"echo one"}', '{"command":"echo two"}'


@pytest.mark.parametrize(
    "deltas",
    [
        [[fragment("x1", "bash", ONE)], [fragment("x2", "bash", TWO)]],
        [[fragment("x1", "bash", ONE), fragment("x2", "bash", TWO)]],
        [[fragment(None, "bash", ONE)], [fragment(None, "bash", TWO)]],
        [[fragment(None, "bash", ONE), fragment(None, "bash", TWO)]],
        [
            [fragment("x1", "bash", "")],
            [fragment(None, None, ONE)],
            [fragment("x2", "bash", "")],
            [fragment("x2", None, TWO)],
        ],
        [[fragment("x1", "bash", ONE[:9])], [fragment("x1", "bash", ONE[9:])], [fragment("x2", "bash", TWO)]],
        [[fragment("x1", "bash", ONE, None)], [fragment("x2", "bash", TWO, None)]],
        [[fragment("x1", "bash", ONE, 3)], [fragment("x2", "bash", TWO, 7)]],
        [[fragment("x1", "bash", {"command": "echo one"})], [fragment("x2", "bash", TWO)]],
    ],
)
async def test_parallel_calls_are_told_apart_whatever_their_index(
    endpoint: ScriptedOpenAI, deltas: list[list[dict[str, Any]]]
) -> None:
    endpoint.script(streamed(*[{"tool_calls": calls} for calls in deltas]))
    answer = await ask(build(endpoint).bind_tools([bash]), HELLO, "astream")
    assert [(call["name"], call["args"]["command"]) for call in answer.tool_calls] == [
        ("bash", "echo one"),
        ("bash", "echo two"),
    ]


async def test_a_name_repeated_in_each_delta_is_one_name(endpoint: ScriptedOpenAI) -> None:
    pieces = [fragment("x1", "bash", text) for text in ("", '{"command":', '"echo hi"}')]
    endpoint.script(streamed(*[{"tool_calls": [piece]} for piece in pieces]))
    answer = await ask(build(endpoint).bind_tools([bash]), HELLO, "astream")
    assert [(call["name"], call["args"], call["id"]) for call in answer.tool_calls] == [
        ("bash", {"command": "echo hi"}, "x1")
    ]


@pytest.mark.parametrize("field", ["content", "reasoning_content"])
async def test_an_emoji_cut_over_two_deltas_is_joined(field: str) -> None:
    halves = [delta(**{field: "a\ud83d"}), delta(**{field: "\ude00b"}), delta("stop")]
    chunks = await read(*map(event, halves), DONE)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert (
        "".join(
            each.get(field) or "" for each in (deltas if field == "content" else [d.get("kept", {}) for d in deltas])
        )
        == "a😀b"
    )


async def test_half_an_emoji_stays_one_sign() -> None:
    chunks = await read(
        event(delta(content="a\ud83d")), event(delta(content=" b")), event(delta("stop", content="\ud83d")), DONE
    )
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks) == "a\ufffd b\ufffd"


async def test_a_byte_order_mark_before_the_first_event_is_skipped() -> None:
    assert len(await read(b"\xef\xbb", b"\xbf" + event(delta(content="hi")), event(delta("stop")), DONE)) == 2


async def test_a_whole_answer_to_a_request_for_a_stream_is_read(endpoint: ScriptedOpenAI) -> None:
    body = (
        b'{"id": "1", "model": "m", "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}, "choices": '
        b'[{"message": {"role": "assistant", "content": "<think>hm</think>hi"}, "finish_reason": "stop"}]}'
    )
    (chunk,) = await read(body, headers=JSON)
    choice = chunk["choices"][0]
    assert (choice["delta"]["content"], choice["delta"]["kept"]["reasoning_content"]) == ("hi", "hm")
    assert (choice["finish_reason"], chunk["usage"]["total_tokens"]) == ("stop", 3)


async def test_an_empty_reason_is_no_end() -> None:
    with pytest.raises(Exception, match="broke off"):
        await read(event(delta("", content="hi")))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", ["<think>hm</think>\n42", "hm</think>42", "◁think▷hm◁/think▷42"])
async def test_thinking_in_the_answer_is_never_sent_again(endpoint: ScriptedOpenAI, way: str, text: str) -> None:
    endpoint.script(Text(text), Text("ok"))
    model = build(endpoint)
    answer = await ask(model, HELLO, way)
    await ask(model, [*HELLO, answer, *HELLO], way)
    assert endpoint.requests[1]["messages"][1] == {"role": "assistant", "content": "42"}
    if "hm</think>42" != text or "invoke" in way:  # what was streamed before a lone tag is taken out behind the wire
        assert (answer.text, answer.additional_kwargs["reasoning_content"]) == ("42", "hm")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("fields", "returned"),
    [
        ({"reasoning_content": "hm"}, {"reasoning_content": "hm"}),
        ({"reasoning": "hm"}, {"reasoning": "hm"}),
        (
            {
                "reasoning": "hm",
                "reasoning_details": [{"type": "reasoning.text", "text": "hm", "format": "f", "index": 0}],
            },
            {"reasoning_details": [{"type": "reasoning.text", "text": "hm", "format": "f", "index": 0}]},
        ),
    ],
)
async def test_thoughts_go_back_in_their_form_to_the_model_that_had_them(
    endpoint: ScriptedOpenAI, way: str, fields: dict[str, Any], returned: dict[str, Any]
) -> None:
    reply = {**fields, "content": "42"}
    endpoint.script(whole(reply) if "invoke" in way else streamed(reply), Text("ok"), Text("ok"))
    answer = await ask(build(endpoint), HELLO, way)
    assert answer.additional_kwargs["reasoning_content"] == "hm"
    await ask(build(endpoint), [*HELLO, answer, *HELLO], way)
    await ask(build(endpoint, model="another"), [*HELLO, answer, *HELLO], way)
    own, other = [request["messages"][1] for request in endpoint.requests[1:]]
    assert own == {"role": "assistant", "content": "42", **returned}
    assert other == {"role": "assistant", "content": "42"}


async def test_details_are_joined_as_they_came(endpoint: ScriptedOpenAI) -> None:
    common = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
    encrypted = {"type": "reasoning.encrypted", "data": "zz", "id": "rs_1", "format": "openai-responses-v1", "index": 1}
    endpoint.script(
        streamed(
            {"reasoning": "he", "reasoning_details": [{**common, "text": "he"}]},
            {"reasoning": "hm", "reasoning_details": [{**common, "text": "hm"}]},
            {"reasoning_details": [{**common, "signature": "sig"}]},
            {"reasoning_details": [encrypted]},
            {"content": "42"},
        ),
        Text("ok"),
    )
    model = build(endpoint)
    answer = await ask(model, HELLO, "astream")
    await ask(model, [*HELLO, answer, *HELLO], "astream")
    details = endpoint.requests[1]["messages"][1]["reasoning_details"]
    assert details == [{**common, "text": "hehm", "signature": "sig"}, encrypted]


async def test_bookkeeping_stays_off_the_wire(endpoint: ScriptedOpenAI) -> None:
    endpoint.script(Text("ok"))
    messages = [
        HumanMessage(["plain", {"type": "text", "text": "block", "extra": 1}], name="loop_warning"),
        AIMessage(
            "",
            name="agent",
            tool_calls=[{"name": "", "args": {}, "id": "c"}, {"name": "x" * 80, "args": {}, "id": "d"}],
        ),
    ]
    await build(endpoint).ainvoke(messages)
    human, answer = endpoint.requests[0]["messages"]
    assert human == {"role": "user", "content": "plain\nblock"}
    assert answer["content"] == ""
    assert "name" not in answer
    assert [call["function"]["name"] for call in answer["tool_calls"]] == ["unknown_tool", "x" * 64]


async def test_a_refusal_that_is_streamed_is_known_as_one(endpoint: ScriptedOpenAI) -> None:
    endpoint.script(RawChunks([delta(refusal="I can"), delta(refusal="not."), delta("stop")]))
    answer = await ask(build(endpoint), HELLO, "astream")
    assert answer.additional_kwargs["refusal"] == "I cannot."
