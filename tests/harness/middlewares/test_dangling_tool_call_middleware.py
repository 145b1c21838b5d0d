from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call
from tests.support.unpaired_calls import unpaired_calls

from deerflow.agents.middlewares.dangling_tool_call_middleware import DanglingToolCallMiddleware
from deerflow.agents.transcript import Transcript


def compiled(*messages: Any) -> tuple[Any, ...]:
    return DanglingToolCallMiddleware().compile(Transcript(tuple(messages)), None).messages


def ai(*ids: Any, **more: Any) -> AIMessage:
    return AIMessage(content="", tool_calls=[tool_call(name="bash", args={"n": i}, id=i) for i in ids], **more)


def result(id_: str, content: str = "ok") -> ToolMessage:
    return ToolMessage(content=content, tool_call_id=id_)


def shape(messages: Any) -> list[str]:
    return [m.tool_call_id if isinstance(m, ToolMessage) else m.type for m in messages]


@pytest.mark.parametrize(
    "messages",
    [
        (),
        (HumanMessage("a"),),
        (HumanMessage("a"), AIMessage("b")),
        (HumanMessage("a"), ai("1", "2"), result("2"), result("1"), AIMessage("b")),
        (ai("call_0"), result("call_0"), ai("call_0"), result("call_0")),
    ],
)
def test_a_sound_history_stays_the_same_object(messages: Any) -> None:
    transcript = Transcript(messages)
    assert DanglingToolCallMiddleware().compile(transcript, None) is transcript


def test_a_missing_result_is_put_right_behind_its_message_and_says_interrupted() -> None:
    messages = compiled(HumanMessage("a"), ai("1"), HumanMessage("b"))
    assert shape(messages) == ["human", "ai", "1", "human"]
    assert "interrupted" in messages[2].content
    assert (messages[2].name, messages[2].status) == ("bash", "error")


def test_answered_calls_keep_their_results_beside_missing_ones() -> None:
    messages = compiled(ai("1", "2", "3"), result("2", "real"))
    assert shape(messages) == ["ai", "1", "2", "3"]
    assert messages[2].content == "real"


def test_a_late_result_moves_to_its_call() -> None:
    messages = compiled(ai("1"), HumanMessage("go on"), result("1", "late"), AIMessage("x"))
    assert shape(messages) == ["ai", "1", "human", "ai"]
    assert messages[1].content == "late"


def test_a_result_behind_another_message_with_calls_goes_to_its_own() -> None:
    messages = compiled(ai("1"), ai("2"), result("1", "one"), result("2", "two"))
    assert [(m.tool_call_id, m.content) for m in messages if isinstance(m, ToolMessage)] == [("1", "one"), ("2", "two")]
    assert not unpaired_calls(messages)


def test_duplicates_and_orphans_are_left_out() -> None:
    messages = compiled(result("0"), ai("1"), result("1", "first"), result("1", "second"), result("9"))
    assert [(m.tool_call_id, m.content) for m in messages if isinstance(m, ToolMessage)] == [("1", "first")]


def test_a_reused_id_belongs_to_the_latest_call() -> None:
    messages = compiled(ai("call_0"), HumanMessage("b"), ai("call_0"), result("call_0", "second"))
    assert shape(messages) == ["ai", "call_0", "human", "ai", "call_0"]
    assert messages[-1].content == "second"
    assert "interrupted" in messages[1].content


def test_a_note_between_a_call_and_its_results_moves_behind_them() -> None:
    messages = compiled(ai("1"), HumanMessage("warning", name="loop_warning"), result("1"), SystemMessage("s"))
    assert shape(messages) == ["ai", "1", "human", "system"]


def test_unreadable_calls_become_calls_with_a_result() -> None:
    message = AIMessage(content="", invalid_tool_calls=[invalid_tool_call(name="bash", args="{", id="1", error="bad")])
    owner, answer = compiled(message)
    assert owner.tool_calls[0]["args"] == {}
    assert owner.invalid_tool_calls == []
    assert "not valid JSON" in answer.content
    assert message.invalid_tool_calls, "the thread's own message must stay as it is"


@pytest.mark.parametrize(
    "raw",
    [
        {"id": "1", "function": {"name": "bash", "arguments": '{"command": "ls"}'}},
        {"id": "1", "name": "bash", "args": {"command": "ls"}},
    ],
)
def test_calls_in_the_providers_raw_format_are_seen(raw: dict[str, Any]) -> None:
    message = AIMessage(content="").model_copy(update={"additional_kwargs": {"tool_calls": [raw]}})
    owner, answer = compiled(message)
    assert (owner.tool_calls[0]["name"], owner.tool_calls[0]["args"]) == ("bash", {"command": "ls"})
    assert "interrupted" in answer.content


@pytest.mark.parametrize(
    "raw", [None, "text", [7], [{}], [{"function": None}], [{"function": {"arguments": "{"}}], [{"args": [1]}]]
)
def test_nonsense_in_the_raw_format_does_no_harm(raw: Any) -> None:
    message = AIMessage(content="").model_copy(update={"additional_kwargs": {"tool_calls": raw}})
    assert not unpaired_calls(compiled(message, HumanMessage("x")))


def test_calls_without_an_id_or_with_the_same_one_get_one_each() -> None:
    owner, *answers = compiled(ai(None, "1", "1", ""))
    ids = [call["id"] for call in owner.tool_calls]
    assert len(set(ids)) == 4
    assert all(ids)
    assert [a.tool_call_id for a in answers] == ids


IDS = st.sampled_from(["a", "b", "c", "", None])
AI = st.builds(
    lambda ids, bad, raw: AIMessage(
        content="x",
        tool_calls=[tool_call(name="t", args={}, id=i) for i in ids],
        invalid_tool_calls=[invalid_tool_call(name="t", args="{", id=i, error=None) for i in bad],
    ).model_copy(
        update={
            "additional_kwargs": {"tool_calls": [{"id": i, "function": {"name": "t", "arguments": "{}"}} for i in raw]}
            if raw
            else {}
        }
    ),
    st.lists(IDS, max_size=3),
    st.lists(IDS, max_size=2),
    st.lists(IDS, max_size=2),
)
MESSAGES = st.lists(
    st.one_of(
        AI,
        st.builds(HumanMessage, st.just("h")),
        st.builds(result, st.sampled_from(["a", "b", "c", "", "z"]), st.text(max_size=2)),
    ),
    max_size=14,
)


@settings(max_examples=500)
@given(MESSAGES)
def test_any_history_compiles_to_exactly_one_result_per_call(messages: list[Any]) -> None:
    middleware = DanglingToolCallMiddleware()
    once = middleware.compile(Transcript(tuple(messages)), None)
    assert not unpaired_calls(once.messages)
    assert not any(m.invalid_tool_calls for m in once.messages if isinstance(m, AIMessage))
    assert middleware.compile(once, None) is once
    again = middleware.compile(Transcript(tuple(messages)), None)
    assert [m.model_dump() for m in again.messages] == [m.model_dump() for m in once.messages]
    kept = [m for m in once.messages if m.type == "human"]
    assert len(kept) == sum(m.type == "human" for m in messages)


@settings(max_examples=200)
@given(MESSAGES, st.lists(st.one_of(st.builds(HumanMessage, st.just("h")), st.just(AIMessage("y"))), max_size=4))
def test_what_comes_later_does_not_change_what_was_sent_before(messages: list[Any], more: list[Any]) -> None:
    """D2: as long as no late result comes, the former request is a prefix of the next."""
    before = [m.model_dump() for m in compiled(*messages)]
    after = [m.model_dump() for m in compiled(*messages, *more)]
    assert after[: len(before)] == before


def test_results_keep_their_order_when_something_later_needs_repair() -> None:
    history = (HumanMessage("a"), ai("1", "2"), result("2"), result("1"), AIMessage("b"))
    assert compiled(*history, HumanMessage("c"), ai("3"))[: len(history)] == compiled(*history)
