from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from langchain_core.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelError,
    ModelInvalidRequestError,
    ModelRateLimitError,
)
from langchain_core.load import dumps
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from tests.support.scripted_responses import Cut, Events, HttpError, Response, ScriptedResponses, completed

from deerflow.models.failures import classify
from deerflow.models.openai_codex_provider import CodexChatModel

SECRET = "very-secret-token"


@pytest.fixture
def endpoint() -> Iterator[ScriptedResponses]:
    with ScriptedResponses() as server:
        yield server


@pytest.fixture
def auth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "auth.json"
    path.write_text(json.dumps({"tokens": {"access_token": SECRET, "account_id": "acc-1"}}))
    monkeypatch.setenv("CODEX_AUTH_PATH", str(path))
    return path


@pytest.fixture
def model(endpoint: ScriptedResponses, auth: Path) -> CodexChatModel:
    return CodexChatModel(base_url=endpoint.base_url, retry_base_delay=0)


@tool
def look(path: str) -> str:
    """Look at a file."""
    return ""


async def streamed(model: Any, messages: Any = "hi") -> tuple[AIMessageChunk, list[AIMessageChunk]]:
    chunks = [chunk async for chunk in model.astream(messages)]
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    return whole, chunks


# --- answers ---------------------------------------------------------------------------------------------------------


async def test_text_arrives_as_it_is_written(endpoint: ScriptedResponses, model: CodexChatModel) -> None:
    endpoint.script(Response("Hello, wide world!"))
    whole, chunks = await streamed(model)
    assert whole.content == "Hello, wide world!"
    assert len([chunk for chunk in chunks if chunk.content]) > 2


async def test_text_thoughts_and_calls_arrive_streamed_and_whole(
    endpoint: ScriptedResponses, model: CodexChatModel
) -> None:
    response = Response("Text.", (("look", '{"path": "a"}'), ("look", '{"path": "b"}')), "Hm.")
    endpoint.script(response, response)
    whole, _ = await streamed(model)
    answer = await model.ainvoke("hi")
    for message in (whole, answer):
        assert message.text == "Text."
        assert message.additional_kwargs["reasoning_content"] == "Hm."
        assert [call["args"] for call in message.tool_calls] == [{"path": "a"}, {"path": "b"}]
        assert len({call["id"] for call in message.tool_calls}) == 2
        assert message.response_metadata["finish_reason"] == "tool_calls"


async def test_usage_is_reported_with_cached_and_reasoning_tokens(
    endpoint: ScriptedResponses, model: CodexChatModel
) -> None:
    endpoint.script(Response("x"), Response("x"))
    whole, _ = await streamed(model)
    result = await model.agenerate([[HumanMessage("hi")]])
    assert whole.usage_metadata == {
        "input_tokens": 100,
        "output_tokens": 20,
        "total_tokens": 120,
        "input_token_details": {"cache_read": 60},
        "output_token_details": {"reasoning": 8},
    }
    assert result.llm_output is not None
    assert whole.response_metadata["model_name"] == "gpt-scripted"


@pytest.mark.parametrize("broken", ['{"path": "a', '{"path": ["x"', "not json", '{"a": 1}}', '{"a": "\\'])
async def test_broken_arguments_are_never_completed_into_a_call(
    endpoint: ScriptedResponses, model: CodexChatModel, broken: str
) -> None:
    endpoint.script(Response(calls=(("look", broken), ("look", '{"path": "ok"}'))))
    whole, _ = await streamed(model)
    assert [call["args"] for call in whole.tool_calls] == [{"path": "ok"}]
    (invalid,) = whole.invalid_tool_calls
    assert invalid["name"] == "look"
    assert (invalid["args"] or "").startswith(broken)


async def test_an_answer_cut_by_its_limit_says_so(endpoint: ScriptedResponses, model: CodexChatModel) -> None:
    endpoint.script(Response("half", status="incomplete"))
    whole, _ = await streamed(model)
    assert whole.response_metadata["finish_reason"] == "length"


async def test_noise_in_the_stream_is_skipped(endpoint: ScriptedResponses, model: CodexChatModel) -> None:
    delta = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "ok"}
    noise: tuple[Any, ...] = (": comment", {"type": "response.new_kind"})
    endpoint.script(Events((*noise, delta, completed([]), "data: [DONE]")))
    whole, _ = await streamed(model)
    assert whole.text == "ok"


# --- requests --------------------------------------------------------------------------------------------------------


async def test_a_conversation_becomes_instructions_and_input(
    endpoint: ScriptedResponses, model: CodexChatModel
) -> None:
    endpoint.script(Response("ok"))
    call = {"name": "look", "args": {"path": "ä"}, "id": "c1", "type": "tool_call"}
    await model.bind_tools([look]).ainvoke(
        [
            SystemMessage("Rules."),
            HumanMessage("hi"),
            AIMessage("let me", tool_calls=[call]),
            ToolMessage("result", tool_call_id="c1"),
            SystemMessage("More."),
        ]
    )
    body = endpoint.requests[0]
    assert body["instructions"] == "Rules.\n\nMore."
    assert body["input"] == [
        {"type": "message", "role": "user", "content": "hi"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "let me", "annotations": []}],
        },
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"path": "ä"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "result"},
    ]
    (sent_tool,) = body["tools"]
    assert (sent_tool["type"], sent_tool["name"], sent_tool["parameters"]["required"]) == ("function", "look", ["path"])
    assert (body["store"], body["stream"], body["model"], body["tool_choice"]) == (False, True, "gpt-5.4", "auto")
    assert body["reasoning"] == {"effort": "medium", "summary": "detailed"}


async def test_without_system_message_there_are_default_instructions(
    endpoint: ScriptedResponses, model: CodexChatModel
) -> None:
    endpoint.script(Response("ok"))
    await model.ainvoke("hi")
    assert "helpful assistant" in endpoint.requests[0]["instructions"]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "image", "base64": "AAAA", "mime_type": "image/png"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        {"type": "image", "url": "data:image/png;base64,AAAA"},
    ],
)
@pytest.mark.parametrize("in_tool_result", [False, True])
async def test_images_are_sent_as_images(
    endpoint: ScriptedResponses, model: CodexChatModel, block: dict[str, Any], in_tool_result: bool
) -> None:
    endpoint.script(Response("ok"))
    content: list[Any] = [{"type": "text", "text": "see"}, block]
    message = ToolMessage(content, tool_call_id="c") if in_tool_result else HumanMessage(content)
    await model.ainvoke([message])
    (item,) = endpoint.requests[0]["input"]
    parts = item["output"] if in_tool_result else item["content"]
    assert parts == [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
    ]


async def test_a_broken_call_in_the_history_keeps_its_result(
    endpoint: ScriptedResponses, model: CodexChatModel
) -> None:
    endpoint.script(Response("ok"))
    invalid = {"name": "look", "args": "{oops", "id": "c1", "error": "bad", "type": "invalid_tool_call"}
    await model.ainvoke([AIMessage("", invalid_tool_calls=[invalid]), ToolMessage("Error", tool_call_id="c1")])
    assert [item["type"] for item in endpoint.requests[0]["input"]] == ["function_call", "function_call_output"]


async def test_effort_none_switches_reasoning_off(endpoint: ScriptedResponses, auth: Path) -> None:
    endpoint.script(Response("ok"))
    await CodexChatModel(base_url=endpoint.base_url, reasoning_effort="none", access_token="t").ainvoke("hi")
    assert endpoint.requests[0]["reasoning"] == {"effort": "none"}


@pytest.mark.parametrize(
    ("choice", "sent"),
    [("any", "required"), ("look", {"type": "function", "name": "look"}), (None, "auto"), ("none", "none")],
)
async def test_tool_choice_is_translated(
    endpoint: ScriptedResponses, model: CodexChatModel, choice: str | None, sent: Any
) -> None:
    endpoint.script(Response("ok"))
    await model.bind_tools([look], tool_choice=choice).ainvoke("hi")
    assert endpoint.requests[0]["tool_choice"] == sent


# --- sign-in ---------------------------------------------------------------------------------------------------------


async def test_the_sign_in_is_sent(endpoint: ScriptedResponses, model: CodexChatModel) -> None:
    endpoint.script(Response("ok"))
    await model.ainvoke("hi")
    assert endpoint.headers[0]["authorization"] == f"Bearer {SECRET}"
    assert endpoint.headers[0]["chatgpt-account-id"] == "acc-1"
    assert endpoint.paths == ["/responses"]


def test_without_a_sign_in_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CODEX_AUTH_PATH", str(tmp_path / "none.json"))
    with pytest.raises(ValueError, match="codex login"):
        CodexChatModel()


async def test_a_renewed_sign_in_is_taken_over_after_a_401(
    endpoint: ScriptedResponses, model: CodexChatModel, auth: Path
) -> None:
    auth.write_text(json.dumps({"tokens": {"access_token": "renewed", "account_id": "acc-2"}}))
    endpoint.script(HttpError(401), Response("ok"))
    assert (await model.ainvoke("hi")).text == "ok"
    assert endpoint.headers[1]["authorization"] == "Bearer renewed"
    assert endpoint.headers[1]["chatgpt-account-id"] == "acc-2"


async def test_an_unchanged_sign_in_is_not_tried_twice(endpoint: ScriptedResponses, model: CodexChatModel) -> None:
    endpoint.script(HttpError(401, {"detail": "expired"}))
    with pytest.raises(ModelAuthenticationError, match="401"):
        await model.ainvoke("hi")
    assert len(endpoint.requests) == 1


def test_the_token_never_shows(model: CodexChatModel) -> None:
    assert SECRET not in dumps(model)
    assert SECRET not in repr(model)
    assert SECRET not in str(model._get_ls_params())


# --- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [HttpError(429), HttpError(500), HttpError(529), Cut(Response("x"), 1)])
async def test_passing_failures_are_retried_before_the_stream_begins(
    endpoint: ScriptedResponses, model: CodexChatModel, failure: Any
) -> None:
    endpoint.script(failure, failure, Response("ok"))
    whole, _ = await streamed(model)
    assert whole.text == "ok"
    assert len(endpoint.requests) == 3


async def test_who_listens_hears_what_the_caller_gets_and_each_piece_once(
    endpoint: ScriptedResponses, model: CodexChatModel
) -> None:
    class Heard:
        def __init__(self) -> None:
            self.texts: list[Any] = []

        async def on_llm_new_token(self, token: str, chunk: Any) -> None:
            self.texts.append(chunk.message.content)

    endpoint.script(HttpError(500), Response("Hello, wide world!", thoughts="Hm."))
    heard: Any = Heard()
    got = [chunk.message.content async for chunk in model._astream([HumanMessage("hi")], None, heard)]
    assert heard.texts == got
    assert "".join(got) == "Hello, wide world!"


@pytest.mark.parametrize(
    ("status", "kind"), [(429, ModelRateLimitError), (500, ModelAPIError), (529, ModelAPIError), (503, ModelAPIError)]
)
async def test_attempts_are_limited(
    endpoint: ScriptedResponses, model: CodexChatModel, status: int, kind: type[ModelError]
) -> None:
    endpoint.script(*[HttpError(status)] * 4)
    with pytest.raises(kind):
        await model.ainvoke("hi")
    assert len(endpoint.requests) == 3


@pytest.mark.parametrize("status", [400, 403, 404, 422])
async def test_final_failures_are_not_retried(endpoint: ScriptedResponses, model: CodexChatModel, status: int) -> None:
    endpoint.script(HttpError(status, {"detail": "the reason"}))
    with pytest.raises(openai.APIStatusError) as caught:
        await model.ainvoke("hi")
    assert classify(caught.value).detail == "the reason"
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("clean", [False, True])
async def test_a_stream_that_breaks_off_is_an_error_and_not_begun_again(
    endpoint: ScriptedResponses, model: CodexChatModel, clean: bool
) -> None:
    endpoint.script(Cut(Response("Hello, wide world!"), 4, clean))
    seen: list[str] = []
    with pytest.raises(ModelConnectionError):
        async for chunk in model.astream("hi"):
            seen.append(chunk.text)
    assert len(endpoint.requests) == 1
    assert len("".join(seen)) <= 10


async def test_a_response_that_never_completes_is_a_runtime_error(
    endpoint: ScriptedResponses, model: CodexChatModel
) -> None:
    endpoint.script(*[Events(({"type": "response.created", "response": {"id": "resp_1"}},))] * 3)
    with pytest.raises(RuntimeError, match="before the response was complete"):
        await model.ainvoke("hi")


@pytest.mark.parametrize(
    ("code", "kind", "calls"),
    [
        ("server_error", ModelAPIError, 3),
        ("rate_limit_exceeded", ModelRateLimitError, 3),
        ("context_length_exceeded", ModelInvalidRequestError, 1),
    ],
)
@pytest.mark.parametrize("as_response", [True, False])
async def test_failures_inside_a_stream_are_classified(
    endpoint: ScriptedResponses, model: CodexChatModel, code: str, kind: type[ModelError], calls: int, as_response: bool
) -> None:
    error = {"code": code, "message": "the reason"}
    event: dict[str, Any] = {"type": "error", **error}
    if as_response:
        event = {"type": "response.failed", "response": {"error": error}}
    endpoint.script(*[Events((event,))] * calls)
    with pytest.raises(kind, match="the reason"):
        await model.ainvoke("hi")
    assert len(endpoint.requests) == calls
