"""The variables that a configuration is read with: those of the process, of ``.env`` files, and those that are kept encrypted.

The first that sets a variable wins, in this order. The last two can be changed from within: what a person connects on the page.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from deerflow.config.document import ConfigError, ConfigProblem, read_text, write_text
from deerflow.config.env import read_dotenv

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

Store = Literal["encrypted", "dotenv"]
Place = Literal["environment", "dotenv", "encrypted"]


class Variables:
    """Every method blocks. Raises ConfigError where a file cannot be read.

    Args:
        environ: of the process.
        env_files: where ``.env`` may be, the one that counts most first.
        file: of the encrypted ones; made when it is needed first.
        key_file: of the key that they are encrypted with, see :func:`cipher_of`.
    """

    def __init__(self, environ: Mapping[str, str], env_files: Sequence[Path], file: Path, key_file: Path) -> None:
        self._environ = environ
        self._env_files = env_files
        self._file = file
        self._key_file = key_file

    @property
    def files(self) -> tuple[str, ...]:
        """A change of one of these may change a variable."""
        return tuple(map(str, (*self._env_files, self._file)))

    def merged(self) -> dict[str, str]:
        """All of them. An empty one, as compose files like to give, hides none that is kept encrypted."""
        merged = read_dotenv(self._environ, self._env_files)
        return merged | {name: value for name, value in self._encrypted().items() if not merged.get(name, "").strip()}

    def place_of(self, *names: str) -> Place | None:
        """Where the first of these that is set stands: one that the process has cannot be changed from within."""
        layers: tuple[tuple[Place, Mapping[str, str]], ...] = (
            ("environment", self._environ),
            ("dotenv", read_dotenv({}, self._env_files)),
            ("encrypted", self._encrypted()),
        )
        return next((place for place, layer in layers if any(layer.get(name, "").strip() for name in names)), None)

    def change(self, changes: Mapping[str, str | None], store: Store) -> None:
        """Set variables in one store, or forget them (None). What the other store had under their names is gone, too.

        Raises:
            OSError: a file cannot be written.
        """
        kept = {name: value for name, value in self._encrypted().items() if name not in changes}
        given = {name: value for name, value in changes.items() if value is not None}
        target = next(filter(Path.is_file, self._env_files), self._env_files[0])
        if store == "encrypted":
            self._write(kept | given)
        for file in self._env_files:
            _edit(file, changes if store == "dotenv" and file == target else dict.fromkeys(changes))
        if store == "dotenv":
            self._write(kept)

    def _encrypted(self) -> dict[str, str]:
        if not self._file.exists():
            return {}
        from cryptography.fernet import InvalidToken

        try:
            return json.loads(cipher_of(self._key_file).decrypt(self._file.read_bytes()))
        except (InvalidToken, OSError) as error:
            reason = getattr(error, "strerror", None) or f"it was encrypted with another key than {self._key_file.name}"
            remedy = f"Bring {self._key_file.name} back, or delete the file and connect again what it held."
            raise ConfigError(ConfigProblem(f"cannot be read: {reason}.", self._file, remedy=remedy)) from None

    def _write(self, variables: Mapping[str, str]) -> None:
        if variables or self._file.exists():
            token = cipher_of(self._key_file).encrypt(json.dumps(variables).encode()).decode()
            write_text(self._file, token, 0o600)


def cipher_of(key_file: Path) -> Fernet:
    """With the key of the installation, which is made when it is needed first. Blocks."""
    from cryptography.fernet import Fernet

    if not key_file.exists():
        key_file.parent.mkdir(0o711, parents=True, exist_ok=True)
        temporary = key_file.with_name(f"{key_file.name}.{os.getpid()}")
        write_text(temporary, Fernet.generate_key().decode(), 0o600)
        with suppress(FileExistsError):
            os.link(temporary, key_file)
        temporary.unlink()
    return Fernet(key_file.read_bytes())


def _edit(file: Path, changes: Mapping[str, str | None]) -> None:
    """Change a ``.env`` file, all at once: nobody may see a new address with an old key."""
    from dotenv import dotenv_values, set_key, unset_key

    there = dotenv_values(file, interpolate=False) if file.is_file() else {}
    changes = {name: value for name, value in changes.items() if value is not None or name in there}
    if not changes:
        return
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=".env-") as directory:
        copy = Path(directory, ".env")
        write_text(copy, read_text(file) if file.is_file() else "", 0o600)
        for name, value in changes.items():
            set_key(copy, name, value) if value is not None else unset_key(copy, name)
        write_text(file.resolve(), read_text(copy), 0o600)
