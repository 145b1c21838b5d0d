"""The few calls of Docker's API that sandboxes need, over the engine's Unix socket; Podman serves the same ones."""

from __future__ import annotations

import asyncio
import struct
from asyncio import IncompleteReadError, StreamReader, StreamWriter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

CALL_TIMEOUT = 60.0
HEADER = struct.Struct(">B3xI")
STDOUT = 1
MAX_COMPLAINT = 4096


class EngineError(Exception):
    """The engine does not answer, or refused; ``str`` is what it said, ``status`` 0 if it said nothing."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class EngineOutput:
    """The standard output of a container, taken out of the frames in which the engine sends both streams."""

    def __init__(self, stream: StreamReader) -> None:
        self._stream = stream
        self._held = bytearray()
        self.complaint = b""
        """The end of standard error."""

    async def readexactly(self, n: int, /) -> bytes:
        try:
            while len(self._held) < n:
                kind, size = HEADER.unpack(await self._stream.readexactly(HEADER.size))
                data = await self._stream.readexactly(size)
                if kind == STDOUT:
                    self._held += data
                else:
                    self.complaint = (self.complaint + data)[-MAX_COMPLAINT:]
        except IncompleteReadError:
            raise IncompleteReadError(bytes(self._held), n) from None
        data = bytes(self._held[:n])
        del self._held[:n]
        return data


class ContainerEngine:
    """An engine. All calls block but ``attach``, and raise EngineError."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        # Without a version in the address the engine speaks its newest one: what is asked here has not changed for years.
        self._http = httpx.Client(
            transport=httpx.HTTPTransport(uds=str(socket)), base_url="http://engine", timeout=CALL_TIMEOUT
        )

    def info(self) -> dict[str, Any]:
        return self._call("GET", "/info").json()

    def create(self, name: str, body: Mapping[str, Any]) -> str:
        """Make a container and return its id."""
        return self._call("POST", "/containers/create", params={"name": name}, json=body).json()["Id"]

    def start(self, container: str) -> None:
        self._call("POST", f"/containers/{container}/start")

    def pid(self, container: str) -> int:
        """The first process, as the engine's machine counts."""
        return self._call("GET", f"/containers/{container}/json").json()["State"]["Pid"]

    def wait(self, container: str) -> int:
        """Wait for the end and return the exit code."""
        return self._call("POST", f"/containers/{container}/wait").json()["StatusCode"]

    def remove(self, container: str) -> None:
        """Kill a container and remove it; it may be gone already."""
        try:
            self._call("DELETE", f"/containers/{container}", params={"force": "1", "v": "1"})
        except EngineError as error:
            if error.status not in (404, 409):  # 409: it is being removed
                raise

    def never_started(self, label: str) -> list[tuple[str, float]]:
        """The containers with ``label`` that were made and not started, with the time of that."""
        wanted = f'{{"label": ["{label}"], "status": ["created"]}}'
        found = self._call("GET", "/containers/json", params={"all": "1", "filters": wanted}).json()
        return [(one["Id"], float(one["Created"])) for one in found]

    async def attach(self, container: str) -> tuple[EngineOutput, StreamWriter]:
        """Connect to a container's standard input and output: what it writes from now on, and where it reads."""
        try:
            reader, writer = await asyncio.open_unix_connection(self.socket)
        except OSError as error:
            raise EngineError(str(error)) from error
        writer.write(
            f"POST /containers/{container}/attach?stream=1&stdin=1&stdout=1&stderr=1 HTTP/1.1\r\n"
            "Host: engine\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n".encode()
        )
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                head = await reader.readuntil(b"\r\n\r\n")
        except (OSError, EOFError) as error:
            writer.close()
            raise EngineError("the engine did not answer") from error
        if b" 101 " not in head.partition(b"\r\n")[0]:
            writer.close()
            raise EngineError(head.decode("utf-8", "replace"))
        return EngineOutput(reader), writer

    def _call(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            answer = self._http.request(method, path, **options)
        except httpx.HTTPError as error:
            raise EngineError(str(error)) from error
        if answer.is_error:
            raise EngineError(_message(answer), answer.status_code)
        return answer


def _message(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["message"])
    except (ValueError, LookupError, TypeError):
        return answer.text.strip() or f"HTTP {answer.status_code}"
