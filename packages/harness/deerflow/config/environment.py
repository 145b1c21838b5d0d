"""The environment that a configuration is resolved against: the process's own, completed from ``.env`` files."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, MutableMapping
from io import StringIO
from pathlib import Path

from deerflow.config.document import read_text
from deerflow.config.locate import project_root

_REFERENCE = re.compile(r"\$\{([^}:]+)(?::-([^}]*))?\}")


def env_files(cwd: Path) -> tuple[Path, ...]:
    """Where ``.env`` is looked for; the first file that sets a variable wins."""
    return tuple(dict.fromkeys((cwd / ".env", project_root(cwd) / ".env")))


def load_environ(environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> dict[str, str]:
    """A copy of ``environ`` (default: the process's) with what ``.env`` adds. Variables that are set already stay.

    Raises:
        ConfigError: a ``.env`` file cannot be read.
    """
    from dotenv import dotenv_values

    merged = dict(os.environ if environ is None else environ)
    for file in env_files((cwd or Path.cwd()).absolute()):
        if not file.is_file():
            continue
        # python-dotenv would look references up in the process's environment, whatever ``environ`` is.
        for name, value in dotenv_values(stream=StringIO(read_text(file)), interpolate=False).items():
            if value is not None:
                merged.setdefault(name, _REFERENCE.sub(lambda match: merged.get(match[1]) or match[2] or "", value))
    return merged


def export_environ(environ: Mapping[str, str], target: MutableMapping[str, str] | None = None) -> None:
    """Set in ``target`` (default: the process's environment) what it lacks.

    For the edge of the program only: vendors' SDKs read their keys from the process's environment and know no ``.env``.
    """
    target = os.environ if target is None else target
    for name, value in environ.items():
        target.setdefault(name, value)
