"""What a run says, as the agent streaming protocol tells it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.language_models.chat_model_stream import ChatModelStream

from deerflow.events.jsonable import encode
from deerflow.events.store import EVENTS_PER_CLAIM, RunEvent
from deerflow.events.streams.agent_protocol import SLOTS, Frame, Renderer, epoch_start, log_position

NODE = {"langgraph_node": "model"}


class Script:
    """Events of one attempt at a run, in order."""

    def __init__(self, epoch: int = 1, run_id: str = "r1", attempt: int = 1) -> None:
        self._next = itertools.count(epoch * EVENTS_PER_CLAIM)
        self.run_id = run_id
        self.events: list[RunEvent] = []
        self.add("metadata", {"run_id": run_id, "thread_id": "t", "attempt": attempt})

    def add(self, method: str, data: Any, namespace: tuple[str, ...] = ()) -> Script:
        self.events.append(RunEvent(next(self._next), self.run_id, method, data, namespace))
        return self

    def chunk(self, id_: str, content: Any = "", *, namespace: tuple[str, ...] = (), **more: Any) -> Script:
        return self.add(
            "messages", [{"type": "AIMessageChunk", "id": id_, "content": content, **more}, NODE], namespace
        )

    def whole(self, message: dict[str, Any], *, namespace: tuple[str, ...] = ()) -> Script:
        return self.add("messages", [message, NODE], namespace)

    def end(self, status: str = "success") -> Script:
        return self.add("end", {"status": status})


def rendered(*scripts: Script, answers: Sequence[str] = ()) -> list[Frame]:
    renderer = Renderer()
    return [frame for script in scripts for event in script.events for frame in renderer.render(event, answers)]


def data_of(frames: list[Frame], method: str) -> list[Any]:
    return [frame.data for frame in frames if frame.method == method]


def folded(datas: list[Any]) -> list[Any]:
    """What LangChain's own client makes of message events."""
    streams: list[ChatModelStream] = []
    for data in datas:
        if data["event"] == "message-start":
            streams.append(ChatModelStream(namespace=[], node=None, message_id=data["id"]))
        streams[-1].dispatch(data)
    return [stream.output_message for stream in streams]


def tool_chunk(**more: Any) -> dict[str, Any]:
    return {"tool_call_chunks": [{"name": None, "id": None, "type": "tool_call_chunk", **more}]}


def test_tokens_fold_into_the_message() -> None:
    script = Script()
    for token in ("Hel", "lo ", "world"):
        script.chunk("m1", token)
    script.add("updates", {"model": {"messages": [{"type": "ai", "id": "m1", "content": "Hello world"}]}}).end()

    (message,) = folded(data_of(rendered(script), "messages"))

    assert (message.id, message.text) == ("m1", "Hello world")


def test_thinking_and_calls_are_blocks_of_their_own() -> None:
    script = Script()
    script.chunk("m1", "", additional_kwargs={"reasoning_content": "Let me "})
    script.chunk("m1", "", additional_kwargs={"reasoning_content": "see."})
    script.chunk("m1", "I look.")
    script.chunk("m1", **tool_chunk(name="ls", id="c1", args='{"path":', index=0))
    script.chunk("m1", **tool_chunk(args=' "/"}', index=0))
    script.chunk("m1", **tool_chunk(name="pwd", id="c2", args="", index=1))
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    script.chunk("m1", usage_metadata=usage, response_metadata={"finish_reason": "tool_calls"})
    calls = [{"name": "ls", "id": "c1", "args": {"path": "/"}}, {"name": "pwd", "id": "c2", "args": {}}]
    whole = {"type": "ai", "id": "m1", "content": "I look.", "tool_calls": calls, "usage_metadata": usage}
    script.add("updates", {"model": {"messages": [whole]}})

    frames = rendered(script)

    ends = [data["content"] for data in data_of(frames, "messages") if data["event"] == "content-block-finish"]
    assert ends == [
        {"type": "reasoning", "reasoning": "Let me see."},
        {"type": "text", "text": "I look."},
        {"type": "tool_call", "id": "c1", "name": "ls", "args": {"path": "/"}},
        {"type": "tool_call", "id": "c2", "name": "pwd", "args": {}},
    ]
    assert data_of(frames, "messages")[-1] == {"event": "message-finish", "usage": usage, "reason": "tool_calls"}
    (message,) = folded(data_of(frames, "messages"))
    assert [call["name"] for call in message.tool_calls] == ["ls", "pwd"]
    assert message.usage_metadata["total_tokens"] == 7


def test_blocks_of_providers_that_send_content_as_lists_are_told_apart() -> None:
    script = Script()
    script.chunk("m1", [{"type": "thinking", "thinking": "Hm", "index": 0}])
    script.chunk("m1", [{"type": "text", "text": "One", "index": 1}])
    script.chunk("m1", [{"type": "text", "text": " two", "index": 1}])
    script.chunk("m1", [{"type": "input_json_delta", "partial_json": "{}", "index": 2}])
    script.chunk("m1", [{"type": "image", "url": "https://example.com/a.png", "index": 3}])
    script.end()

    ends = [data for data in data_of(rendered(script), "messages") if data["event"] == "content-block-finish"]

    assert [end["content"]["type"] for end in ends] == ["reasoning", "text", "image"]
    assert ends[1]["content"]["text"] == "One two"


def test_forty_tokens_cost_less_than_12_kilobytes() -> None:
    script = Script(epoch=1234)
    for _ in range(40):
        script.chunk("lc_run--0199f2f5-4a8e-7b5c-9f0a-1c2d3e4f5a6b", "token ")
    script.add(
        "updates", {"model": {"messages": [{"type": "ai", "id": "lc_run--0199f2f5-4a8e-7b5c-9f0a-1c2d3e4f5a6b"}]}}
    )

    events = [frame.event(1_763_776_000_000) for frame in rendered(script) if frame.method == "messages"]
    sent = b"".join(b"id: %b\r\ndata: %b\r\n\r\n" % (event["event_id"].encode(), encode(event)) for event in events)

    assert len(events) == 44
    assert len(sent) <= 12_000


def test_positions_grow_are_unique_and_the_same_at_every_connection() -> None:
    script = Script()
    script.chunk("m1", "a").chunk("m1", "b").add("values", None)
    script.add("updates", {"model": {"messages": [{"type": "ai", "id": "m1", "content": "ab"}]}}).end()

    frames = rendered(script)

    seqs = [frame.seq for frame in frames]
    assert seqs == sorted(set(seqs))
    assert [frame.event_id for frame in frames] == [frame.event_id for frame in rendered(script)]
    assert {log_position(seq) for seq in seqs} <= {event.seq for event in script.events}
    assert max(seqs) < 2**53


def test_a_facts_dependent_event_does_not_move_the_ids_of_others() -> None:
    script = Script().chunk("m1", "a").end()

    without, with_facts = rendered(script), rendered(script, answers=["0" * 32])

    assert [frame.event_id for frame in with_facts if frame.method != "input.answered"] == [f.event_id for f in without]


def test_an_event_that_says_more_than_it_has_room_for_is_told_anew_to_who_resumes_within() -> None:
    calls = [{"name": f"t{n}", "id": f"c{n}", "args": {}} for n in range(SLOTS)]
    script = Script().whole({"type": "ai", "id": "m1", "content": "", "tool_calls": calls})

    frames = [frame for frame in rendered(script) if log_position(frame.seq) == script.events[1].seq]

    seqs = [frame.seq for frame in frames]
    assert len(frames) > SLOTS and len({frame.event_id for frame in frames}) == len(frames)
    assert seqs == sorted(seqs) and seqs[-1] > seqs[-2]
    for index, frame in enumerate(frames):
        resumed = {later.event_id for later in frames if later.seq > frame.seq}
        lost = {later.event_id for later in frames[index + 1 :]} - resumed
        assert not lost or frame.seq == seqs[-2]


@pytest.mark.parametrize(
    ("status", "event"),
    [("success", "completed"), ("error", "failed"), ("timeout", "failed"), ("interrupted", "interrupted")],
)
def test_a_run_is_told_from_running_to_its_end_by_ids_that_name_it(status: str, event: str) -> None:
    script = Script(run_id="run-7")
    if status == "error":
        script.add("error", {"error": "RuntimeError", "message": "The model is gone."})
    script.end(status)

    told = [frame for frame in rendered(script) if frame.method == "lifecycle"]

    assert [frame.data["event"] for frame in told] == ["running", event]
    assert all(frame.event_id.startswith("synth:run-7:") for frame in told)
    assert told[-1].final and not told[0].final
    assert ("error" in told[-1].data) == (event == "failed")
    if status == "error":
        assert told[-1].data["error"] == "The model is gone."


def test_what_a_run_begins_with_is_an_update_that_says_where_it_stands() -> None:
    frames = rendered(Script().add("input", {"after": "m0", "values": {"messages": [{"type": "human", "id": "h"}]}}))
    values = {"messages": [{"type": "human", "id": "h"}]}
    assert data_of(frames, "updates") == [{"node": "__start__", "after": "m0", "values": values}]


def test_the_last_values_come_before_the_last_word() -> None:
    assert [frame.method for frame in rendered(Script().end())] == ["lifecycle", "checkpoints", "values", "lifecycle"]


def test_what_was_cut_off_is_finished_before_the_run_ends() -> None:
    frames = rendered(Script().chunk("m1", "Half an ans").end("interrupted"))

    events = [data["event"] for data in data_of(frames, "messages")]
    assert events == [
        "message-start",
        "content-block-start",
        "content-block-delta",
        "content-block-finish",
        "message-finish",
    ]
    assert frames[-1].data["event"] == "interrupted"


def test_a_message_that_people_do_not_see_says_so_when_it_starts() -> None:
    result = {"type": "human", "id": "n", "content": "A task has ended.", "additional_kwargs": {"hide_from_ui": True}}
    script = Script().whole(result).whole({"type": "human", "id": "h", "content": "And now?"}).end()
    starts = [data for data in data_of(rendered(script), "messages") if data["event"] == "message-start"]
    assert [(one["id"], one["metadata"].get("hide_from_ui")) for one in starts] == [("n", True), ("h", None)]


def test_a_second_attempt_drops_what_the_first_left_half_said() -> None:
    first = Script(epoch=1).chunk("m1", "Half")
    second = Script(epoch=2, attempt=2).chunk("m2", "Whole").end()

    frames = rendered(first, second)

    told = data_of(frames, "messages")
    assert [data["event"] for data in told].index("error") < [data.get("id") for data in told].index("m2")
    assert [data["event"] for data in data_of(frames, "lifecycle")] == ["running", "running", "completed"]


def test_half_an_answer_that_is_asked_for_anew_is_over_before_the_values_that_are_without_it() -> None:
    script = Script().chunk("m1", "Half an").add("custom", {"type": "llm_retry", "attempt": 2}).add("values", None)
    frames = rendered(script.chunk("m2", "Whole"))

    told = [frame.data["event"] if frame.method == "messages" else frame.method for frame in frames]
    start = ["message-start", "content-block-start", "content-block-delta"]
    assert told[1:] == [*start, "content-block-finish", "message-finish", "custom", "checkpoints", "values", *start]


def test_messages_that_come_in_turns_are_both_told_whole() -> None:
    script = Script().chunk("a", "one ").chunk("b", "eins ").chunk("a", "two").chunk("b", "zwei").end()

    by_id = {message.id: message.text for message in folded(data_of(rendered(script), "messages"))}

    assert by_id == {"a": "one two", "b": "eins zwei"}


def test_tools_are_at_work_from_the_call_to_the_result() -> None:
    script = Script()
    calls = [{"name": "ls", "id": "c1", "args": {"path": "/"}}, {"name": "rm", "id": "c2", "args": {}}]
    script.add("updates", {"model": {"messages": [{"type": "ai", "id": "m1", "content": "", "tool_calls": calls}]}})
    script.whole(
        {"type": "tool", "id": "t1", "name": "ls", "tool_call_id": "c1", "content": "bin", "status": "success"}
    )
    script.whole({"type": "tool", "id": "t2", "name": "rm", "tool_call_id": "c2", "content": "No.", "status": "error"})
    again = {"type": "tool", "id": "t1", "name": "ls", "tool_call_id": "c1", "content": "bin"}
    script.add("updates", {"tools": {"messages": [again]}}).end()

    assert data_of(rendered(script), "tools") == [
        {"event": "tool-started", "tool_call_id": "c1", "tool_name": "ls", "input": {"path": "/"}},
        {"event": "tool-started", "tool_call_id": "c2", "tool_name": "rm", "input": {}},
        {"event": "tool-finished", "tool_call_id": "c1", "output": "bin"},
        {"event": "tool-error", "tool_call_id": "c2", "message": "No."},
    ]


def test_a_result_whose_call_was_made_by_an_earlier_run_is_told_with_its_start() -> None:
    script = Script().whole({"type": "tool", "id": "t1", "name": "ls", "tool_call_id": "c1", "content": "bin"})

    assert [data["event"] for data in data_of(rendered(script), "tools")] == ["tool-started", "tool-finished"]


def test_results_of_tools_are_messages_that_name_their_call() -> None:
    script = Script().whole({"type": "tool", "id": "t1", "name": "ls", "tool_call_id": "c1", "content": "bin"})

    start, *_, finish, _ = data_of(rendered(script), "messages")

    assert (start["role"], start["id"], start["tool_call_id"]) == ("tool", "t1", "c1")
    assert finish["content"] == {"type": "text", "text": "bin"}


def test_an_interrupt_is_a_request_for_input_and_no_update() -> None:
    interrupt = {"__interrupt__": [{"value": {"question": "Really?"}, "id": "i1"}]}
    frames = rendered(Script().add("updates", interrupt, ("tools:c1",)).add("updates", interrupt).end("interrupted"))

    (asked,) = data_of(frames, "input.requested")
    assert asked["interrupt_id"] == "i1"
    assert asked["payload"] == asked["value"] == {"question": "Really?"}
    assert data_of(frames, "updates") == []


def test_a_subgraph_starts_when_it_is_first_heard_of_and_ends_with_the_call_that_made_it() -> None:
    script = Script()
    call = {"type": "ai", "id": "m1", "content": "", "tool_calls": [{"name": "task", "id": "c1", "args": {}}]}
    script.add("updates", {"model": {"messages": [call]}})
    script.chunk("s1", "hi", namespace=("tools:c1",)).chunk("s2", "deep", namespace=("tools:c1", "inner:9"))
    script.whole({"type": "tool", "id": "t1", "name": "task", "tool_call_id": "c1", "content": "done"}).end()

    told = [(frame.namespace, frame.data["event"]) for frame in rendered(script) if frame.method == "lifecycle"]

    assert told == [
        ([], "running"),
        (["tools:c1"], "started"),
        (["tools:c1", "inner:9"], "started"),
        (["tools:c1", "inner:9"], "completed"),
        (["tools:c1"], "completed"),
        ([], "completed"),
    ]
    started = next(frame for frame in rendered(script) if frame.namespace == ["tools:c1"])
    assert started.data["cause"] == {"type": "toolCall", "tool_call_id": "c1"}


def test_custom_events_are_named_by_what_they_call_themselves() -> None:
    frames = rendered(Script().add("custom", {"type": "task_started", "n": 1}).add("custom", "plain"))

    assert data_of(frames, "custom") == [
        {"name": "task_started", "payload": {"type": "task_started", "n": 1}},
        {"payload": "plain"},
    ]


def test_checkpoints_are_told_without_the_state_they_hold() -> None:
    config = {"configurable": {"thread_id": "t", "checkpoint_id": "k2"}}
    parent = {"configurable": {"checkpoint_id": "k1"}}
    metadata = {"step": 3, "source": "loop"}
    given = {"config": config, "parent_config": parent, "metadata": metadata, "values": {"messages": ["much"]}}

    (told,) = data_of(rendered(Script().add("checkpoints", given)), "checkpoints")

    assert told == {"id": "k2", "parent_id": "k1", "step": 3, "source": "loop"}


def test_reading_on_from_any_position_gives_exactly_the_rest() -> None:
    script = Script()
    script.chunk("m1", "", additional_kwargs={"reasoning_content": "Hm"}).chunk("m1", "Hel").chunk("m1", "lo")
    script.chunk("m1", **tool_chunk(name="ls", id="c1", args="{}", index=0))
    calls = [{"name": "ls", "id": "c1", "args": {}}]
    script.add(
        "updates", {"model": {"messages": [{"type": "ai", "id": "m1", "content": "Hello", "tool_calls": calls}]}}
    )
    script.whole({"type": "tool", "id": "t1", "name": "ls", "tool_call_id": "c1", "content": "bin"}).end()
    everything = rendered(script)

    for index, frame in enumerate(everything):
        start = epoch_start(log_position(frame.seq) // EVENTS_PER_CLAIM)
        renderer = Renderer()
        later = [told for event in script.events if event.seq > start for told in renderer.render(event)]
        assert [told for told in later if told.seq > frame.seq] == everything[index + 1 :]
