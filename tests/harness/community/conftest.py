"""A web of one's own: a server that answers what a test scripts, on an address that only tests may call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool

from deerflow.config import AppConfig
from deerflow.config.schema import Origin
from deerflow.context import RunContext
from deerflow.context.machine import Machine
from deerflow.context.workspace import Workspace
from deerflow.identity import Principal
from deerflow.reflection import resolve_variable
from deerflow.sandbox.converters import Converters
from deerflow.sandbox.interface import OUTPUTS, UPLOADS, WORKSPACE, Mount, Policy
from deerflow.sandbox.local import LocalSandboxProvider

HOST = "127.0.0.2"


@dataclass
class Request:
    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Web:
    """``pages`` by path: a raw answer, or a function of the request. What is not there is a 404."""

    port: int = 0
    pages: dict[str, bytes | Callable[[Request], bytes]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    hang: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def base(self) -> str:
        return f"http://{HOST}:{self.port}"

    def put(
        self, path: str, body: bytes | str, kind: str = "text/html; charset=utf-8", *, status: int = 200, **headers: str
    ) -> str:
        data = body.encode() if isinstance(body, str) else body
        more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        type_ = f"Content-Type: {kind}\r\n" if kind else ""
        self.pages[path] = (
            f"HTTP/1.1 {status} X\r\n{type_}{more}Content-Length: {len(data)}\r\nConnection: close\r\n\r\n".encode()
            + data
        )
        return self.base + path

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
            headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            request = Request(lines[0], headers, body)
            self.requests.append(request)
            path = lines[0].split()[1].partition("?")[0]
            if path == "/hang":
                await self.hang.wait()
            answer = self.pages.get(path, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            writer.write(answer(request) if callable(answer) else answer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    made = Web()
    server = await asyncio.start_server(made.serve, HOST, 0)
    made.port = server.sockets[0].getsockname()[1]
    async with server:
        yield made
        made.hang.set()


Call = Callable[..., Awaitable[ToolMessage]]


@pytest.fixture
def context(tmp_path: Path, converters: Converters) -> RunContext:
    root = tmp_path / "user-data"
    directories = [root / name for name in ("workspace", "uploads", "outputs")]
    for directory in directories:
        directory.mkdir(parents=True)
    mounts = tuple(Mount(host, path) for host, path in zip(directories, (WORKSPACE, UPLOADS, OUTPUTS), strict=True))
    return RunContext(
        thread_id="thread-1",
        principal=Principal("alice"),
        machine=Machine(
            workspace=Workspace(root, *directories),
            provider=LocalSandboxProvider(),
            policy=Policy(mounts=mounts),
            converters=converters,
        ),
    )


@pytest.fixture
def call(context: RunContext) -> Call:
    """Calls the tool at a ``use`` path as an agent does. ``options`` are those of its entry in the configuration."""

    async def called(use: str, *, network: dict[str, Any] | None = None, environ: dict[str, str] | None = None,
                     options: dict[str, Any] | None = None, sandbox: bool = True, **args: Any) -> ToolMessage:  # fmt: skip
        tool = resolve_variable(use, BaseTool)
        config = AppConfig.model_validate(
            {
                "tools": [{"name": tool.name, "group": "web", "use": use, **(options or {})}],
                "sandbox": {"network": network or {"allow_nets": [f"{HOST}/32"]}},
            }
        ).with_origin(Origin(environ=environ or {}))
        provider = context.machine.provider if sandbox else None
        own = replace(context, config=config, machine=replace(context.machine, provider=provider))
        runtime = ToolRuntime(
            state={}, context=own, config={}, stream_writer=lambda _: None, tool_call_id="call-1", store=None
        )
        return await tool.ainvoke(
            {"type": "tool_call", "name": tool.name, "id": "call-1", "args": {**args, "runtime": runtime}}
        )

    return called
