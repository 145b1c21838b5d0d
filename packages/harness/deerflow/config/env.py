"""What the environment gives to a configuration: its variables, references to them in values, secrets, and tracing services.

Variables are those of the process, of ``.env`` files, and those that are kept encrypted. The first that sets one wins, in this order.
The last two can be changed from within: what a person connects on the page.

``$NAME`` (the whole string), ``${NAME}`` and ``${NAME:-default}`` (anywhere in a string) are replaced; ``$$`` is one ``$``.
Anything else, a lone ``$`` or ``Bearer $NAME`` among it, is text. What an environment variable holds is never expanded again.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any, Literal, Self

from deerflow.config.document import ConfigError, ConfigProblem, KeyPath, key_path, read_text, write_text
from deerflow.config.secrets import Seal, SealedFile, WrongKeyError

MASK = "********"

_WHOLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_PART = re.compile(r"\$\$|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_IN_DOTENV = re.compile(r"\$\{([^}:]+)(?::-([^}]*))?\}")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SECRET = re.compile(
    r"(_|^api|^access|^auth)keys?$|secret|(^|_)token$|passw(or)?d|credential|authorization|(^|_)cookie$|(^|_)dsn$|connection_string$|(postgres|redis|database)(_direct)?_url$"
)
_URL_PASSWORD = re.compile(r"(?<=://)([^/\s:@]*):[^/\s@]+@")

Store = Literal["encrypted", "dotenv"]
Place = Literal["environment", "dotenv", "encrypted"]


# variables -----------------------------------------------------------------------------------------------------------


class Variables:
    """Every method blocks. Raises ConfigError where a file cannot be read.

    Args:
        environ: of the process.
        env_files: where ``.env`` may be, the one that counts most first.
        file: of the encrypted ones; made when it is needed first.
        key_file: of the key that they are encrypted with.
    """

    def __init__(self, environ: Mapping[str, str], env_files: Sequence[Path], file: Path, key_file: Path) -> None:
        self._environ = environ
        self._env_files = env_files
        self._sealed = SealedFile(
            file, Seal(key_file, "These variables", "delete the file and connect again what it held")
        )

    @property
    def files(self) -> tuple[str, ...]:
        """A change of one of these may change a variable."""
        return tuple(map(str, (*self._env_files, self._sealed.file)))

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
        return next((place for place, layer in layers if first_set(layer, *names)), None)

    def connected(self) -> frozenset[str]:
        """The variables that a person set on the page, and that no other place sets."""
        elsewhere = read_dotenv(self._environ, self._env_files)
        return frozenset(name for name in self._encrypted() if not elsewhere.get(name, "").strip())

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
        try:
            return self._sealed.read() or {}
        except (WrongKeyError, OSError) as error:
            message = f"cannot be read: {error.strerror}." if isinstance(error, OSError) else str(error)
            raise ConfigError(ConfigProblem(message, self._sealed.file)) from None

    def _write(self, variables: Mapping[str, str]) -> None:
        if variables or self._sealed.file.exists():
            self._sealed.write(variables)


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


def read_dotenv(environ: Mapping[str, str], files: Iterable[Path]) -> dict[str, str]:
    """A copy of ``environ`` with what ``.env`` files add; the first that sets a variable wins. Raises ConfigError."""
    from dotenv import dotenv_values

    merged = dict(environ)
    for file in filter(Path.is_file, files):
        # python-dotenv would look references up in the process's environment, whatever ``environ`` is.
        for name, value in dotenv_values(stream=StringIO(read_text(file)), interpolate=False).items():
            if value is not None:
                end = _end_of_references(value)
                known = _IN_DOTENV.sub(lambda match: merged.get(match[1]) or match[2] or "", value[:end])
                merged.setdefault(name, known + value[end:])
    return merged


def first_set(environ: Mapping[str, str], *names: str) -> tuple[str, str] | None:
    """The first of these variables that is not blank, and what it holds."""
    return next(((name, environ[name].strip()) for name in names if environ.get(name, "").strip()), None)


# references ---------------------------------------------------------------------------------------------------------


class MissingEnv(str):
    """A value that cannot be known because an environment variable is not set. As a string it is the reference itself."""

    variables: Sequence[str]
    key: str
    file: Path | None

    def __new__(cls, reference: str, variables: Sequence[str] = (), key: str = "", file: Path | None = None) -> Self:
        self = super().__new__(cls, reference)
        self.variables, self.key, self.file = variables, key, file
        return self

    def problem(self) -> ConfigProblem:
        """What to tell the person who uses a part that needs this value."""
        names = " and ".join(self.variables)
        lacking = f"variables {names} are" if len(self.variables) > 1 else f"variable {names} is"
        return ConfigProblem(
            f"the environment {lacking} not set, but this setting needs {'them' if len(self.variables) > 1 else 'it'}.",
            self.file,
            key=self.key,
            remedy=f"Set {names} in the environment or in .env, or write ${{{self.variables[0]}:-default}}.",
        )


def resolve(value: str, environ: Mapping[str, str], *, key: str = "", file: Path | None = None) -> str:
    """``value`` with its references replaced, or a :class:`MissingEnv` if a variable without default is not set."""
    if whole := _WHOLE.fullmatch(value):
        name = whole[1]
        return environ[name] if name in environ else MissingEnv(value, (name,), key, file)
    missing: dict[str, None] = {}

    def replacement(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        if name is None:
            return "$"
        if name not in environ and default is None:
            missing[name] = None
        return environ.get(name) or default or ""

    end = _end_of_references(value)
    resolved = _PART.sub(replacement, value[:end]) + value[end:].replace("$$", "$")
    return MissingEnv(value, tuple(missing), key, file) if missing else resolved


def resolve_tree(value: Any, environ: Mapping[str, str], *, file: Path | None = None, at: KeyPath = ()) -> Any:
    """A copy of a document of mappings, lists and scalars with every string resolved."""
    if isinstance(value, str):
        return resolve(value, environ, key=key_path(at), file=file)
    if isinstance(value, Mapping):
        return {key: resolve_tree(item, environ, file=file, at=(*at, key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [resolve_tree(item, environ, file=file, at=(*at, index)) for index, item in enumerate(value)]
    return value


def references(value: object) -> tuple[str, ...]:
    """Return the environment variables that a string refers to; none of what is no string."""
    if not isinstance(value, str):
        return ()
    if whole := _WHOLE.fullmatch(value):
        return (whole[1],)
    return tuple(match[1] for match in _PART.finditer(value, 0, _end_of_references(value)) if match[1])


def has_reference(value: object) -> bool:
    """Whether ``value`` is a string that refers to an environment variable."""
    return bool(references(value))


def _end_of_references(value: str) -> int:
    """Behind it no reference is closed: for each that is opened there, the rest would be searched in vain."""
    return value.rfind("}") + 1


# secrets ------------------------------------------------------------------------------------------------------------


def is_secret_key(name: str) -> bool:
    """Whether a setting with this name usually holds a secret, e.g. ``api_key``, ``SLACK_BOT_TOKEN`` or ``Authorization``."""
    plain = _CAMEL.sub("_", name).lower().replace("-", "_")
    return bool(_SECRET.search(plain)) and not plain.endswith("public_key")


def mask_secrets(value: Any, *, name: str = "") -> Any:
    """A copy of ``value`` with secrets replaced by :data:`MASK`, passwords in URLs among them.

    References such as ``$API_KEY`` are no secrets and stay as they are.
    """
    if isinstance(value, Mapping):
        return {key: mask_secrets(item, name=str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [mask_secrets(item, name=name) for item in value]
    if value in (None, "") or isinstance(value, bool) or has_reference(value):
        return value
    if is_secret_key(name):
        return MASK
    return _URL_PASSWORD.sub(rf"\1:{MASK}@", value) if isinstance(value, str) else value


# tracing ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LangSmithConfig:
    """LangSmith, as its SDK reads it from ``LANGSMITH_*`` or the older ``LANGCHAIN_*``."""

    enabled: bool
    api_key: str | None = field(repr=False)
    project: str
    endpoint: str


@dataclass(frozen=True, slots=True)
class LangfuseConfig:
    """Langfuse, from ``LANGFUSE_*``."""

    enabled: bool
    public_key: str | None
    secret_key: str | None = field(repr=False)
    host: str


@dataclass(frozen=True, slots=True)
class TracingConfig:
    """All tracing services. They are configured by their vendors' variables alone."""

    langsmith: LangSmithConfig
    langfuse: LangfuseConfig

    def missing(self) -> dict[str, list[str]]:
        """The services that are switched on, each with the variables that it lacks."""
        smith, fuse = self.langsmith, self.langfuse
        needed = {
            "langsmith": (smith, {"LANGSMITH_API_KEY": smith.api_key}),
            "langfuse": (fuse, {"LANGFUSE_PUBLIC_KEY": fuse.public_key, "LANGFUSE_SECRET_KEY": fuse.secret_key}),
        }
        return {
            name: [variable for variable, value in variables.items() if not value]
            for name, (service, variables) in needed.items()
            if service.enabled
        }


def get_tracing_config(environ: Mapping[str, str] | None = None) -> TracingConfig:
    """What the environment (default: the process's) says about tracing.

    The first switch that is set decides, so ``LANGSMITH_TRACING=false`` beats ``LANGCHAIN_TRACING_V2=true``.
    """
    environ = os.environ if environ is None else environ

    def first(*names: str) -> str | None:
        found = first_set(environ, *names)
        return found[1] if found else None

    def on(*names: str) -> bool:
        return (first(*names) or "").lower() in ("1", "true", "yes", "on")

    return TracingConfig(
        LangSmithConfig(
            enabled=on("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "LANGCHAIN_TRACING"),
            api_key=first("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY"),
            project=first("LANGSMITH_PROJECT", "LANGCHAIN_PROJECT") or "deer-flow",
            endpoint=first("LANGSMITH_ENDPOINT", "LANGCHAIN_ENDPOINT") or "https://api.smith.langchain.com",
        ),
        LangfuseConfig(
            enabled=on("LANGFUSE_TRACING"),
            public_key=first("LANGFUSE_PUBLIC_KEY"),
            secret_key=first("LANGFUSE_SECRET_KEY"),
            host=first("LANGFUSE_BASE_URL", "LANGFUSE_HOST") or "https://cloud.langfuse.com",
        ),
    )


def get_explicitly_enabled_tracing_providers(environ: Mapping[str, str] | None = None) -> list[str]:
    """Names of services that are switched on."""
    return list(get_tracing_config(environ).missing())


def get_enabled_tracing_providers(environ: Mapping[str, str] | None = None) -> list[str]:
    """Names of services that are switched on and completely configured."""
    return [name for name, missing in get_tracing_config(environ).missing().items() if not missing]


def is_tracing_enabled(environ: Mapping[str, str] | None = None) -> bool:
    """Whether any service is switched on and completely configured."""
    return bool(get_enabled_tracing_providers(environ))


def validate_enabled_tracing_providers(environ: Mapping[str, str] | None = None) -> None:
    """Raises ConfigError if a service is switched on, but lacks a variable."""
    problems = [
        ConfigProblem(
            f"{name} tracing is on, but {' and '.join(missing)} is not set.",
            remedy="Set it, or switch tracing off.",
        )
        for name, missing in get_tracing_config(environ).missing().items()
        if missing
    ]
    if problems:
        raise ConfigError(*problems)
