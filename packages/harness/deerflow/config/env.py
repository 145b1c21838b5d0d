"""References to environment variables in configuration values, and values whose variable is missing.

``$NAME`` (the whole string), ``${NAME}`` and ``${NAME:-default}`` (anywhere in a string) are replaced; ``$$`` is one ``$``.
Anything else, a lone ``$`` or ``Bearer $NAME`` among it, is text. What an environment variable holds is never expanded again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from deerflow.config.errors import ConfigError, ConfigProblem, key_path
from deerflow.config.frozen import thawed

_WHOLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_PART = re.compile(r"\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class MissingEnv(str):
    """A value that cannot be known because an environment variable is not set. As a string it is the reference itself."""

    variables: tuple[str, ...]
    key: str
    file: Path | None

    def __new__(
        cls, reference: str, variables: tuple[str, ...] = (), key: str = "", file: Path | None = None
    ) -> MissingEnv:
        self = super().__new__(cls, reference)
        self.variables, self.key, self.file = variables, key, file
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return MissingEnv, (str(self), self.variables, self.key, self.file)

    def problem(self) -> ConfigProblem:
        """What to tell the person who uses a part that needs this value."""
        names = " and ".join(self.variables)
        one = len(self.variables) == 1
        message = f"the environment variable{'' if one else 's'} {names} {'is' if one else 'are'} not set, but this setting needs {'it' if one else 'them'}."
        remedy = f"Set {names} in the environment or in .env, or write ${{{self.variables[0]}:-default}}."
        return ConfigProblem(message, self.file, None, self.key, remedy)


def resolve(value: str, environ: Mapping[str, str], *, key: str = "", file: Path | None = None) -> str:
    """``value`` with its references replaced, or a :class:`MissingEnv` if a variable without default is not set."""
    if "$" not in value:
        return value
    if whole := _WHOLE.fullmatch(value):
        name = whole[1]
        return environ[name] if name in environ else MissingEnv(value, (name,), key, file)
    missing: list[str] = []

    def replacement(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        if name is None:
            return "$"
        found = environ.get(name)
        if default is not None:
            return found or default
        if found is None:
            missing.append(name)
        return found or ""

    resolved = _PART.sub(replacement, value)
    return MissingEnv(value, tuple(dict.fromkeys(missing)), key, file) if missing else resolved


def escape(text: str) -> str:
    """``text`` written so that :func:`resolve` gives it back."""
    return text.replace("$", "$$")


def has_reference(value: object) -> bool:
    """Whether ``value`` is a string that refers to an environment variable."""
    return isinstance(value, str) and bool(_WHOLE.fullmatch(value) or any(match[1] for match in _PART.finditer(value)))


def resolve_tree(
    value: Any, environ: Mapping[str, str], *, file: Path | None = None, at: tuple[str | int, ...] = ()
) -> Any:
    """A copy of a document of mappings, lists and scalars with every string resolved."""
    if isinstance(value, str):
        return resolve(value, environ, key=key_path(at), file=file)
    if isinstance(value, Mapping):
        return {key: resolve_tree(item, environ, file=file, at=(*at, key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [resolve_tree(item, environ, file=file, at=(*at, index)) for index, item in enumerate(value)]
    return value


def missing_in(value: object) -> Iterator[MissingEnv]:
    """Every value below ``value`` whose environment variable is missing."""
    if isinstance(value, MissingEnv):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from missing_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from missing_in(item)


def require(value: Any) -> Any:
    """A private, mutable copy of a settings value (dicts, lists, scalars), to be called by whoever is about to use it.

    Raises:
        ConfigError: an environment variable that it refers to is not set; names variable and key.
    """
    problems = [missing.problem() for missing in missing_in(value)]
    if problems:
        raise ConfigError(problems)
    return thawed(value)
