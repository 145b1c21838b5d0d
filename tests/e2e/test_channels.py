"""Tasks given where people talk: one whole server, the real adapters, and every platform on loopback, all at once."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from bench.scripted_openai import Delay, ScriptedOpenAI, Text, ToolCalls
from tests.e2e.chats import Chat, World, until
from tests.e2e.chats_over_http import GitHubCase

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world() -> AsyncIterator[World]:
    # A sandbox with a user id of its own must get through, as it does not through pytest's directories.
    root = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="deerflow-chats-"))
    root.chmod(0o711)
    try:
        with ScriptedOpenAI() as endpoint:
            async with World(root, endpoint) as made:
                await made.everywhere(_meet)
                yield made
    finally:
        await asyncio.to_thread(shutil.rmtree, root, ignore_errors=True)


async def _meet(chat: Chat) -> None:
    """Strangers learn how to connect, and reach no model; then Ann connects, and Ben."""
    if not isinstance(chat.case, GitHubCase):  # in a group, strangers get silence
        await chat.say("Hello")
        await chat.reads("/connect CODE")
    await chat.say(f"/connect {await chat.world.code('ann', chat.kind)}")
    await chat.reads("Connected.")
    await chat.say(f"/connect {await chat.world.code('ben', chat.kind)}", by_ben=True)
    await until(lambda: chat.count("Connected.") == 2)
    assert not chat.world.endpoint.requests


async def test_a_task_with_a_file_is_answered_with_a_file(world: World) -> None:
    async def story(chat: Chat) -> None:
        files = (("in.txt", f"from {chat.kind}".encode()),) if chat.offer.files_in else ()
        read = ("read_file", {"description": "read", "path": "/mnt/user-data/uploads/in.txt"})
        out = "/mnt/user-data/outputs/note.txt"
        write = ("write_file", {"description": "write", "path": out, "content": f"for {chat.kind}"})
        present = ("present_files", {"filepaths": [out]})
        done = f"Done on {chat.kind}."
        await chat.ask("note", ToolCalls(read), ToolCalls(write), ToolCalls(present), Text(done), files=files)
        await chat.reads_answer(done)
        if chat.offer.files_in:
            assert f"from {chat.kind}" in str(chat.asked("note")[1]["messages"][-1]["content"])
        if chat.offer.files_out:
            await until(chat.case.received)
            assert [content for _, content in chat.case.received()] == [f"for {chat.kind}".encode()]

    await world.everywhere(story)
    await world.rest()


async def test_questions_of_the_agent_are_answered_with_words_and_with_a_choice(world: World) -> None:
    async def begin(chat: Chat) -> None:
        free = {"question": "Which colour?", "clarification_type": "missing_info"}
        options = {**free, "question": "Which brush?", "options": ["the wide one", "the thin one"]}
        asks = [ToolCalls(("ask_clarification", question)) for question in (free, options)]
        await chat.ask("paint", *asks, Text(f"Painted on {chat.kind}."))
        await chat.reads("Which colour?")

    async def answer(chat: Chat) -> None:
        await chat.say("Red, please.")
        await chat.choose(await chat.reads_card("Which brush?"), 2)
        await chat.reads_answer(f"Painted on {chat.kind}.")
        said = [one["content"] for one in chat.asked("paint")[-1]["messages"] if one["role"] == "user"]
        assert "Red, please." in str(said[-2]) and "the thin one" in str(said[-1])

    await world.everywhere(begin)
    await world.rest()
    await world.everywhere(answer)
    await world.rest()


async def test_only_the_right_person_approves(world: World) -> None:
    def made(chat: Chat) -> int:
        logs = world.root.glob("home/users/*/threads/*/user-data/workspace/log")
        return sum(log.read_text().split().count(chat.kind) for log in logs)

    async def story(chat: Chat) -> None:
        if not chat.offer.buttons:  # a number of Ben's is a word in a conversation of his own
            await chat.ask("ben", Text(f"Hello, Ben on {chat.kind}."), Text("There is nothing to decide."), by_ben=True)
            await chat.reads_answer(f"Hello, Ben on {chat.kind}.")
        call = ("bash", {"description": "Note it", "command": f"echo {chat.kind} >> /mnt/user-data/workspace/log"})
        await chat.ask("approve", ToolCalls(call), Text(f"Noted on {chat.kind}."))
        card = await chat.reads_card(f"echo {chat.kind}")
        await chat.choose(card, 1, by_ben=True)
        if chat.offer.buttons:
            await until(lambda: any("Only the person" in notice for notice in chat.case.notices()))
        else:
            await chat.reads_answer("There is nothing to decide.")
        assert not made(chat)
        await chat.choose(card, 1)
        await chat.reads_answer(f"Noted on {chat.kind}.")
        assert made(chat) == 1
        if chat.offer.buttons:
            await chat.reads("✅ Approved by ")

    await world.everywhere(story)
    await world.rest()


async def test_a_run_is_stopped_from_the_chat(world: World) -> None:
    async def story(chat: Chat) -> None:
        await chat.ask("stop", Delay(300, Text("too late")))
        await until(lambda: chat.asked("stop"))
        if chat.offer.grows:
            await chat.reads("Working on it")
        newest = chat.case.shown()[-1]
        await (chat.case.press(newest.ref, newest.keys[0]) if newest.keys else chat.say("/stop"))
        await chat.reads_answer("⏹ Stopped.")
        assert not chat.count("Working on it")

    await world.everywhere(story)
    await world.rest()


async def test_a_server_that_is_killed_in_the_middle_answers_once_when_it_is_back(world: World) -> None:
    async def begin(chat: Chat) -> None:
        answer = Text(f"Here it is, {chat.kind}.")
        await chat.ask("restart", Delay(300, answer), answer, Text(f"And there, {chat.kind}."))
        await until(lambda: chat.asked("restart"))
        if chat.offer.grows:
            await chat.reads("Working on it")

    async def meanwhile(chat: Chat) -> None:
        if chat.case.has_history:
            await chat.say("/help")

    async def end(chat: Chat) -> None:
        await chat.reads_answer(f"Here it is, {chat.kind}.")
        if chat.case.has_history:
            await chat.reads("/status")

    async def go_on(chat: Chat) -> None:
        await chat.say("And the other one?")
        await chat.reads_answer(f"And there, {chat.kind}.")

    await world.everywhere(begin)
    await asyncio.to_thread(world.gateway.kill)
    await world.everywhere(meanwhile)
    await world.start()
    await world.everywhere(end)
    await world.rest()
    await world.everywhere(go_on)
    await world.rest()
    for chat in world.chats:
        assert {text: chat.count(text) for text in chat.answers} == dict.fromkeys(chat.answers, 1), chat.kind
        assert not chat.count("Working on it") and "…" not in [one.text for one in chat.case.shown()], chat.kind
