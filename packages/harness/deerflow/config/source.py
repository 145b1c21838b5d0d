"""Where the configuration is found, how it is read, the snapshot of it that is in force, and bringing an older file up to date."""

from __future__ import annotations

import asyncio
import difflib
import errno
import logging
import os
import re
import threading
from collections.abc import Collection, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from deerflow.config.confinement import confinement_problems
from deerflow.config.discovery import Probe, discover_models, discover_tools, http_probe
from deerflow.config.document import (
    ConfigError,
    ConfigProblem,
    Document,
    KeyPath,
    key_path,
    parse_json,
    parse_yaml,
    read_text,
    write_text,
)
from deerflow.config.env import Variables, has_reference, mask_secrets, resolve_tree
from deerflow.config.paths import Paths, example_file, project_root
from deerflow.config.schema import CONFIG_VERSION, AppConfig, ExtensionsConfig, MemoryConfig, Origin, version_number
from deerflow.config.section import EMPTY, FrozenDict, OpenSection, Section, field_names

CONFIG_VAR, EXTENSIONS_VAR = "DEER_FLOW_CONFIG_PATH", "DEER_FLOW_EXTENSIONS_CONFIG_PATH"
EXTENSIONS_NAMES = ("extensions_config.json", "mcp_config.json")

Model = TypeVar("Model", bound=Section)
Fingerprint = tuple[tuple[int, int, int] | None, ...]

logger = logging.getLogger(__name__)

_SHOWN = 80
_INNER_CAPITAL = re.compile("(?<=[a-z])(?=[A-Z])")
_PLAIN_WORDS = {
    "missing": "is required, but missing.",
    "string_type": "should be text.",
    "bool_parsing": "should be true or false.",
    "bool_type": "should be true or false.",
    "int_parsing": "should be a whole number.",
    "int_type": "should be a whole number.",
    "int_from_float": "should be a whole number.",
    "float_parsing": "should be a number.",
    "float_type": "should be a number.",
    "tuple_type": "should be a list.",
    "mapping_type": "should hold keys and values.",
    "model_type": "should hold keys and values.",
    "model_attributes_type": "should hold keys and values.",
    "dict_type": "should hold keys and values.",
}


@dataclass(frozen=True, slots=True)
class _Search:
    """Places of one file, the best first. ``named_by`` says who named it; such a file must exist."""

    places: tuple[Path, ...]
    named_by: str = ""

    def find(self) -> Path | None:
        found = next((place for place in self.places if place.is_file()), None)
        if found is None and self.named_by:
            what = "does not exist. Create it or correct the path."
            if self.places[0].is_dir():
                what = "is a directory. Name a file in it."
            raise FileNotFoundError(f"The configuration file {self.places[0]} ({self.named_by}) {what}")
        return found


class ConfigSource:
    """The configuration as it is now. Watches the places where its files are or may appear. Safe to share between threads.

    Each file is taken from the argument, else from its environment variable, else from ``cwd``, else from the project
    root. A change that cannot be used leaves the last good snapshot in force and is described by :attr:`problem`.

    Args:
        path: of ``config.yaml``; without one everything has its default.
        extensions_path: of ``extensions_config.json``, which may have its old name ``mcp_config.json``.
        environ: default the process's environment; ``.env`` and what is kept encrypted complete a copy of it at each reload.
        cwd: default the current directory.
        probe: how discovery asks servers for their models.
        overrides: settings from code, merged over the main file: mappings key by key, anything else as a whole.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        extensions_path: str | Path | None = None,
        environ: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        probe: Probe = http_probe,
        overrides: Mapping[str, Any] = EMPTY,
    ) -> None:
        self._path = path
        self._extensions_path = extensions_path
        self._environ = os.environ if environ is None else environ
        self._cwd = Path(cwd or Path.cwd()).absolute()
        self._probe = probe
        self._overrides = overrides
        self._lock = threading.Lock()
        self._snapshot: AppConfig | None = None
        self._watched: tuple[tuple[str, ...], Fingerprint] = (), ()
        self._warned: frozenset[str] = frozenset()
        self.problem: str | None = None
        """Why the files as they are now are not in force, or None."""

    @cached_property
    def variables(self) -> Variables:
        """What values may refer to, and where keys of providers stand."""
        paths = Paths(environ=self._environ, cwd=self._cwd)
        return Variables(self._environ, _env_files(self._cwd), paths.data_dir / "variables", paths.secrets_key_file)

    def current(self) -> AppConfig:
        """The snapshot in force. Looks at the files' times only, and reads them when one has changed.

        Blocks while it reads; from an event loop use :meth:`acurrent`.

        Raises:
            FileNotFoundError, ConfigError: there is no good snapshot yet.
        """
        if self._snapshot is None or self._changed():
            with self._lock:
                if self._snapshot is None or self._changed():
                    return self._reload()
        return self._snapshot

    async def acurrent(self) -> AppConfig:
        """As :meth:`current`, without blocking the event loop."""
        return await asyncio.to_thread(self.current)

    def reload(self) -> AppConfig:
        """Read everything again, even if no file has changed, e.g. after a variable was set or a model server started.

        Raises:
            FileNotFoundError, ConfigError: there is no good snapshot yet.
        """
        with self._lock:
            return self._reload()

    def read(self) -> AppConfig:
        """A snapshot of the files as they are now.

        Raises:
            FileNotFoundError: a file named by an argument or a variable does not exist.
            ConfigError: a file is not usable; every problem is named with file, line and key.
        """
        # Fingerprints are taken before reading: an edit in between is seen next time.
        places = self._watched[0]
        self._watched = places, _fingerprint(places)
        files = self.variables.files
        fingerprint = _fingerprint(files)
        environ = self.variables.merged()
        config, extensions = self._searches(environ)
        places = tuple(map(str, (*config.places, *extensions.places)))
        self._watched = files + places, fingerprint + _fingerprint(places)
        return self._load(config.find(), extensions, environ)

    def find(self) -> Path | None:
        """The ``config.yaml`` in use, whether it can be read or not. Raises as :meth:`read`."""
        return self._searches(self.variables.merged())[0].find()

    def _changed(self) -> bool:
        places, fingerprint = self._watched
        return _fingerprint(places) != fingerprint

    def _reload(self) -> AppConfig:
        try:
            snapshot = self.read()
        except (ConfigError, FileNotFoundError) as error:
            if self._snapshot is None:
                raise
            if str(error) != self.problem:
                logger.error(
                    "The configuration was changed, but cannot be used; the last good one stays in force.\n%s", error
                )
            self.problem = str(error)
            return self._snapshot
        for warning in snapshot.origin.warnings:
            if warning not in self._warned:
                logger.warning("%s", warning)
        self._warned |= frozenset(snapshot.origin.warnings)
        if self.problem is not None:
            logger.info("The configuration is in order again.")
        self._snapshot, self.problem = snapshot, None
        return snapshot

    def _searches(self, environ: Mapping[str, str]) -> tuple[_Search, _Search]:
        def search(given: str | Path | None, variable: str, names: tuple[str, ...]) -> _Search:
            if named := given or environ.get(variable):
                place = self._cwd / Path(named).expanduser()
                return _Search((place,), "given as argument" if given else f"named by {variable}")
            folders = dict.fromkeys((self._cwd, project_root(self._cwd)))
            return _Search(tuple(folder / name for name in names for folder in folders))

        return (
            search(self._path, CONFIG_VAR, ("config.yaml",)),
            search(self._extensions_path, EXTENSIONS_VAR, EXTENSIONS_NAMES),
        )

    def _load(self, config: Path | None, search: _Search, environ: Mapping[str, str]) -> AppConfig:
        extensions = search.find()
        main = parse_yaml(read_text(config), config) if config else Document(self._cwd / "config.yaml")
        more = parse_json(read_text(extensions), extensions) if extensions else Document(self._cwd)
        data = resolve_tree({**main.data, "extensions": None}, environ, file=config)
        data = _with_default_backend(_merged(data, self._overrides))
        data["extensions"] = _validated(ExtensionsConfig, resolve_tree(more.data, environ, file=extensions), more)
        snapshot = _validated(AppConfig, data, main)
        if problems := [
            ConfigProblem(problem, main.file if config else None, main.line(key), key_path(key))
            for key, problem in confinement_problems(snapshot)
        ]:
            raise ConfigError(*problems)
        if not snapshot.models:
            found = discover_models(environ, self._probe, self.variables.connected())
            snapshot = snapshot.model_copy(update={"models": found})
        if not snapshot.lists_tools:
            snapshot = snapshot.model_copy(update={"tools": discover_tools(environ)})
        warnings = tuple(_warnings(main)) if config else ()
        place = extensions or search.places[0]
        root = project_root(self._cwd)
        return snapshot.with_origin(Origin(config, root, FrozenDict(environ), place, warnings))


def load_config(
    path: str | Path | None = None,
    *,
    extensions_path: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    probe: Probe = http_probe,
) -> AppConfig:
    """Read the configuration that applies here, once; see :class:`ConfigSource` for the arguments.

    Without models, in a file or for want of one, those that the environment offers are used, see :func:`discover_models`; without
    tools the default ones, see :func:`discover_tools`.

    Raises:
        FileNotFoundError, ConfigError: see :meth:`ConfigSource.read`.
    """
    return ConfigSource(path, extensions_path=extensions_path, environ=environ, cwd=cwd, probe=probe).read()


def get_app_config(source: ConfigSource | None = None) -> AppConfig:
    """The configuration in force. Keep a :class:`ConfigSource` instead of calling this often: without one every file is read.

    Raises:
        FileNotFoundError, ConfigError: see :func:`load_config`.
    """
    return source.current() if source else load_config()


def get_extensions_config() -> ExtensionsConfig:
    """MCP servers and skill states in force."""
    return get_app_config().extensions


def get_memory_config() -> MemoryConfig:
    """The memory section in force."""
    return get_app_config().memory


def _env_files(cwd: Path) -> tuple[Path, ...]:
    return tuple(folder / ".env" for folder in dict.fromkeys((cwd, project_root(cwd))))


def _fingerprint(places: tuple[str, ...]) -> Fingerprint:
    return tuple(map(_state, places))


def _state(place: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(place)  # noqa: PTH116 - pathlib's is three times as slow, and this runs at each use
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _merged(base: Any, over: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base) if isinstance(base, Mapping) else {}
    for key, value in over.items():
        result[key] = _merged(result.get(key), value) if isinstance(value, Mapping) else value
    return result


def _with_default_backend(data: dict[str, Any]) -> dict[str, Any]:
    # A file that says nothing about its database must not lose what users do; only code that builds AppConfig() gets memory.
    database = {} if data.get("database") is None else data["database"]
    if isinstance(database, Mapping) and database.get("backend") is None:
        database = {**database, "backend": "sqlite"}
    return {**data, "database": database}


# problems -----------------------------------------------------------------------------------------------------------


def _validated(model: type[Model], data: Any, document: Document) -> Model:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise ConfigError(*(_problem(dict(entry), document) for entry in error.errors(include_url=False))) from None


def _problem(error: dict[str, Any], document: Document) -> ConfigProblem:
    key: KeyPath = tuple(error["loc"])
    message = error["msg"].removeprefix("Value error, ").replace("Input should", "should").removesuffix(".") + "."
    message = str(_PLAIN_WORDS.get(error["type"], message))
    written = document.value(key)
    remedy = f"Add '{key[-1]}' there." if error["type"] == "missing" and key else ""
    if error["type"] != "missing" and written is not None:
        shown = repr(mask_secrets(written, name=str(key[-1]) if key else ""))
        held = f" (resolved from {written})" if has_reference(written) else ""
        message = f"{message[:-1]}, not {shown[:_SHOWN]}{held}."
    return ConfigProblem(message, document.file, document.line(key), key_path(key), remedy)


def _warnings(document: Document) -> Iterator[str]:
    """What works but deserves a look: an old version, doubled names, unknown keys."""
    version = version_number(document.data.get("config_version"))
    if _is_foreign(document.data):
        yield (
            f"{document.file}: config_version {version} is deer-flow's, which counts by itself: what is known of the file holds. "
            "`deerflow import deer-flow DIR` takes over its data."
        )
    elif version < CONFIG_VERSION:
        yield (
            f"{document.file}: config_version is {version}, the current one is {CONFIG_VERSION}. "
            "Run 'deerflow config upgrade' to add what is new; the old file is kept as config.yaml.bak."
        )
    if "extensions" in document.data:
        yield f"{document.file}: 'extensions' is ignored; MCP servers and skills are set in extensions_config.json."
    for section in ("models", "tools", "tool_groups"):
        seen: set[str] = set()
        entries = document.data.get(section)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            name = str(entry.get("name")) if isinstance(entry, Mapping) else ""
            if name in seen:
                place = f"{document.file}:{document.line((section, index))}: {section}[{index}]"
                yield f"{place}: there is a {name!r} above already; this one is not used."
            seen.add(name)
    for name, instead in WITHOUT_EFFECT.items():
        key = tuple(name.split("."))
        if document.value(key) is not None:
            yield f"{document.file}:{document.line(key) or 1}: {name}: has no effect here{instead and f': {instead}'}."
    for key, hint in _unknown(AppConfig, document.data):
        if ".".join(map(str, key)) not in WITHOUT_EFFECT:
            yield f"{document.file}:{document.line(key) or 1}: {key_path(key)}: this key is unknown{hint}"


WITHOUT_EFFECT = {
    "logging": "log_level sets the level",
    "token_budget": "`spending` limits tokens and money",
    "max_recursion_limit": "",
    "tool_search.auto_promote_top_k": "",
    "tool_output": "long results are kept in files",
    "suggestions": "",
    "input_polish": "",
    "read_before_write": "a file that has changed since the agent saw it is never overwritten",
    "safety_finish_reason": "models[].end_reasons says what a reason means",
    "skill_scan": "skills are always checked",
    "memory.backend_config": "its settings stand in `memory` itself",
    "agent_storage": "",
    "scheduler": "",
    "mcp_tasks": "",
    "run_ownership": "",
    "authorization": "",
    "checkpointer": "`database` holds everything",
    "run_events": "",
    "stream_bridge": "processes notify each other through PostgreSQL",
}
"""Sections and keys that other versions know, and what there is instead."""


def _is_foreign(data: Mapping[str, Any]) -> bool:
    """Return whether the file is of deer-flow from after version 8, up to which the numbers are the same: it has its sections."""
    is_higher = version_number(data.get("config_version")) > CONFIG_VERSION
    return is_higher and bool(data.keys() & WITHOUT_EFFECT.keys() - AppConfig.model_fields.keys())


def _unknown(section: type[BaseModel], data: Mapping[str, Any], at: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Keys of closed sections that mean nothing, and keys of open ones that look like a slip of the pen."""
    known = {alias: field for name, field in section.model_fields.items() for alias in field_names(name, field)}
    is_open = issubclass(section, OpenSection)
    options, slips = (section.known_options(data), section.slips) if is_open else (frozenset[str](), {})
    ignored = "" if is_open else " and ignored"
    for key, value in data.items():
        if key in options:
            continue
        if key not in known:
            near = _near(key, {*known, *options}, slips)
            if near or ignored:
                yield (*at, key), f"{ignored}; did you mean '{near}'?" if near else f"{ignored}."
            continue
        for inner, entry, where in _sections(known[key].annotation, value, (*at, key)):
            yield from _unknown(inner, entry, where)


def _near(key: str, known: Collection[str], slips: Mapping[str, str]) -> str | None:
    plain = _INNER_CAPITAL.sub("_", key).lower().replace("-", "_")
    if plain in slips:
        return slips[plain]
    return (
        plain if plain in known else next(iter(difflib.get_close_matches(key, sorted(known), n=1, cutoff=0.85)), None)
    )


def _sections(annotation: Any, value: Any, at: KeyPath) -> Iterator[tuple[type[BaseModel], Mapping[str, Any], KeyPath]]:
    """The sections in a value of this type: itself, or those in its list or table."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if isinstance(value, Mapping):
            yield annotation, value, at
    elif origin is tuple:
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from _sections(inner[0], item, (*at, index))
    elif origin is Mapping:
        for key, item in (value if isinstance(value, Mapping) else {}).items():
            yield from _sections(inner[1], item, (*at, key))
    elif origin is UnionType or origin is Union:
        for one in inner:
            yield from _sections(one, value, at)


# upgrades ------------------------------------------------------------------------------------------------------------


_OLD_PATHS = re.compile(r"\bsrc\.(community|sandbox|models|tools)\b(?=[.:])")
_INDENTED_MAPPING = re.compile(r"^\w[^#\n]*:[ ]*(?:#.*)?\n([ ]+)\w", re.MULTILINE)
_OWN_LINES = re.compile(r"^\s*(#.*)?\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class UpgradeReport:
    """What :func:`upgrade_config` did. ``added`` holds keys such as ``sandbox.use``."""

    old_version: int
    new_version: int
    changed: bool
    added: tuple[str, ...] = ()
    migrated: tuple[str, ...] = ()
    backup: Path | None = None


def upgrade_config(path: str | Path, *, example: Path | None = None) -> UpgradeReport:
    """Migrate the file to the version of ``config.example.yaml`` and add the mapping keys that it lacks.

    Values, lists, comments, order and quotes stay. The old file is kept as ``config.yaml.bak``, or ``.bak1`` and so on if
    there is one already. A file that is up to date is not touched.

    Raises:
        FileNotFoundError: there is no such file.
        ConfigError: it is not usable YAML, or would not be afterwards, or it is of deer-flow.
    """
    # Through a link, or the link would be replaced and the file it names left as it is.
    file, example = Path(path).resolve(), example or example_file()
    original = text = read_text(file)
    model, data = parse_yaml(read_text(example), example).data, parse_yaml(text, file).data
    old, new = version_number(data.get("config_version")), version_number(model.get("config_version"))
    if _is_foreign(data):
        message = (
            f"{old} is a version of deer-flow, which counts by itself. The file was left as it is, and works as it is."
        )
        remedy = "`deerflow config init` writes one of DeerFlow's own; `deerflow import deer-flow DIR` takes over deer-flow's data."
        raise ConfigError(ConfigProblem(message, file, key="config_version", remedy=remedy))
    if old >= new:
        return UpgradeReport(old, old, changed=False)
    if "config_version" not in data:
        text = re.sub(r"\A(---\s*\n)?", rf"\g<0>config_version: {old}\n", text, count=1)
    # On the text, so that examples in comments follow.
    migrated = _OLD_PATHS.sub(r"deerflow.\1", text) if old < 1 else text
    upgraded, added = _completed(migrated, read_text(example), new)
    parse_yaml(upgraded, file)
    backup = _backup(file, original)
    _replace(file, upgraded)
    changes = ("class paths 'src.*' are now 'deerflow.*'",) if migrated != text else ()
    return UpgradeReport(old, new, True, added, changes, backup)


def _completed(text: str, example: str, version: int) -> tuple[str, tuple[str, ...]]:
    """The text with what it lacks of ``example`` and this version, in the layout of its author; and the keys it lacked."""
    from ruamel.yaml import YAML
    from ruamel.yaml.util import load_yaml_guess_indent

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1 << 20
    _, indent, offset = load_yaml_guess_indent(text)
    mapping = _INDENTED_MAPPING.search(text)
    yaml.indent(mapping=len(mapping[1]) if mapping else indent, sequence=indent, offset=offset)
    document = yaml.load(text)
    # Comments on lines of their own belong to what comes after them, but ruamel keeps them with what stands before.
    added = tuple(map(key_path, _add_missing(document, yaml.load(_OWN_LINES.sub("", example)), ())))
    document["config_version"] = version
    stream = StringIO()
    yaml.dump(document, stream)
    return stream.getvalue(), added


def _add_missing(data: MutableMapping[str, Any], model: MutableMapping[str, Any], at: KeyPath) -> Iterator[KeyPath]:
    for key, value in model.items():
        if key not in data:
            data[key] = value
            yield (*at, key)
        elif isinstance(value, MutableMapping) and isinstance(data[key], MutableMapping):
            yield from _add_missing(data[key], value, (*at, key))


def _backup(file: Path, text: str) -> Path:
    number = 0
    while True:
        backup = file.with_name(f"{file.name}.bak{number or ''}")
        try:
            with backup.open("x", encoding="utf-8", newline="") as stream:
                backup.chmod(file.stat().st_mode & 0o7777)
                stream.write(text)
            return backup
        except FileExistsError:
            number += 1


def _replace(file: Path, text: str) -> None:
    """Put ``text`` in place of the file at once, with the file's mode."""
    try:
        write_text(file, text, file.stat().st_mode & 0o7777)
    except OSError as error:
        # A file that is mounted into a container by itself cannot be replaced, only written to.
        if error.errno != errno.EBUSY:
            raise
        file.write_text(text, encoding="utf-8")
