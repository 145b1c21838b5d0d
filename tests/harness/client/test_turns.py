"""Turns through the whole product: real HTTP, real sandbox, real database."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import sys
from contextlib import aclosing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from bench.replies import Cut, Delay, Empty, HttpError, RawToolCall, Text, ToolCalls
from bench.scripted_openai import ScriptedOpenAI
from tests.support.warm_python import for_asyncio

from deerflow import DeerFlowClient, StreamEvent
from deerflow.agents import RuntimeFeatures
from deerflow.errors import InvalidRequestError
from deerflow.sandbox.interface import Sandbox


async def _turn(client: DeerFlowClient, message: str, thread: str = "t", **options: Any) -> list[StreamEvent]:
    return [event async for event in client.astream(message, thread_id=thread, **options)]


def _bash(command: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "bash", {"description": "run", "command": command, **more}


def _of(events: list[StreamEvent], kind: str) -> list[dict[str, Any]]:
    return [event.data for event in events if event.type == kind]


def _text(events: list[StreamEvent]) -> str:
    return "".join(data["content"] for data in _of(events, "messages-tuple") if data["type"] == "ai")


def _tool_results(events: list[StreamEvent]) -> list[str]:
    return [data["content"] for data in _of(events, "messages-tuple") if data["type"] == "tool"]


# the streaming contract ----------------------------------------------------------------------------------------------


async def test_text_comes_in_pieces_then_the_values_then_the_end(client: DeerFlowClient, endpoint: ScriptedOpenAI):
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    endpoint.script(Text(chunks=["Hel", "lo"], usage=usage))
    events = await _turn(client, "hi")
    pieces = [data for data in _of(events, "messages-tuple") if data["content"]]
    assert [piece["content"] for piece in pieces] == ["Hel", "lo"] and len({piece["id"] for piece in pieces}) == 1
    assert events[-1] == StreamEvent(
        "end",
        {
            "usage": {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12},
            "error": None,
            "stop_reason": "end_turn",
        },
    )
    last = _of(events, "values")[-1]
    assert [message["type"] for message in last["messages"]] == ["human", "ai"]
    assert last["messages"][-1]["content"] == "Hello" and last["title"] == "hi"


@pytest.mark.parametrize(("reason", "said"), [("length", "length"), ("content_filter", "content_filter")])
async def test_an_answer_that_was_cut_off_is_the_runs_stop_reason(
    client: DeerFlowClient, endpoint: ScriptedOpenAI, reason: str, said: str
):
    endpoint.script(Text("half of the", finish_reason=reason))
    assert (await _turn(client, "hi"))[-1].data["stop_reason"] == said


async def test_the_stream_says_for_how_long_a_model_is_silent_until_it_answers(
    client: DeerFlowClient, endpoint: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("deerflow.events.answer_watch.WAITING_EVERY", 0.5)
    endpoint.script(Delay(1.3, Text(chunks=["first ", "then"]), between=0.8))
    events = [event for event in await _turn(client, "hi") if event.type in ("custom", "messages-tuple")]
    shown = [event.data.get("type") if event.type == "custom" else event.data["content"] for event in events]
    first = shown.index("first ")
    assert "llm_waiting" in shown[:first]
    assert "llm_waiting" in shown[first : shown.index("then")]


async def test_tool_calls_come_once_and_complete(client: DeerFlowClient, endpoint: ScriptedOpenAI):
    endpoint.script(ToolCalls(_bash("echo one"), _bash("echo two")), Text("done"))
    events = await _turn(client, "go")
    calls = [data["tool_calls"] for data in _of(events, "messages-tuple") if data.get("tool_calls")]
    assert [[call["args"]["command"] for call in each] for each in calls] == [["echo one", "echo two"]]
    assert sorted(_tool_results(events)) == ["one", "two"]
    order = [(data.get("tool_calls") and "calls") or data["type"] for data in _of(events, "messages-tuple")]
    assert order.index("calls") < order.index("tool")


async def test_nothing_of_earlier_turns_is_replayed_and_usage_is_counted_once(
    client: DeerFlowClient, endpoint: ScriptedOpenAI
):
    usage = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}
    endpoint.script(ToolCalls(_bash("echo first"), usage=usage), Text("one", usage=usage))
    await _turn(client, "1")
    endpoint.script(Text("two", usage=usage))
    events = await _turn(client, "2")
    assert _text(events) == "two" and _tool_results(events) == []
    assert events[-1].data["usage"] == {"input_tokens": 5, "output_tokens": 1, "total_tokens": 6}
    assert await client.achat("3", thread_id="t") != "two"


async def test_live_output_of_a_command_comes_while_it_runs(client: DeerFlowClient, endpoint: ScriptedOpenAI):
    endpoint.script(ToolCalls(_bash("echo early; sleep 0.5; echo late")), Text("ok"))
    kinds: list[str] = []
    async with aclosing(client.astream("go", thread_id="t")) as events:
        async for event in events:
            if event.type == "custom" and event.data.get("type") == "tool_output":
                kinds.append(event.data["text"])
            elif event.type == "messages-tuple" and event.data["type"] == "tool":
                kinds.append("result")
    assert kinds.index("result") > 0 and "early" in kinds[0]


async def test_the_synchronous_client_gives_the_same(endpoint: ScriptedOpenAI):
    def use() -> tuple[list[str], str, int]:
        with DeerFlowClient() as client:
            endpoint.script(ToolCalls(_bash("echo sync")), Text("answer"))
            types = [event.type for event in client.stream("go", thread_id="s")]
            endpoint.script(Text("second answer"))
            return types, client.chat("again", thread_id="s"), len(client.get_messages("s"))

    types, answer, count = await asyncio.to_thread(use)
    assert types[-1] == "end" and "values" in types and answer == "second answer" and count == 6


def test_one_client_serves_one_event_loop_after_another(endpoint: ScriptedOpenAI):
    endpoint.script(*(Text(f"answer {turn}") for turn in range(3)))
    client = DeerFlowClient()
    answers = [asyncio.run(client.achat("go", thread_id="t")) for _ in range(3)]
    asyncio.run(client.aclose())
    assert answers == ["answer 0", "answer 1", "answer 2"]


def test_a_client_that_is_closed_or_was_made_before_a_fork_says_so(endpoint: ScriptedOpenAI):
    client = DeerFlowClient()
    endpoint.script(Text("here"))
    assert client.chat("go", thread_id="t") == "here"
    context = multiprocessing.get_context("fork")
    heard: multiprocessing.Queue[str] = context.Queue()
    child = context.Process(target=_use, args=(client, heard))
    child.start()
    assert "before the process forked" in heard.get(timeout=60)
    child.join()
    client.close()
    client.close()
    with pytest.raises(RuntimeError, match="is closed"):
        client.chat("again", thread_id="t")
    with pytest.raises(RuntimeError, match="is closed"):
        asyncio.run(client.achat("again", thread_id="t"))


def _use(client: DeerFlowClient, heard: multiprocessing.Queue[str]) -> None:
    try:
        client.chat("again", thread_id="t")
    except RuntimeError as error:
        heard.put(str(error))
    client.close()


# files ---------------------------------------------------------------------------------------------------------------


async def test_a_file_goes_in_and_a_file_comes_out(client: DeerFlowClient, endpoint: ScriptedOpenAI, tmp_path: Path):
    source = tmp_path / "zahlen 報告.csv"
    source.write_text("a,b\n1,2\n")
    endpoint.script(
        ToolCalls(_bash("tr , ';' < '/mnt/user-data/uploads/zahlen 報告.csv' > ../outputs/out.csv")),
        ToolCalls(("present_files", {"filepaths": ["/mnt/user-data/outputs/out.csv"]})),
        Text("done"),
    )
    events = await _turn(client, "convert", files=[source])
    assert "zahlen 報告.csv" in endpoint.requests[0]["messages"][-1]["content"]
    assert _of(events, "values")[-1]["artifacts"] == ["/mnt/user-data/outputs/out.csv"]
    assert await client.aget_artifact("t", "mnt/user-data/outputs/out.csv") == (b"a;b\n1;2\n", "text/csv")
    assert await client.alist_artifacts("t") == ["/mnt/user-data/outputs/out.csv"]


async def test_presenting_what_is_not_there_is_refused(client: DeerFlowClient, endpoint: ScriptedOpenAI):
    endpoint.script(
        ToolCalls(
            ("present_files", {"filepaths": ["/mnt/user-data/outputs/none.md"]}),
            ("present_files", {"filepaths": ["/mnt/user-data/workspace/x"]}),
        ),
        Text("sorry"),
    )
    events = await _turn(client, "go")
    missing, outside = sorted(_tool_results(events))  # they come as they end
    assert missing.startswith("Error: No such file: /mnt/user-data/outputs/none.md")
    assert outside.startswith("Error: Only files in /mnt/user-data/outputs can be presented")
    assert _of(events, "values")[-1]["artifacts"] == []


async def test_uploads_that_cannot_be_read_stop_the_turn_before_it_begins(
    client: DeerFlowClient, endpoint: ScriptedOpenAI, tmp_path: Path
):
    for path, error in ((tmp_path / "none.csv", FileNotFoundError), (tmp_path, ValueError)):
        with pytest.raises(error, match=path.name):
            await _turn(client, "go", files=[path])
    assert endpoint.requests == []


# what models get wrong -----------------------------------------------------------------------------------------------


async def test_a_call_with_broken_json_is_answered_and_the_turn_goes_on(
    client: DeerFlowClient, endpoint: ScriptedOpenAI
):
    endpoint.script(ToolCalls(RawToolCall("bash", '{"command": "echo')), Text("recovered"))
    events = await _turn(client, "go")
    assert _text(events) == "recovered" and "JSON" in _tool_results(events)[0]


async def test_a_tool_that_does_not_exist_is_answered_with_those_that_do(
    client: DeerFlowClient, endpoint: ScriptedOpenAI
):
    endpoint.script(ToolCalls(("teleport", {"to": "x"})), Text("ok"))
    events = await _turn(client, "go")
    assert "teleport" in _tool_results(events)[0] and "bash" in _tool_results(events)[0] and _text(events) == "ok"


async def test_wrong_arguments_are_an_error_that_the_model_can_read(client: DeerFlowClient, endpoint: ScriptedOpenAI):
    endpoint.script(ToolCalls(("read_file", {"description": "x", "start_line": "zero"})), Text("ok"))
    events = await _turn(client, "go")
    assert "path" in _tool_results(events)[0] and _text(events) == "ok"


async def test_an_empty_answer_is_asked_for_again_and_then_said_honestly(
    client: DeerFlowClient, endpoint: ScriptedOpenAI
):
    endpoint.script(Empty(), Text("here"))
    assert _text(await _turn(client, "go", "a")) == "here"
    endpoint.script(*[Empty()] * 4)
    events = await _turn(client, "go", "b")
    assert events[-1].data["error"]["kind"] == "empty" or "empty" in events[-1].data["error"]["message"].lower()


# what providers get wrong --------------------------------------------------------------------------------------------


async def test_a_wrong_key_ends_the_turn_with_what_to_do(client: DeerFlowClient, endpoint: ScriptedOpenAI):
    endpoint.script(HttpError(401, "Incorrect API key provided"))
    events = await _turn(client, "go")
    error = events[-1].data["error"]
    assert error["kind"] == "auth" and "OPENAI_API_KEY" in error["message"] and "test-key" not in json.dumps(error)
    assert len(endpoint.requests) == 1


async def test_a_stream_cut_in_the_middle_is_tried_again(client: DeerFlowClient, endpoint: ScriptedOpenAI):
    endpoint.script(Cut(after_chunks=2, text="half of an answer that never ends"), Text("whole"))
    events = await _turn(client, "go")
    assert any(data.get("type") == "llm_retry" for data in _of(events, "custom"))
    assert (await client.aget_messages("t"))[-1]["content"] == "whole" and events[-1].data["error"] is None


async def test_a_failed_turn_does_not_poison_the_thread(client: DeerFlowClient, endpoint: ScriptedOpenAI):
    endpoint.script(HttpError(400, "This model's maximum context length is 10 tokens"), Text("fine"))
    await _turn(client, "one")
    assert _text(await _turn(client, "two")) == "fine"
    assert all(
        "error" not in json.dumps(message).lower()
        for message in endpoint.requests[-1]["messages"]
        if message["role"] == "assistant"
    )


# stopping and continuing ---------------------------------------------------------------------------------------------


async def test_a_stopped_turn_keeps_what_was_done_and_the_thread_goes_on(
    client: DeerFlowClient, endpoint: ScriptedOpenAI
):
    endpoint.script(ToolCalls(_bash("echo done > f")), ToolCalls(_bash("sleep 100")))
    async with aclosing(client.astream("go", thread_id="t")) as events:
        async for event in events:
            if event.type == "messages-tuple" and "sleep" in json.dumps(event.data.get("tool_calls", "")):
                break
    state = await client.athread_state("t")
    messages = state["values"]["messages"]
    assert not state["unfinished"] and [m["type"] for m in messages] == ["human", "ai", "tool", "ai", "tool"]
    assert "the user stopped the run" in messages[-1]["content"]
    endpoint.script(Text("went on"))
    assert _text(await _turn(client, "never mind")) == "went on"
    assert "the user stopped the run" in json.dumps(endpoint.requests[-1]["messages"])


DIES_IN_THE_SECOND_CALL = """
import asyncio, os
from deerflow.client import DeerFlowClient

async def main():
    async for event in DeerFlowClient().astream("go", thread_id="t"):
        if event.type == "custom" and event.data.get("text", "").startswith("begun"):
            os._exit(9)

asyncio.run(main())
"""


async def test_a_turn_whose_process_died_is_resumed_and_repeats_nothing(
    client: DeerFlowClient, endpoint: ScriptedOpenAI
):
    endpoint.script(
        ToolCalls(_bash("echo x >> count")), ToolCalls(_bash("echo y >> count; echo begun; sleep 30")), Text("finished")
    )
    with for_asyncio():
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", DIES_IN_THE_SECOND_CALL)
    assert await process.wait() == 9
    assert (await client.athread_state("t"))["unfinished"]
    resumed = [event async for event in client.aresume("t")]
    # What the log lost with the process may be told again before.
    assert _text(resumed) == "finished" and "may or may not have taken effect" in _tool_results(resumed)[-1]
    endpoint.script(ToolCalls(_bash("cat count")), Text("counted"))
    assert _tool_results(await _turn(client, "count")) == ["x\ny"]
    assert not (await client.athread_state("t"))["unfinished"]


async def test_a_message_after_a_turn_whose_process_died_goes_on_with_what_was_done(
    client: DeerFlowClient, endpoint: ScriptedOpenAI
):
    endpoint.script(ToolCalls(_bash("echo done")), ToolCalls(_bash("echo begun; sleep 30")))
    with for_asyncio():
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", DIES_IN_THE_SECOND_CALL)
    assert await process.wait() == 9
    endpoint.script(Text("something else"))
    events = await _turn(client, "do something else")
    assert _text(events) == "something else", events
    asked = json.dumps(endpoint.requests[-1]["messages"])
    assert "done" in asked and "Not finished" in asked and not (await client.athread_state("t"))["unfinished"]


async def test_a_message_asks_for_a_summary_and_the_window_is_measured(
    client: DeerFlowClient, endpoint: ScriptedOpenAI
):
    endpoint.script(Text("Well. " * 500), Text("## Task and constraints\nHello."))
    await _turn(client, "hi")
    before = await client.acontext("t")
    assert (await client.achat("/compact", thread_id="t")).startswith("Summarized 2 messages")
    assert (await client.acontext("t"))["used"] < before["used"]


async def test_resuming_a_finished_thread_does_nothing(client: DeerFlowClient, endpoint: ScriptedOpenAI):
    endpoint.script(Text("done"))
    await _turn(client, "go")
    assert [event.type for event in [e async for e in client.aresume("t")]] == ["end"]
    assert len(endpoint.requests) == 1


# threads -------------------------------------------------------------------------------------------------------------


async def test_threads_survive_the_client(endpoint: ScriptedOpenAI):
    for text in ("first", "second"):
        client = await asyncio.to_thread(DeerFlowClient)
        endpoint.script(Text(text))
        await _turn(client, f"say {text}")
        await client.aclose()
    client = await asyncio.to_thread(DeerFlowClient)
    assert [m["content"] for m in await client.aget_messages("t")] == ["say first", "first", "say second", "second"]
    threads = (await client.alist_threads())["thread_list"]
    assert [(thread["thread_id"], thread["title"]) for thread in threads] == [("t", "say first")]
    assert threads[0]["created_at"] < threads[0]["updated_at"]
    assert len((await client.aget_thread("t"))["checkpoints"]) >= 4
    await client.aclose()


async def test_a_thread_gets_a_title_from_the_model_while_the_client_is_open(
    client: DeerFlowClient, endpoint: ScriptedOpenAI
):
    endpoint.unscripted.clear()
    endpoint.script(Text("Owls hunt at night."), Text("Owls at night"))
    await _turn(client, "How do owls hunt?")
    async with asyncio.timeout(30):
        while (await client.alist_threads())["thread_list"][0]["title"] != "Owls at night":
            await asyncio.sleep(0.1)
    assert len(endpoint.requests) == 2


async def test_threads_do_not_see_each_others_files(client: DeerFlowClient, endpoint: ScriptedOpenAI):
    endpoint.script(ToolCalls(_bash("echo secret > mine")), Text("ok"))
    await _turn(client, "go", "one")
    endpoint.script(ToolCalls(_bash("ls -A; ls /mnt/user-data/workspace/..")), Text("ok"))
    assert "mine" not in _tool_results(await _turn(client, "go", "two"))[0]


async def test_a_compacted_thread_says_the_same_and_goes_on(client: DeerFlowClient, endpoint: ScriptedOpenAI):
    for turn in range(4):
        endpoint.script(Text(f"answer {turn}"))
        await _turn(client, f"question {turn}")
    before = await client.aget_messages("t")
    assert await client.acompact_thread("t")
    assert await client.aget_messages("t") == before
    assert len((await client.aget_thread("t"))["checkpoints"]) == 1
    endpoint.script(Text("more"))
    assert _text(await _turn(client, "go on")) == "more"


async def test_an_invalid_thread_id_is_refused(client: DeerFlowClient):
    with pytest.raises(ValueError, match="thread id"):
        await _turn(client, "hi", "../other")


# requests ------------------------------------------------------------------------------------------------------------


async def test_every_request_contains_the_one_before_byte_for_byte(client: DeerFlowClient, endpoint: ScriptedOpenAI):
    for turn in range(5):
        endpoint.script(ToolCalls(_bash(f"echo {turn}")), Text(f"answer {turn} ✓"))
        await _turn(client, f"question {turn}")
    messages = [raw[raw.index(b'"messages":') :].rstrip(b"}]") for raw in endpoint.raw_requests]
    heads = [raw[: raw.index(b'"messages":')] for raw in endpoint.raw_requests]
    assert len(messages) == 10 and len(set(heads)) == 1
    assert all(later.startswith(earlier) for earlier, later in pairwise(messages))


async def test_the_fixed_part_of_a_request_stays_small(client: DeerFlowClient, endpoint: ScriptedOpenAI):
    endpoint.script(Text("hi"))
    await _turn(client, "x", plan_mode=True)
    request = endpoint.requests[0]
    system = request["messages"][0]["content"]
    fixed = len(system.encode()) + len(json.dumps(request["tools"]).encode())
    # About 4 bytes a token: 3,000 tokens of prompt, 6,000 with the schemas.
    assert len(system) <= 12_000 and fixed <= 24_000


async def test_changing_the_configuration_is_felt_by_the_next_turn(endpoint: ScriptedOpenAI, tmp_path: Path):
    config = tmp_path / "config.yaml"
    model = "models:\n  - {name: m, use: langchain_openai:ChatOpenAI, model: %s, api_key: k, base_url: '%s'}\n"

    def write(name: str) -> None:
        config.write_text(model % (name, endpoint.base_url))

    await asyncio.to_thread(write, "one")
    client = await asyncio.to_thread(DeerFlowClient, config)
    await _turn(client, "hi")
    await asyncio.to_thread(write, "two-changed")
    await _turn(client, "hi")
    await asyncio.to_thread(config.write_text, "models: [")
    await _turn(client, "hi")
    assert [request["model"] for request in endpoint.requests] == ["one", "two-changed", "two-changed"]
    assert client.config_source.problem is not None
    await client.aclose()


async def test_configuration_from_code_wins_over_the_file(endpoint: ScriptedOpenAI, tmp_path: Path):
    config = tmp_path / "config.yaml"
    await asyncio.to_thread(config.write_text, "title: {max_words: 3, max_chars: 20}\n")
    client = await asyncio.to_thread(lambda: DeerFlowClient(config, config={"title": {"max_words": 9}}))
    assert (client.harness.config.title.max_words, client.harness.config.title.max_chars) == (9, 20)
    await client.aclose()


@pytest.mark.parametrize(("database", "kept"), [("{backend: memory}", False), ("{sqlite_dir: '%s/elsewhere'}", True)])
async def test_the_configuration_says_where_threads_are_kept(
    database: str, kept: bool, endpoint: ScriptedOpenAI, tmp_path: Path
):
    config = tmp_path / "config.yaml"
    await asyncio.to_thread(config.write_text, f"database: {database.replace('%s', str(tmp_path))}\n")
    for _ in range(2):
        client = await asyncio.to_thread(DeerFlowClient, config)
        endpoint.script(Text("hi"))
        await _turn(client, "hello")
        messages = await client.aget_messages("t")
        await client.aclose()
    assert len(messages) == (4 if kept else 2)


# one turn at a time --------------------------------------------------------------------------------------------------


async def test_a_second_turn_of_a_thread_waits_for_the_first_and_nothing_gets_lost(
    client: DeerFlowClient, endpoint: ScriptedOpenAI
):
    other = await asyncio.to_thread(DeerFlowClient)
    endpoint.script(ToolCalls(_bash("echo slow > /dev/null")), Text("one"), key="first")
    endpoint.script(Text("two"), key="second")
    await asyncio.gather(_turn(client, "key:first"), _turn(other, "key:second"))
    await other.aclose()
    said = [m["content"] for m in await client.aget_messages("t") if m["type"] in ("human", "ai") and m["content"]]
    assert sorted(said) == ["key:first", "key:second", "one", "two"]


async def test_a_thread_whose_turn_runs_elsewhere_says_so_and_is_not_compacted(
    client: DeerFlowClient, endpoint: ScriptedOpenAI, clean_environment: Path
):
    endpoint.script(Text("hi"))
    await _turn(client, "hello")
    root = client.harness.paths.thread_dir("t", "default")
    holder = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        f"import fcntl; f = open({str(root / '.turn')!r}, 'w'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); input()",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert holder.stdin and holder.stdout and await holder.stdout.readline() == b"held\n"
    assert not await client.acompact_thread("t")
    holder.kill()
    await holder.wait()
    endpoint.script(Text("again"))
    assert _text(await _turn(client, "go on")) == "again"
    assert await client.acompact_thread("t")


async def test_the_sandbox_is_released_when_a_turn_ends_and_its_processes_go_on(
    client: DeerFlowClient, endpoint: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
):
    released: list[object] = []
    provider = client.harness.sandbox_provider
    release = provider.release

    async def noted(sandbox_id: str, *, destroy: bool = False) -> None:
        released.append(provider.get(sandbox_id))
        await release(sandbox_id, destroy=destroy)

    monkeypatch.setattr(provider, "release", noted)
    endpoint.script(ToolCalls(_bash("sleep 100", run_in_background=True)), Text("ok"))
    await _turn(client, "go")
    (sandbox,) = released
    assert isinstance(sandbox, Sandbox)
    assert [process.running for process in await sandbox.list_processes()] == [True]


async def test_closing_ends_the_sandboxes_of_former_configurations_too(endpoint: ScriptedOpenAI, tmp_path: Path):
    config = tmp_path / "config.yaml"
    await asyncio.to_thread(config.write_text, "sandbox: {command_timeout: 20}\n")
    client = await asyncio.to_thread(DeerFlowClient, config)
    endpoint.script(ToolCalls(_bash("sleep 100", run_in_background=True)), Text("ok"))
    await _turn(client, "go")
    former = client.harness.sandbox_provider
    await asyncio.to_thread(config.write_text, "sandbox: {command_timeout: 30, idle_timeout: 100}\n")
    endpoint.script(Text("ok"))
    await _turn(client, "go on")
    assert client.harness.sandbox_provider is not former and former.get("default:t") is not None
    await client.aclose()
    assert former.get("default:t") is None


async def test_a_question_is_what_chat_gives_back(client: DeerFlowClient, endpoint: ScriptedOpenAI):
    question = {"question": "Which file?", "clarification_type": "missing_info"}
    endpoint.script(ToolCalls(("ask_clarification", question), text="Let me see."))
    assert await client.achat("go", thread_id="t") == "❓ Which file?"


async def test_an_agent_without_a_sandbox_is_offered_no_tool_that_needs_one(endpoint: ScriptedOpenAI):
    client = await asyncio.to_thread(lambda: DeerFlowClient(features=RuntimeFeatures(sandbox=False)))
    endpoint.script(Text("hi"))
    await _turn(client, "hello")
    await client.aclose()
    names = [tool["function"]["name"] for tool in endpoint.requests[0]["tools"]]
    assert names == ["web_search", "web_fetch", "ask_clarification", "memory_save", "memory_forget"]
    assert "/mnt/user-data" not in endpoint.requests[0]["messages"][0]["content"]


async def test_an_upload_with_a_name_that_is_no_utf8_does_not_stop_the_thread(
    client: DeerFlowClient, endpoint: ScriptedOpenAI
):
    endpoint.script(ToolCalls(_bash("cd ../uploads && touch $'caf\\xe9.txt'")), Text("ok"), Text("still here"))
    await _turn(client, "go")
    assert _text(await _turn(client, "and now?")) == "still here"


async def test_what_is_remembered_is_seen_changed_and_told(client: DeerFlowClient, endpoint: ScriptedOpenAI):
    (fact,) = (await client.acreate_memory_fact("Distances in kilometres.", "preference"))["facts"]
    assert [each["id"] for each in await client.asearch_memory("kilometres")] == [fact["id"]]
    endpoint.script(Text("10 km"))
    await _turn(client, "How far is it?")
    assert "Distances in kilometres." in str(endpoint.requests[-1]["messages"])
    assert (await client.adelete_memory_fact(fact["id"]))["facts"] == []
    assert len((await client.aundo_memory_fact(fact["id"]))["facts"]) == 1
    document = await client.aget_memory()
    assert (await client.aclear_memory())["facts"] == []
    assert [each["content"] for each in (await client.aimport_memory(document))["facts"]] == [
        "Distances in kilometres."
    ]


async def test_one_subagent_is_stopped_and_the_turn_goes_on(endpoint: ScriptedOpenAI):
    task = {"description": "wait", "prompt": "key:child", "subagent_type": "general-purpose"}
    endpoint.script(ToolCalls(("task", task)), Text("Without it, then."))
    endpoint.script(Delay(60, Text("never")), key="child")
    client = await asyncio.to_thread(DeerFlowClient, subagent_enabled=True)
    events: list[StreamEvent] = []
    async for event in client.astream("go", thread_id="t"):
        events.append(event)
        if event.type == "custom" and event.data.get("type") == "task_started":
            await client.astop_task("t", event.data["task_id"])
    assert _text(events) == "Without it, then." and _tool_results(events) == ["Task cancelled by user."]
    await client.aclose()


async def test_text_that_is_not_utf8_is_refused_by_the_name_of_its_field(
    client: DeerFlowClient, endpoint: ScriptedOpenAI
):
    with pytest.raises(InvalidRequestError, match=r"^input\.messages\.0\.content: this text is not valid UTF-8"):
        await _turn(client, "a\ud83d")
    assert endpoint.requests == []
