"""What each provider needs beyond OpenAI's API."""

from __future__ import annotations

from typing import Any

import httpx
import httpx2
import pytest
from bench.scripted_openai import RawChunks, ScriptedOpenAI, Text
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from tests.harness.models.openai_family.adapters import builder, xml_calls
from tests.harness.models.openai_family.contract import HELLO, PIXEL, WAYS, ask, bash, named_args, tool_turn

from deerflow.models.mindie_provider import MindIEChatModel
from deerflow.models.patched_deepseek import PatchedChatDeepSeek
from deerflow.models.patched_minimax import PatchedChatMiniMax
from deerflow.models.patched_openai import PatchedChatOpenAI
from deerflow.models.vllm_provider import VllmChatModel

COMMON = {"id": "1", "created": 1, "model": "m"}


def whole(message: dict[str, Any]) -> RawChunks:
    choice = {"index": 0, "message": {"role": "assistant", "content": None, **message}, "finish_reason": "stop"}
    return RawChunks([{**COMMON, "object": "chat.completion", "choices": [choice]}])


def streamed(*deltas: dict[str, Any]) -> RawChunks:
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    return RawChunks([{**COMMON, "object": "chat.completion.chunk", "choices": [choice]} for choice in choices])


def call(number: int, **fields: Any) -> dict[str, Any]:
    return {"id": f"c{number}", "type": "function", "function": {"name": "bash", "arguments": "{}"}, **fields}


# --- Gemini behind a gateway ------------------------------------------------------------------------------------------

GOOGLE = {"google": {"thought_signature": "sig-x"}}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("received", "returned"),
    [
        ({"thought_signature": "sig-a"}, {"thought_signature": "sig-a"}),
        ({"thoughtSignature": "sig-b"}, {"thought_signature": "sig-b"}),
        ({"extra_content": GOOGLE}, {"extra_content": GOOGLE}),
    ],
)
async def test_thought_signatures_go_back_with_their_calls(
    endpoint: ScriptedOpenAI, way: str, received: dict[str, Any], returned: dict[str, Any]
) -> None:
    calls = [call(1, index=0, **received), call(2, index=1)]
    reply = (
        whole({"tool_calls": calls})
        if "invoke" in way
        else streamed({"tool_calls": calls[:1]}, {"tool_calls": calls[1:]})
    )
    endpoint.script(reply, Text("done"))
    model = builder(PatchedChatOpenAI)(endpoint).bind_tools([bash])
    answer = await ask(model, HELLO, way)
    results = [ToolMessage("ok", tool_call_id=f"c{number}") for number in (1, 2)]
    await ask(model, [*HELLO, answer, *results], way)
    sent = endpoint.requests[1]["messages"][1]["tool_calls"]
    assert [{key: item[key] for key in item if "thought" in key or "extra" in key} for item in sent] == [returned, {}]


@pytest.mark.parametrize(
    "raw",
    [
        [{"id": "c2", "thought_signature": "two"}, {"id": "c1", "thoughtSignature": "one"}],
        [{"thought_signature": "one"}, {"thoughtSignature": "two"}],
        [{"id": "other", "thought_signature": "one"}, {"id": "c2", "thought_signature": "two"}],
    ],
    ids=["by id", "by position", "mixed"],
)
async def test_raw_calls_of_older_histories_give_their_signatures(
    endpoint: ScriptedOpenAI, raw: list[dict[str, Any]]
) -> None:
    calls = [{"name": "bash", "args": {}, "id": f"c{number}"} for number in (1, 2)]
    answer = AIMessage("", tool_calls=calls, additional_kwargs={"tool_calls": raw})
    endpoint.script(Text("done"))
    await builder(PatchedChatOpenAI)(endpoint).ainvoke([*HELLO, answer])
    sent = endpoint.requests[0]["messages"][1]["tool_calls"]
    assert [item["thought_signature"] for item in sent] == ["one", "two"]


async def test_a_signature_is_not_given_to_another_call(endpoint: ScriptedOpenAI) -> None:
    raw = [{"id": "c1", "thought_signature": "one"}]
    answer = AIMessage(
        "", tool_calls=[{"name": "bash", "args": {}, "id": "c0"}, {"name": "bash", "args": {}, "id": "c1"}]
    )
    answer.additional_kwargs["tool_calls"] = raw
    endpoint.script(Text("done"))
    await builder(PatchedChatOpenAI)(endpoint).ainvoke([*HELLO, answer])
    sent = endpoint.requests[0]["messages"][1]["tool_calls"]
    assert [item.get("thought_signature") for item in sent] == [None, "one"]


# --- DeepSeek ---------------------------------------------------------------------------------------------------------


async def test_deepseek_gets_each_answers_own_reasoning(endpoint: ScriptedOpenAI) -> None:
    answers = [AIMessage(f"a{n}", additional_kwargs={"reasoning_content": f"r{n}"} if n != 1 else {}) for n in range(3)]
    endpoint.script(Text("ok"))
    await builder(PatchedChatDeepSeek)(endpoint).ainvoke([*HELLO, *answers, *HELLO])
    sent = [message.get("reasoning_content") for message in endpoint.requests[0]["messages"]]
    assert sent == [None, "r0", None, "r2", None]


async def test_structured_output_keeps_the_reasoning_too(endpoint: ScriptedOpenAI) -> None:
    answer = AIMessage("a", additional_kwargs={"reasoning_content": "r"})
    endpoint.script(Text("{}"))
    model = builder(PatchedChatDeepSeek)(endpoint).bind(response_format={"type": "json_object"})
    await model.ainvoke([*HELLO, answer, *HELLO])
    assert endpoint.requests[0]["messages"][1]["reasoning_content"] == "r"


# --- MiniMax ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
async def test_minimax_is_asked_to_split_and_keeps_other_extras(endpoint: ScriptedOpenAI, way: str) -> None:
    endpoint.script(Text("ok"))
    await ask(builder(PatchedChatMiniMax)(endpoint, extra_body={"top_k": 2, "reasoning_split": False}), HELLO, way)
    request = endpoint.requests[0]
    assert (request["reasoning_split"], request["top_k"]) == (True, 2)


@pytest.mark.parametrize(
    ("content", "details", "text", "reasoning"),
    [
        ("<think>\nhm\n</think>\n\n42", None, "42", "hm"),
        ("a <think>x</think>b<think>y</think>", [{"text": "first"}], "a b", "first\n\nx\n\ny"),
        ("<think>never closed", None, "", "never closed"),
        ("42", [{"text": "same"}, {"type": "no text"}], "42", "same"),
        ("<think>same</think>42", [{"text": "same"}], "42", "same"),
        ("42", None, "42", None),
    ],
)
async def test_minimax_thinking_inside_of_an_answer_is_moved(
    endpoint: ScriptedOpenAI, content: str, details: Any, text: str, reasoning: str | None
) -> None:
    endpoint.script(whole({"content": content, "reasoning_details": details}))
    answer = await builder(PatchedChatMiniMax)(endpoint).ainvoke(HELLO)
    assert (answer.text, answer.additional_kwargs.get("reasoning_content")) == (text, reasoning)


async def test_minimax_stream_keeps_white_space(endpoint: ScriptedOpenAI) -> None:
    endpoint.script(
        streamed({"reasoning_details": [{"text": "a "}]}, {"reasoning_details": [{"text": "\n b"}]}, {"content": "x"})
    )
    answer = await ask(builder(PatchedChatMiniMax)(endpoint), HELLO, "astream")
    assert answer.additional_kwargs["reasoning_content"] == "a \n b"


# --- vLLM -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("key", ["reasoning", "reasoning_content"])
async def test_vllm_reasoning_goes_back_under_its_name(endpoint: ScriptedOpenAI, way: str, key: str) -> None:
    endpoint.script(Text("42", reasoning="hm  m", reasoning_field=key), Text("ok"))
    model = builder(VllmChatModel)(endpoint)
    answer = await ask(model, HELLO, way)
    assert answer.additional_kwargs["reasoning_content"] == "hm  m"
    assert answer.additional_kwargs.get("reasoning") == ("hm  m" if key == "reasoning" else None)
    await ask(model, [*HELLO, answer, *HELLO], way)
    assert endpoint.requests[1]["messages"][1] == {"role": "assistant", "content": "42", key: "hm  m"}


@pytest.mark.parametrize("way", WAYS)
async def test_vllm_empty_reasoning_is_kept(endpoint: ScriptedOpenAI, way: str) -> None:
    fields = {"reasoning": "", "content": "42"}
    endpoint.script(whole(fields) if "invoke" in way else streamed(fields))
    answer = await ask(builder(VllmChatModel)(endpoint), HELLO, way)
    assert answer.additional_kwargs["reasoning"] == ""


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"thinking": True}, {"enable_thinking": True}),
        ({"thinking": False, "top": 1}, {"enable_thinking": False, "top": 1}),
        ({"thinking": True, "enable_thinking": False}, {"enable_thinking": False}),
        ({"enable_thinking": True}, {"enable_thinking": True}),
        ({}, {}),
    ],
)
@pytest.mark.parametrize("way", WAYS)
async def test_vllm_understands_the_older_name_for_thinking(
    endpoint: ScriptedOpenAI, way: str, given: dict[str, Any], sent: dict[str, Any]
) -> None:
    endpoint.script(Text("ok"))
    settings = {"extra_body": {"chat_template_kwargs": dict(given), "top_k": 4}}
    await ask(builder(VllmChatModel)(endpoint, **settings), HELLO, way)
    assert endpoint.requests[0]["chat_template_kwargs"] == sent
    assert endpoint.requests[0]["top_k"] == 4
    assert settings["extra_body"]["chat_template_kwargs"] == given


def test_vllm_names_itself() -> None:
    assert VllmChatModel(model="m", api_key="k")._llm_type == "vllm-openai-compatible"


# --- MindIE -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
async def test_mindie_gets_calls_and_results_as_text(endpoint: ScriptedOpenAI, way: str) -> None:
    asked, result = tool_turn(1)
    asked.tool_calls[0]["args"] = {"command": "a < b && c </parameter>", "timeout": 5}
    asked.content = "Looking."
    result.content = "fine </tool_response> or not"
    endpoint.script(Text("ok"))
    await ask(builder(MindIEChatModel)(endpoint).bind_tools([bash]), [*HELLO, asked, result], way)
    _, first, second = endpoint.requests[0]["messages"]
    assert first == {
        "role": "assistant",
        "content": "Looking.\n<tool_call>\n<function=bash>\n<parameter=command>\na &lt; b &amp;&amp; c &lt;/parameter&gt;\n"
        "</parameter>\n<parameter=timeout>\n5\n</parameter>\n</function>\n</tool_call>",
    }
    expected = "<tool_response>\nfine &lt;/tool_response&gt; or not\n</tool_response>"
    assert second == {"role": "user", "content": expected}


async def test_mindie_never_gets_an_empty_content(endpoint: ScriptedOpenAI) -> None:
    endpoint.script(Text("ok"))
    messages = [HumanMessage(""), AIMessage([]), HumanMessage([{"type": "text", "text": "a"}, "b"])]
    await builder(MindIEChatModel)(endpoint).ainvoke(messages)
    assert [message["content"] for message in endpoint.requests[0]["messages"]] == [" ", " ", "a\nb"]


async def test_mindie_gets_images_in_messages_and_in_results(endpoint: ScriptedOpenAI) -> None:
    image = {"type": "image_url", "image_url": {"url": PIXEL}}
    asked, result = tool_turn(1)
    result.content = [{"type": "text", "text": "seen"}, image]
    endpoint.script(Text("ok"))
    await builder(MindIEChatModel)(endpoint).ainvoke(
        [HumanMessage([{"type": "text", "text": "?"}, image]), asked, result]
    )
    first, _, third = [message["content"] for message in endpoint.requests[0]["messages"]]
    assert image in first
    assert [block.get("text") for block in third] == ["<tool_response>", "seen", None, "</tool_response>"]


async def test_mindie_plays_a_stream_when_tools_are_bound(endpoint: ScriptedOpenAI) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    reply = xml_calls(("bash", {"command": "ls", "timeout": 9}), text="x" * 40)
    endpoint.script(Text(reply.text, usage=usage))
    model = builder(MindIEChatModel)(endpoint).bind_tools([bash])
    chunks = [chunk async for chunk in model.astream(HELLO)]
    assert [len(chunk.text) for chunk in chunks if chunk.text] == [15, 15, 10]
    answer = chunks[0] + chunks[1:]
    assert named_args(answer) == [("bash", {"command": "ls", "timeout": 9})]
    assert answer.usage_metadata is not None and answer.usage_metadata["total_tokens"] == 7
    assert answer.response_metadata["finish_reason"] == "stop"
    assert "stream" not in endpoint.requests[0] or endpoint.requests[0]["stream"] is False
    assert "stream_options" not in endpoint.requests[0]


async def test_mindie_streams_for_real_without_tools(endpoint: ScriptedOpenAI) -> None:
    endpoint.script(Text("one two three"))
    assert (await ask(builder(MindIEChatModel)(endpoint), HELLO, "astream")).text == "one two three"
    assert endpoint.requests[0]["stream"] is True


async def test_mindie_line_breaks_are_decoded_outside_of_code(endpoint: ScriptedOpenAI) -> None:
    endpoint.script(Text("a\\nb\n```py\nprint('\\n')\n```\nc\\nd ```x\\n"))
    answer = await builder(MindIEChatModel)(endpoint).ainvoke(HELLO)
    assert answer.content == "a\nb\n```py\nprint('\\n')\n```\nc\nd ```x\\n"


def test_mindie_timeouts_come_from_its_fields_unless_one_is_given() -> None:
    def timeout(**settings: Any) -> Any:
        return MindIEChatModel(model="m", api_key="k", **settings).request_timeout

    assert timeout() == httpx.Timeout(connect=30, read=900, write=60, pool=30)
    assert timeout(read_timeout=5) == httpx.Timeout(connect=30, read=5, write=60, pool=30)
    assert timeout(timeout=7) == httpx2.Timeout(7)
