"""What does the work for the terminal: this process or a server, behind one interface."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deerflow_app.cli.failures import usage_failure

if TYPE_CHECKING:
    from deerflow.client import DeerFlowClient
    from deerflow.config import ModelConfig, Paths
    from deerflow.harness import Harness
    from deerflow.models import ModelInfo
    from deerflow_app.remote.client import RemoteClient, RemoteModel

    Client = DeerFlowClient | RemoteClient
    """Threads, turns and files: of this process, or of a server."""
    Model = ModelConfig | ModelInfo | RemoteModel


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
