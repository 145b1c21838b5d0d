"""Files both ways: real uploads, real outputs, and an honest word for what did not come."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.harness.features.channels.turns.chat_house import House
from tests.harness.runs.run_house import bash


async def test_files_of_an_album_are_one_turn_and_keep_their_names_apart(
    open_house: Any, endpoint: ScriptedOpenAI
) -> None:
    house: House = await open_house()
    await house.bind()
    endpoint.script(Text("Two files."))
    await house.say("look", files=[house.platform.file("a.txt", b"one")])
    await house.say("", files=[house.platform.file("../../a.txt", b"two")])
    await house.shows("Two files.")
    await house.quiet()
    (thread_id,) = await house.threads()
    uploads = house.runtime.paths.uploads(thread_id, "default")
    found = await asyncio.to_thread(lambda: {file.name: file.read_bytes() for file in uploads.iterdir()})
    assert sorted(found.values()) == [b"one", b"two"] and len(found) == 2 and len(endpoint.requests) == 1
    assert "a.txt" in str(endpoint.requests[0]["messages"][-1]["content"])


@pytest.mark.parametrize("size", [None, 1001])
async def test_a_file_that_is_too_large_is_named_and_stops_nothing(
    open_house: Any, endpoint: ScriptedOpenAI, size: int | None
) -> None:
    house: House = await open_house()
    await house.bind()
    endpoint.script(Text("Without it."))
    await house.say("look", files=[house.platform.file("big.bin", b"x" * 1001, size=size)])
    await house.shows("Without it.")
    said = str(endpoint.requests[0]["messages"][-1]["content"])
    assert "big.bin did not arrive" in said and "larger than" in said
    (thread_id,) = await house.threads()
    uploads = house.runtime.paths.uploads(thread_id, "default")
    assert await asyncio.to_thread(lambda: list(uploads.iterdir()) if uploads.is_dir() else []) == []


async def test_presented_files_are_sent_and_larger_ones_are_links(open_house: Any, endpoint: ScriptedOpenAI) -> None:
    house: House = await open_house()
    await house.bind()
    make = "cd /mnt/user-data/outputs && echo report > r.txt && head -c 6000 /dev/zero > big.bin"
    paths = [f"/mnt/user-data/outputs/{name}" for name in ("r.txt", "big.bin")]
    endpoint.script(
        ToolCalls(bash(make)), ToolCalls(("present_files", {"filepaths": paths})), Text("Here."), Text("Nothing.")
    )
    await house.say("report")
    answer = await house.shows("Here.")
    await house.quiet()
    assert [(name, data) for _, name, data in house.platform.files] == [("r.txt", b"report\n")]
    assert "big.bin" in answer.text and "https://deer.example/chats/" in answer.text
    await house.say("and now?")
    await house.shows("Nothing.")
    await house.quiet()
    assert len(house.platform.files) == 1, "only files of this turn"


@pytest.fixture
async def ears() -> AsyncIterator[str]:
    """An endpoint that turns voice into text."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        text = "buy milk" if b"voice" in body and b"POST /v1/audio/transcriptions" in head else "?"
        answer = json.dumps({"text": text}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(answer) + answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    server.close()


async def test_a_voice_message_is_what_the_person_says(open_house: Any, endpoint: ScriptedOpenAI, ears: str) -> None:
    house: House = await open_house(channels={"slack": {"enabled": True}, "transcription": {"base_url": ears}})
    await house.bind()
    endpoint.script(Text("Noted."))
    await house.say("", files=[house.platform.file("", b"voice", is_voice=True)])
    await house.shows("Noted.")
    assert "buy milk" in str(endpoint.requests[0]["messages"][-1]["content"])


async def test_without_transcription_a_voice_message_is_a_file_and_said_to_be_one(
    open_house: Any, endpoint: ScriptedOpenAI
) -> None:
    house: House = await open_house()
    await house.bind()
    endpoint.script(Text("I cannot listen."))
    await house.say("", files=[house.platform.file("", b"voice", is_voice=True)])
    await house.shows("I cannot listen.")
    said = str(endpoint.requests[0]["messages"][-1]["content"])
    assert "No transcription is configured" in said and "voice.ogg" in said
