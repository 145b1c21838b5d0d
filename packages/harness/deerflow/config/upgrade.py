"""Bringing a ``config.yaml`` of an older version up to date, as its author wrote it."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from deerflow.config.document import KeyPath, key_path, parse_yaml, read_text, write_text
from deerflow.config.paths import example_file
from deerflow.config.schema import version_number

_OLD_PATHS = re.compile(r"\bsrc\.(community|sandbox|models|tools)\b(?=[.:])")
_INDENTED_MAPPING = re.compile(r"^\w[^#\n]*:[ ]*(?:#.*)?\n([ ]+)\w", re.MULTILINE)
_OWN_LINES = re.compile(r"^\s*(#.*)?\n", re.MULTILINE)


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


def upgrade_config(path: str | Path, *, example: Path | None = None) -> UpgradeReport:
    """Migrate the file to the version of ``config.example.yaml`` and add the mapping keys that it lacks.

    Values, lists, comments, order and quotes stay. The old file is kept as ``config.yaml.bak``, or ``.bak1`` and so on if
    there is one already. A file that is up to date is not touched.

    Raises:
        FileNotFoundError: there is no such file.
        ConfigError: it is not usable YAML, or would not be afterwards.
    """
    # Through a link, or the link would be replaced and the file it names left as it is.
    file, example = Path(path).resolve(), example or example_file()
    original = text = read_text(file)
    model, data = parse_yaml(read_text(example), example).data, parse_yaml(text, file).data
    old, new = version_number(data.get("config_version")), version_number(model.get("config_version"))
    if old >= new:
        return UpgradeReport(file, old, old, changed=False)
    if "config_version" not in data:
        text = re.sub(r"\A(---\s*\n)?", rf"\g<0>config_version: {old}\n", text, count=1)
    # On the text, so that examples in comments follow.
    migrated = _OLD_PATHS.sub(r"deerflow.\1", text) if old < 1 else text
    upgraded, added = _completed(migrated, read_text(example), new)
    parse_yaml(upgraded, file)
    backup = _backup(file, original)
    _replace(file, upgraded)
    changes = ("class paths 'src.*' are now 'deerflow.*'",) if migrated != text else ()
    return UpgradeReport(file, old, new, True, added, changes, backup)


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
