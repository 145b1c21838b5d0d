from __future__ import annotations

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from tests.support.unpaired_calls import unpaired_calls

from deerflow.agents.transcript import MessageMemo, Transcript, current_turn


def _call(*ids: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "bash", "args": {}, "id": i} for i in ids])


def test_reminders_stand_behind_everything_that_stays():
    transcript = Transcript((HumanMessage("hi"),)).with_reminder("think", name="loop_warning")
    assert [m.text for m in transcript.request()] == ["hi", "think"]
    assert transcript.messages == (HumanMessage("hi"),)


def test_a_turn_begins_where_a_person_last_spoke():
    images = HumanMessage("images", name="viewed_images")
    messages = (
        HumanMessage("1"),
        AIMessage("a"),
        HumanMessage("2"),
        _call("x"),
        ToolMessage("r", tool_call_id="x"),
        images,
    )
    assert current_turn(messages) == messages[2:]
    assert current_turn((AIMessage("a"),)) == (AIMessage("a"),)


def test_unpaired_calls_are_named():
    answered = [_call("a", "b"), ToolMessage("1", tool_call_id="b"), ToolMessage("2", tool_call_id="a")]
    assert unpaired_calls(answered) == []
    assert unpaired_calls([_call("a")]) == ["a"]
    assert unpaired_calls([_call("a"), HumanMessage("x"), ToolMessage("late", tool_call_id="a")]) == ["a", "a"]
    assert unpaired_calls([ToolMessage("orphan", tool_call_id="z")]) == ["z"]
    assert unpaired_calls([*answered, ToolMessage("twice", tool_call_id="a")]) == ["a"]


def test_a_memo_renders_each_message_once_and_never_confuses_two():
    calls: list[str] = []

    def render(message):
        calls.append(message.text)
        return message.model_copy(update={"content": message.text.upper()})

    memo = MessageMemo(render)
    first, twin = HumanMessage("a", id="1"), HumanMessage("b", id="1")
    assert [memo(first).text, memo(first).text, memo(twin).text] == ["A", "A", "B"]
    assert calls == ["a", "b"]


def test_a_memo_keeps_no_message_alive_whatever_its_size():
    memos = [MessageMemo(lambda message: message), MessageMemo(lambda message: message.model_copy())]
    kept = HumanMessage("kept")
    for memo in memos:
        for number in range(20):
            memo(ToolMessage("x" * 1000, tool_call_id=str(number)))
        assert memo(kept) is memo(kept)
        assert len(memo) == 1
    del kept, memo
    assert [len(memo) for memo in memos] == [0, 0]
