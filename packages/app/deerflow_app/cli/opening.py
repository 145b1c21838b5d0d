"""Opening the product for one command: the client, its log file, its tools."""

from __future__ import annotations

import atexit
import logging
import logging.handlers
import os
import queue
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

from deerflow_app.cli.client import check_model
from deerflow_app.cli.settings import Settings

if TYPE_CHECKING:
    from deerflow_app.cli.client import Client
    from deerflow_app.cli.local_client import LocalClient


def open_client(settings: Settings, *, model: str | None = None, thinking: bool = True, plan: bool = False) -> Client:
    """The running server if there is one to be used (see ``choose_server``), else the product in this process.

    Raises:
        ConfigError: the configuration cannot be used.
        Failure: it has no model of that name. RemoteError: the server that is to be used cannot be.
    """
    from deerflow_app.cli.server_choice import choose_server

    chosen = choose_server(settings, os.environ)
    if chosen.address is None:
        return open_here(settings, model=model, thinking=thinking, plan=plan, notice=chosen.notice)
    from deerflow.config import Paths
    from deerflow_app.remote.client import RemoteClient
    from deerflow_app.remote.connection import Connection

    paths = Paths()
    client = RemoteClient(
        Connection(chosen.address, chosen.find),
        paths=paths if chosen.address.local else None,
        options={"thinking_enabled": thinking, "is_plan_mode": plan} | ({"model_name": model} if model else {}),
    )
    if model is not None:
        check_model(client, model)
    log_to_file(paths.base_dir / "deerflow.log", "warning", settings.debug)
    return client


def open_here(
    settings: Settings, *, model: str | None = None, thinking: bool = True, plan: bool = False, notice: str = ""
) -> LocalClient:
    """The product in this process. Raises ConfigError and Failure as ``open_client``."""
    from deerflow_app.cli.local_client import LocalClient

    client = LocalClient(
        str(settings.config) if settings.config else None,
        model_name=model,
        thinking_enabled=thinking,
        plan_mode=plan,
    )
    client.notice = notice
    if model is not None:
        check_model(client, model)
    log_to_file(client.paths.base_dir / "deerflow.log", client.harness.config.log_level, settings.debug)
    return client


def log_to_file(file: Path, level: str, debug: bool) -> None:
    """Send log records to ``file`` (kept small), so that they never mix with the conversation; with ``debug`` to stderr.

    A thread of its own writes them: logging must not hold up the event loop.
    """
    _log_to(logging.StreamHandler() if debug else _log_file(file), level)


def log_to_stderr(level: str) -> None:
    """Log records to stderr: for programs whose log is what they show."""
    _log_to(logging.StreamHandler(), level)
    for name in ("httpx", "httpcore", "procrastinate", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _log_to(target: logging.Handler, level: str) -> None:
    target.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    records: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    writer = logging.handlers.QueueListener(records, target)
    writer.start()
    atexit.register(writer.stop)
    root = logging.getLogger()
    root.handlers[:] = [logging.handlers.QueueHandler(records)]
    root.setLevel(level.upper())
    logging.captureWarnings(True)


class LogFile(logging.handlers.RotatingFileHandler):
    """A log that cannot be written, for instance on a full disk, is no reason to disturb the conversation."""

    def _open(self) -> TextIOWrapper:
        # What tools printed may stand here: nobody else's to read.
        handle = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        return TextIOWrapper(os.fdopen(handle, "ab"), encoding="utf-8", write_through=True)

    def handleError(self, record: logging.LogRecord) -> None:
        """Say nothing: what went wrong is told where it matters to the person."""


def _log_file(file: Path) -> logging.Handler:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        return LogFile(file, maxBytes=2 << 20, backupCount=1, encoding="utf-8")
    except OSError:
        return logging.NullHandler()
