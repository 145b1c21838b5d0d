"""The ways to a server: over HTTP with tokens, or by a program's standard input and output, in a sandbox of its own or on the host."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import secrets
import shlex
import signal
import time
from asyncio.streams import FlowControlMixin
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp.client.sse import sse_client
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from deerflow.config.schema import McpOAuthConfig, McpServerConfig, SandboxConfig
from deerflow.config.secrets import Seal, SealedFile
from deerflow.config.section import require
from deerflow.event_loop import to_its_end
from deerflow.features.mcp.files import ThreadFiles
from deerflow.features.mcp.wire import MAX_MESSAGE, MendingClient, mended
from deerflow.sandbox.interface import WORKSPACE, Limits, Mount, Network, Policy, SandboxError, SandboxProvider

Streams = Any
Log = Callable[[str], None]
Header = Callable[[str], Awaitable[str]]

END_SECONDS = 2.0
"""A program on the host is waited for so long when its session ends, and once more when it was asked to end."""
RUN_SECONDS = 14 * 86400
"""A program is restarted after that."""
PIPES = "/mnt/mcp"
"""The own directory of a program that works on a thread's files."""
OWNER = "mcp"
"""Whose the sandboxes of servers are."""


@dataclass(frozen=True, slots=True)
class ProgramPlace:
    """Where programs run."""

    directory: Path
    """Holds a home for each."""
    key_file: Path
    """Of the installation."""
    provider: SandboxProvider
    sandbox: SandboxConfig


class ProgramMissing(Exception):
    """There is no program with the name that an entry gives as ``command``."""

    def __init__(self, program: str) -> None:
        super().__init__(f"{program} was not found.")


def transport_of(
    name: str,
    server: McpServerConfig,
    place: ProgramPlace,
    header: Header | None,
    log: Log,
    *,
    files: ThreadFiles | None = None,
) -> AbstractAsyncContextManager[Streams]:
    """What opens the streams to a server, once.

    Args:
        files: of the thread that the program works for; None: it sees those of none.
        header: gives the ``Authorization`` of the person whose session it is.

    Raises:
        ValueError: its entry lacks what its type needs.
        ConfigError: it refers to a variable that is not set.
    """
    if problem := server.problem():
        raise ValueError(problem)
    if server.type != "stdio":
        auth = HeaderAuth(header) if header is not None else None
        if auth is None and server.oauth is not None and server.oauth.enabled:
            auth = TokenAuth(server.oauth, place.directory / _slug(name) / "oauth", place.key_file)
        return _http(str(server.url), require(server.headers), auth, events=server.type == "sse")
    argv, environment = [str(server.command), *require(server.args)], require(server.env)
    if server.isolation == "host":
        return _on_host(argv, environment, log)
    policy = _policy(name, server, environment, place, files)
    return _in_sandbox(_slug(f"{name} {files.owner}") if files is not None else _slug(name), argv, policy, place, log)


@asynccontextmanager
async def _http(url: str, headers: dict[str, str], auth: HeaderAuth | None, *, events: bool) -> AsyncIterator[Streams]:
    if auth is not None:
        await auth.header("")  # so that a session is not opened without one
    timeout = httpx2.Timeout(30, read=300)
    # Reads the certificates of authorities.
    client = await asyncio.to_thread(MendingClient, headers=headers, auth=auth, timeout=timeout)
    async with AsyncExitStack() as stack:
        if events:
            yield await stack.enter_async_context(
                sse_client(url, httpx_client_factory=lambda headers=None, timeout=None, auth=None: client)
            )
        else:
            await stack.enter_async_context(client)
            yield await stack.enter_async_context(streamable_http_client(url, http_client=client))


# on the host ----------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _on_host(argv: list[str], environment: dict[str, str], log: Log) -> AsyncIterator[Streams]:
    with _errors_to(log) as errors:
        try:
            program = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env={**get_default_environment(), **environment},
                limit=MAX_MESSAGE,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise ProgramMissing(argv[0]) from None
        assert program.stdin is not None and program.stdout is not None
        try:
            async with _streams(program.stdout, program.stdin) as streams:
                yield streams
        finally:
            await to_its_end(_ended(program))


async def _ended(program: asyncio.subprocess.Process) -> None:
    """Wait for a program whose input is closed; then ask it and its children to end, then end them."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                await program.wait()
            return
        with suppress(ProcessLookupError):
            os.killpg(program.pid, how)
    await program.wait()


@contextmanager
def _errors_to(log: Log) -> Iterator[Any]:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    loop = asyncio.get_running_loop()
    loop.add_reader(reader, lambda: log(os.read(reader, 1 << 16).decode("utf-8", "replace")))
    try:
        with os.fdopen(writer, "w") as file:
            yield file
    finally:
        loop.remove_reader(reader)
        os.close(reader)


# in a sandbox ---------------------------------------------------------------------------------------------------------


def _policy(
    name: str, server: McpServerConfig, environment: dict[str, str], place: ProgramPlace, files: ThreadFiles | None
) -> Policy:
    own = (place.directory if files is None else files.directory) / _slug(name)
    return Policy(
        mounts=(
            Mount(own / "work", WORKSPACE if files is None else PIPES),
            *(files.mounts if files is not None else ()),
            *(Mount(Path(mount.host_path), mount.container_path, mount.read_only) for mount in server.mounts),
        ),
        home=own / "home",
        tmp=own / "tmp",
        environment={"NODE_USE_ENV_PROXY": "1", **environment},
        network=Network(**server.network.model_dump()),
        limits=Limits(**{**place.sandbox.limits.model_dump(), "cpu_seconds": 0}),
        owner=files.owner if files is not None else "",
    )


def _slug(name: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40]
    return f"{plain or 'server'}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


@asynccontextmanager
async def _in_sandbox(
    key: str, argv: list[str], policy: Policy, place: ProgramPlace, log: Log
) -> AsyncIterator[Streams]:
    """The program's streams are named pipes in its directory, since a sandbox's shell has no standard input."""
    sandbox_id, directory = f"{OWNER}:{key}", policy.mounts[0]
    pipes = await asyncio.to_thread(_Pipes, directory.host)
    try:
        sandbox = await place.provider.acquire(key, user_id=OWNER, policy=policy)
        command = f"{shlex.join(argv)} <{directory.path}/{pipes.names[0]} >{directory.path}/{pipes.names[1]}"

        async def run() -> None:
            try:
                result = await sandbox.exec(command, timeout=RUN_SECONDS, on_output=log)
                if result.exit_code == 127 and (await sandbox.exec(f"command -v {shlex.quote(argv[0])}")).exit_code:
                    raise ProgramMissing(argv[0])
                log(f"The program ended with exit code {result.exit_code}.\n")
            except SandboxError as error:
                log(f"{error}\n")

        async with _opened(pipes) as (lines, writer), _streams(lines, writer, run) as streams:
            yield streams
    finally:
        await asyncio.to_thread(pipes.close)
        await place.provider.release(sandbox_id, destroy=True)


class _Pipes:
    """Two pipes that both sides can open in any order: this side holds either end of each. Blocks."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for left in directory.glob(".mcp-*"):
            left.unlink()
        self.names = [f".mcp-{secrets.token_hex(8)}" for _ in range(2)]
        self._directory = os.open(directory, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        for name in self.names:
            os.mkfifo(name, 0o600, dir_fd=self._directory)
        self._held = [self._open(name, os.O_RDWR) for name in self.names]
        self.input = os.fdopen(self._open(self.names[0], os.O_WRONLY), "wb", 0)
        self.output = os.fdopen(self._open(self.names[1], os.O_RDONLY), "rb", 0)

    def close(self) -> None:
        for name in self.names:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=self._directory)
        for descriptor in (*self._held, self._directory):
            os.close(descriptor)
        self.input.close()
        self.output.close()

    def _open(self, name: str, how: int) -> int:
        return os.open(name, how | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._directory)


@asynccontextmanager
async def _opened(pipes: _Pipes) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader(limit=MAX_MESSAGE)
    reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), pipes.output)
    writing, protocol = await loop.connect_write_pipe(FlowControlMixin, pipes.input)
    try:
        yield lines, asyncio.StreamWriter(writing, protocol, None, loop)
    finally:
        reading.close()


@asynccontextmanager
async def _streams(
    lines: asyncio.StreamReader, writer: asyncio.StreamWriter, run: Callable[[], Awaitable[None]] | None = None
) -> AsyncIterator[Streams]:
    """One message a line. Without ``run`` the end of the program is the end of its output."""
    received, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write_stream, sent = anyio.create_memory_object_stream[SessionMessage](0)

    async def receive() -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, ValueError):  # a line that never ends
            while line := await lines.readline():
                try:
                    message = SessionMessage(jsonrpc_message_adapter.validate_json(mended(line), by_name=False))
                except ValueError as error:
                    await received.send(error)
                else:
                    await received.send(message)
        received.close()

    async def send() -> None:
        with suppress(ConnectionError):
            async for message in sent:
                writer.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await writer.drain()

    async def serve() -> None:
        if run is not None:
            await run()
            lines.feed_eof()

    async with anyio.create_task_group() as group:
        for work in (receive, send, serve):
            group.start_soon(work)
        try:
            yield read_stream, write_stream
        finally:
            group.cancel_scope.cancel()
            writer.close()
            for stream in (received, read_stream, write_stream, sent):
                stream.close()


# tokens, fetched when needed, refreshed before they expire; rotated refresh tokens are kept --------------------------


TOKEN_SECONDS = 15.0
LIFETIME = 3600


class HeaderAuth(httpx2.Auth):
    """``header`` gives what goes into ``Authorization``, another one than what it is given: that was refused."""

    def __init__(self, header: Callable[[str], Awaitable[str]]) -> None:
        self.header = header

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        used = request.headers["Authorization"] = await self.header("")
        response = yield request
        if response.status_code == 401:
            request.headers["Authorization"] = await self.header(used)
            yield request


class TokenAuth(HeaderAuth):
    """Client credentials, or a refresh token (RFC 6749, sections 4.4 and 6).

    Args:
        file: keeps the newest refresh token, encrypted with the installation's key.
    """

    def __init__(self, config: McpOAuthConfig, file: Path, key_file: Path) -> None:
        super().__init__(self._header_but)
        self._config = config
        self._sealed = SealedFile(
            file,
            Seal(
                key_file,
                "The token of this server",
                f"delete mcp/{file.parent.name}/{file.name} and configure a new one",
            ),
        )
        self._header = ""
        self._until = 0.0
        self._fetching = asyncio.Lock()

    async def _header_but(self, not_this: str) -> str:
        """Raises:
        ValueError: there is no token to be had.
        WrongKeyError
        ConfigError: the entry refers to a variable that is not set.
        """
        async with self._fetching:
            if self._header == not_this or time.monotonic() >= self._until:
                await self._fetch()
            return self._header

    async def _fetch(self) -> None:
        config, grant = self._config, self._config.grant_type or "client_credentials"
        form: dict[str, Any] = {"grant_type": grant, **require(config.extra_token_params)}
        form |= {"scope": config.scope, "audience": config.audience}
        form |= {"client_id": config.client_id, "client_secret": config.client_secret}
        if grant == "refresh_token":
            form["refresh_token"] = await asyncio.to_thread(self._kept) or config.refresh_token
        needed = ("refresh_token",) if grant == "refresh_token" else ("client_id", "client_secret")
        if missing := [name for name in needed if not form.get(name)] or ["token_url"] * (config.token_url is None):
            raise ValueError(f"oauth: {grant} needs {' and '.join(missing)}.")
        client = await asyncio.to_thread(httpx2.AsyncClient, timeout=TOKEN_SECONDS)
        async with client:
            answer = await client.post(str(config.token_url), data={key: value for key, value in form.items() if value})
        if not answer.is_success:
            raise ValueError(f"The token endpoint {config.token_url} answered {answer.status_code}.")
        given = answer.json()
        if not given.get(config.token_field):
            raise ValueError(f"The token endpoint {config.token_url} gave no {config.token_field}.")
        lifetime = max(1, int(given.get(config.expires_in_field) or LIFETIME))
        self._header = f"{given.get(config.token_type_field) or config.default_token_type} {given[config.token_field]}"
        self._until = time.monotonic() + max(1, lifetime - config.refresh_skew_seconds)
        if grant == "refresh_token" and given.get("refresh_token"):
            await asyncio.to_thread(self._keep, given["refresh_token"])

    def _configured(self) -> str:
        """A newly configured token takes the place of what followed from the former one."""
        return hashlib.sha256((self._config.refresh_token or "").encode()).hexdigest()

    def _kept(self) -> str | None:
        kept = self._sealed.read()
        return kept["token"] if kept is not None and kept["configured"] == self._configured() else None

    def _keep(self, token: str) -> None:
        self._sealed.write({"configured": self._configured(), "token": token})
