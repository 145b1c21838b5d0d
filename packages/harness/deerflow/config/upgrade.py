"""Bringing an older ``config.yaml`` up to date without losing what its author wrote."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deerflow.config.app import version_number
from deerflow.config.document import KeyPath, parse_yaml, read_text
from deerflow.config.errors import key_path
from deerflow.config.locate import example_file
from deerflow.config.replace import replace_file
from deerflow.config.yaml_text import dump, plain_yaml, round_trip

Migration = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class UpgradeReport:
    """What :func:`upgrade_config` did. ``added`` holds keys such as ``sandbox.use``."""

    path: Path
    old_version: int
    new_version: int
    changed: bool
    added: tuple[str, ...] = ()
    migrated: tuple[str, ...] = ()
    backup: Path | None = None


def _harness_paths(text: str) -> str:
    return re.sub(r"\bsrc\.(community|sandbox|models|tools)\b(?=[.:])", r"deerflow.\1", text)


MIGRATIONS: Mapping[int, tuple[str, Migration]] = {1: ("class paths 'src.*' are now 'deerflow.*'", _harness_paths)}
"""By the version that they lead to; they work on the text, so that commented-out examples follow."""


def upgrade_config(path: str | Path, *, example: Path | None = None) -> UpgradeReport:
    """Migrate the file to the version of ``config.example.yaml`` and add the mapping keys that it lacks.

    Values, lists, comments, order and quotes stay. The old file is kept as ``config.yaml.bak``, or ``.bak1`` and so on if
    there is one already. A file that is up to date is not touched.

    Raises:
        FileNotFoundError: there is no such file.
        ConfigError: it is not usable YAML.
    """
    file = Path(path).resolve()
    example = example or example_file()
    model = parse_yaml(read_text(example), example).data
    text = read_text(file)
    old, new = (
        version_number(parse_yaml(text, file).data.get("config_version")),
        version_number(model.get("config_version")),
    )
    if old >= new:
        return UpgradeReport(file, old, old, changed=False)
    upgraded, migrated = _migrated(text, old, new)
    upgraded, added = _completed(upgraded, model, new)
    parse_yaml(upgraded, file)
    backup = _backup(file, text)
    replace_file(file, upgraded)
    return UpgradeReport(file, old, new, True, tuple(map(key_path, added)), migrated, backup)


def _migrated(text: str, old: int, new: int) -> tuple[str, tuple[str, ...]]:
    done: list[str] = []
    for version in sorted(MIGRATIONS):
        if old < version <= new:
            what, migrate = MIGRATIONS[version]
            changed = migrate(text)
            done += [what] if changed != text else []
            text = changed
    return text, tuple(done)


def _completed(text: str, model: Mapping[str, Any], version: int) -> tuple[str, list[KeyPath]]:
    yaml = round_trip(text)
    document = yaml.load(text)
    if document is None:
        return f"config_version: {version}\n{text}", []
    added = [key for key in _add_missing(document, model, ()) if key != ("config_version",)]
    if "config_version" in document:
        document["config_version"] = version
    else:
        document.insert(0, "config_version", version)
    return dump(yaml, document), added


def _add_missing(document: Any, model: Mapping[str, Any], at: KeyPath) -> list[KeyPath]:
    added: list[KeyPath] = []
    for key, value in model.items():
        if (*at, key) == ("config_version",):
            continue
        if key not in document:
            document[key] = plain_yaml(value)
            added.append((*at, key))
        elif isinstance(value, Mapping) and isinstance(document[key], dict):
            added += _add_missing(document[key], value, (*at, key))
    return added


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
