"""Slash commands, and the settings that they choose."""

from __future__ import annotations

from typing import Any

import pytest
from bench.scripted_openai import ScriptedOpenAI, Text
from tests.harness.features.channels.turns.chat_house import GROUP, House

from deerflow.features.channels.commands import Asked, ChatCommand


async def test_commands_answer_with_the_persons_own_things(open_house: Any, endpoint: ScriptedOpenAI) -> None:
    house: House = await open_house()
    await house.bind()
    endpoint.script(Text("Hello."))
    await house.say("hi")
    await house.shows("Hello.")
    await house.quiet()
    expected = {
        "/status": "https://deer.example/chats/",
        "/models": "`other`",
        "/model nothing": "There is no model of this name",
        "/agent": "/bootstrap makes one",
        "/memory": "I remember nothing about you yet.",
        "/usage": "Today: ",
        "/stop": "Nothing is going on here.",
        "/help": "`/model [name]`",
    }
    for text, answer in expected.items():
        await house.say(text)
        await house.quiet()
        assert answer in house.platform.texts()[-1], text
    assert len(endpoint.requests) == 1


async def test_a_chosen_model_answers_and_new_begins_a_thread(open_house: Any, endpoint: ScriptedOpenAI) -> None:
    house: House = await open_house()
    await house.bind()
    await house.say("/model OTHER")
    await house.quiet()
    endpoint.script(Text("One."), Text("Two."))
    await house.say("hi")
    await house.shows("One.")
    await house.quiet()
    await house.say("/new", place=house.platform.messages[-1].place)
    await house.quiet()
    await house.say("hi again")
    await house.shows("Two.")
    assert [request["model"] for request in endpoint.requests] == ["gpt-y", "gpt-y"]
    assert len(await house.threads()) == 2 and "One." not in str(endpoint.requests[-1])


async def test_a_command_behind_our_mention_is_seen(open_house: Any) -> None:
    house: House = await open_house()
    await house.bind()
    await house.say("/new@deer", place=GROUP)
    await house.quiet()
    assert "new conversation" in house.platform.texts()[-1]


async def test_bootstrap_and_compact_are_turns(open_house: Any, endpoint: ScriptedOpenAI) -> None:
    house: House = await open_house()
    await house.bind()
    endpoint.script(Text("What is it for?"))
    await house.say("/bootstrap a poet")
    await house.shows("What is it for?")
    assert "a poet" in str(endpoint.requests[-1]["messages"][-1]["content"])
    await house.say("/disconnect")
    await house.quiet()
    await house.say("hello")
    await house.quiet()
    assert await house.scalar("SELECT why FROM channel_inbox ORDER BY id DESC") == "unbound"


async def test_a_noun_registers_its_own_command_once(open_house: Any) -> None:
    house: House = await open_house()

    async def goal(asked: Asked) -> str:
        return f"Goal: {asked.argument}"

    house.channels.commands.register(ChatCommand("/goal [text]", "set a goal", goal))
    with pytest.raises(ValueError, match="taken"):
        house.channels.commands.register(ChatCommand("/goal", "again", goal))
    await house.bind()
    await house.say("/goal win")
    await house.quiet()
    assert house.platform.texts()[-1] == "Goal: win"
