from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages

from deerflow.agents.thread_state import merge_artifacts, merge_messages, merge_viewed_images

IDS = st.sampled_from(["a", "b", "c", "d", "e"])
MESSAGES = st.one_of(
    st.builds(lambda i, t: HumanMessage(t, id=i), IDS, st.text(max_size=4)),
    st.builds(lambda i, t: AIMessage(t, id=i), IDS, st.text(max_size=4)),
    st.builds(lambda t, c: ToolMessage(t, tool_call_id=c), st.text(max_size=4), IDS),
    st.builds(lambda i: RemoveMessage(id=i), st.one_of(IDS, st.just(REMOVE_ALL_MESSAGES))),
)
WRITES = st.lists(st.lists(MESSAGES, max_size=4), max_size=6)


@given(WRITES, WRITES)
def test_merging_in_two_batches_equals_merging_in_one(first: list[list[AnyMessage]], second: list[list[AnyMessage]]):
    assert merge_messages(merge_messages([], first), second) == merge_messages([], first + second)


@given(WRITES)
def test_every_message_has_an_id_of_its_own(writes: list[list[AnyMessage]]):
    ids = [message.id for message in merge_messages([], writes)]
    assert all(ids) and len(ids) == len(set(ids))


@given(WRITES)
def test_replaying_the_same_writes_gives_the_same_ids(writes: list[list[AnyMessage]]):
    assert [m.id for m in merge_messages([], writes)] == [m.id for m in merge_messages([], writes)]


@given(
    st.lists(
        st.lists(st.builds(lambda i, t: HumanMessage(t, id=i), IDS, st.text(max_size=4)), min_size=1, max_size=4),
        max_size=6,
    )
)
def test_appending_and_replacing_equal_langgraphs_own_reducer(writes: list[list[AnyMessage]]):
    expected: list[AnyMessage] = []
    for write in writes:
        expected = add_messages(expected, write)  # type: ignore[assignment, arg-type]
    assert merge_messages([], writes) == expected


@given(WRITES)
def test_merging_changes_neither_the_state_nor_the_writes(writes: list[list[AnyMessage]]):
    state: list[AnyMessage] = [HumanMessage("kept", id="a")]
    copies = [[message.model_copy() for message in write] for write in writes]
    merge_messages(state, writes)
    assert state == [HumanMessage("kept", id="a")]
    assert writes == copies


def test_removing_all_drops_what_was_before_and_keeps_what_follows():
    write = [HumanMessage("old", id="o"), RemoveMessage(REMOVE_ALL_MESSAGES), HumanMessage("new", id="n")]
    assert [m.id for m in merge_messages([AIMessage("x", id="x")], [write])] == ["n"]


def test_dictionaries_and_single_messages_are_accepted():
    merged = merge_messages([], [{"role": "user", "content": "hi"}, [HumanMessage("there", id="t")]])
    assert [m.text for m in merged] == ["hi", "there"]


def test_artifacts_keep_their_first_position():
    assert merge_artifacts(None, None) == []
    assert merge_artifacts(["a", "b"], ["b", "c", "a"]) == ["a", "b", "c"]


def test_viewed_images_are_kept_merged_or_cleared():
    one, two = {"/a.png": {"mime_type": "image/png"}}, {"/a.png": {"mime_type": "image/webp"}}
    assert merge_viewed_images(one, None) == one
    assert merge_viewed_images(one, two) == two
    assert merge_viewed_images(one, {}) == {}
    assert merge_viewed_images(None, None) == {}
