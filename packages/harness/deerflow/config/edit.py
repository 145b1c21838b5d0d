"""Writing settings back: into the file as its author wrote it, never from the resolved snapshot.

Comments, order, quotes, unknown keys and references such as ``$API_KEY`` stay. A file is replaced as a whole or not at all.
"""

from __future__ import annotations

import errno
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from io import StringIO
from pathlib import Path
from typing import Any

import yaml

from deerflow.config.document import (
    ConfigError,
    ConfigProblem,
    KeyPath,
    key_path,
    parse_json,
    parse_yaml,
    read_text,
)
from deerflow.config.env import MissingEnv, has_reference, mask_secrets, resolve
from deerflow.config.paths import example_file
from deerflow.config.schema import version_number

Change = Mapping[str, Any] | Callable[[dict[str, Any]], Mapping[str, Any]]

_OPEN_KEY = re.compile(r"[^#]*:\s*(#.*)?$")
_YAML_1_1 = yaml.resolver.Resolver()
_OLD_PATHS = re.compile(r"\bsrc\.(community|sandbox|models|tools)\b(?=[.:])")


class _Delete(Enum):
    DELETE = "DELETE"


DELETE = _Delete.DELETE
"""As a value in a change: remove this key."""


def edit_yaml(path: str | Path, changes: Change, *, environ: Mapping[str, str] | None = None) -> None:
    """Merge ``changes`` into a YAML file; see :func:`edit_json`, which does the same for JSON.

    Raises:
        ConfigError: the file is not usable YAML, or would not be afterwards.
        OSError: the file cannot be written.
    """
    _edit(Path(path), changes, environ or {}, parse_yaml, _yaml_text)


def edit_json(path: str | Path, changes: Change, *, environ: Mapping[str, str] | None = None) -> None:
    """Merge ``changes`` into a JSON file, which is made if it is not there.

    Args:
        changes: nested mappings are merged key by key; everything else, lists too, replaces what is there; :data:`DELETE`
            removes. Or a function that computes the changes from the file's data as written, called under the file's lock.
        environ: what references in the file stand for. A value that equals what a reference resolves to, or the mask that
            stands for a secret (see :func:`mask_secrets`), leaves the file's own text, so that a form may send back
            everything that it was shown.

    Raises:
        ConfigError: the file is not usable JSON.
        OSError: the file cannot be written.
    """
    _edit(Path(path), changes, environ or {}, parse_json, lambda text, before, after: _json_text(after))


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
    file = Path(path).resolve()
    example = example or example_file()
    model = parse_yaml(read_text(example), example).data
    original = text = read_text(file)
    data = parse_yaml(text, file).data
    old, new = version_number(data.get("config_version")), version_number(model.get("config_version"))
    if old >= new:
        return UpgradeReport(file, old, old, changed=False)
    if "config_version" not in data:
        text = re.sub(r"\A(---\s*\n)?", rf"\g<0>config_version: {old}\n", text, count=1)
    # On the text, so that examples in comments follow.
    migrated = _OLD_PATHS.sub(r"deerflow.\1", text) if old < 1 else text
    data = parse_yaml(migrated, file).data
    added: list[str] = []
    after = {**_completed(data, model, (), added), "config_version": new}
    upgraded = _rendered(file, migrated, data, after, parse_yaml, _yaml_text)
    backup = _backup(file, original)
    _replace_file(file, upgraded)
    changes = ("class paths 'src.*' are now 'deerflow.*'",) if migrated != text else ()
    return UpgradeReport(file, old, new, True, tuple(added), changes, backup)


def _completed(data: Mapping[str, Any], model: Mapping[str, Any], at: KeyPath, added: list[str]) -> dict[str, Any]:
    """``data`` with the keys of ``model`` that it lacks; their names are appended to ``added``."""
    result = dict(data)
    for key, value in model.items():
        if key not in data:
            result[key] = value
            added.append(key_path((*at, key)))
        elif isinstance(value, Mapping) and isinstance(data[key], Mapping):
            result[key] = _completed(data[key], value, (*at, key), added)
    return result


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


# the data of an edited file -----------------------------------------------------------------------------------------


def _edit(
    path: Path,
    changes: Change,
    environ: Mapping[str, str],
    parse: Callable[[str, Path], Any],
    render: Callable[..., str],
) -> None:
    # Through a link, or the link would be replaced and the file it names left as it is.
    file = path.resolve()
    with _locked(file.parent):
        text = read_text(file) if file.exists() else ""
        before = parse(text, file).data
        after = _merged(before, changes(before) if callable(changes) else changes, environ, "")
        if not text or not _same(before, after):
            _replace_file(file, _rendered(file, text, before, after, parse, render))


def _rendered(
    file: Path,
    text: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    parse: Callable[[str, Path], Any],
    render: Callable[..., str],
) -> str:
    rendered = render(text, before, after)
    if not _same(parse(rendered, file).data, after):
        message = "cannot be edited without damage: an alias or a merge key is in the way."
        raise ConfigError(ConfigProblem(message, file, remedy="Edit it by hand."))
    return rendered


def _merged(old: Any, new: Any, environ: Mapping[str, str], name: str) -> Any:
    if isinstance(new, Mapping):
        result = dict(old) if isinstance(old, Mapping) else {}
        for key, value in new.items():
            if value is DELETE:
                result.pop(key, None)
            else:
                result[key] = _merged(result.get(key), value, environ, str(key))
        return result
    if isinstance(new, list | tuple):
        known = old if isinstance(old, list) else []
        known = [*known, *[None] * len(new)]
        return [_merged(before, value, environ, name) for before, value in zip(known, new, strict=False)]
    if isinstance(new, MissingEnv):
        return str(new)
    return old if _stands_for(new, old, environ, name) else new


def _stands_for(new: Any, old: Any, environ: Mapping[str, str], name: str) -> bool:
    """Whether ``new`` is what was shown for ``old``: the same, resolved, or masked."""
    if not isinstance(old, str):
        return _same(new, old)
    shown = resolve(old, environ) if has_reference(old) else old
    return new in (old, shown, mask_secrets(str(shown), name=name))


def _same(one: Any, other: Any) -> bool:
    """Tells 1 from true and 1.0, and takes one NaN for another."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _json_text(data: Mapping[str, Any]) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


# YAML in the layout of its author -----------------------------------------------------------------------------------


def _yaml_text(text: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """``text``, which holds ``before``, made to hold ``after``. What stays the same keeps its layout and its comments."""
    from ruamel.yaml import YAML
    from ruamel.yaml.representer import RoundTripRepresenter

    class Representer(RoundTripRepresenter):
        pass

    Representer.add_representer(float, _represent_float)
    writer = YAML()
    writer.Representer = Representer
    writer.preserve_quotes = True
    writer.width = 1 << 20
    mapping, offset = _layout(text)
    writer.indent(mapping=mapping, sequence=offset + 2, offset=offset)
    stream = StringIO()
    document = writer.load(text)
    if document is not None:
        _apply(document, before, after)
    else:
        # A file of comments only: ruamel would forget them.
        stream.write(text.rstrip("\n") + "\n" if text.strip() else "")
        document = _fresh(after)
    writer.dump(document, stream)
    return stream.getvalue()


def _represent_float(representer: Any, value: float) -> Any:
    # YAML 1.1 takes 1e-05 for text, and 1.0e-05 for a number.
    text = repr(value)
    if "e" in text and "." not in text:
        return representer.represent_scalar("tag:yaml.org,2002:float", text.replace("e", ".0e"))
    return representer.represent_float(value)


def _fresh(value: Any) -> Any:
    """``value`` such that ruamel's YAML 1.2 is read the same by YAML 1.1, in which ``yes`` and ``1_0`` are no text."""
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString

    if isinstance(value, Mapping):
        return {key: _fresh(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_fresh(item) for item in value]
    if isinstance(value, str) and _YAML_1_1.resolve(yaml.ScalarNode, value, (True, False)) != "tag:yaml.org,2002:str":
        return DoubleQuotedScalarString(value)
    return value


def _apply(document: Any, before: Any, after: Any) -> None:
    """Make ``document``, ruamel's view of the mapping or list ``before``, hold ``after``."""
    stays: dict[Any, Any]
    if isinstance(after, list):
        del document[len(after) :]
        document.extend(_fresh(after[len(before) :]))
        stays = {index: index for index in range(min(len(before), len(after)))}
    else:
        keys = {_text_key(key): key for key in document}
        for name in keys.keys() - after.keys():
            del document[keys[name]]
        stays = {name: key for name, key in keys.items() if name in before and name in after}
        for name in [name for name in after if name not in stays]:
            document[keys.get(name, name)] = _fresh(after[name])
    for name, key in stays.items():
        old, new = before[name], after[name]
        if type(old) is type(new) and isinstance(new, dict | list):
            _apply(document[key], old, new)
        elif not _same(old, new):
            document[key] = _fresh(new)


def _text_key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key, default=str)


def _layout(text: str) -> tuple[int, int]:
    """How far mappings, and lists, are indented below their key where the text first does it."""
    mapping, offset = None, None
    key_indent: int | None = None
    for line in text.splitlines():
        content = line.lstrip()
        if not content or content.startswith("#"):
            continue
        indent, is_item = len(line) - len(content), content.startswith("- ")
        if key_indent is not None and is_item and indent >= key_indent:
            offset = indent - key_indent if offset is None else offset
        elif key_indent is not None and not is_item and indent > key_indent:
            mapping = indent - key_indent if mapping is None else mapping
        key_indent = indent if not is_item and _OPEN_KEY.match(content) else None
    return mapping or 2, 2 if offset is None else offset


# files --------------------------------------------------------------------------------------------------------------


def _replace_file(file: Path, text: str) -> None:
    """Put ``text`` in place of the file at once, with the file's mode; a new file only its owner may read."""
    mode = file.stat().st_mode & 0o7777 if file.exists() else 0o600
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(mode)
        temporary.replace(file)
    except OSError as error:
        # A file that is mounted into a container by itself cannot be replaced, only written to.
        if error.errno != errno.EBUSY:
            raise
        file.write_text(text, encoding="utf-8")
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Keeps two processes from editing at once. The lock is on the directory, so it leaves no file behind."""
    directory.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
