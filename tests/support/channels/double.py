"""The base of doubles: a platform on loopback whose faults a test orders, one operation at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from enum import StrEnum
from typing import Self

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from tests.support.channels.loopback import Cut, Link, Loopback


class Operation(StrEnum):
    """A thing that an adapter asks of its platform, however many requests that takes."""

    IDENTIFY = "identify"
    LISTEN = "listen"
    POST = "post"
    EDIT = "edit"
    UPLOAD = "upload"
    FETCH = "fetch"


class Fault(StrEnum):
    """A way in which one request of an operation fails."""

    LATER = "later"
    SERVER_ERROR = "server error"
    CUT_BEFORE = "cut before the effect"
    CUT_AFTER = "cut after the effect"
    GARBAGE = "a page instead of an answer"
    REFUSED = "refused"
    SIGNED_OUT = "signed out"
    DISPLACED = "displaced"


LATER = 7.0
"""Seconds that a double asks for in ``Fault.LATER``."""


class Double(ABC):
    """A platform. It listens while it is entered.

    A platform that answers over its WebSocket overrides ``fail`` or asks ``due`` where it answers.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.links: list[Link] = []
        self.server = Loopback(self._answer, self._attend)
        self._faults: dict[Operation, deque[Fault]] = {operation: deque() for operation in Operation}

    @property
    def http(self) -> str:
        return f"http://{self.server.address}"

    @property
    def ws(self) -> str:
        return f"ws://{self.server.address}"

    async def __aenter__(self) -> Self:
        await self.server.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.__aexit__()

    def fail(self, operation: Operation, fault: Fault, times: int = 1) -> None:
        """Let the next requests of this operation fail."""
        self._faults[operation].extend([fault] * times)

    def heal(self) -> None:
        """Drop all faults that have not struck."""
        for waiting in self._faults.values():
            waiting.clear()

    def due(self, operation: Operation | None) -> Fault | None:
        """Return the fault that strikes now, once."""
        waiting = self._faults[operation] if operation else None
        return waiting.popleft() if waiting else None

    @abstractmethod
    def operation(self, request: Request) -> Operation | None:
        """Return the operation that a request belongs to. Of an operation with several requests: the one with the effect."""

    @abstractmethod
    async def respond(self, request: Request) -> Response:
        """Do what a request asks and answer as the platform does."""

    @abstractmethod
    def failure(self, fault: Fault) -> Response:
        """Return the platform's own words for LATER, REFUSED, SIGNED_OUT and DISPLACED."""

    async def attend(self, link: Link) -> None:
        """Speak the platform's protocol on a WebSocket."""
        raise NotImplementedError

    async def _attend(self, link: Link) -> None:
        self.links.append(link)
        try:
            await self.attend(link)
        finally:
            self.links.remove(link)

    async def _answer(self, request: Request) -> Response:
        await request.body()
        self.requests.append(request)
        match fault := self.due(self.operation(request)):
            case None:
                return await self.respond(request)
            case Fault.CUT_BEFORE:
                raise Cut
            case Fault.CUT_AFTER:
                await self.respond(request)
                raise Cut
            case Fault.SERVER_ERROR:
                return HTMLResponse("<html><h1>502 Bad Gateway</h1></html>", 502)
            case Fault.GARBAGE:
                return HTMLResponse("<html>Sign in to this network</html>")
            case _:
                return self.failure(fault)
