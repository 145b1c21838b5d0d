from __future__ import annotations

from datetime import UTC, datetime, timedelta

from bench.replies import Text
from bench.scripted_openai import ScriptedOpenAI
from tests.harness.runs.run_house import ME, ended, messages, say, thread

from deerflow.runtime import Runtime
from deerflow.threads.branches import Branch, TurnCheckpoints, branches

START = datetime(2026, 1, 1, tzinfo=UTC)


def turn(number: int, message: str, before: str | None, after: str | None) -> TurnCheckpoints:
    return TurnCheckpoints(message, f"run-{message}", before, after, START + timedelta(minutes=number))


def test_a_conversation_without_edits_has_one_way() -> None:
    told = [turn(1, "a", "0", "1"), turn(2, "b", "1", "2")]
    assert branches(told, {"1": "0", "2": "1"}) == {"a": Branch(None, "2"), "b": Branch("a", "2")}


def test_each_edit_is_another_way_from_the_same_message_and_ends_where_it_was_left() -> None:
    told = [
        turn(1, "a", "0", "1"),
        turn(2, "b", "1", "2"),
        turn(3, "c", "2", "3"),
        turn(4, "b2", "1", "4"),
        turn(5, "d", "4", "5"),
    ]
    found = branches(told, {"1": "0", "2": "1", "3": "2", "4": "1", "5": "4"})
    assert {name: branch.parent for name, branch in found.items()} == {
        "a": None,
        "b": "a",
        "c": "b",
        "b2": "a",
        "d": "b2",
    }
    assert (found["b"].end, found["b2"].end, found["a"].end) == ("3", "5", "5")


def test_checkpoints_between_two_turns_do_not_part_them() -> None:
    """A title that was set, a run that died before it said where it ended, a return to a branch."""
    told = [turn(1, "a", "0", "1"), turn(2, "b", "1b", None), turn(3, "c", "2b", "3")]
    parents = {"1": "0", "1a": "1", "1b": "1a", "2": "1b", "2b": "2", "3": "2b"}
    found = branches(told, parents)
    assert (found["b"].parent, found["c"].parent) == ("a", "a")
    assert found["c"].end == "3"


def test_a_message_that_steered_a_run_is_no_turn() -> None:
    assert branches([turn(1, "a", "0", "1"), turn(2, "steer", None, "1")], {"1": "0"}) == {"a": Branch(None, "1")}


def test_after_a_compaction_the_ways_are_unknown() -> None:
    told = [turn(1, "a", "0", "1"), turn(2, "b", "1", "2"), turn(3, "c", "2x", "3")]
    assert branches(told, {"3": None})["c"] == Branch(None, "3")


async def test_a_thread_goes_back_to_a_branch_and_on_from_there(runtime: Runtime, endpoint: ScriptedOpenAI) -> None:
    thread_id = await thread(runtime)
    endpoint.script(*(Text(f"answer {number}") for number in range(1, 5)))
    for text in ("one", "two"):
        await ended(runtime, await runtime.runs.start(ME, say(text), thread_id=thread_id))
    _, second = await runtime.threads.transcript.turns(ME, thread_id)
    edited = say("two, otherwise", checkpoint_id=second["checkpoint_id"])
    await ended(runtime, await runtime.runs.start(ME, edited, thread_id=thread_id))

    end = second["end_checkpoint_id"]
    await runtime.threads.states.update(ME, thread_id, None, checkpoint={"checkpoint_id": end})
    values = (await runtime.threads.states.get(ME, thread_id))["values"]
    assert [message["content"] for message in values["messages"]] == ["one", "answer 1", "two", "answer 2"]

    last = await ended(runtime, await runtime.runs.start(ME, say("three"), thread_id=thread_id))
    assert [text for _, text in await messages(runtime, last)][2:] == ["two", "answer 2", "three", "answer 4"]
    told = await runtime.threads.transcript.turns(ME, thread_id)
    one, two, otherwise, three = (turn["message_id"] for turn in told)
    assert [turn["parent_message_id"] for turn in told] == [None, one, one, two]
    ends = {turn["message_id"]: turn["end_checkpoint_id"] for turn in told}
    assert ends[two] == ends[three] == ends[one] != ends[otherwise]
