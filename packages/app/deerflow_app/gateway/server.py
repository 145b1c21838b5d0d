"""The gateway as a process: it listens, tells local programs where it is, and ends in an orderly way."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import dataclasses
import errno
import logging
import os
import secrets
import signal
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deerflow.config import ConfigError
from deerflow.storage.errors import DatabaseError
from deerflow_app.gateway import FILE_NAME, RunningServer, announce, withdraw
from deerflow_app.gateway.app import create_app, create_status_app
from deerflow_app.gateway.http.connections import BoundedHttp, ConnectionLimits
from deerflow_app.gateway.settings import GatewaySettings

if TYPE_CHECKING:
    from deerflow.runtime import Runtime
    from deerflow.storage.database import Database

logger = logging.getLogger(__name__)

_STOP_SECONDS = 5
_BACKLOG = 2048
_M_ARENA_MAX = -8


class ServerError(Exception):
    """The gateway cannot start; the message says why and what to do."""


def serve(
    database: Database,
    settings: GatewaySettings,
    make_runtime: Callable[[], Runtime],
    *,
    config_file: Path | None = None,
    on_start: Callable[[str], None] | None = None,
    on_open: Callable[[], None] | None = None,
    on_setup: Callable[[str], None] | None = None,
) -> int:
    """Serve until SIGINT or SIGTERM, then finish requests and close the runtime; returns the exit code of the process.

    Args:
        config_file: what local programs are told that the configuration comes from.
        make_runtime: called in a thread once connections are accepted.
        on_start: called with the address once connections are accepted.
        on_open: called once runs can begin.
        on_setup: called then, too, with the setup code, if someone elsewhere could make the first administrator.

    Raises:
        ServerError: the port is taken, the address is not ours, or the database cannot be used.
    """
    share_arenas()
    token = settings.internal_token or secrets.token_urlsafe(32)
    settings = dataclasses.replace(settings, internal_token=token)
    with contextlib.closing(_listen(settings.host, settings.port)) as listener:
        app = create_app(database, settings, make_runtime)

        def opened(opening: asyncio.Task[None]) -> None:
            if opening.cancelled() or opening.exception():
                server.should_exit = True
            elif on_open:
                on_open()

        async def began() -> None:
            app.state.opening.add_done_callback(opened)
            if on_start:
                on_start(address.url)
            with contextlib.suppress(DatabaseError):  # those who ask for something are told of it
                if on_setup and settings.setup_code and await app.state.accounts.needs_setup():
                    on_setup(settings.setup_code)

        address = RunningServer(
            _url(settings.host, listener), os.getpid(), token, str(config_file) if config_file else None
        )
        config = _config(_without_traceback(app), settings, timeout_graceful_shutdown=_STOP_SECONDS)
        server = _Server(config, settings.data_dir, address, began)
        logging.getLogger("uvicorn.error").addFilter(_is_fault)
        code = 0
        try:
            server.run(sockets=[listener])
        except SystemExit:  # uvicorn could not start the application; it has logged why
            code = 1
        error = app.state.start_error
        if isinstance(error, DatabaseError):
            raise ServerError(str(error)) from error
        if isinstance(error, ConfigError):
            raise error
        if error is not None:
            logger.error("The runtime could not start.", exc_info=error)
            code = 1
    return code


def share_arenas() -> None:
    """Let all threads allocate from two of glibc's arenas. One for each thread, most of it empty, costs 7 MB."""
    with contextlib.suppress(AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)


@contextlib.asynccontextmanager
async def serve_status(runtime: Runtime, settings: GatewaySettings) -> AsyncIterator[str]:
    """Answer for the health and the figures of a worker meanwhile; yields the address.

    Raises:
        ServerError: the port is taken, or the address is not ours.
    """
    with contextlib.closing(_listen(settings.host, settings.port)) as listener:
        server = _StatusServer(_config(create_status_app(runtime, settings), settings, lifespan="off"))
        serving = asyncio.create_task(server.serve(sockets=[listener]), name="health")
        try:
            yield _url(settings.host, listener)
        finally:
            server.should_exit = True
            await serving


def _config(app: Any, settings: GatewaySettings, **more: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        proxy_headers=False,  # http/requests.py believes only those that were named
        server_header=False,
        http=partial(BoundedHttp, limits=ConnectionLimits.of_process(settings.trusted_proxies)),  # type: ignore[arg-type]
        **more,
    )


class _StatusServer(uvicorn.Server):
    """Leaves signals to the worker."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _is_fault(record: logging.LogRecord) -> bool:
    """Return whether a log record is about more than an answer that was cut off because the server stops."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


def _without_traceback(app: FastAPI) -> ASGIApp:
    """A reason not to start that has its remedy is not logged like a fault of the program."""

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        async def observed(message: Message) -> None:
            if message["type"] == "lifespan.startup.failed" and app.state.start_error is not None:
                message = {"type": message["type"]}
            await send(message)

        await app(scope, receive, observed if scope["type"] == "lifespan" else send)

    return call


class _Server(uvicorn.Server):
    """Ends without raising the signal anew, which would kill the process before it has put things away."""

    def __init__(
        self, config: uvicorn.Config, data_dir: Path, address: RunningServer, began: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(config)
        self._data_dir = data_dir
        self._address = address
        self._began = began

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            try:
                await asyncio.to_thread(announce, self._data_dir, self._address)
            except OSError as error:  # the disk is full: what is there is served all the same
                logger.warning("Terminals will not find this server by themselves: %s: %s", FILE_NAME, error.strerror)
            await self._began()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await asyncio.to_thread(withdraw, self._data_dir, self._address)
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _listen(host: str, port: int) -> socket.socket:
    """Bound before anything else starts, so that a taken port costs nothing."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise ServerError(f"The address {host!r} is unknown ({error.strerror}). Use 127.0.0.1, or 0.0.0.0.") from None
    family, kind, protocol, _, address = sorted(found, key=lambda one: one[0] != socket.AF_INET)[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise ServerError(_why(error, host, port)) from None
    return listener


def _why(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is taken. Stop the program that uses it, or choose another: --port {port + 1}"
    if error.errno == errno.EACCES:
        return f"Port {port} on {host} needs more rights. Choose one above 1023: --port 8001"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"This machine does not have the address {host}. Use 127.0.0.1, or 0.0.0.0 for all of its addresses."
    return f"Cannot listen on {host}, port {port}: {error.strerror}."


def _url(host: str, listener: socket.socket) -> str:
    """How to get there from this machine."""
    name, port = listener.getsockname()[:2]
    if name in ("0.0.0.0", "::"):
        host = "127.0.0.1" if name == "0.0.0.0" else "::1"
    return f"http://[{host.strip('[]')}]:{port}" if ":" in host else f"http://{host}:{port}"
