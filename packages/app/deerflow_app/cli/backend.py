"""What does the work for the terminal: this process or a server, behind one interface; its log, and the sandbox's packages."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import logging.handlers
import os
import queue
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Self

from deerflow.identity import check_id
from deerflow_app.cli import Settings
from deerflow_app.cli.failures import usage_failure
from deerflow_app.cli.terminal import one_line

if TYPE_CHECKING:
    from deerflow.client import DeerFlowClient
    from deerflow.client_views import ClientThreadState
    from deerflow.config import AppConfig, ModelConfig, Paths
    from deerflow.harness import Harness
    from deerflow.models import ModelInfo
    from deerflow.sandbox.tool_image import ToolImage
    from deerflow_app.gateway import RunningServer
    from deerflow_app.remote import Address, ServerConnection
    from deerflow_app.remote.client import RemoteClient, RemoteModel

    Client = DeerFlowClient | RemoteClient
    """Threads, turns and files: of this process, or of a server."""
    Model = ModelConfig | ModelInfo | RemoteModel

URL_VAR, KEY_VAR = "DEER_FLOW_API_URL", "DEER_FLOW_API_KEY"
TALKATIVE = ("httpx", "httpx2", "httpcore", "httpcore2", "alembic")
"""Libraries that write a line for each call; an HTTP client's would stand in the log for every answer of a model."""
PREPARING = "Preparing the sandbox's Python packages"


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
        """The model that answers: the named one, else the first. Raises CommandFailure when there is none."""
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


def open_backend(settings: Settings) -> Backend:
    """A running server if one is to be used, else the product in this process.

    In this order: ``--local`` and a configuration named with ``--config`` that the server does not have keep the work
    here; DEER_FLOW_API_URL names a server; else it is the one that serves this data directory. A running server with
    another configuration than the one found here is left alone: what the person wrote into it must count.

    Raises:
        ConfigError: the configuration cannot be used.
        CommandFailure: there is no model of that name, or DEER_FLOW_API_URL is no address.
        RemoteError: the server that is to be used cannot be.
    """
    server, notice = (None, "") if settings.local else _server(settings)
    backend = _here(settings, notice) if server is None else _there(settings, server)
    if settings.model is not None:
        backend.model(settings.model)
    return backend


def open_here(settings: Settings) -> DeerFlowClient:
    """The product in this process. Raises ConfigError; DatabaseError of :func:`refuse_foreign` before anything is written."""
    from deerflow.client import DeerFlowClient

    client = DeerFlowClient(
        settings.config,
        model_name=settings.model,
        thinking_enabled=settings.thinking,
        plan_mode=settings.plan,
        subagent_enabled=settings.subagents,
        agent_name=settings.agent,
        is_bootstrap=settings.is_bootstrap,
        unattended=settings.unattended,
    )
    refuse_foreign(client.harness.config, client.harness.paths)
    log_to_file(client.harness.config.log_level, settings.debug)
    return client


def refuse_foreign(config: AppConfig, paths: Paths) -> None:
    """Raise DatabaseError if the file of the database is not ours, or too old: no log and no key may come beside it either."""
    from deerflow.storage.sqlite_thread import check_file

    if config.database.backend == "sqlite":
        check_file(Path(config.database_location(paths)), None)


def _here(settings: Settings, notice: str) -> Backend:
    from deerflow_app.cli.chat.files import local_file_sizes

    client = open_here(settings)
    harness = client.harness
    return Backend(
        client,
        harness.config.models,
        local_file_sizes(harness.paths),
        paths=harness.paths,
        harness=harness,
        notice=notice,
        problem=lambda: client.config_source.problem,
    )


def _there(settings: Settings, server: ServerConnection) -> Backend:
    from deerflow.config import Paths
    from deerflow_app.cli.chat.files import local_file_sizes
    from deerflow_app.remote.client import RemoteClient

    chosen = {
        "is_plan_mode": settings.plan,
        "unattended": settings.unattended,
        "subagent_enabled": settings.subagents,
        "model_name": settings.model,
        "agent_name": settings.agent,
        "is_bootstrap": settings.is_bootstrap,
        "time_zone": local_zone(),
    }
    options = {key: value for key, value in chosen.items() if value}
    client = RemoteClient(server, options=options if settings.thinking else {**options, "thinking_enabled": False})
    paths = Paths() if server.address.local else None
    sizes = local_file_sizes(paths) if paths else client.afile_sizes
    log_to_file("warning", settings.debug)
    return Backend(client, client.models, sizes, paths=paths, url=server.address.url)


def local_zone() -> str | None:
    """Return the IANA name of this machine's time zone, or None if it cannot be found."""
    named = os.environ.get("TZ", "").lstrip(":")
    return named or os.path.realpath("/etc/localtime").partition("/zoneinfo/")[2] or None


def _server(settings: Settings) -> tuple[ServerConnection | None, str]:
    """The server to use; or None, and why it is not used if there is one."""
    if url := os.environ.get(URL_VAR, "").strip():
        return _elsewhere(settings, url, os.environ.get(KEY_VAR, "").strip())
    from deerflow.config import Paths
    from deerflow_app.gateway import running_server

    data_dir = Paths().base_dir
    if (server := running_server(data_dir)) is None:
        return None, ""
    own = _own_config(settings)
    if own is not None and (server.config is None or own.resolve() != Path(server.config).resolve()):
        theirs = f"with {server.config}" if server.config else "without a configuration file"
        return None, f"The server at {server.url} runs {theirs}, so this works without it, with {own}."
    from deerflow_app.remote import INTERNAL_HEADER, Address, ServerConnection

    def address_of(found: RunningServer) -> Address:
        return Address(found.url, {INTERNAL_HEADER: found.token}, local=True)

    def find() -> Address | None:
        """Where it is now: it may have moved."""
        found = running_server(data_dir)
        return address_of(found) if found else None

    return ServerConnection(address_of(server), find), ""


def _elsewhere(settings: Settings, url: str, key: str) -> tuple[ServerConnection | None, str]:
    from deerflow_app.remote import Address, ServerConnection

    if settings.config is not None:
        return None, f"{URL_VAR} is set, but --config {settings.config} is for this process: it does the work."
    if not url.startswith(("http://", "https://")):
        raise usage_failure(f"{URL_VAR} is {url!r}.", "It begins with http:// or https://, e.g. http://127.0.0.1:2026.")
    return ServerConnection(Address(url.rstrip("/"), {"Authorization": f"Bearer {key}"} if key else {})), ""


def _own_config(settings: Settings) -> Path | None:
    """The configuration file that this process would use; one that is missing is reported when it is opened."""
    from deerflow.config import ConfigSource

    try:
        return ConfigSource(settings.config).find()
    except FileNotFoundError:
        return settings.config or Path()


class Preparation:
    """The build of the sandbox's packages beside the chat, on a thread that does not keep the process alive.

    Attributes:
        step: what it does right now, for a status line; empty when there is nothing (more) to do.
        problem: what is missing and why, once it has ended; empty when everything is there.
    """

    def __init__(self) -> None:
        self.step = ""
        self.problem = ""
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def begin(cls, harness: Harness | None) -> Self:
        """Start the build if the packages are wanted and not there yet. A server (None) prepares its sandbox itself."""
        preparation = cls()
        if harness is not None:
            harness.programs.try_out_aside()
        if (
            harness is None
            or not harness.config.sandbox.tool_image.enabled
            or (await asyncio.to_thread(harness.tool_image.status)).ready
        ):
            preparation._ended.set()
        else:
            preparation.step = f"{PREPARING} (once, about a minute)"
            build = threading.Thread(
                target=preparation._build, args=[harness.tool_image], name="tool-image", daemon=True
            )
            build.start()
        return preparation

    async def ended(self, show: Callable[[str], None] | None = None) -> None:
        """Return when the build is done, well or not; ``show`` gets each step until then."""
        while not self._ended.is_set():
            if show is not None:
                show(self.step)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.2):
                    await self._ended.wait()

    def _build(self, image: ToolImage) -> None:
        try:
            image.build(self._progress)
        except Exception as error:  # the product works without these packages; the person learns what is missing
            self.problem = one_line(str(error), 500)
        finally:
            self.step = ""
            with contextlib.suppress(RuntimeError):  # the person has left: the loop is closed
                self._loop.call_soon_threadsafe(self._ended.set)

    def _progress(self, text: str) -> None:
        if line := one_line(text):
            self.step = f"{PREPARING}: {line}"


def log_to_file(level: str, debug: bool) -> None:
    """Send log records to a file (kept small), so that they never mix with the conversation; with ``debug`` to stderr."""
    from deerflow.config import Paths

    _log_to(logging.StreamHandler() if debug else _log_file(Paths().base_dir / "deerflow.log"), level)


def log_to_stderr(level: str) -> None:
    """Log records to stderr: for programs whose log is what they show."""
    _log_to(logging.StreamHandler(), level)


def _log_to(target: logging.Handler, level: str) -> None:
    """A thread of its own writes the records: logging must not hold up the event loop."""
    from deerflow.tracing import add_trace

    target.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s%(trace)s"))
    records: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    writer = logging.handlers.QueueListener(records, target)
    writer.start()
    atexit.register(writer.stop)
    root, source = logging.getLogger(), logging.handlers.QueueHandler(records)
    source.addFilter(add_trace)
    root.handlers[:] = [source]
    root.setLevel(level.upper())
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(True)


class LogFile(logging.handlers.RotatingFileHandler):
    """A log that cannot be written, for instance on a full disk, is no reason to disturb the conversation."""

    def _open(self) -> TextIOWrapper:
        # What tools printed may stand here: only its owner may read it.
        handle = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        return TextIOWrapper(os.fdopen(handle, "ab"), encoding="utf-8", write_through=True)

    def handleError(self, record: logging.LogRecord) -> None:
        """Print nothing: errors are shown where they matter to the person."""


def _log_file(file: Path) -> logging.Handler:
    try:
        file.parent.mkdir(0o711, parents=True, exist_ok=True)
        return LogFile(file, maxBytes=2 << 20, backupCount=1, encoding="utf-8")
    except OSError:
        return logging.NullHandler()


async def existing_thread(
    client: Client, thread_id: str, remedy: str = "`deerflow`, then /chats, lists the latest ones."
) -> ClientThreadState:
    """Return the state of a thread. Raises CommandFailure if there is none."""
    state = await client.athread_state(check_id(thread_id, "thread id"))
    if not state["values"]["messages"] and not state["unfinished"]:
        raise usage_failure(f"There is no chat {thread_id}.", remedy)
    return state
