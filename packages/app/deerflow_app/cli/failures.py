"""What a person reads when something that can be expected goes wrong: one message, one remedy, an exit code."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

USAGE = 2
FAILED = 1

NO_ROOM = "Make room on that disk, or set DEER_FLOW_HOME to a folder on another one."
NOT_WRITABLE = "Set DEER_FLOW_HOME to a folder that you may write."
DAMAGED = (
    "Bring a backup back with `deerflow restore ARCHIVE`. Without one, move the file away to begin anew; a copy can perhaps "
    "be read with `sqlite3 … .recover`."
)
DATABASE_REMEDIES: Mapping[str, str] = {
    "locked": "Another program holds it. Wait for its end, then try again.",
    "full": NO_ROOM,
    "disk i/o error": NO_ROOM,
    "readonly": NOT_WRITABLE,
    "unable to open": NOT_WRITABLE,
    "malformed": DAMAGED,
    "not a database": DAMAGED,
}
"""What helps, by a part of SQLite's message."""
STORAGE_REMEDIES = {errno.ENOSPC: NO_ROOM, errno.EDQUOT: NO_ROOM, errno.EROFS: NOT_WRITABLE}


def not_writable(path: Path) -> str:
    """Return what helps where ``path`` cannot be written, with the user that it belongs to if that is another one."""
    import os

    # pathlib's raises where the path may not be looked at.
    existing = next(one for one in (path, *path.parents) if os.path.exists(one))  # noqa: PTH110
    try:
        status, uid = existing.stat(), os.geteuid()
        owner = existing.owner()
    except (OSError, KeyError):
        return NOT_WRITABLE
    if status.st_uid == uid:
        return NOT_WRITABLE
    return (
        f"{existing} belongs to {owner} ({status.st_uid}), and DeerFlow runs as user {uid}. Run `chown -R {uid} {existing}` on the "
        f"host, or use a named volume in a container. {NOT_WRITABLE}"
    )


class CommandFailure(Exception):
    """An expected end of a command.

    Args:
        message: what happened and where, one sentence.
        remedy: what the person can do next.
        exit_code: 1 the agent, the model or the machine failed; 2 the call or the configuration is wrong.
    """

    def __init__(self, message: str, remedy: str = "", exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.exit_code = exit_code


def usage_failure(message: str, remedy: str = "") -> CommandFailure:
    """A mistake in the call or the configuration (exit code 2)."""
    return CommandFailure(message, remedy, USAGE)


OF_THE_CALL = (400, 401, 403, 404, 413, 422)
"""Statuses of requests that cannot be fulfilled as they are."""


def explain(error: BaseException) -> CommandFailure:
    """The failure that stands for any exception that reached the border of the command line."""
    if isinstance(error, CommandFailure):
        return error
    from deerflow.config import ConfigError
    from deerflow.errors import RequestError
    from deerflow.sandbox.interface import SandboxError, SandboxUnavailableError
    from deerflow.storage.errors import DatabaseError
    from deerflow_app.remote import RemoteError

    if isinstance(error, RemoteError | RequestError):
        is_wrong = getattr(error, "status", None) in OF_THE_CALL
        return CommandFailure(str(error), getattr(error, "remedy", ""), USAGE if is_wrong else FAILED)
    if isinstance(error, SandboxUnavailableError):
        return CommandFailure(str(error), "`deerflow doctor` shows what is missing and how to get it.")
    if isinstance(error, SandboxError | DatabaseError):
        return CommandFailure(str(error))
    if isinstance(error, sqlite3.Error):
        return database_failure(error)
    if isinstance(error, OSError) and error.strerror:
        about = f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
        return CommandFailure(
            about,
            not_writable(Path(error.filename))
            if _is_about_the_data(error)
            else STORAGE_REMEDIES.get(error.errno or 0, ""),
            USAGE if isinstance(error, FileNotFoundError | IsADirectoryError | PermissionError) else FAILED,
        )
    if isinstance(error, ConfigError | FileNotFoundError | ValueError | ImportError):
        return usage_failure(str(error))
    if isinstance(error, OSError):
        return CommandFailure(f"{type(error).__name__}: {error}")
    return CommandFailure(
        f"Unexpected error: {type(error).__name__}: {error}",
        "Run the command again with --debug for the traceback, and please report it.",
    )


def _is_about_the_data(error: OSError) -> bool:
    from deerflow.config import Paths

    named = isinstance(error, PermissionError | NotADirectoryError) and isinstance(error.filename, str)
    return named and Path(str(error.filename)).is_relative_to(Paths().base_dir)


def database_failure(error: sqlite3.Error) -> CommandFailure:
    """The failure for what SQLite says about the database that holds the threads."""
    said = str(error)
    remedy = next((remedy for part, remedy in DATABASE_REMEDIES.items() if part in said.lower()), "")
    return CommandFailure(f"The database of the threads cannot be used: {said}.", remedy)


def turn_failure(error: Mapping[str, Any]) -> CommandFailure:
    """The failure for the ``error`` of a turn's ``end`` event: ``{"kind", "message"}``, whose message names its remedy."""
    kind = str(error.get("kind") or "")
    is_of_the_model = kind in ("auth", "network", "model_not_found")
    remedy = "`deerflow doctor` asks every model whether it answers." if is_of_the_model else ""
    return CommandFailure(str(error.get("message") or kind or "The agent failed."), remedy)
