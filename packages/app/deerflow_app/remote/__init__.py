"""Requests to one server, which may be restarted meanwhile at another port and with another key; what can go wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 30.0
"""Without a byte for so long a connection is taken for dead; streams of a server say something every five seconds."""
KEPT_SECONDS = 2.0
"""An idle connection is used again; less than after what time servers close one."""
INTERNAL_HEADER = "X-DeerFlow-Internal-Token"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is and what opens it.

    Args:
        headers: go with every request.
        local: it runs on this machine, with this data directory; no proxy is asked.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    local: bool = False


class ServerConnection:
    """Args:
    find: looks for a local server anew when it does not answer any more; may block. None: there is but one address.
    """

    def __init__(self, address: Address, find: Callable[[], Address | None] | None = None) -> None:
        self.address = address
        self._find = find
        self._http = httpx.AsyncClient(
            timeout=httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS),
            limits=httpx.Limits(keepalive_expiry=KEPT_SECONDS),
            trust_env=not address.local,
            verify=not address.local,  # no certificates need to be read for an address of this machine
        )

    async def get(self, path: str, params: Mapping[str, Any] | None = None) -> Any:
        """The answer's JSON. Raises UnreachableError, RefusedError."""
        return await self.ask("GET", path, params=params)

    async def post(self, path: str, **options: Any) -> Any:
        """The answer's JSON; see :meth:`open` for the options. Raises UnreachableError, RefusedError."""
        return await self.ask("POST", path, **options)

    async def ask(self, method: str, path: str, **options: Any) -> Any:
        """As :meth:`get`, by any method; None for an answer without content."""
        async with self.open(method, path, **options) as answer:
            return answer.json() if await answer.aread() else None

    @asynccontextmanager
    async def open(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        content: Callable[[], AsyncIterator[bytes]] | None = None,
        headers: Mapping[str, str] | None = None,
        silence: float = SILENCE_SECONDS,
    ) -> AsyncGenerator[httpx.Response, None]:
        """An answer whose body is still to come.

        Args:
            content: makes the body; called once more if the server has moved.
            silence: seconds until the answer has to begin.

        Raises:
            UnreachableError: nobody answers, or the connection broke, also while the body is read.
            RefusedError: the server says no.
        """

        def request() -> httpx.Request:
            return self._http.build_request(
                method,
                self.address.url + path,
                json=json,
                params=params,
                content=content() if content else None,
                headers={**self.address.headers, **(headers or {})},
                timeout=httpx.Timeout(silence, connect=CONNECT_SECONDS),
            )

        try:
            answer = await self._sent(request)
            try:
                if answer.is_error:
                    await answer.aread()
                    raise refusal(answer)
                yield answer
            finally:
                await answer.aclose()
        except httpx.TransportError as error:
            raise unreachable(self.address) from error

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _sent(self, request: Callable[[], httpx.Request]) -> httpx.Response:
        """Asks a second time only where the first cannot have done anything: not connected, or not let in."""
        try:
            answer = await self._http.send(request(), stream=True)
        except httpx.ConnectError:
            if not await self._found_anew():
                raise
            return await self._http.send(request(), stream=True)
        if answer.status_code == httpx.codes.UNAUTHORIZED and await self._found_anew():
            await answer.aclose()
            return await self._http.send(request(), stream=True)
        return answer

    async def _found_anew(self) -> bool:
        """Whether the server is somewhere else now, or has another key."""
        found = await asyncio.to_thread(self._find) if self._find else None
        if found is None or found == self.address:
            return False
        self.address = found
        return True


def get_once(address: Address, path: str) -> Any:
    """The JSON of one answer, without an event loop. Raises UnreachableError, RefusedError."""
    try:
        answer = httpx.get(
            address.url + path,
            headers=dict(address.headers),
            timeout=httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS),
            trust_env=not address.local,
            verify=not address.local,
        )
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise unreachable(address) from error
    if answer.is_error:
        raise refusal(answer)
    try:
        return answer.json()
    except ValueError:
        raise UnreachableError(f"What answers at {address.url} is not DeerFlow.", _remedy(address)) from None


def unreachable(address: Address) -> UnreachableError:
    return UnreachableError(f"The DeerFlow server at {address.url} does not answer.", _remedy(address))


def refusal(answer: httpx.Response) -> RefusedError:
    """What the server says against it. The body of ``answer`` has been read."""
    try:
        body = answer.json()
    except ValueError:
        body = {}
    problem = body if isinstance(body, dict) else {}
    code, detail = str(problem.get("code") or ""), str(problem.get("detail") or "")
    detail = detail or f"The server answered {answer.status_code} {answer.reason_phrase}."
    remedy = ""
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        remedy = "Put an API token of that server into DEER_FLOW_API_KEY."
    return RefusedError(detail, remedy, status=answer.status_code, code=code)


def _remedy(address: Address) -> str:
    if address.local:
        return "Start it again with `deerflow serve`, or start `deerflow` anew to work without a server."
    return "Check DEER_FLOW_API_URL and the network, or work on this machine with --local."


class RemoteError(Exception):
    """Args:
    message: what happened, one sentence.
    remedy: what the person can do next.
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class UnreachableError(RemoteError):
    """The server does not answer, or not any more."""


class RefusedError(RemoteError):
    """The server answered, but did not do it.

    Args:
        status: the HTTP status.
        code: the server's word for the reason, e.g. ``not_found``.
    """

    def __init__(self, message: str, remedy: str = "", *, status: int, code: str = "") -> None:
        super().__init__(message, remedy)
        self.status = status
        self.code = code
