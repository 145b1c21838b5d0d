"""Pictures inside messages of SDKs and OpenAI's doors: kept as uploads, shown to models that can see them."""

from __future__ import annotations

import asyncio
import base64
import struct
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from bench.scripted_openai import ScriptedOpenAI, Text
from tests.app.gateway.conftest import Gateway, WithRuntime


def png(shade: int) -> bytes:
    """A picture of one grey pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head, body = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0), zlib.compress(bytes([0, shade]))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


RED, BLUE = png(10), png(200)


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def shown(request: dict[str, Any]) -> list[bytes]:
    blocks = [b for m in request["messages"] if isinstance(m["content"], list) for b in m["content"]]
    return [base64.b64decode(b["image_url"]["url"].partition(",")[2]) for b in blocks if b["type"] == "image_url"]


@pytest.fixture
async def gateway(with_runtime: WithRuntime, scripted: ScriptedOpenAI) -> AsyncIterator[Gateway]:
    model = {"use": "langchain_openai:ChatOpenAI", "api_key": "k", "base_url": scripted.base_url}
    models = [
        {**model, "name": "m", "model": "m", "supports_vision": True},
        {**model, "name": "blind", "model": "blind"},
    ]
    network = {"mode": "none", "allow_nets": ["127.0.0.1/32"]}
    sandbox = {"tool_image": {"enabled": False}, "network": network}
    async with with_runtime(memory={"enabled": False}, models=models, sandbox=sandbox) as made:
        yield made


@asynccontextmanager
async def website(data: bytes) -> AsyncIterator[str]:
    """The address of a picture."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/photo.png?x=1"


async def say(gateway: Gateway, content: Any, model: str = "m") -> dict[str, Any]:
    """Say something in the thread, and return its values."""
    asked = {"input": {"messages": [{"role": "user", "content": content}]}, "context": {"model_name": model}}
    answer = await gateway.user.post("/api/threads/t/runs/wait", json={**asked, "if_not_exists": "create"})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_picture_in_a_message_is_an_upload_that_the_model_sees(
    gateway: Gateway, scripted: ScriptedOpenAI, tmp_path: Path
) -> None:
    scripted.script(Text("grey"), Text("the same"), Text("none"))
    js = {"type": "image", "mimeType": "image/png", "data": encoded(RED), "metadata": {"name": "cat.png"}}
    values = await say(gateway, [{"type": "text", "text": "what is it?"}, js])
    assert shown(scripted.requests[-1]) == [RED]
    message = values["messages"][0]
    assert message["content"] == "what is it?" and encoded(RED) not in str(values)
    (kept,) = message["additional_kwargs"]["files"]
    assert kept["filename"].startswith("cat-") and kept["path"] == f"/mnt/user-data/uploads/{kept['filename']}"
    uploaded = await gateway.user.get(f"/api/threads/t/artifacts{kept['path']}")
    assert uploaded.content == RED

    again = [js, {"type": "text", "text": "and between"}, js, {"type": "text", "text": "two texts?"}]
    values = await say(gateway, again)
    assert shown(scripted.requests[-1]) == [RED], "once by its content"
    assert [block["text"] for block in values["messages"][2]["content"]] == [
        "and between",
        f"[{kept['filename']}]",
        "two texts?",
    ]
    assert len((await gateway.user.get("/api/threads/t/uploads/list")).json()["files"]) == 1

    await say(gateway, "and you?", model="blind")
    assert shown(scripted.requests[-1]) == [] and "blind cannot see pictures" in str(scripted.requests[-1])


async def test_an_address_is_opened_by_our_rules_or_refused(gateway: Gateway, scripted: ScriptedOpenAI) -> None:
    scripted.script(Text("grey"))
    async with website(BLUE) as url:
        inside = {"type": "image_url", "image_url": {"url": "http://169.254.169.254/latest/meta-data"}}
        values = await say(gateway, [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": url}, inside])
    assert shown(scripted.requests[-1]) == [BLUE]
    assert "Clouds serve the keys of a machine there" in str(scripted.requests[-1]["messages"])
    (kept,) = values["messages"][0]["additional_kwargs"]["files"]
    assert kept["filename"].startswith("photo-")


async def test_broken_data_is_said_and_the_rest_is_answered(gateway: Gateway, scripted: ScriptedOpenAI) -> None:
    scripted.script(Text("I got no picture."))
    await say(gateway, [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "###"}}])
    assert "its data is not base64" in str(scripted.requests[-1]["messages"])


async def test_pictures_of_openais_doors_take_the_same_way(gateway: Gateway, scripted: ScriptedOpenAI) -> None:
    made = await gateway.user.post("/api/v1/auth/tokens", json={"name": "t", "scopes": ["read", "write"]})
    url = f"data:image/png;base64,{encoded(RED)}"
    async with openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=made.json()["token"], max_retries=0) as client:
        scripted.script(Text("grey"), Text("bright"))
        content = [{"type": "text", "text": "?"}, {"type": "image_url", "image_url": {"url": url}}]
        await client.chat.completions.create(model="lead_agent", messages=[{"role": "user", "content": content}])
        assert shown(scripted.requests[-1]) == [RED]
        parts: Any = [
            {"type": "input_text", "text": "?"},
            {"type": "input_image", "image_url": url.replace(encoded(RED), encoded(BLUE))},
        ]
        await client.responses.create(model="lead_agent", input=[{"role": "user", "content": parts}])
        assert shown(scripted.requests[-1]) == [BLUE]
