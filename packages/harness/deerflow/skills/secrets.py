"""Secrets that scripts of skills need: of one person, encrypted with a key of the installation."""

from __future__ import annotations

import json
from pathlib import Path

from deerflow.config.document import write_text
from deerflow.config.env import cipher_of
from deerflow.errors import RequestError, UnavailableError
from deerflow.skills.own import OwnSkills

MIN_SECRET = 8
"""Characters. Anything shorter cannot be taken out of what a script prints without harm."""


class SkillSecrets:
    """Every method blocks.

    Args:
        key_file: made when it is needed first. Without it nothing that was encrypted can be read.
    """

    def __init__(self, own: OwnSkills, key_file: Path) -> None:
        self._own = own
        self._file = own.directory / "secrets"
        self._key_file = key_file

    def of(self, skill: str) -> dict[str, str]:
        """A skill's secrets by name. Raises UnavailableError: they cannot be decrypted."""
        return self._read().get(skill, {})

    def set(self, skill: str, name: str, value: str | None) -> None:
        """Keep a secret, or forget it (None). Raises RequestError: it is too short."""
        if value is not None and (len(value) < MIN_SECRET or "\0" in value):
            raise RequestError(f"A secret has at least {MIN_SECRET} characters.")
        with self._own.alone():
            secrets = self._read()
            kept = {key: one for key, one in secrets.get(skill, {}).items() if key != name}
            secrets[skill] = kept if value is None else {**kept, name: value}
            token = cipher_of(self._key_file).encrypt(json.dumps(secrets).encode()).decode()
            write_text(self._file, token, 0o600)

    def _read(self) -> dict[str, dict[str, str]]:
        from cryptography.fernet import InvalidToken

        try:
            return json.loads(cipher_of(self._key_file).decrypt(self._file.read_bytes()))
        except FileNotFoundError:
            return {}
        except InvalidToken:
            raise UnavailableError(
                f"The secrets of skills were encrypted with another key than {self._key_file.name}."
            ) from None
