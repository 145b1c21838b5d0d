"""What does the work for the terminal: this process or a server, behind one interface."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from deerflow_app.cli.failures import usage_failure

if TYPE_CHECKING:
    from deerflow.config import Paths
    from deerflow.events.streams.client_events import StreamEvent
    from deerflow.harness import Harness


class Model(Protocol):
    """A model that can answer. ``discovered_from`` says why one that no file names is there."""

    @property
    def name(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def display_name(self) -> str | None: ...
    @property
    def description(self) -> str | None: ...
    @property
    def discovered_from(self) -> str | None: ...


class Client(Protocol):
    """Threads, turns and files: ``DeerFlowClient`` in this process, ``RemoteClient`` for a server."""

    def astream(
        self,
        message: str,
        *,
        thread_id: str | None = None,
        files: Sequence[str | Path] = (),
        model_name: str | None = None,
    ) -> AsyncGenerator[StreamEvent, None]: ...

    def aresume(self, thread_id: str, *, model_name: str | None = None) -> AsyncGenerator[StreamEvent, None]: ...

    async def athread_state(self, thread_id: str) -> dict[str, Any]: ...

    async def alist_threads(self, limit: int = 10) -> dict[str, Any]: ...

    def aread_artifact(self, thread_id: str, path: str) -> AsyncGenerator[bytes, None]: ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Backend:
    """A client and what the terminal knows about it.

    Args:
        models: those that can answer; the first does unless another is chosen.
        file_sizes: bytes of a thread's files, by virtual path.
        paths: the data directory, if it is on this machine.
        harness: what works in this process; None: a server does.
        url: of the server; None: this process does the work.
        notice: what to know about the choice between them.
        problem: what is wrong with the configuration right now.
    """

    client: Client
    models: Sequence[Model]
    file_sizes: Callable[[str], Awaitable[dict[str, int]]]
    paths: Paths | None = None
    harness: Harness | None = None
    url: str | None = None
    notice: str = ""
    problem: Callable[[], str | None] = lambda: None

    def model(self, name: str | None) -> Model:
        """The model that answers: the named one, else the first. Raises Failure when there is none."""
        known = [model.name for model in self.models]
        if name is not None and name not in known:
            raise usage_failure(f"There is no model {name!r}.", f"Known models: {', '.join(known)}.")
        if not self.models:
            raise usage_failure("No model is configured.", "`deerflow doctor` shows how to connect one.")
        return self.models[known.index(name) if name else 0]


def is_demo(model: Model) -> bool:
    """Whether the scripted demo model answers."""
    from deerflow.config.discovery import DEMO_MODEL

    return model.model == DEMO_MODEL
