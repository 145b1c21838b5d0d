"""A run on a server, followed to its end however often the connection breaks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from deerflow.events.store import RunEvent
from deerflow.events.streams.client_events import StreamEvent, TurnEvents, shown_values
from deerflow.server_events import Event, EventDecoder
from deerflow_app.remote import RefusedError, ServerConnection, UnreachableError

MODES = ("values", "updates", "messages-tuple", "custom")
PAUSES = (0.1, 0.5, 1.0, 2.0)
"""Seconds between attempts to connect; the last one again and again."""
STOP_SECONDS = 60.0
"""How long a run may take to put away what it was doing."""
ENDED = frozenset({"success", "error", "interrupted", "timeout"})


class Following:
    """Args:
    patience: seconds after which a server that does not answer is given up.
    """

    def __init__(self, connection: ServerConnection, run: Mapping[str, Any], *, patience: float) -> None:
        self._connection = connection
        self._run_id = str(run["run_id"])
        self._path = f"/api/threads/{run['thread_id']}/runs/{run['run_id']}"
        self._remedy = f"The thread is kept. Go on with: deerflow --thread {run['thread_id']}"
        self._patience = patience
        self._told = TurnEvents(lambda: None)
        self._position = "-1"
        self._alive_at = asyncio.get_running_loop().time()

    async def events(self) -> AsyncGenerator[StreamEvent, None]:
        """Everything from the run's beginning. Closing the generator stops the run; what it did is kept.

        Raises:
            UnreachableError: the server is gone.
            RefusedError: the run is not there any more.
        """
        attempt = 0
        try:
            while True:
                try:
                    async with aclosing(self._received()) as received:
                        async for event in received:
                            attempt = 0
                            yield event
                            if event.type == "end":
                                return
                    if (end := await self._silent_end()) is not None:
                        yield end
                        return
                except (UnreachableError, RefusedError) as error:
                    self._bear(error)
                    if attempt == 1:  # a short break needs no words
                        yield StreamEvent("custom", {"type": "connection", "message": self._lost()})
                await asyncio.sleep(PAUSES[min(attempt, len(PAUSES) - 1)])
                attempt += 1
        except (GeneratorExit, asyncio.CancelledError):
            await self._stop()
            raise

    async def _received(self) -> AsyncGenerator[StreamEvent, None]:
        """What comes until the connection ends."""
        options: dict[str, Any] = {"params": {"stream_mode": MODES}, "headers": {"Last-Event-ID": self._position}}
        decoder = EventDecoder()
        async with self._connection.open("GET", f"{self._path}/stream", **options) as answer:
            async for received in answer.aiter_bytes():
                self._alive_at = asyncio.get_running_loop().time()
                for frame in decoder.feed(received):
                    self._position = frame.id.decode()
                    for event in self._shown(frame):
                        yield event

    def _shown(self, frame: Event) -> Iterator[StreamEvent]:
        if frame.name == b"values":
            yield StreamEvent("values", shown_values(json.loads(frame.data)))
        else:
            yield from self._told.of([RunEvent.encoded(int(frame.id), self._run_id, frame.name.decode(), frame.data)])

    async def _silent_end(self) -> StreamEvent | None:
        """A run that was stopped before it began says nothing; a stream also ends because the server does."""
        run = await self._connection.get(self._path)
        return self._told.end() if run["status"] in ENDED else None

    def _bear(self, error: UnreachableError | RefusedError) -> None:
        """Raises ``error`` unless it may pass: a server, or the proxy before it, that is just starting."""
        if isinstance(error, RefusedError) and error.status < 500:
            raise error
        if asyncio.get_running_loop().time() - self._alive_at >= self._patience:
            message = f"The DeerFlow server at {self._connection.address.url} has gone in the middle of the turn."
            raise UnreachableError(message, self._remedy) from error

    def _lost(self) -> str:
        return f"No answer from {self._connection.address.url}. Trying to reach it again for {self._patience:.0f} s."

    async def _stop(self) -> None:
        params = {"action": "interrupt", "wait": "true"}
        try:
            await self._connection.post(f"{self._path}/cancel", params=params, silence=STOP_SECONDS)
        except RefusedError as error:
            if error.status != 404:  # it has just ended
                raise
        except UnreachableError as error:
            message = f"The server at {self._connection.address.url} did not hear the stop: it may still go on."
            raise UnreachableError(message, self._remedy) from error
