"""One message, one run, one answer – over restarts, beside others, and however it ends."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import timedelta, timezone
from typing import Any

import pytest
from bench.scripted_openai import Delay, HttpError, ScriptedOpenAI, Text, ToolCalls
from tests.harness.features.channels.turns.chat_house import ANN, BOB, CAPS, GROUP, PRIVATE, House, Platform

from deerflow.features.channels.types import Place, Signal
from deerflow.identity import LOCAL_PRINCIPAL

BOTH = pytest.mark.parametrize("settings", ["sqlite", "postgres"], indirect=True)
ASKS = {"provider": {"use": "deerflow.guardrails.builtin:AllowlistProvider", "config": {"ask_tools": ["write_file"]}}}
WRITE = ToolCalls(("write_file", {"path": "/mnt/user-data/outputs/a.txt", "content": "hello"}))
QUESTION = {"question": "Which one?", "clarification_type": "missing_info", "options": ["the red one", "the blue one"]}


def slow(text: str, pieces: int = 20, between: float = 0.03) -> Delay:
    return Delay(0, Text(chunks=[text, *["."] * pieces]), between=between)


@BOTH
async def test_a_message_is_answered_once_by_an_edit_of_its_placeholder(
    open_house: Any, endpoint: ScriptedOpenAI
) -> None:
    house = await open_house()
    await house.bind()
    endpoint.script(Text("It is **four**."))
    await house.say("two and two?")
    answer = await house.shows("four")
    await house.quiet()
    assert answer.texts[0].startswith("Working") and not answer.part.buttons
    assert len([each for each in house.platform.messages if each.place == PRIVATE]) == 1
    assert house.platform.signals[-1][1] == Signal.DONE
    assert len(endpoint.requests) == 1


async def test_an_answer_that_came_while_the_process_was_dead_is_sent_once_after_it(
    open_house: Any, endpoint: ScriptedOpenAI
) -> None:
    house: House = await open_house()
    await house.bind()
    endpoint.script(slow("Long ago"))
    await house.say("tell")
    await house.shows("Long ago")
    await house.die()
    again = await open_house(house.platform, runtime=house.runtime)
    await again.quiet()
    answers = [each for each in house.platform.messages if "Long ago" in each.text]
    assert [each.text for each in answers] == ["Long ago" + "." * 20]
    assert len(endpoint.requests) == 1


async def test_a_turn_that_was_announced_and_not_begun_begins_after_a_restart(
    open_house: Any, endpoint: ScriptedOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    house: House = await open_house()
    await house.bind()
    endpoint.script(Text("Now."))

    async def killed(*_: Any, **__: Any) -> Any:
        await asyncio.Event().wait()

    turns: Any = house.channels.turns
    monkeypatch.setattr(turns._runs, "start", killed)
    await house.say("go")
    await house.shows("Working")
    await house.die()
    again = await open_house(house.platform, runtime=house.runtime)
    await house.shows("Now.")
    await again.quiet()
    assert len(endpoint.requests) == 1 and len(house.platform.messages) == 2


async def test_recovery_sends_nothing_that_was_delivered_again(open_house: Any, endpoint: ScriptedOpenAI) -> None:
    house: House = await open_house()
    await house.bind()
    endpoint.script(Text("Delivered."))
    await house.say("once")
    await house.shows("Delivered.")
    await house.quiet()
    before = [list(each.texts) for each in house.platform.messages]
    await house.die()
    again = await open_house(house.platform, runtime=house.runtime)
    await again.quiet()
    assert [each.texts for each in house.platform.messages] == before


async def test_two_processes_that_go_on_with_a_turn_answer_once(open_house: Any, endpoint: ScriptedOpenAI) -> None:
    house: House = await open_house()
    await house.bind()
    endpoint.script(slow("Twice watched"))
    await house.say("tell")
    await house.shows("Twice watched")
    (run_id,) = [row[0] for row in await house.rows("SELECT run_id FROM channel_inbox WHERE state = 'running'")]
    await house.channels.reception.resume(house.id, run_id)
    await house.quiet()
    assert len([each for each in house.platform.messages if "Twice" in each.text]) == 1


async def test_a_message_in_another_topic_is_answered_while_one_is_busy(
    open_house: Any, endpoint: ScriptedOpenAI
) -> None:
    house: House = await open_house()
    await house.bind()
    endpoint.script(slow("key:one first"), key="one")
    endpoint.script(Text("second"), key="two")
    await house.say("key:one", place=Place("g1", "t1"))
    await house.say("key:two", place=Place("g1", "t2"))
    second = await house.shows("second")
    first = await house.shows("first....................")
    assert (first.place.topic, second.place.topic) == ("t1", "t2")
    assert len(await house.threads()) == 2


async def test_a_private_chat_is_one_thread_also_for_two_first_messages_at_once(
    open_house: Any, endpoint: ScriptedOpenAI
) -> None:
    house: House = await open_house()
    await house.bind()
    endpoint.script(slow("One"), Text("Two"))
    await asyncio.gather(house.say("a"), house.say("b"))
    await house.quiet()
    endpoint.script(Text("Three"))
    await house.say("c")
    await house.shows("Three")
    assert len(await house.threads()) == 1


async def test_the_answer_keeps_its_topic_over_a_restart(open_house: Any, endpoint: ScriptedOpenAI) -> None:
    house: House = await open_house()
    await house.bind()
    endpoint.script(slow("Anchored"))
    await house.say("x", place=Place("g1", "t9"))
    await house.shows("Anchored")
    await house.die()
    again = await open_house(house.platform, runtime=house.runtime)
    await again.quiet()
    endpoint.script(Text("And on"))
    await again.say("y", place=Place("g1", "t9"))
    shown = [await house.shows("Anchored...................."), await house.shows("And on")]
    assert [each.place.topic for each in shown] == ["t9", "t9"]
    assert len(await house.threads()) == 1


async def test_a_conversation_whose_thread_was_half_made_gets_one_thread(open_house: Any) -> None:
    house: House = await open_house()
    turns: Any = house.channels.turns
    conversations, ann = turns._conversations, (await turns._people("default"))
    from deerflow.features.channels.types import Inbound
    from deerflow.storage.tables import utc_now

    message = Inbound("m1", PRIVATE, ANN, utc_now(), "x")
    first = await conversations.of("slack", house.id, message, ann, shared=False)
    made = [await conversations.with_thread(first, ann, "m1") for _ in range(2)]
    assert made[0].thread_id == made[1].thread_id and len(await house.threads()) == 1


async def test_nothing_but_the_assistants_text_is_ever_shown(open_house: Any, endpoint: ScriptedOpenAI) -> None:
    house: House = await open_house(memory={"enabled": True})
    await house.bind()
    endpoint.script(ToolCalls(("ls", {"path": "/mnt/user-data", "description": "look"})), slow("Only this"))
    await house.say("what is there")
    await house.shows("Only this....................")
    shown = [text for each in house.platform.messages for text in each.texts if each.place == PRIVATE]
    assert not [text for text in shown if "<" in text or "current_date" in text or "memory" in text]
    assert any("▸" in text or "✓" in text for text in shown)


async def test_todos_are_shown_while_the_agent_works(open_house: Any, endpoint: ScriptedOpenAI) -> None:
    house: House = await open_house(channel={"session": {"context": {"is_plan_mode": True}}})
    await house.bind()
    todos = [{"content": "Look", "status": "in_progress"}, {"content": "Write", "status": "pending"}]
    endpoint.script(ToolCalls(("write_todos", {"todos": todos})), slow("Done with it"), Text("Done."), Text("Done."))
    await house.say("plan")
    await house.quiet()
    shown = [text for each in house.platform.messages for text in each.texts]
    assert any("▸ Look" in text and "○ Write" in text for text in shown)


async def test_a_second_message_joins_the_turn_on_its_way(open_house: Any, endpoint: ScriptedOpenAI) -> None:
    house: House = await open_house()
    await house.bind()
    endpoint.script(
        Delay(0.5, ToolCalls(("ls", {"path": "/mnt/user-data", "description": "look"}))), Text("Both heard.")
    )
    await house.say("first")
    await house.shows("Working")
    second = await house.say("and in French")
    await house.shows("Both heard.")
    await house.quiet()
    assert (second, Signal.JOINED) in house.platform.signals
    assert "and in French" in str(endpoint.requests[-1]) and len(endpoint.requests) == 2
    assert await house.scalar("SELECT state FROM channel_inbox WHERE message_id = ?", second) == "answered"


async def test_stop_ends_the_run_and_says_so(open_house: Any, endpoint: ScriptedOpenAI) -> None:
    house: House = await open_house()
    await house.bind()
    endpoint.script(slow("On and on", 400), slow("Again", 400))
    await house.say("talk")
    message = await house.shows("On and on")
    await house.click(message.button("Stop").key, message=message)
    assert await house.shows("Stopped.") is message and not message.part.buttons
    await house.say("talk")
    await house.shows("Again")
    await house.say("/stop")
    await house.shows("Stopping.")
    await house.quiet()
    assert len([text for text in house.platform.texts() if "⏹ Stopped." in text]) == 2


async def test_another_person_cannot_stop_a_run(open_house: Any, endpoint: ScriptedOpenAI) -> None:
    house: House = await open_house()
    await house.bind()
    endpoint.script(slow("Mine", 60))
    await house.say("talk", place=GROUP)
    message = await house.shows("Mine")
    await house.click(message.button("Stop").key, BOB, message)
    await house.quiet()
    assert house.platform.notices == ["Connect your account first: only people with an account decide here."]
    assert message.text == "Mine" + "." * 60


async def test_a_failed_turn_says_the_kind_and_what_to_do(open_house: Any, endpoint: ScriptedOpenAI) -> None:
    house: House = await open_house()
    await house.bind()
    endpoint.script(HttpError(401, "bad key"))
    await house.say("hello")
    failed = await house.shows("Failed (")
    assert "API key" in failed.text and "/new" in failed.text
    endpoint.script(Text("Fine again."))
    await house.say("hello again")
    await house.shows("Fine again.")


async def test_an_unknown_model_is_an_answer_and_no_loop(open_house: Any, endpoint: ScriptedOpenAI) -> None:
    house: House = await open_house(channel={"model": "gone"})
    await house.bind()
    await house.say("hello")
    await house.shows("could not begin")
    await house.quiet()
    assert not endpoint.requests


async def test_the_answer_to_a_question_goes_on_in_its_thread(open_house: Any, endpoint: ScriptedOpenAI) -> None:
    house: House = await open_house()
    await house.bind()
    endpoint.script(ToolCalls(("ask_clarification", QUESTION)), Text("Blue it is."), Text("More."))
    await house.say("paint it")
    question = await house.shows("Which one?")
    await house.quiet()
    await house.click(question.button("2. the blue one").key, message=question)
    await house.shows("Blue it is.")
    await house.quiet()
    assert not question.part.buttons
    assert len(await house.threads()) == 1
    said = [message["content"] for message in endpoint.requests[-1]["messages"] if message["role"] == "user"]
    assert "paint it" in str(said[0]) and "the blue one" in str(said[-1])


async def test_a_number_answers_a_question_where_there_are_no_buttons(
    open_house: Any, endpoint: ScriptedOpenAI
) -> None:
    house: House = await open_house(Platform(replace(CAPS, buttons=0)))
    await house.bind()
    endpoint.script(ToolCalls(("ask_clarification", QUESTION)), Text("Red it is."))
    await house.say("paint it")
    await house.shows("Which one?")
    await house.quiet()
    await house.say("1.")
    await house.shows("Red it is.")
    assert "the red one" in str(endpoint.requests[-1]["messages"][-1])


async def test_a_platform_without_edits_gets_the_answer_alone(open_house: Any, endpoint: ScriptedOpenAI) -> None:
    house: House = await open_house(Platform(replace(CAPS, edits=False)))
    await house.bind()
    endpoint.script(slow("Whole"))
    await house.say("x")
    await house.quiet()
    assert [each.texts for each in house.platform.messages if each.place == PRIVATE] == [["Whole" + "." * 20]]


async def test_a_turn_has_the_time_zone_of_its_author_where_the_platform_says_it(
    open_house: Any, endpoint: ScriptedOpenAI
) -> None:
    house: House = await open_house()
    await house.bind()
    endpoint.script(Text("Morning"), Text("Evening"))
    for zone, word in (("+1400", "Morning"), ("", "Evening")):
        await house.say("when?", author=replace(ANN, time_zone=zone))
        await house.shows(word)
    await house.quiet()
    (thread,) = await house.threads()
    runs = await house.runtime.runs.list(LOCAL_PRINCIPAL, thread)
    assert [run.kwargs["request"]["context"].get("time_zone") for run in runs] == [None, "+1400"]
    dates = [set(re.findall(r"<current_date>(.{10})", str(request["messages"][-1]))) for request in endpoint.requests]
    there = runs[-1].created_at.astimezone(timezone(timedelta(hours=14)))
    assert dates[0] == {f"{there:%Y-%m-%d}"}
