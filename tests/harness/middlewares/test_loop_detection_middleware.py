from __future__ import annotations

from typing import Any

import pytest
from bench.scripted_openai import HttpError, RawToolCall, Text, ToolCalls
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from deerflow.agents.middlewares.clarification_middleware import ClarificationMiddleware
from deerflow.agents.middlewares.dangling_tool_call_middleware import DanglingToolCallMiddleware
from deerflow.agents.middlewares.llm_error_handling_middleware import LLMErrorHandlingMiddleware
from deerflow.agents.middlewares.loop_detection_middleware import FORCED_STOP, LoopDetectionMiddleware, hash_tool_calls
from deerflow.agents.middlewares.tool_error_handling_middleware import ToolErrorHandlingMiddleware
from deerflow.agents.transcript import Transcript
from deerflow.config.schema import LoopDetectionConfig
from deerflow.subagents.task import LOOP_STOP

counter = [0]
executed: list[Any] = []


@tool
def same(command: str = "") -> str:
    """Same result."""
    executed.append(command)
    return "nothing new"


@tool
def poll(command: str = "") -> str:
    """Another result each time."""
    counter[0] += 1
    return f"step {counter[0]}"


@tool
def write_file(path: str, content: str) -> str:
    """Write."""
    return "ok"


@pytest.fixture(autouse=True)
def _fresh() -> None:
    counter[0] = 0
    executed.clear()


async def no_sleep(seconds: float) -> None:
    return None


def opened(start, *inner: Any, **settings: Any):
    chain = [
        DanglingToolCallMiddleware(),
        LLMErrorHandlingMiddleware(sleep=no_sleep),
        ToolErrorHandlingMiddleware(),
        LoopDetectionMiddleware(LoopDetectionConfig(**settings)),
        ClarificationMiddleware(),
        *inner,
    ]
    return start(*chain, tools=[same, poll, write_file])


AGAIN = ToolCalls(("same", {"command": "ls"}))


async def test_three_equal_calls_are_warned_about_at_the_tail_only(start, endpoint) -> None:
    endpoint.script(AGAIN, AGAIN, AGAIN, Text("I stop"))
    talk = opened(start)
    messages = await talk.say("go")
    warned = ["[LOOP DETECTED]" in str(body["messages"][-1]["content"]) for body in endpoint.requests]
    assert warned == [False, False, False, True]
    assert talk.request(3)[-1] | {"content": ""} == {"role": "user", "name": "loop_warning", "content": ""}
    assert not any("LOOP" in str(m.content) for m in messages)
    await talk.say("next")
    assert "LOOP" not in str(talk.request())


async def test_the_fifth_equal_call_is_not_executed_and_a_final_answer_is_asked_for(start, endpoint) -> None:
    endpoint.script(*[AGAIN] * 5, Text("here is what I found"))
    talk = opened(start)
    messages = await talk.say("go")
    assert len(executed) == 4
    assert messages[-1].content == "here is what I found"
    why = "same (ls) was called 5 times with the same result"
    assert messages[-1].additional_kwargs[LOOP_STOP] == why
    assert messages[-2].content == f"Error: not executed: {why}. Give your final answer now."
    assert endpoint.requests[-1]["tool_choice"] == "none"
    assert "Tools are closed for this turn" in talk.tail()
    assert await talk.finished()


async def test_a_model_that_calls_even_then_is_stopped(start, endpoint) -> None:
    endpoint.script(*[AGAIN] * 5, ToolCalls(("same", {"command": "ls"}), text="let me see"))
    talk = opened(start)
    last = (await talk.say("go"))[-1]
    said = f"{FORCED_STOP}: same (ls) was called 5 times with the same result."
    assert last.content == f"let me see\n\n{said}"
    assert (last.tool_calls, last.invalid_tool_calls) == ([], [])
    assert last.response_metadata["finish_reason"] == "stop"
    assert await talk.finished()
    assert len(executed) == 4


async def test_where_forbidding_tools_is_refused_the_reminder_must_do(start, endpoint) -> None:
    endpoint.script(*[AGAIN] * 5, HttpError(400, "tool_choice none is not supported"), Text("fine"))
    talk = opened(start)
    assert (await talk.say("go"))[-1].content == "fine"
    assert "tool_choice" not in endpoint.requests[-1]


async def test_a_busy_provider_at_the_last_call_is_retried(start, endpoint) -> None:
    endpoint.script(*[AGAIN] * 5, HttpError(503), AGAIN, Text("fine"))
    assert (await opened(start).say("go"))[-1].content == "fine"


async def test_polling_with_new_results_is_progress(start, endpoint) -> None:
    endpoint.script(*[ToolCalls(("poll", {"command": "tail log"}))] * 12, Text("done"))
    talk = opened(start)
    assert (await talk.say("go"))[-1].content == "done"
    assert counter[0] == 12
    assert "LOOP" not in str(endpoint.requests)


async def test_different_calls_are_silent(start, endpoint) -> None:
    endpoint.script(*[ToolCalls(("same", {"command": f"ls {n}"})) for n in range(12)], Text("done"))
    assert (await opened(start).say("go"))[-1].content == "done"
    assert "LOOP" not in str(endpoint.requests)


async def test_counting_begins_anew_with_each_turn(start, endpoint) -> None:
    """W-31"""
    talk = opened(start, tool_freq_warn=4, tool_freq_hard_limit=5)
    for _ in range(4):
        endpoint.script(AGAIN, AGAIN, Text("done"))
        assert (await talk.say("go"))[-1].content == "done"
    assert "LOOP" not in str(endpoint.requests)


async def test_the_window_slides(start, endpoint) -> None:
    others = [ToolCalls(("same", {"command": str(n)})) for n in range(4)]
    endpoint.script(AGAIN, AGAIN, *others, AGAIN, Text("done"))
    await opened(start, window_size=4).say("go")
    assert "LOOP" not in str(endpoint.requests)


async def test_many_calls_of_one_tool_warn_once_and_stop_at_the_limit(start, endpoint) -> None:
    endpoint.script(*[ToolCalls(("same", {"command": str(n)})) for n in range(6)], Text("that's all"))
    talk = opened(start, tool_freq_warn=3, tool_freq_hard_limit=6)
    assert (await talk.say("go"))[-1].content == "that's all"
    assert len(executed) == 5
    warned = [
        "[LOOP DETECTED] You called same 3 times" in str(body["messages"][-1]["content"]) for body in endpoint.requests
    ]
    assert warned == [False, False, False, True, False, False, False]


async def test_every_call_of_a_message_counts(start, endpoint) -> None:
    endpoint.script(ToolCalls(*[("same", {"command": str(n)}) for n in range(4)]), Text("stopped"))
    assert (await opened(start, tool_freq_hard_limit=4).say("go"))[-1].content == "stopped"
    assert executed == []


async def test_tools_are_counted_independently(start, endpoint) -> None:
    endpoint.script(
        *[ToolCalls((name, {"command": str(n)})) for n in range(4) for name in ("same", "poll")], Text("done")
    )
    assert (await opened(start, tool_freq_warn=5, tool_freq_hard_limit=5).say("go"))[-1].content == "done"


async def test_unreadable_calls_are_a_loop_too(start, endpoint) -> None:
    broken = [ToolCalls(RawToolCall("write_file", '{"path": a, "content": "' + "x" * n)) for n in range(5)]
    endpoint.script(*broken, Text("I cannot"))
    messages = await opened(start).say("go")
    assert messages[-1].content == "I cannot"


async def test_the_stop_removes_calls_in_every_form(start, endpoint) -> None:
    """W-19"""
    block = {"type": "tool_use", "id": "c1", "name": "same", "input": {"command": "ls"}}

    class Insisting(AgentMiddleware):
        async def awrap_model_call(self, request, handler) -> Any:
            return AIMessage(
                content=[{"type": "text", "text": "hm"}, dict(block)],
                tool_calls=[{"name": "same", "args": {"command": "ls"}, "id": "c1"}],
                additional_kwargs={"tool_calls": [{"id": "c1"}], "function_call": {"name": "same"}, "other": 1},
                response_metadata={"finish_reason": "tool_calls"},
            )

    talk = opened(start, Insisting(), hard_limit=1)
    last = (await talk.say("go"))[-1]
    said = f"{FORCED_STOP}: same (ls) was called 1 times with the same result."
    assert last.content == [{"type": "text", "text": "hm"}, {"type": "text", "text": said}]
    assert last.tool_calls == []
    assert last.additional_kwargs == {"other": 1, LOOP_STOP: "same (ls) was called 1 times with the same result"}


def turn(*outcomes: str, human: str | None = None) -> tuple[Any, ...]:
    messages: list[Any] = [HumanMessage("go", name=human)]
    for n, outcome in enumerate(outcomes):
        messages += [
            AIMessage("", tool_calls=[{"name": "same", "args": {}, "id": str(n)}]),
            ToolMessage(outcome, tool_call_id=str(n)),
        ]
    return tuple(messages)


def tail_of(*messages: Any) -> tuple[Any, ...]:
    return LoopDetectionMiddleware().compile(Transcript(messages), None).tail


def test_no_warning_gives_the_same_object() -> None:
    transcript = Transcript(turn("a", "a"))
    assert LoopDetectionMiddleware().compile(transcript, None) is transcript


def test_human_messages_that_no_human_wrote_do_not_begin_a_turn() -> None:
    images = HumanMessage("images", name="viewed_images")
    assert tail_of(*turn("a", "a"), images, *turn("a")[1:])
    assert not tail_of(*turn("a", "a"), HumanMessage("stop"), *turn("a")[1:])


def test_only_equal_results_count() -> None:
    assert tail_of(*turn("a", "b", "a", "a"))
    assert not tail_of(*turn("a", "a", "b"))


def step(n: int, name: str, args: dict[str, Any], result: str, artifact: Any = None) -> list[Any]:
    made = ToolMessage(result, tool_call_id=str(n), name=name, artifact=artifact)
    return [AIMessage("", tool_calls=[{"name": name, "args": args, "id": str(n)}]), made]


def edited_and_tested(*contents: str) -> list[Any]:
    """A test that fails alike after each edit."""
    messages: list[Any] = [HumanMessage("go")]
    for n, content in enumerate(contents):
        written = {"files": [{"path": "/a.py", "bytes": 1, "sha256": content}]}
        messages += step(2 * n, "write_file", {"path": "/a.py", "content": content}, "OK", written)
        messages += step(2 * n + 1, "bash", {"command": "pytest"}, "1 failed", {"exit_code": 1})
    return messages


def test_a_test_that_fails_alike_after_each_new_edit_is_progress() -> None:
    pending = [call("bash", command="pytest")]
    assert not tail_of(*edited_and_tested("a", "b", "c", "d", "e", "f"))
    assert not LoopDetectionMiddleware()._why_stop(edited_and_tested("a", "b", "c", "d", "e", "f"), pending)


def test_edits_that_change_nothing_or_go_back_and_forth_are_a_loop() -> None:
    pending = [call("bash", command="pytest")]
    assert tail_of(*edited_and_tested("a", "a", "a"))
    assert tail_of(*edited_and_tested("a", "b", "a", "b", "a"))
    assert LoopDetectionMiddleware()._why_stop(edited_and_tested("a", "a", "a", "a"), pending)


@pytest.mark.parametrize(
    "artifact", ["text", ["files"], {"files": None}, {"files": ["/a"]}, {"files": [{"path": "/a"}]}]
)
def test_artifacts_of_other_tools_are_left_alone(artifact: Any) -> None:
    steps = [message for n in range(3) for message in step(n, "theirs", {}, "same", artifact)]
    assert tail_of(HumanMessage("go"), *steps)


def polled(times: int, result: str) -> list[Any]:
    reads = [message for n in range(times) for message in step(n, "read_process", {"process_id": "p1"}, result)]
    return [HumanMessage("go"), *reads]


def test_waiting_for_a_silent_process_is_no_loop_while_it_runs() -> None:
    pending = [call("read_process", process_id="p1")]
    waiting, ended = "Process p1 (running)\n(no new output)", "Process p1 (ended, Exit Code: 0)\n(no new output)"
    assert not tail_of(*polled(12, waiting))
    assert not LoopDetectionMiddleware()._why_stop(polled(12, waiting), pending)
    assert tail_of(*polled(3, ended))
    assert LoopDetectionMiddleware()._why_stop(polled(4, ended), pending)


@pytest.mark.parametrize(
    "command", ["sleep 2; tail -3 build.log", "cd app && sleep 0.5 && cat log", "wait %1", "tail -f log"]
)
def test_a_command_that_waits_for_a_silent_build_is_no_loop(command: str) -> None:
    looked = [message for n in range(60) for message in step(n, "bash", {"command": command}, "compiling")]
    pending = [call("bash", command=command)]
    for settings in (LoopDetectionConfig(), LoopDetectionConfig(hard_limit=2)):
        assert not LoopDetectionMiddleware(settings)._why_stop([HumanMessage("go"), *looked], pending)
    assert not tail_of(HumanMessage("go"), *looked)


@pytest.mark.parametrize("command", ["ls", "sleep 0; ls", "cat sleep.txt"])
def test_a_command_that_waits_for_nothing_is_a_loop(command: str) -> None:
    looked = [message for n in range(4) for message in step(n, "bash", {"command": command}, "compiling")]
    assert LoopDetectionMiddleware()._why_stop([HumanMessage("go"), *looked], [call("bash", command=command)])


def test_pictures_that_differ_are_different_results() -> None:
    shots: list[Any] = [HumanMessage("go")]
    for n in range(6):
        shown = ToolMessage(
            [{"type": "image_url", "image_url": {"url": f"data:{n}"}}], tool_call_id=str(n), name="shot"
        )
        shots += [AIMessage("", tool_calls=[{"name": "shot", "args": {}, "id": str(n)}]), shown]
    assert not LoopDetectionMiddleware()._why_stop(shots, [call("shot")])


async def test_no_number_of_calls_alone_ends_a_turn(start, endpoint) -> None:
    """120 of three tools, among them 40 searches that find nothing."""
    names = {"write_file": {"content": "x"}, "same": {}, "poll": {}}
    for n in range(40):
        for name, more in names.items():
            key = "path" if name == "write_file" else "command"
            endpoint.script(ToolCalls((name, {key: str(n), **more})))
    endpoint.script(Text("done"))
    assert (await opened(start).say("go"))[-1].content == "done"
    assert "LOOP" not in str(endpoint.requests)


async def test_a_tool_of_its_own_limit_has_no_other(start, endpoint) -> None:
    own = {"poll": {"hard_limit": 3}, "write_file": {}}
    endpoint.script(*[ToolCalls(("write_file", {"path": str(n), "content": ""})) for n in range(6)])
    endpoint.script(*[ToolCalls(("poll", {"command": str(n)})) for n in range(3)], Text("stopped"))
    talk = opened(start, tool_freq_hard_limit=5, tool_freq_overrides=own)
    assert (await talk.say("go"))[-1].additional_kwargs[LOOP_STOP] == "poll was called 3 times in one turn"
    assert counter[0] == 2


async def test_null_means_no_limit(start, endpoint) -> None:
    endpoint.script(*[AGAIN] * 30, Text("done"))
    assert (await opened(start, hard_limit=None, warn_threshold=None).say("go"))[-1].content == "done"
    assert "LOOP" not in str(endpoint.requests)


def call(name: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": "x"}


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ([call("bash", command="ls")], [call("bash", command="ls", description="other words")], True),
        ([call("bash", command="ls")], [call("bash", command="ls -l")], False),
        ([call("search", query="a", page=1)], [call("search", query="a", page=2)], False),
        ([call("issue", description="a")], [call("issue", description="b")], False),
        ([call("a"), call("b")], [call("b"), call("a")], True),
        ([call("a", x=1)], [call("a", x=2)], False),
        ([{"name": "bash", "args": '{"command": "ls"}'}], [call("bash", command="ls")], True),
        ([{"name": "bash", "args": "not json"}], [{"name": "bash", "args": "[1"}], True),
        (
            [call("read_file", path="a", start_line=1, end_line=50)],
            [call("read_file", path="a", start_line=40, end_line=10)],
            True,
        ),
        (
            [call("read_file", path="a", start_line=1, end_line=50)],
            [call("read_file", path="a", start_line=300, end_line=350)],
            False,
        ),
        ([call("read_file", path="a")], [call("read_file", path="b")], False),
        ([call("read_file", path="a", start_line="x")], [call("read_file", path="a")], True),
        ([call("write_file", path="a", content="1")], [call("write_file", path="a", content="2")], False),
        ([call("str_replace", path="a", old="1")], [call("str_replace", path="a", old="2")], False),
        ([call("grep", pattern="a")], [call("grep", pattern="b")], False),
        ([], [], True),
    ],
)
def test_calls_that_do_the_same_have_the_same_hash(one, other, equal) -> None:
    assert (hash_tool_calls(one) == hash_tool_calls(other)) is equal
    assert len(hash_tool_calls(one)) == 12
