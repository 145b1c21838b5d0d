"""Connections to servers that move, refuse and break off; real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from deerflow.events.streams.langgraph_sse import frame
from deerflow_app.remote import Address, RefusedError, ServerConnection, UnreachableError
from deerflow_app.remote.stream import Following

Answer = Callable[[str, dict[str, str]], bytes]
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
RUN = {"run_id": "r", "thread_id": "t"}


def json_answer(body: str, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()


@asynccontextmanager
async def server(answer: Answer) -> AsyncGenerator[str, None]:
    """Answers each request with the bytes made from its first line and its headers, then closes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(one.lower().split(": ", 1) for one in lines if one)
        writer.write(answer(line, headers))
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"


def token(name: str) -> dict[str, str]:
    return {"X-DeerFlow-Internal-Token": name}


async def test_a_server_that_moved_is_found_with_its_new_key() -> None:
    def answer(_line: str, headers: dict[str, str]) -> bytes:
        right = headers["x-deerflow-internal-token"] == "new"
        return json_answer('{"a": 1}') if right else json_answer('{"detail": "No."}', "401 Unauthorized")

    async with server(answer) as url:
        for before in (Address(url, token("old"), local=True), Address("http://127.0.0.1:9", token("old"), local=True)):
            connection = ServerConnection(before, lambda: Address(url, token("new"), local=True))
            assert await connection.post("/x", json={}) == {"a": 1}
            await connection.aclose()


async def test_refusals_are_in_the_words_of_the_server() -> None:
    async with server(lambda *_: json_answer('{"detail": "It is busy.", "code": "busy"}', "409 Conflict")) as url:
        connection = ServerConnection(Address(url))
        with pytest.raises(RefusedError, match="It is busy") as refused:
            await connection.get("/x")
        await connection.aclose()
    assert (refused.value.status, refused.value.code) == (409, "busy")


async def test_a_broken_stream_is_taken_up_where_it_broke_and_nothing_comes_twice() -> None:
    piece = b'[{"type":"AIMessageChunk","id":"m","content":"%b"},{}]'
    seen: list[str] = []

    def answer(_line: str, headers: dict[str, str]) -> bytes:
        seen.append(headers["last-event-id"])
        if len(seen) == 1:
            return HEAD + frame("messages", piece % b"one ", 4) + frame("messages", piece % b"lost", 5)[:-9]
        if len(seen) == 2:
            return json_answer('{"detail": "starting"}', "503 Service Unavailable")
        return HEAD + frame("messages", piece % b"two", 5) + frame("end", b'{"status":"success"}', 6)

    texts = await _texts(answer)
    assert (texts, seen) == (["one ", "two"], ["-1", "4", "4"])


async def test_a_run_that_ended_without_a_word_ends_the_turn() -> None:
    def answer(line: str, _headers: dict[str, str]) -> bytes:
        return HEAD if "/stream" in line else json_answer('{"status": "interrupted"}')

    assert await _texts(answer) == []


async def test_closing_stops_the_run_and_an_unheard_stop_is_told() -> None:
    asked: list[str] = []

    def answer(line: str, _headers: dict[str, str]) -> bytes:
        asked.append(line.split("?")[0])
        if "/cancel" in line:
            return b""
        return HEAD + frame("custom", b'{"type":"x"}', 1) + b": and on\r\n" * 100_000

    async with server(answer) as url:
        connection = ServerConnection(Address(url))
        events = Following(connection, RUN, patience=60).events()
        assert (await anext(events)).data == {"type": "x"}
        with pytest.raises(UnreachableError, match="did not hear the stop"):
            await events.aclose()
        await connection.aclose()
    assert asked[-1] == "POST /api/threads/t/runs/r/cancel"


async def _texts(answer: Answer) -> list[Any]:
    async with server(answer) as url:
        connection = ServerConnection(Address(url))
        events = [event async for event in Following(connection, RUN, patience=60).events()]
        await connection.aclose()
    assert events[-1].type == "end"
    return [event.data["content"] for event in events if event.type == "messages-tuple"]
