"""Values that are encrypted with the installation's key, in files and in the database, and one answer to a key that does not fit."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deerflow.config.document import write_text
from deerflow.errors import UnavailableError

if TYPE_CHECKING:
    from cryptography.fernet import Fernet


class WrongKeyError(UnavailableError):
    """Something was encrypted with another key than the installation has. ``str()`` says what to do."""

    code = "wrong_key"


@dataclass(frozen=True, slots=True)
class Seal:
    """Encrypts JSON values with the key of the installation. Every method blocks.

    Args:
        key_file: made when something is closed first.
        what: the beginning of the sentence about a wrong key, such as ``The secrets of skills``.
        otherwise: the remedy besides bringing the key back, such as ``enter them again``.
    """

    key_file: Path
    what: str
    otherwise: str

    def closed(self, value: Any) -> str:
        """Return ``value`` encrypted."""
        return self._cipher().encrypt(json.dumps(value).encode()).decode()

    def opened(self, data: str | bytes) -> Any:
        """Return what was encrypted. Raises WrongKeyError."""
        from cryptography.fernet import InvalidToken

        try:
            return json.loads(self._existing().decrypt(data))
        except (FileNotFoundError, ValueError, InvalidToken):
            key = self.key_file.name
            raise WrongKeyError(
                f"{self.what} cannot be read: encrypted with another key than {key}. "
                f"Bring that {key} back from a backup, or {self.otherwise}."
            ) from None

    def _cipher(self) -> Fernet:
        from cryptography.fernet import Fernet

        if not self.key_file.exists():
            self.key_file.parent.mkdir(0o711, parents=True, exist_ok=True)
            temporary = self.key_file.with_name(f"{self.key_file.name}.{os.getpid()}")
            write_text(temporary, Fernet.generate_key().decode(), 0o600)
            with suppress(FileExistsError):
                os.link(temporary, self.key_file)
            temporary.unlink()
        return self._existing()

    def _existing(self) -> Fernet:
        """Raises WrongKeyError if the key file holds no key, FileNotFoundError."""
        from cryptography.fernet import Fernet

        key = self.key_file.read_bytes()
        try:
            return Fernet(key)
        except ValueError:
            state = "is cut short or changed" if key.strip() else "is empty"
            raise WrongKeyError(
                f"{self.what} need the key in {self.key_file}, which {state}. Bring that file back from a backup. If there is "
                f"none, remove it, restart DeerFlow, and {self.otherwise}."
            ) from None


@dataclass(frozen=True, slots=True)
class SealedFile:
    """One JSON value in a file that :class:`Seal` encrypts. Every method blocks."""

    file: Path
    seal: Seal

    def read(self) -> Any:
        """Return the value, or None if there is no file. Raises WrongKeyError, OSError."""
        try:
            data = self.file.read_bytes()
        except FileNotFoundError:
            return None
        return self.seal.opened(data)

    def write(self, value: Any) -> None:
        """Replace the value at once; only the server's user may read the file."""
        data = self.seal.closed(value)
        self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_text(self.file, data, 0o600)

    def set_aside(self) -> None:
        """Rename the file to ``*.unreadable``, so that something new can be kept."""
        self.file.replace(self.file.with_name(f"{self.file.name}.unreadable"))
