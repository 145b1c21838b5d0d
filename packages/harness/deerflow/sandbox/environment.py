"""Which variables a single command may be given."""

from __future__ import annotations

import re
from collections.abc import Mapping

from deerflow.sandbox.interface import SandboxCommandError

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
FORBIDDEN = frozenset(
    {"BASH_ENV", "ENV", "PROMPT_COMMAND", "PYTHONSTARTUP", "PATH", "SHELLOPTS", "BASHOPTS", "SBX_CWD"}
)
FORBIDDEN_PREFIXES = ("LD_", "BASH_FUNC_")
LARGEST = 128 << 10
"""Bytes of one NAME=value string that Linux takes (MAX_ARG_STRLEN)."""


def check_command(command: str) -> None:
    """Raises SandboxCommandError if bash could not be given ``command``."""
    if "\0" in command:
        raise SandboxCommandError("The command holds a NUL byte.")


def check_environment(environment: Mapping[str, str]) -> None:
    """Raises SandboxCommandError if a variable has a bad name or value or would change how programs are started."""
    for name, value in environment.items():
        if not NAME.fullmatch(name):
            raise SandboxCommandError(f"{name!r} is not a name for an environment variable.")
        if name in FORBIDDEN or name.startswith(FORBIDDEN_PREFIXES):
            raise SandboxCommandError(f"{name} may not be set for a command: it changes how programs are started.")
        if "\0" in value:
            raise SandboxCommandError(f"The value of {name} holds a NUL byte.")
        try:
            size = len(value.encode("utf-8", "surrogateescape"))
        except UnicodeEncodeError:
            raise SandboxCommandError(f"The value of {name} is not valid text.") from None
        if len(name) + size + 2 > LARGEST:
            raise SandboxCommandError(f"The value of {name} is longer than {LARGEST >> 10} KiB; use a file.")
