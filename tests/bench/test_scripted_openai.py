"""The scripted endpoint keeps its promises towards a real OpenAI client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from bench.scripted_openai import (
    Cut,
    Delay,
    Empty,
    HttpError,
    RawChunks,
    RawToolCall,
    ScriptedOpenAI,
    Text,
    ToolCalls,
)
from langchain_openai import ChatOpenAI
from openai import APIConnectionError, AuthenticationError, OpenAI, RateLimitError

BASH = {
    "type": "function",
    "function": {
        "name": "bash",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string"}, "timeout": {"type": "integer"}},
            "required": ["command", "timeout"],
        },
    },
}


@pytest.fixture
def endpoint() -> Iterator[ScriptedOpenAI]:
    with ScriptedOpenAI() as server:
        yield server


@pytest.fixture
def client(endpoint: ScriptedOpenAI) -> OpenAI:
    return OpenAI(base_url=endpoint.base_url, api_key="test", max_retries=0)


def langchain_model(endpoint: ScriptedOpenAI) -> ChatOpenAI:
    return ChatOpenAI(model="any", base_url=endpoint.base_url, api_key="test", max_retries=0, stream_usage=True)  # type: ignore[arg-type]


def say(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def post(endpoint: ScriptedOpenAI, path: str, body: object) -> httpx.Response:
    return httpx.post(f"http://127.0.0.1:{endpoint.port}{path}", json=body, timeout=10)


def get(endpoint: ScriptedOpenAI, path: str) -> httpx.Response:
    return httpx.get(f"http://127.0.0.1:{endpoint.port}{path}", timeout=10)


def wait_until(condition: Callable[[], bool]) -> None:
    """The server runs in its own thread and may notice things a moment after the client."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)


def test_text_arrives_whole_and_in_pieces(endpoint: ScriptedOpenAI) -> None:
    endpoint.script(Text("hello brave world"), Text("hello brave world", chunks=["hello ", "brave world"]))
    model = langchain_model(endpoint)

    assert model.invoke("hi").content == "hello brave world"
    assert [chunk.content for chunk in model.stream("hi") if chunk.content] == ["hello ", "brave world"]


def test_usage_is_what_the_script_says(endpoint: ScriptedOpenAI) -> None:
    usage = {
        "prompt_tokens": 11,
        "completion_tokens": 5,
        "total_tokens": 16,
        "prompt_tokens_details": {"cached_tokens": 7},
    }
    endpoint.script(Text("x", usage=usage), Text("x", usage=usage))
    model = langchain_model(endpoint)

    whole = model.invoke("hi").usage_metadata
    streamed = [chunk.usage_metadata for chunk in model.stream("hi") if chunk.usage_metadata]

    assert whole is not None and whole["total_tokens"] == 16
    assert [found["input_tokens"] for found in streamed] == [11]
    assert streamed[0].get("input_token_details") == {"cache_read": 7}


def test_tool_calls_are_streamed_in_fragments_that_join(endpoint: ScriptedOpenAI) -> None:
    arguments = {"command": "echo 'ü' " * 20}
    endpoint.script(ToolCalls(("bash", arguments), ("ls", {"path": "/"}), text="Let me look."))

    chunks = list(langchain_model(endpoint).stream("hi"))
    joined = chunks[0]
    for chunk in chunks[1:]:
        joined = joined + chunk

    assert len([chunk for chunk in chunks if chunk.tool_call_chunks]) > 6
    assert joined.content == "Let me look."
    assert [(call["name"], call["args"]) for call in joined.tool_calls] == [("bash", arguments), ("ls", {"path": "/"})]
    assert len({call["id"] for call in joined.tool_calls}) == 2


def test_call_ids_differ_between_answers_and_servers(endpoint: ScriptedOpenAI) -> None:
    with ScriptedOpenAI() as other:
        ids = []
        for server in (endpoint, endpoint, other):
            server.script(ToolCalls(("bash", {})))
            ids.append(langchain_model(server).invoke("hi").tool_calls[0]["id"])

    assert len(set(ids)) == 3


def test_broken_arguments_are_sent_as_written(endpoint: ScriptedOpenAI, client: OpenAI) -> None:
    endpoint.script(RawToolCall("bash", '{"command": '), ToolCalls(RawToolCall("bash", "not json", id="mine")))

    stream = client.chat.completions.create(model="any", messages=say("hi"), stream=True)  # type: ignore[call-overload]
    deltas = [chunk.choices[0].delta.tool_calls for chunk in stream if chunk.choices]
    whole = client.chat.completions.create(model="any", messages=say("hi"))  # type: ignore[arg-type]

    assert "".join(calls[0].function.arguments for calls in deltas if calls) == '{"command": '
    calls = whole.choices[0].message.tool_calls or []
    assert [(call.id, call.function.arguments) for call in calls if call.type == "function"] == [("mine", "not json")]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_precedes_the_answer(endpoint: ScriptedOpenAI, client: OpenAI, field: str) -> None:
    endpoint.script(*[Text("four", reasoning="two and two", reasoning_field=field)] * 2)

    stream = client.chat.completions.create(model="any", messages=say("hi"), stream=True)  # type: ignore[call-overload]
    deltas = [chunk.choices[0].delta.model_dump() for chunk in stream]
    whole = client.chat.completions.create(model="any", messages=say("hi"))  # type: ignore[arg-type]

    assert "".join(delta.get(field) or "" for delta in deltas) == "two and two"
    order = [field if delta.get(field) else "content" for delta in deltas if delta.get(field) or delta.get("content")]
    assert order == [field] * 3 + ["content"]
    assert whole.choices[0].message.model_dump()[field] == "two and two"


def test_an_empty_answer_is_empty(endpoint: ScriptedOpenAI) -> None:
    endpoint.script(Empty(), Empty())
    model = langchain_model(endpoint)

    assert model.invoke("hi").content == ""
    assert "".join(str(chunk.content) for chunk in model.stream("hi")) == ""


def test_errors_have_openai_shape_and_headers(endpoint: ScriptedOpenAI, client: OpenAI) -> None:
    endpoint.script(
        HttpError(429, headers={"Retry-After": "7"}), HttpError(401, "Wrong key."), HttpError(502, b"<html>")
    )

    with pytest.raises(RateLimitError) as limited:
        client.chat.completions.create(model="any", messages=say("hi"))  # type: ignore[arg-type]
    with pytest.raises(AuthenticationError) as refused:
        client.chat.completions.create(model="any", messages=say("hi"), stream=True)  # type: ignore[call-overload]
    raw = post(endpoint, "/v1/chat/completions", {"messages": say("hi")})

    assert limited.value.response.headers["retry-after"] == "7"
    assert limited.value.code == "rate_limit_exceeded"
    assert "Wrong key." in str(refused.value) and refused.value.code == "invalid_api_key"
    assert (raw.status_code, raw.content) == (502, b"<html>")


def test_a_cut_stream_ends_with_a_closed_socket(endpoint: ScriptedOpenAI) -> None:
    endpoint.script(Cut(after_chunks=2, text="one two three four"))
    body = {"messages": say("hi"), "stream": True}

    received = ""
    with pytest.raises(httpx.RemoteProtocolError):
        with httpx.stream("POST", f"{endpoint.base_url}/chat/completions", json=body) as response:
            for line in response.iter_lines():
                received += line

    assert "two " in received and "three" not in received and "[DONE]" not in received


def test_a_cut_whole_answer_is_a_connection_error(endpoint: ScriptedOpenAI, client: OpenAI) -> None:
    endpoint.script(Cut())

    with pytest.raises(APIConnectionError):
        client.chat.completions.create(model="any", messages=say("hi"))  # type: ignore[arg-type]


def test_a_delayed_answer_comes_in_the_end(endpoint: ScriptedOpenAI) -> None:
    endpoint.script(Delay(0.05, Text("late but whole"), between=0.001))

    assert "".join(str(chunk.content) for chunk in langchain_model(endpoint).stream("hi")) == "late but whole"
    record = endpoint.records[0]
    wait_until(lambda: record.ended is not None)
    assert (record.ended or 0) - record.started >= 0.05


def test_a_client_that_leaves_is_noticed(endpoint: ScriptedOpenAI) -> None:
    endpoint.script(Delay(30, Text("never")))

    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{endpoint.base_url}/chat/completions", json={"messages": say("hi")}, timeout=0.2)

    wait_until(lambda: endpoint.records[0].disconnected)
    assert endpoint.records[0].ended is None


def test_raw_chunks_are_sent_as_written(endpoint: ScriptedOpenAI, client: OpenAI) -> None:
    head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choice = {"index": 0, "delta": {"content": "raw", "odd": [1]}, "finish_reason": None}
    endpoint.script(RawChunks([{**head, "choices": [choice]}]))

    chunks = list(client.chat.completions.create(model="any", messages=say("hi"), stream=True))  # type: ignore[call-overload]

    assert [chunk.choices[0].delta.model_dump()["odd"] for chunk in chunks] == [[1]]


def test_keyed_replies_wait_for_their_conversation(endpoint: ScriptedOpenAI) -> None:
    endpoint.script(Text("for you"), key="K1")
    endpoint.script(Text("for anyone"))
    model = langchain_model(endpoint)

    assert model.invoke("key:K12 scenario:plain").content == "for anyone"
    assert model.invoke("please key:K1").content == "for you"
    assert endpoint.unused == 0


def test_a_reply_may_be_made_from_the_request(endpoint: ScriptedOpenAI) -> None:
    endpoint.script(lambda request: Text(f"{request['model']} heard {request['messages'][-1]['content']}"))

    assert langchain_model(endpoint).invoke("this").content == "any heard this"


def test_a_failing_script_is_a_500_and_the_server_lives(endpoint: ScriptedOpenAI) -> None:
    endpoint.script(lambda request: Text(request["absent"]))

    failed = post(endpoint, "/v1/chat/completions", {"messages": say("hi")})

    assert failed.status_code == 500 and "absent" in failed.json()["error"]["message"]
    assert langchain_model(endpoint).invoke("scenario:plain-2").content == "tok00 tok01 "


def test_requests_bodies_and_headers_are_kept_until_reset(endpoint: ScriptedOpenAI) -> None:
    langchain_model(endpoint).invoke("scenario:plain")

    assert endpoint.requests[0]["messages"][-1]["content"] == "scenario:plain"
    assert json.loads(endpoint.raw_requests[0]) == endpoint.requests[0]
    assert endpoint.headers[0]["authorization"] == "Bearer test"
    endpoint.script(Text("left over"))
    endpoint.reset()
    assert (endpoint.requests, endpoint.unused) == ([], 0)


def test_a_wrong_key_is_refused_when_one_is_set() -> None:
    with ScriptedOpenAI(api_key="right") as endpoint:
        with pytest.raises(AuthenticationError):
            langchain_model(endpoint).invoke("hi")


def test_models_are_listed(client: OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["scripted-model"]


def test_a_second_server_on_the_same_port_says_so(endpoint: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda args: None)

    with pytest.raises(RuntimeError, match=f"did not start on 127.0.0.1:{endpoint.port}"):
        ScriptedOpenAI(port=endpoint.port).__enter__()


def test_stop_hangs_up_on_open_connections() -> None:
    with ScriptedOpenAI() as endpoint:
        endpoint.script(Delay(0, Text("a b c d"), between=30))
        response = httpx.Client().stream(
            "POST", f"{endpoint.base_url}/chat/completions", json={"messages": say("hi"), "stream": True}
        )
        opened = response.__enter__()

    with pytest.raises(httpx.HTTPError):
        for _ in opened.iter_bytes():
            pass


def test_scenario_tools_makes_the_asked_calls_with_fitting_arguments(endpoint: ScriptedOpenAI) -> None:
    messages: list[dict[str, Any]] = [*say("scenario:tools-2 key:t")]
    commands = []
    for _ in range(2):
        reply = post(endpoint, "/v1/chat/completions", {"messages": messages, "tools": [BASH]}).json()
        message = reply["choices"][0]["message"]
        call = message["tool_calls"][0]
        commands.append(json.loads(call["function"]["arguments"]))
        messages += [message, {"role": "tool", "tool_call_id": call["id"], "content": "ok"}]
    last = post(endpoint, "/v1/chat/completions", {"messages": messages, "tools": [BASH]}).json()

    assert commands == [{"command": "echo 1", "timeout": 1}, {"command": "echo 2", "timeout": 1}]
    assert last["choices"][0]["message"]["content"].startswith("tok00")


@pytest.mark.parametrize(
    ("scenario", "names"),
    [
        ("ptools-3", ["bash"] * 3),
        ("write", ["write_file"]),
        ("subagents-2", ["task"] * 2),
        ("subtools-5", ["task"] * 3),
    ],
)
def test_scenarios_open_with_their_calls(endpoint: ScriptedOpenAI, scenario: str, names: list[str]) -> None:
    calls = langchain_model(endpoint).invoke(f"scenario:{scenario} key:x").tool_calls

    assert [call["name"] for call in calls] == names
    if names[0] == "task":
        assert "key:x-s1 " in calls[0]["args"]["prompt"]


def test_the_last_marked_message_counts(endpoint: ScriptedOpenAI) -> None:
    messages = [
        *say("scenario:tools-9"),
        {"role": "assistant", "content": "done"},
        *say("scenario:plain-1"),
        *say("and?"),
    ]

    assert (
        post(endpoint, "/v1/chat/completions", {"messages": messages}).json()["choices"][0]["message"]["content"]
        == "tok00 "
    )


def test_a_title_prompt_gets_a_title_even_when_it_quotes_a_marker(endpoint: ScriptedOpenAI) -> None:
    model = langchain_model(endpoint)

    assert model.invoke("Write a title for:\nscenario:plain do it").content == "Benchmark thread"
    assert str(model.invoke("scenario:plain-1 with the title of a book").content) == "tok00 "


def test_prefix_stability_is_measured_byte_by_byte(endpoint: ScriptedOpenAI) -> None:
    first = b'{"messages": [{"role":"user","content":"key:p \\u00fc"}], "tools": [{"a": 1}]}'
    same = b'{"messages": [{"role":"user","content":"key:p \\u00fc"},{"role":"assistant","content":"x"}], "tools": [{"a": 1}]}'
    recoded = same.replace(b"\\u00fc", "ü".encode())
    for body in (first, same, recoded):
        httpx.post(f"{endpoint.base_url}/chat/completions", content=body)

    statistics = get(endpoint, "/stats").json()["by"]["main"]

    assert (statistics["pairs"], statistics["stable_pairs"]) == (2, 1)
    assert statistics["diverging"] == {"0:user": 1}


def test_it_is_controlled_over_http_as_a_process_of_its_own() -> None:
    command = [sys.executable, "-m", "bench.scripted_openai", "--port", "0", "--model", "one", "--model", "two"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": "."}) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split(" on ")[1].split(" pid")[0]
            root = url.removesuffix("/v1")
            call = {"kind": "tool_calls", "calls": [["bash", {"command": "ls"}], {"name": "ls", "arguments": "{"}]}
            delay = {"kind": "delay", "seconds": 0.01, "reply": {"kind": "text", "text": "then"}}
            queued = httpx.post(f"{root}/script", json={"replies": [call, delay], "key": "k"}).json()
            refused = httpx.post(f"{root}/script", json={"replies": [{"kind": "poem"}]})
            ask = {"messages": say("key:k")}
            first, second = (httpx.post(f"{url}/chat/completions", json=ask).json() for _ in range(2))
            models = httpx.get(f"{url}/models").json()["data"]
            log = httpx.get(f"{root}/log?since=1").json()
            dump = httpx.get(f"{root}/dump?n=1").json()
            config = httpx.post(f"{root}/config", json={"delay_ms": 2}).json()
        finally:
            process.kill()

    assert queued["unused"] == 2
    assert refused.status_code == 500 and "unknown reply 'poem'" in refused.json()["error"]["message"]
    assert [c["function"]["name"] for c in first["choices"][0]["message"]["tool_calls"]] == ["bash", "ls"]
    assert second["choices"][0]["message"]["content"] == "then"
    assert [model["id"] for model in models] == ["one", "two"]
    assert [entry["n"] for entry in log] == [2]
    assert dump == ask
    assert config == {"delay_ms": 2.0, "first_ms": 0.0}
