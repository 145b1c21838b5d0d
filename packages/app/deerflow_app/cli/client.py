"""What the terminal needs of DeerFlow, whether it works in this process or in a server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
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
    """Threads, turns and files; see ``DeerFlowClient`` for what the methods promise.

    - ``url``: of the server that does the work; None: this process does.
    - ``harness``: what works in this process; None: a server does.
    - ``paths``: the data directory, if it is on this machine.
    - ``models``: those that can answer; the first does unless another is chosen.
    - ``problem``: what is wrong with the configuration right now.
    - ``notice``: what to know about the choice of place.
    """

    @property
    def url(self) -> str | None: ...
    @property
    def harness(self) -> Harness | None: ...
    @property
    def paths(self) -> Paths | None: ...
    @property
    def models(self) -> Sequence[Model]: ...
    @property
    def problem(self) -> str | None: ...
    @property
    def notice(self) -> str: ...

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

    def aread_artifact(self, thread_id: str, path: str) -> AsyncGenerator[bytes, None]:
        """The pieces of a file, by its virtual path. Raises SandboxFileError when it cannot be had."""
        ...

    async def afile_sizes(self, thread_id: str) -> dict[str, int]:
        """Bytes of the thread's files, by virtual path."""
        ...

    async def aclose(self) -> None: ...


def check_model(client: Client, name: str) -> None:
    """Raises Failure when no model has this name."""
    known = [model.name for model in client.models]
    if name not in known:
        raise usage_failure(f"There is no model {name!r}.", f"Known models: {', '.join(known)}.")


def chosen_model(client: Client, name: str | None) -> Model:
    """The model that answers: the named one, else the first. Raises Failure when there is none."""
    if name is not None:
        check_model(client, name)
    if not client.models:
        raise usage_failure("No model is configured.", "`deerflow doctor` says how to connect one.")
    return next((model for model in client.models if model.name == name), client.models[0])


def is_demo(model: Model) -> bool:
    """Whether the scripted demo model answers."""
    from deerflow.config.discovery import DEMO_MODEL

    return model.model == DEMO_MODEL
