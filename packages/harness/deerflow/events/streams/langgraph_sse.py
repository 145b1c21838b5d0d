"""Events of a run as the legacy streaming endpoints of the LangGraph API send them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import chain
from typing import Any

from deerflow.errors import InvalidRequestError
from deerflow.events.encoding import encode
from deerflow.events.record import RunEvent
from deerflow.events.streams.chunks import GrowingMessages, begins_anew, merged
from deerflow.events.streams.sse import frame

STREAM_MODES = (
    "values",
    "updates",
    "messages",
    "messages-tuple",
    "custom",
    "events",
    "tasks",
    "checkpoints",
    "debug",
)
_ALWAYS = frozenset({"metadata", "error", "end"})


class Frames:
    """One client's view of a stream.

    Args:
        modes: the stream modes asked for.
        subgraphs: whether to show subgraphs; their events are named ``mode|namespace|…``.
        snapshot: the thread's values as they are now, or None if there are none.
        after: the position up to which the client has everything.

    Raises:
        InvalidRequestError: there is no such mode.
    """

    def __init__(
        self,
        modes: Sequence[str],
        subgraphs: bool,
        snapshot: Callable[[], Awaitable[dict[str, Any] | None]],
        after: int = 0,
    ) -> None:
        if unknown := [mode for mode in modes if mode not in STREAM_MODES]:
            raise InvalidRequestError(f"{unknown[0]!r} is not a stream mode. Known: {', '.join(STREAM_MODES)}.")
        self.ended = False
        """Whether the last event of the run has been rendered."""
        self.start = 0 if "messages" in modes else after
        """Where to read from: whole messages can only be shown by who has seen them grow."""
        self._after = after
        self._methods = _ALWAYS | {"messages" if mode == "messages-tuple" else mode for mode in modes}
        self._pieces = "messages-tuple" in modes
        self._growing = GrowingMessages() if "messages" in modes else None
        self._subgraphs = subgraphs
        self._snapshot = snapshot
        self._shown: int | None = None

    async def render(self, batch: Sequence[RunEvent]) -> bytes:
        """What the client gets of ``batch``, as whole events; perhaps nothing."""
        events = [
            event for event in batch if event.method in self._methods and (self._subgraphs or not event.namespace)
        ]
        if any(begins_anew(event) for event in batch):
            self._shown = None  # Only a state tells that what was streamed in part is void.
        newest = max((event.seq for event in events if event.method == "values"), default=0)
        rendered: list[bytes] = []
        seen = sum(event.seq <= self._after for event in events)
        for event in chain(merged(events[:seen]), merged(events[seen:])):
            if event.method == "messages":
                rendered += self._messages(event)
            elif event.method == "values":
                if event.seq == newest and event.seq > self._after and (state := await self._state()) is not None:
                    rendered.append(frame("values", state, event.seq))
            elif event.seq > self._after:
                rendered.append(frame(_name(event.method, event), event.json, event.seq))
                self.ended = self.ended or event.method == "end"
        return b"".join(rendered)

    def _messages(self, event: RunEvent) -> list[bytes]:
        frames: list[bytes] = []
        for name, json in self._growing.add(event.json) if self._growing else ():
            frames.append(frame(_name(f"messages/{name}", event), json, event.seq))
        if self._pieces:
            frames.append(frame(_name("messages", event), event.json, event.seq))
        return frames if event.seq > self._after else []

    async def _state(self) -> bytes | None:
        """The newest state, unless the client has just that."""
        values = await self._snapshot()
        if values is None:
            return None
        encoded = encode(values)
        before, self._shown = self._shown, hash(encoded)
        return None if before == self._shown else encoded


def _name(method: str, event: RunEvent) -> str:
    return "|".join((method, *event.namespace))
