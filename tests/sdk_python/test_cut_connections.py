"""Nothing is lost and nothing is told twice, however often the connection breaks."""

from __future__ import annotations

import random
import socket
import threading
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from urllib.parse import urlsplit

import pytest
from bench.scripted_openai import Delay, Text
from tests.sdk_python.conftest import ASSISTANT, House, Sdk

TOKENS = [f"<{number}>" for number in range(300)]


class CuttingProxy:
    """Passes bytes on, and cuts each connection after some of the answer's bytes, wherever that is; never before its headers are through."""

    def __init__(self, target: str, longest: int) -> None:
        self.cuts = 0
        self._longest = longest
        self._target = (urlsplit(target).hostname, urlsplit(target).port)
        self._random = random.Random(7)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                limit = self._random.randint(1_200, self._longest)
                threading.Thread(target=self._connect, args=(client, limit), daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _connect(self, client: socket.socket, limit: int) -> None:
        with suppress(OSError), closing(client), closing(socket.create_connection(self._target)) as server:
            threading.Thread(target=_pump, args=(client, server), daemon=True).start()
            sent = 0
            while data := server.recv(997):
                client.sendall(data[: limit - sent])
                sent += len(data)
                if sent >= limit:
                    self.cuts += 1
                    client.shutdown(socket.SHUT_RDWR)
                    return


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)


@contextmanager
def cutting(target: str, longest: int) -> Iterator[CuttingProxy]:
    proxy = CuttingProxy(target, longest)
    serving = threading.Thread(target=proxy.serve, daemon=True)
    serving.start()
    try:
        yield proxy
    finally:
        proxy.close()


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client waits seconds before it connects anew."""
    for kind in ("_async", "_sync"):
        monkeypatch.setattr(f"langgraph_sdk.{kind}.http._reconnect_delay", lambda *_, **__: 0.01)


@pytest.mark.parametrize(("kind", "encoding", "longest"), [("async", "identity", 9_000), ("sync", "zstd", 2_400)])
async def test_every_token_arrives_once_through_connections_that_are_cut(
    house: House, kind: str, encoding: str, longest: int, no_waiting: None
):
    with cutting(house.url, longest) as proxy:
        direct, cut = house.sdk(kind), house.sdk(kind, proxy.url)
        await _stream_through(direct, cut, encoding)
        assert proxy.cuts > 2


async def _stream_through(direct: Sdk, cut: Sdk, encoding: str) -> None:
    thread_id = await direct.thread()
    said: list[str] = []
    ids: list[int] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = direct.script(Delay(0, Text(chunks=TOKENS), between=0.005))
        options = {"stream_mode": ["messages-tuple", "values"], "headers": {"accept-encoding": encoding}}
        async for part in cut.runs.stream(thread_id, ASSISTANT, input=given, **options):
            if part.id:
                ids.append(int(part.id))
            if part.event == "messages" and part.data[0]["type"] == "AIMessageChunk":
                said.append(part.data[0]["content"])
    assert "".join(said) == "".join(TOKENS)
    assert ids == sorted(set(ids))
    assert part.event == "end" and part.data == {"status": "success", "stop_reason": "end_turn"}
