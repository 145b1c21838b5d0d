"""From files and environment to one snapshot."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from deerflow.config.app import CONFIG_VERSION, AppConfig, version_number
from deerflow.config.discovery import Probe, discover_models, http_probe
from deerflow.config.document import Document, KeyPath, parse_json, parse_yaml, read_text
from deerflow.config.env import has_reference, resolve_tree
from deerflow.config.environment import load_environ
from deerflow.config.errors import ConfigError, ConfigProblem, key_path
from deerflow.config.extensions import ExtensionsConfig
from deerflow.config.frozen import EMPTY, FrozenDict
from deerflow.config.locate import ConfigFiles, find_files, project_root
from deerflow.config.origin import Origin
from deerflow.config.secrets import mask_secrets
from deerflow.config.section import OpenSection, Section, field_names

Model = TypeVar("Model", bound=Section)

_SHOWN = 80
_SAID_PLAINLY = {
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


def load_config(
    path: str | Path | None = None,
    *,
    extensions_path: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    probe: Probe = http_probe,
) -> AppConfig:
    """Read the configuration that applies here; see :func:`find_files` for where it is looked for.

    Without a file everything has its default. Without models, in a file or for want of one, those that the environment
    offers are used, see :func:`discover_models`.

    Args:
        environ: default the process's environment; ``.env`` completes a copy of it.
        cwd: default the current directory.
        probe: how discovery asks servers for their models.

    Raises:
        FileNotFoundError: a file named by an argument or a variable does not exist.
        ConfigError: a file is not usable; every problem is named with file, line and key.
    """
    folder = Path(cwd or Path.cwd()).absolute()
    complete = load_environ(os.environ if environ is None else environ, folder)
    return load_files(find_files(path, extensions_path, complete, folder), complete, folder, probe)


def load_files(
    files: ConfigFiles,
    environ: Mapping[str, str],
    cwd: Path,
    probe: Probe = http_probe,
    overrides: Mapping[str, Any] = EMPTY,
) -> AppConfig:
    """As :func:`load_config`, from files that are found already and an environment that is complete.

    ``overrides`` are merged deeply over the main file: mappings key by key, anything else as a whole.
    """
    main = parse_yaml(read_text(files.config), files.config) if files.config else Document(cwd / "config.yaml")
    extensions = load_extensions(files.extensions, environ)
    warnings = [*_version_warning(main)] if files.config else []
    warnings += _doubled_names(main)
    data = resolve_tree(
        {key: value for key, value in main.data.items() if key != "extensions"}, environ, file=files.config
    )
    data = _merged(data, overrides)
    if "extensions" in main.data:
        warnings.append(
            f"{main.file}: 'extensions' is ignored; MCP servers and skills are set in extensions_config.json."
        )
    data["database"] = _with_default_backend(data.get("database"))
    config = _validated(AppConfig, data, main)
    config = config.model_copy(
        update={"extensions": extensions, "models": config.models or discover_models(environ, probe)}
    )
    warnings += [
        f"{main.file}:{main.line(key) or 1}: {_unknown_key(key, known)}"
        for key, known in _unknown(AppConfig, main.data)
    ]
    return config.with_origin(
        Origin(files.config, files.extensions, project_root(cwd), FrozenDict(environ), tuple(warnings))
    )


def _merged(base: Any, over: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base) if isinstance(base, Mapping) else {}
    for key, value in over.items():
        result[key] = _merged(result.get(key), value) if isinstance(value, Mapping) else value
    return result


def load_extensions(file: Path | None, environ: Mapping[str, str]) -> ExtensionsConfig:
    """Read ``extensions_config.json``; None is an empty configuration. Raises ConfigError."""
    if file is None:
        return ExtensionsConfig()
    document = parse_json(read_text(file), file)
    return _validated(ExtensionsConfig, resolve_tree(document.data, environ, file=file), document)


def _with_default_backend(database: Any) -> Any:
    # A file that says nothing about its database must not lose what users do; only code that builds AppConfig() gets memory.
    if database is None:
        return {"backend": "sqlite"}
    if isinstance(database, Mapping) and database.get("backend") is None:
        return {**database, "backend": "sqlite"}
    return database


def _validated(model: type[Model], data: Any, document: Document) -> Model:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise ConfigError([_problem(dict(entry), document) for entry in error.errors(include_url=False)]) from None


def _problem(error: dict[str, Any], document: Document) -> ConfigProblem:
    key: KeyPath = tuple(error["loc"])
    kind = error["type"]
    message = _SAID_PLAINLY.get(kind) or _sentence(
        error["msg"].removeprefix("Value error, ").replace("Input should", "should")
    )
    written = document.value(key)
    if kind == "missing" or written is None:
        remedy = f"Add '{key[-1]}' there." if kind == "missing" and key else ""
        return ConfigProblem(message, document.file, document.line(key), key_path(key), remedy)
    shown = repr(mask_secrets(written, name=str(key[-1]) if key else ""))
    held = f" (resolved from {written})" if has_reference(written) else ""
    return ConfigProblem(
        f"{message[:-1]}, not {shown[:_SHOWN]}{held}.", document.file, document.line(key), key_path(key)
    )


def _sentence(text: str) -> str:
    return text if text.endswith(".") else text + "."


def _version_warning(document: Document) -> Iterator[str]:
    version = version_number(document.data.get("config_version"))
    if version < CONFIG_VERSION:
        yield (
            f"{document.file}: config_version is {version}, the current one is {CONFIG_VERSION}. "
            "Run 'deerflow config upgrade' to add what is new; the old file is kept as config.yaml.bak."
        )


def _doubled_names(document: Document) -> Iterator[str]:
    for section in ("models", "tools", "tool_groups"):
        seen: set[str] = set()
        entries = document.data.get(section)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            name = str(entry.get("name")) if isinstance(entry, Mapping) else ""
            if name in seen:
                place = f"{document.file}:{document.line((section, index))}: {section}[{index}]"
                yield f"{place}: there is a {name!r} above already; this one is not used."
            seen.add(name)


@dataclass(frozen=True, slots=True)
class _Known:
    names: tuple[str, ...]
    kept: bool


def _unknown(section: type[BaseModel], data: Mapping[str, Any], at: KeyPath = ()) -> Iterator[tuple[KeyPath, _Known]]:
    """Keys of closed sections that mean nothing, and keys of open ones that look like a slip of the pen."""
    known = {alias: field for name, field in section.model_fields.items() for alias in field_names(name, field)}
    kept = issubclass(section, OpenSection)
    for key, value in data.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.85)
            if near or not kept:
                yield (*at, key), _Known(tuple(near), kept)
            continue
        nested = known[key].annotation
        if isinstance(nested, type) and issubclass(nested, BaseModel) and isinstance(value, Mapping):
            yield from _unknown(nested, value, (*at, key))


def _unknown_key(key: KeyPath, known: _Known) -> str:
    hint = f"; did you mean '{known.names[0]}'?" if known.names else "."
    return f"{key_path(key)}: this key is {'unknown' if known.kept else 'unknown and ignored'}{hint}"
