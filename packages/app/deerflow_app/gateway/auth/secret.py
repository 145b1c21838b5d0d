"""The secret that signs sessions when no AUTH_JWT_SECRET is set: made once, the same for all processes of a data directory."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

FILE_NAME = "auth.secret"
MINIMUM_LENGTH = 32
"""Characters. RFC 7518 §3.2 asks for a key as long as the hash (32 bytes)."""


def load_or_create_secret(data_dir: Path) -> str:
    """The secret of ``data_dir``; of several processes that start at once one makes it and all use it.

    Raises:
        OSError: the file cannot be read or written.
        ValueError: the file holds something else.
    """
    path = data_dir / FILE_NAME
    if not path.exists():
        _create(path)
    secret = path.read_text().strip()
    if len(secret) < MINIMUM_LENGTH:
        raise ValueError(
            f"{path} holds no usable secret. Delete it to get a new one; everyone has to sign in again then."
        )
    return secret


def _create(path: Path) -> None:
    """A file appears whole or not at all: a link to a complete temporary one fails when another process was first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_hex(32))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            return
    finally:
        temporary.unlink()
