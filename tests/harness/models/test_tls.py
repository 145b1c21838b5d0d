"""Models trust whom the environment says, and read the certificates of authorities once a process."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import certifi
import httpcore2
import pytest
from langchain_core.language_models import BaseChatModel
from tests.support.certificates import issued

from deerflow.config import AppConfig
from deerflow.models import create_chat_model

OPENAI = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [
    {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "trusted"}}
]}  # fmt: skip
CLAUDE = {"id": "x", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
          "content": [{"type": "text", "text": "trusted"}], "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
CLASSES = {
    "openai": "langchain_openai:ChatOpenAI",
    "deepseek": "deerflow.models.patched_deepseek:PatchedChatDeepSeek",
    "claude": "deerflow.models.claude_provider:ClaudeChatModel",
}
Make = Callable[[str], BaseChatModel]


@pytest.fixture(params=CLASSES)
def make(request: pytest.FixtureRequest) -> Make:
    entry = {"name": "m", "model": "m", "use": CLASSES[request.param], "api_key": "k", "max_retries": 0}

    def made(base_url: str) -> BaseChatModel:
        return create_chat_model(app_config=AppConfig.model_validate({"models": [{**entry, "base_url": base_url}]}))

    return made


@pytest.fixture
async def company(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """The address of a server with a certificate of its company, whose authority the environment names."""
    certificate, authority = issued("localhost", tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        body = json.dumps(OPENAI if b"/chat/completions" in head else CLAUDE).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n")
        writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        await writer.drain()
        writer.close()

    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as server:
        yield f"https://localhost:{server.sockets[0].getsockname()[1]}"


async def test_the_authority_of_a_company_is_trusted(make: Make, company: str):
    model = await asyncio.to_thread(make, company)
    assert (await model.ainvoke("hi")).content == "trusted"
    assert (await asyncio.to_thread(model.invoke, "hi")).content == "trusted"


async def test_an_unknown_authority_is_not_trusted(make: Make, company: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SSL_CERT_FILE", certifi.where())
    model = await asyncio.to_thread(make, company)
    with pytest.raises(Exception) as failed:
        await model.ainvoke("hi")
    assert "CERTIFICATE_VERIFY_FAILED" in _causes(failed.value)


def test_many_models_read_the_certificates_once(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    reads: list[Any] = []
    real = httpcore2.default_ssl_context

    def counted(**options: Any) -> ssl.SSLContext:
        reads.append(options)
        return real(**options)

    monkeypatch.setattr(httpcore2, "default_ssl_context", counted)
    monkeypatch.setenv("SSL_CERT_FILE", str(shutil.copy(certifi.where(), tmp_path / "authorities.pem")))
    for port in range(3):
        model = make(f"https://127.0.0.1:{port}")
        _ = getattr(model, "_client", None)  # Claude's for synchronous calls is made when it is needed
    assert len(reads) == 1


def _causes(error: BaseException | None) -> str:
    return f"{error} {_causes(error.__cause__ or error.__context__)}" if error else ""
