"""What clients of the LangGraph SDK read."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph_sdk.sse import BytesLineDecoder, SSEDecoder

from deerflow.errors import InvalidRequestError
from deerflow.events.log import RunEvent
from deerflow.events.streams.langgraph_sse import Frames

STATE = {"messages": [{"type": "human", "content": "hi", "id": "h"}], "title": "a"}


async def nothing() -> None:
    return None


async def state() -> dict[str, Any]:
    return STATE


def events(*described: tuple[Any, ...]) -> list[RunEvent]:
    return [RunEvent(seq, "r", *what) for seq, what in enumerate(described, start=1)]


def token(content: str, message_id: str = "m", **more: Any) -> tuple[str, Any]:
    return "messages", [
        {"type": "AIMessageChunk", "id": message_id, "content": content, **more},
        {"langgraph_node": "model"},
    ]


def read(data: bytes) -> list[tuple[str, Any, str | None]]:
    """As the official SDK decodes it."""
    lines, decoder = BytesLineDecoder(), SSEDecoder()
    parts = [decoder.decode(bytes(line)) for line in lines.decode(data)]
    return [(part.event, part.data, part.id) for part in parts if part is not None]


async def test_every_event_is_three_lines_with_cr_lf_and_an_id() -> None:
    data = await Frames(["updates"], False, nothing).render(events(("updates", {"model": None})))
    assert data == b'event: updates\r\ndata: {"model":null}\r\nid: 1\r\n\r\n'


async def test_only_what_was_asked_for_is_sent_besides_metadata_error_and_end() -> None:
    batch = events(
        ("metadata", {"run_id": "r", "attempt": 1}),
        token("a"),
        ("custom", {"x": 1}),
        ("values", None),
        ("updates", {"model": {}}),
        ("error", {"error": "ValueError", "message": "no"}),
        ("end", {"status": "error"}),
    )
    frames = Frames(["custom"], False, state)
    assert read(await frames.render(batch)) == [
        ("metadata", {"run_id": "r", "attempt": 1}, "1"),
        ("custom", {"x": 1}, "3"),
        ("error", {"error": "ValueError", "message": "no"}, "6"),
        ("end", {"status": "error"}, "7"),
    ]
    assert frames.ended


async def test_an_unknown_mode_is_named() -> None:
    with pytest.raises(InvalidRequestError, match="'valeus' is not a stream mode"):
        Frames(["updates", "valeus"], False, nothing)


async def test_subgraphs_are_shown_with_their_namespace_and_only_when_asked_for() -> None:
    batch = events(("updates", {"a": 1}), ("updates", {"b": 2}, ("tools:1", "model:2")), ("values", None, ("tools:1",)))
    assert [name for name, _, _ in read(await Frames(["updates"], False, state).render(batch))] == ["updates"]
    names = [name for name, _, _ in read(await Frames(["updates", "values"], True, nothing).render(batch))]
    assert names == ["updates", "updates|tools:1|model:2"]


async def test_of_several_states_only_the_newest_is_sent_and_never_the_same_twice() -> None:
    frames = Frames(["values"], False, state)
    batch = events(("values", None), ("updates", {}), ("values", None), ("values", None))
    assert read(await frames.render(batch)) == [("values", STATE, "4")]
    assert await frames.render([RunEvent(5, "r", "values", None)]) == b""


async def test_the_same_state_is_sent_again_when_a_new_attempt_makes_void_what_was_streamed() -> None:
    frames = Frames(["values", "messages-tuple"], False, state)
    await frames.render(events(("metadata", {"attempt": 1}), ("values", None), token("half a sen")))
    again = [RunEvent(4, "r", "metadata", {"attempt": 2}), RunEvent(5, "r", "values", None)]
    assert [name for name, _, _ in read(await frames.render(again))] == ["metadata", "values"]


async def test_the_same_state_is_sent_again_when_the_model_is_asked_anew() -> None:
    frames = Frames(["values", "messages-tuple", "custom"], False, state)
    await frames.render(events(("values", None), ("custom", {"say": "llm_retry"}), token("half a sen")))
    assert await frames.render([RunEvent(4, "r", "values", None)]) == b""
    again = [RunEvent(5, "r", "custom", {"type": "llm_retry"}), RunEvent(6, "r", "values", None)]
    assert [name for name, _, _ in read(await frames.render(again))] == ["custom", "values"]


async def test_no_state_is_sent_when_there_is_none() -> None:
    assert await Frames(["values"], False, nothing).render(events(("values", None))) == b""


async def test_tokens_are_sent_singly_to_who_reads_live_and_together_to_who_lags() -> None:
    tokens = events(*(token(f"t{number} ") for number in range(40)))
    live = Frames(["messages-tuple"], False, nothing)
    data = b"".join([await live.render([event]) for event in tokens])
    assert len(data) <= 25_000
    assert len(read(data)) == 40
    together = read(await Frames(["messages-tuple"], False, nothing).render(tokens))
    text = "".join(f"t{number} " for number in range(40))
    chunk = {"type": "AIMessageChunk", "id": "m", "content": text}
    assert together == [("messages", [chunk, {"langgraph_node": "model"}], "40")]


async def test_only_pieces_of_one_message_are_put_together() -> None:
    usage = {"usage_metadata": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}
    tool = ("messages", [{"type": "tool", "id": "x", "content": "done"}, {"langgraph_node": "tools"}])
    batch = events(
        token("a"),
        token("b"),
        token("c", "other"),
        token("d", "other"),
        ("custom", 1),
        token("e", "other"),
        token("", "other", **usage),
        tool,
        tool,
    )
    parts = read(await Frames(["messages-tuple", "custom"], False, nothing).render(batch))
    assert [(name, position) for name, _, position in parts] == [
        ("messages", "2"),
        ("messages", "4"),
        ("custom", "5"),
        ("messages", "6"),
        ("messages", "7"),
        ("messages", "8"),
        ("messages", "9"),
    ]
    assert [data[0]["content"] for name, data, _ in parts if name == "messages"] == [
        "ab",
        "cd",
        "e",
        "",
        "done",
        "done",
    ]


async def test_arguments_of_a_call_and_reasoning_are_put_together() -> None:
    def call(**fields: Any) -> dict[str, Any]:
        return {"tool_call_chunks": [{"name": None, "args": "", "id": None, "index": 0, **fields}]}

    batch = events(
        token("", additional_kwargs={"reasoning_content": "I "}),
        token("", additional_kwargs={"reasoning_content": "think"}),
        token("", **call(name="bash", id="c1")),
        token("", **call(args='{"a"')),
        token("", **call(args=": 1}")),
        token("", **call(name="ls", id="c2", index=1)),
    )
    parts = [data[0] for _, data, _ in read(await Frames(["messages-tuple"], False, nothing).render(batch))]
    assert len(parts) == 2
    assert parts[0]["additional_kwargs"] == {"reasoning_content": "I think"}
    assert parts[0]["tool_call_chunks"] == [{"name": "bash", "args": '{"a": 1}', "id": "c1", "index": 0}]
    assert parts[1]["tool_call_chunks"][0]["name"] == "ls"


async def test_the_mode_messages_shows_messages_as_they_grow() -> None:
    tool = {"type": "tool", "id": "x", "content": "done"}
    frames = Frames(["messages"], False, nothing)
    parts = []
    for event in events(token("Hel"), token("lo"), ("messages", [tool, {"langgraph_node": "tools"}])):
        parts += read(await frames.render([event]))
    assert [name for name, _, _ in parts] == [
        "messages/metadata",
        "messages/partial",
        "messages/partial",
        "messages/metadata",
        "messages/complete",
    ]
    assert parts[0][1] == {"m": {"metadata": {"langgraph_node": "model"}}}
    assert [part[1][0]["content"] for part in parts[1:3]] == ["Hel", "Hello"]
    assert parts[2][1][0]["type"] == "ai"
    assert parts[4][1] == [tool]


async def test_who_comes_back_in_the_middle_of_a_message_still_sees_it_whole() -> None:
    frames = Frames(["messages"], False, nothing, after=2)
    assert frames.start == 0
    parts = read(await frames.render(events(token("a"), token("b"), token("c"))))
    assert [(name, data[0]["content"], position) for name, data, position in parts] == [
        ("messages/partial", "abc", "3")
    ]
    assert Frames(["messages-tuple"], False, nothing, after=2).start == 2
