from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.exceptions import (
    ContextOverflowError,
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
from tests.support.scripted_anthropic import Cut, Reply, ScriptedAnthropic, error

from deerflow.models.claude_provider import ClaudeChatModel, with_legal_calls
from deerflow.models.failures import ErrorKind, classify

MODEL = "claude-haiku-4-5"
MARKER = {"type": "ephemeral"}
Make = Callable[..., ClaudeChatModel]


@pytest.fixture
def endpoint() -> Iterator[ScriptedAnthropic]:
    with ScriptedAnthropic() as server:
        yield server


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_BILLING_HEADER",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR",
        "CLAUDE_CODE_CREDENTIALS_PATH",
        "LANGSMITH_GATEWAY",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def make(endpoint: ScriptedAnthropic) -> Make:
    def build(**settings: Any) -> ClaudeChatModel:
        defaults = {"model": MODEL, "api_key": "sk-test", "retry_base_delay": 0, "base_url": endpoint.base_url}
        return ClaudeChatModel(**{**defaults, **settings})

    # The first one imports the SDK's HTTP client; models are made off the event loop, tests make them on it.
    build()
    return build


@tool
def look(path: str) -> str:
    """Look at a file."""
    return ""


@tool
def keep(text: str) -> str:
    """Keep a text."""
    return ""


def call(name: str, call_id: str, **arguments: Any) -> Any:
    return {"name": name, "args": arguments, "id": call_id, "type": "tool_call"}


async def streamed(model: Any, messages: Any = "hi") -> AIMessageChunk:
    chunks = [chunk async for chunk in model.astream(messages)]
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    return whole


def markers(value: Any, path: str = "") -> list[str]:
    """Where cache markers stand in a request."""
    if isinstance(value, dict):
        own = [path] if "cache_control" in value else []
        return own + [found for key, item in value.items() for found in markers(item, f"{path}.{key}")]
    if isinstance(value, list):
        return [found for index, item in enumerate(value) for found in markers(item, f"{path}[{index}]")]
    return []


def without_markers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_markers(item) for key, item in value.items() if key != "cache_control"}
    return [without_markers(item) for item in value] if isinstance(value, list) else value


# --- answers ---------------------------------------------------------------------------------------------------------


async def test_text_thoughts_and_calls_arrive_streamed_and_whole(endpoint: ScriptedAnthropic, make: Make) -> None:
    reply = Reply("Let me see.", (("look", {"path": "a"}), ("keep", {"text": "b"})), "Hm, a file.")
    endpoint.script(reply, reply)
    bound = make().bind_tools([look, keep])
    for message in (await streamed(bound), await bound.ainvoke("hi")):
        assert message.text == "Let me see."
        assert [(c["name"], c["args"]) for c in message.tool_calls] == [
            ("look", {"path": "a"}),
            ("keep", {"text": "b"}),
        ]
        (thought,) = [block for block in message.content if block["type"] == "thinking"]  # type: ignore[index]
        assert (thought["thinking"], thought["signature"]) == ("Hm, a file.", "c2lnbmF0dXJl")  # type: ignore[index]


async def test_usage_counts_cached_tokens_once(endpoint: ScriptedAnthropic, make: Make) -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 90, "output_tokens": 7}
    endpoint.script(Reply("x", usage=usage))
    metadata = (await streamed(make())).usage_metadata
    assert metadata is not None
    assert (metadata["input_tokens"], metadata["output_tokens"], metadata["total_tokens"]) == (1000, 7, 1007)
    assert metadata.get("input_token_details") == {"cache_read": 900, "cache_creation": 90}


async def test_thoughts_are_replayed_with_their_signature(endpoint: ScriptedAnthropic, make: Make) -> None:
    endpoint.script(Reply("", (("look", {"path": "a"}),), "Hm."), Reply("done"))
    bound = make(thinking={"type": "enabled"}, max_tokens=4000).bind_tools([look])
    question = HumanMessage("hi")
    answer = await streamed(bound, [question])
    await streamed(bound, [question, answer, ToolMessage("ok", tool_call_id=answer.tool_calls[0]["id"] or "")])
    first = endpoint.requests[1]["messages"][1]["content"][0]
    assert {key: first[key] for key in ("type", "thinking", "signature")} == {
        "type": "thinking",
        "thinking": "Hm.",
        "signature": "c2lnbmF0dXJl",
    }
    assert endpoint.requests[1]["thinking"]["type"] == "enabled"


class CuttingAnthropic(ScriptedAnthropic):
    """Reaches its output limit before the last piece of the last call's arguments."""

    def _events(self, reply: Reply, body: dict[str, Any]) -> list[Any]:
        events = list(super()._events(reply, body))
        last = max(i for i, event in enumerate(events) if "partial_json" in (event.get("delta") or {}))
        return events[:last] + events[last + 1 :]


async def test_arguments_cut_by_the_output_limit_are_no_call(make: Make) -> None:
    with CuttingAnthropic() as endpoint:
        endpoint.script(Reply("", (("look", {"path": "a"}), ("keep", {"text": "a text of many words"}))))
        message = await streamed(make(base_url=endpoint.base_url).bind_tools([look, keep]))
    assert [sound["args"] for sound in message.tool_calls] == [{"path": "a"}]
    assert [broken["name"] for broken in message.invalid_tool_calls] == ["keep"]


# --- prompt cache ----------------------------------------------------------------------------------------------------


def conversation(turns: int) -> list[Any]:
    messages: list[Any] = [SystemMessage("You are helpful."), HumanMessage("first question")]
    for turn in range(turns):
        messages.append(
            AIMessage(
                "thinking aloud", tool_calls=[call("look", f"c{turn}a", path="x"), call("look", f"c{turn}b", path="y")]
            )
        )
        messages.append(ToolMessage(f"result {turn}", tool_call_id=f"c{turn}a"))
        messages.append(ToolMessage(f"other {turn}", tool_call_id=f"c{turn}b"))
    return messages


async def test_markers_stand_at_tools_system_and_the_two_newest_user_turns(
    endpoint: ScriptedAnthropic, make: Make
) -> None:
    endpoint.script(Reply("ok"))
    await make().bind_tools([look, keep]).ainvoke(conversation(3))
    assert sorted(markers(endpoint.requests[0])) == [
        ".messages[4].content[1]",
        ".messages[6].content[1]",
        ".system[0]",
        ".tools[1]",
    ]


@pytest.mark.parametrize("size", [0, 1, 3, 50])
@pytest.mark.parametrize("turns", [0, 1, 12])
@pytest.mark.parametrize("tools", [[], [look, keep]])
async def test_there_are_never_more_than_four_markers(
    endpoint: ScriptedAnthropic, make: Make, size: int, turns: int, tools: list[Any]
) -> None:
    endpoint.script(Reply("ok"))
    model = make(prompt_cache_size=size)
    await (model.bind_tools(tools) if tools else model).ainvoke(conversation(turns))
    found = markers(endpoint.requests[0])
    assert 1 <= len(found) <= 4
    assert len([path for path in found if path.startswith(".messages")]) <= size


async def test_apart_from_markers_each_request_begins_with_the_one_before(
    endpoint: ScriptedAnthropic, make: Make
) -> None:
    bound = make().bind_tools([look, keep])
    endpoint.script(*[Reply("ok")] * 6)
    for turns in range(6):
        await bound.ainvoke(conversation(turns))
    for before, after in zip(endpoint.requests, endpoint.requests[1:], strict=False):
        before, after = without_markers(before), without_markers(after)
        assert json.dumps(after["messages"]).startswith(json.dumps(before["messages"])[:-1])
        assert (before["system"], before["tools"]) == (after["system"], after["tools"])


async def test_what_one_request_writes_the_next_one_reads(endpoint: ScriptedAnthropic, make: Make) -> None:
    bound = make().bind_tools([look])
    endpoint.script(Reply("ok"), Reply("ok"))
    await bound.ainvoke(conversation(2))
    await bound.ainvoke(conversation(3))
    newest = max(path for path in markers(endpoint.requests[0]) if path.startswith(".messages"))
    assert newest in markers(endpoint.requests[1])


async def test_reminders_at_the_end_are_not_cached(endpoint: ScriptedAnthropic, make: Make) -> None:
    endpoint.script(Reply("ok"))
    reminder = HumanMessage("do not forget", name="todo_reminder")
    await make().bind_tools([look]).ainvoke([*conversation(1), reminder])
    last = endpoint.requests[0]["messages"][-1]["content"]
    assert last[-1] == {"type": "text", "text": "do not forget"}
    assert last[-2]["cache_control"] == MARKER


async def test_a_stored_message_with_a_name_is_cached(endpoint: ScriptedAnthropic, make: Make) -> None:
    endpoint.script(Reply("ok"))
    await make().ainvoke([SystemMessage("s"), HumanMessage("hi", name="user-input", id="m1")])
    assert (
        markers(endpoint.requests[0]) == [".system[0]", ".messages[0].content[0]"]
        or len(markers(endpoint.requests[0])) == 2
    )


async def test_caching_changes_neither_history_nor_tools(endpoint: ScriptedAnthropic, make: Make) -> None:
    endpoint.script(Reply("ok"))
    messages: list[Any] = [
        SystemMessage([{"type": "text", "text": "s"}]),
        HumanMessage([{"type": "text", "text": "q"}]),
    ]
    before = copy.deepcopy(messages)
    bound: Any = make().bind_tools([look])
    tools = copy.deepcopy(bound.kwargs["tools"])
    await bound.ainvoke(messages)
    assert messages == before
    assert bound.kwargs["tools"] == tools


async def test_caching_can_be_switched_off(endpoint: ScriptedAnthropic, make: Make) -> None:
    endpoint.script(Reply("ok"))
    await make(enable_prompt_caching=False).bind_tools([look]).ainvoke(conversation(2))
    assert markers(endpoint.requests[0]) == []


async def test_markers_that_are_already_there_are_respected(endpoint: ScriptedAnthropic, make: Make) -> None:
    endpoint.script(Reply("ok"))
    await make().ainvoke([HumanMessage([{"type": "text", "text": "q", "cache_control": MARKER}]), HumanMessage("more")])
    assert markers(endpoint.requests[0]) == [".messages[0].content[0]"]


async def test_thoughts_and_empty_texts_get_no_marker(endpoint: ScriptedAnthropic, make: Make) -> None:
    endpoint.script(Reply("ok"))
    await make().ainvoke([SystemMessage(""), HumanMessage("")])
    assert markers(endpoint.requests[0]) == []


# --- thinking --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("max_tokens", "budget"), [(10_000, 8000), (8192, 6553), (1000, 1024)])
async def test_thinking_without_a_budget_gets_four_fifths(
    endpoint: ScriptedAnthropic, make: Make, max_tokens: int, budget: int
) -> None:
    endpoint.script(Reply("ok"))
    await make(thinking={"type": "enabled"}, max_tokens=max_tokens).ainvoke("hi")
    assert endpoint.requests[0]["thinking"] == {"type": "enabled", "budget_tokens": budget}


async def test_a_given_budget_and_the_switch_are_respected(endpoint: ScriptedAnthropic, make: Make) -> None:
    endpoint.script(Reply("ok"), Reply("ok"))
    await make(thinking={"type": "enabled", "budget_tokens": 2000}).ainvoke("hi")
    await make(thinking={"type": "enabled"}, auto_thinking_budget=False).ainvoke("hi")
    assert [request["thinking"].get("budget_tokens") for request in endpoint.requests] == [2000, None]


async def test_thinking_drops_sampling_that_the_api_refuses_with_it(endpoint: ScriptedAnthropic, make: Make) -> None:
    endpoint.script(Reply("ok"), Reply("ok"))
    await make(thinking={"type": "enabled"}, temperature=0.2, top_k=3).ainvoke("hi")
    await make(temperature=0.2, top_k=3).ainvoke("hi")
    assert not {"temperature", "top_k"} & endpoint.requests[0].keys()
    assert (endpoint.requests[1]["temperature"], endpoint.requests[1]["top_k"]) == (0.2, 3)


async def test_a_tool_loop_begun_without_thoughts_is_finished_without(endpoint: ScriptedAnthropic, make: Make) -> None:
    endpoint.script(Reply("ok"), Reply("ok"))
    model = make(thinking={"type": "enabled"}).bind_tools([look])
    loop = [
        HumanMessage("q"),
        AIMessage("", tool_calls=[call("look", "c1", path="a")]),
        ToolMessage("r", tool_call_id="c1"),
    ]
    await model.ainvoke(loop)
    await model.ainvoke([*loop, AIMessage("done"), HumanMessage("next")])
    assert "thinking" not in endpoint.requests[0]
    assert endpoint.requests[1]["thinking"]["type"] == "enabled"


async def test_thoughts_without_a_signature_are_left_out(endpoint: ScriptedAnthropic, make: Make) -> None:
    endpoint.script(Reply("ok"))
    foreign = AIMessage([{"type": "thinking", "thinking": "cut"}, {"type": "text", "text": "answer"}])
    await make().ainvoke([HumanMessage("q"), foreign, HumanMessage("next")])
    assert [block["type"] for block in endpoint.requests[0]["messages"][1]["content"]] == ["text"]


async def test_models_that_always_think_are_not_told_not_to(endpoint: ScriptedAnthropic, make: Make) -> None:
    endpoint.script(Reply("ok"))
    await make(model="claude-sonnet-5-5", thinking={"type": "disabled"}).ainvoke("hi")
    assert "thinking" not in endpoint.requests[0]


# --- system messages -------------------------------------------------------------------------------------------------


async def test_a_late_system_message_does_not_touch_the_prefix(endpoint: ScriptedAnthropic, make: Make) -> None:
    endpoint.script(Reply("ok"))
    history = [
        SystemMessage("Rules."),
        HumanMessage("q"),
        AIMessage("a"),
        SystemMessage("Careful now."),
        HumanMessage("next"),
    ]
    await make().ainvoke(history)
    request = without_markers(endpoint.requests[0])
    assert request["system"] == [{"type": "text", "text": "Rules."}]
    assert [message["role"] for message in request["messages"]] == ["user", "assistant", "user"]
    assert "Careful now." in request["messages"][2]["content"][0]["text"]


async def test_several_leading_system_messages_are_one_prompt(endpoint: ScriptedAnthropic, make: Make) -> None:
    endpoint.script(Reply("ok"))
    await make().ainvoke([SystemMessage("One."), SystemMessage("Two."), HumanMessage("q")])
    assert [block["text"] for block in endpoint.requests[0]["system"]] == ["One.", "Two."]


@pytest.mark.parametrize("model", [MODEL, "claude-sonnet-5"])
@pytest.mark.parametrize("position", range(1, 7))
async def test_a_system_message_may_stand_anywhere(
    endpoint: ScriptedAnthropic, make: Make, model: str, position: int
) -> None:
    endpoint.script(Reply("ok"))
    history: list[Any] = [
        SystemMessage("Rules."),
        HumanMessage("q"),
        HumanMessage("q2"),
        AIMessage("a"),
        HumanMessage("b"),
        AIMessage("c"),
        HumanMessage("d"),
    ]
    history.insert(position, SystemMessage("Late."))
    await make(model=model).ainvoke(history)
    assert json.dumps(endpoint.requests[0]).count("Late.") == 1
    if position > 1:
        assert "Late." not in json.dumps(endpoint.requests[0]["system"])


async def test_a_model_that_takes_late_system_messages_gets_them_in_place(
    endpoint: ScriptedAnthropic, make: Make
) -> None:
    endpoint.script(Reply("ok"))
    await make(model="claude-sonnet-5").ainvoke([SystemMessage("Rules."), HumanMessage("q"), SystemMessage("Late.")])
    assert [message["role"] for message in endpoint.requests[0]["messages"]] == ["user", "system"]


# --- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "failure", [error(429, "rate_limit_error"), error(500, "api_error"), error(529, "overloaded_error")]
)
@pytest.mark.parametrize("streaming", [False, True])
async def test_passing_failures_are_retried(
    endpoint: ScriptedAnthropic, make: Make, failure: Any, streaming: bool
) -> None:
    endpoint.script(failure, failure, Reply("ok"))
    answer = await (streamed(make()) if streaming else make().ainvoke("hi"))
    assert answer.text == "ok"
    assert len(endpoint.requests) == 3


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(("settings", "calls"), [({}, 3), ({"retry_max_attempts": 1}, 1), ({"max_retries": 1}, 2)])
async def test_there_is_one_layer_of_retries(
    endpoint: ScriptedAnthropic, make: Make, settings: dict[str, int], calls: int, streaming: bool
) -> None:
    endpoint.script(*[error(529, "overloaded_error")] * 9)
    model = make(**settings)
    with pytest.raises(ModelAPIError):
        await (streamed(model) if streaming else model.ainvoke("hi"))
    assert len(endpoint.requests) == calls


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (error(400, "invalid_request_error", "the reason"), ModelInvalidRequestError),
        (error(401, "authentication_error", "the reason"), ModelAuthenticationError),
        (error(400, "invalid_request_error", "the reason: prompt is too long"), ContextOverflowError),
    ],
)
@pytest.mark.parametrize("streaming", [False, True])
async def test_final_failures_are_told_at_once(
    endpoint: ScriptedAnthropic, make: Make, failure: Any, kind: type[ModelError], streaming: bool
) -> None:
    endpoint.script(failure)
    with pytest.raises(kind, match="the reason"):
        await (streamed(make()) if streaming else make().ainvoke("hi"))
    assert len(endpoint.requests) == 1


async def test_the_wait_that_the_provider_asks_for_wins(endpoint: ScriptedAnthropic, make: Make) -> None:
    endpoint.script(error(429, "rate_limit_error", retry_after="0"), Reply("ok"))
    answer = await make(retry_base_delay=3600).ainvoke("hi")
    assert answer.text == "ok"


async def test_a_provider_that_asks_for_minutes_is_not_waited_for(endpoint: ScriptedAnthropic, make: Make) -> None:
    endpoint.script(error(429, "rate_limit_error", retry_after="600"))
    with pytest.raises(ModelRateLimitError):
        await make().ainvoke("hi")
    assert len(endpoint.requests) == 1


BEGUN = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: message_start\r\n"
    b'data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],'
    b'"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}\r\n\r\n'
)


@pytest.mark.parametrize("sent", [b"", BEGUN], ids=["before the first byte", "in mid-stream"])
async def test_a_silent_endpoint_is_given_up_and_the_setting_named(make: Make, sent: bytes) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    address = "http://{}:{}".format(*server.sockets[0].getsockname())
    model = make(base_url=address, timeout=0.3, retry_max_attempts=1)
    with pytest.raises(Exception) as caught:
        await streamed(model)
    server.close()
    failure = classify(caught.value)
    assert failure.kind is ErrorKind.TRANSIENT
    assert "sent nothing for 0.3 seconds (models[].timeout" in failure.detail


def test_less_than_one_attempt_is_refused(make: Make) -> None:
    with pytest.raises(ValueError, match="retry_max_attempts"):
        make(retry_max_attempts=0)


@pytest.mark.parametrize("after", [0, 1, 2])
async def test_a_stream_that_fails_before_its_first_word_is_begun_again(
    endpoint: ScriptedAnthropic, make: Make, after: int
) -> None:
    endpoint.script(
        Cut(Reply("lost"), after, error="overloaded_error"), Cut(Reply("lost"), after), Reply("whole answer")
    )
    whole = await streamed(make())
    assert whole.text == "whole answer"
    assert whole.response_metadata["model_name"] == MODEL
    assert len(endpoint.requests) == 3


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ({}, ModelConnectionError),
        ({"clean": True}, ModelConnectionError),
        ({"error": "overloaded_error"}, ModelAPIError),
        ({"error": "api_error"}, ModelAPIError),
    ],
)
async def test_a_stream_that_fails_in_the_middle_is_an_error_and_repeats_nothing(
    endpoint: ScriptedAnthropic, make: Make, how: dict[str, Any], kind: type[ModelError]
) -> None:
    endpoint.script(Cut(Reply("Hello, world"), 3, **how))
    seen: list[str] = []
    with pytest.raises(kind) as caught:
        async for chunk in make().astream("hi"):
            seen.append(chunk.text)
    assert "".join(seen) == "Hello,"
    assert len(endpoint.requests) == 1
    assert isinstance(caught.value, ModelError)
    assert caught.value.is_retryable


# --- credentials -----------------------------------------------------------------------------------------------------


def test_without_any_credential_it_says_what_to_do(make: Make) -> None:
    with pytest.raises(ValueError, match=r"ANTHROPIC_API_KEY.*config\.yaml"):
        make(api_key=None)


@pytest.mark.parametrize("configured", ["", "your-anthropic-api-key", None])
def test_the_environment_is_asked_when_no_key_is_configured(
    endpoint: ScriptedAnthropic, make: Make, monkeypatch: pytest.MonkeyPatch, configured: str | None
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-from-env")
    endpoint.script(Reply("ok"))
    make(api_key=configured).invoke("hi")
    sent = endpoint.headers[0]
    assert "sk-from-env" in (sent.get("x-api-key") or sent.get("authorization") or "")


def oauth(monkeypatch: pytest.MonkeyPatch, how: str, tmp_path: Path) -> dict[str, Any]:
    token = "sk-ant-oat-secret"
    if how == "key":
        return {"api_key": token}
    if how == "variable":
        monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", token)
    else:
        (tmp_path / ".claude").mkdir()
        (tmp_path / ".claude/.credentials.json").write_text(json.dumps({"claudeAiOauth": {"accessToken": token}}))
    return {"api_key": "your-anthropic-api-key"}


@pytest.mark.parametrize("how", ["key", "variable", "file"])
def test_a_sign_in_goes_out_as_bearer_without_imitating_anyone(
    endpoint: ScriptedAnthropic, make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, how: str
) -> None:
    endpoint.script(Reply("ok"))
    make(**oauth(monkeypatch, how, tmp_path)).invoke([SystemMessage("Rules."), HumanMessage("hi")])
    headers, request = endpoint.headers[0], endpoint.requests[0]
    assert headers["authorization"] == "Bearer sk-ant-oat-secret"
    assert "x-api-key" not in headers
    assert "oauth-2025-04-20" in headers["anthropic-beta"]
    assert "claude-code" not in json.dumps([headers, request])
    assert markers(request) == []
    assert request["system"] == "Rules."
    assert "metadata" not in request


def test_the_billing_text_is_sent_only_where_the_user_sets_it_and_once(
    endpoint: ScriptedAnthropic, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BILLING_HEADER", "billing: mine")
    endpoint.script(*[Reply("ok")] * 3)
    signed_in = make(api_key="sk-ant-oat-x")
    signed_in.invoke([SystemMessage("Rules."), HumanMessage("hi")])
    signed_in.invoke([SystemMessage([{"type": "text", "text": "billing: mine"}]), HumanMessage("hi")])
    make().invoke([SystemMessage("Rules."), HumanMessage("hi")])
    assert [block["text"] for block in endpoint.requests[0]["system"]] == ["billing: mine", "Rules."]
    assert [block["text"] for block in endpoint.requests[1]["system"]] == ["billing: mine"]
    assert "billing" not in json.dumps(endpoint.requests[2])


def test_markers_are_removed_from_requests_of_a_sign_in(endpoint: ScriptedAnthropic, make: Make) -> None:
    endpoint.script(Reply("ok"))
    arguments = {"cache_control": "an argument of this name stays"}
    make(api_key="sk-ant-oat-x").invoke(
        [
            HumanMessage([{"type": "text", "text": "q", "cache_control": MARKER}]),
            AIMessage("", tool_calls=[call("keep", "c1", **arguments)]),
            ToolMessage([{"type": "text", "text": "r", "cache_control": MARKER}], tool_call_id="c1"),
        ]
    )
    assert MARKER not in [
        block.get("cache_control") for m in endpoint.requests[0]["messages"] for block in m["content"]
    ]
    assert endpoint.requests[0]["messages"][1]["content"][0]["input"] == arguments


@pytest.mark.parametrize("key", ["sk-ant-oat-secret", "sk-ant-api-secret"])
def test_no_secret_shows(make: Make, key: str) -> None:
    model = make(api_key=key)
    assert key not in repr(model)
    assert key not in dumps(model)
    assert key not in str(model._get_ls_params())


def test_equal_ids_and_illegal_names_leave_one_block_each() -> None:
    def use(name: str, id_: str = "call_0") -> dict[str, Any]:
        return {"type": "tool_use", "id": id_, "name": name, "input": {}}

    def result(text: str, id_: str = "call_0") -> dict[str, Any]:
        return {"type": "tool_result", "tool_use_id": id_, "content": text}

    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [use("bash"), use("functions.bash")]},
        {"role": "user", "content": [result("one"), result("two")]},
        {"role": "assistant", "content": [use("bash")]},
        {"role": "user", "content": [result("three")]},
    ]
    shorter, longer = with_legal_calls({"messages": messages[:3]}), with_legal_calls({"messages": messages})
    assert longer["messages"][:3] == shorter["messages"]
    blocks = [block for message in longer["messages"][1:] for block in message["content"]]
    asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
    assert len(set(asked)) == 3
    assert asked[0] == "call_0"
    assert [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"] == asked
    assert [block["name"] for block in blocks if block["type"] == "tool_use"] == ["bash", "functions_bash", "bash"]
