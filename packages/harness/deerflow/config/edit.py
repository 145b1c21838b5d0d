"""Writing settings back: into the file as its author wrote it, never from the resolved snapshot.

Comments, order, quotes, unknown keys and references such as ``$API_KEY`` stay. A file is replaced as a whole or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from deerflow.config.document import parse_json, parse_yaml, read_text
from deerflow.config.env import MissingEnv, has_reference, resolve
from deerflow.config.errors import ConfigError, ConfigProblem
from deerflow.config.replace import locked, replace_file
from deerflow.config.secrets import mask_secrets
from deerflow.config.yaml_text import yaml_text

Change = Mapping[str, Any] | Callable[[dict[str, Any]], Mapping[str, Any]]


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
    _edit(Path(path), changes, environ or {}, parse_yaml, yaml_text)


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
    _edit(Path(path), changes, environ or {}, parse_json, _json_text)


def _edit(
    path: Path,
    changes: Change,
    environ: Mapping[str, str],
    parse: Callable[[str, Path], Any],
    render: Callable[..., str],
) -> None:
    # Through a link, or the link would be replaced and the file it names left as it is.
    file = path.resolve()
    with locked(file.parent):
        text = read_text(file) if file.exists() else ""
        before = parse(text, file).data
        wanted = changes(before) if callable(changes) else changes
        after = _merged(before, wanted, environ, "")
        rendered = render(text, before, after)
        if _exactly(parse(rendered, file).data) != _exactly(after):
            raise ConfigError(
                ConfigProblem(
                    "cannot be edited without damage: an alias or a merge key is in the way.",
                    file,
                    remedy="Edit it by hand.",
                )
            )
        if rendered != text:
            replace_file(file, rendered)


def _merged(old: Any, new: Any, environ: Mapping[str, str], name: str) -> Any:
    if isinstance(new, Mapping):
        source = old if isinstance(old, Mapping) else {}
        merged = {key: value for key, value in source.items() if key not in new}
        result = {
            key: _merged(source.get(key), value, environ, str(key)) for key, value in new.items() if value is not DELETE
        }
        return {key: result.get(key, merged.get(key)) for key in (*source, *result) if key in result or key in merged}
    if isinstance(new, list | tuple):
        known = old if isinstance(old, list) else []
        return [
            _merged(known[index] if index < len(known) else None, value, environ, name)
            for index, value in enumerate(new)
        ]
    if isinstance(new, MissingEnv):
        return str(new)
    return old if _stands_for(new, old, environ, name) else new


def _stands_for(new: Any, old: Any, environ: Mapping[str, str], name: str) -> bool:
    """Whether ``new`` is what was shown for ``old``: the same, resolved, or masked."""
    if new == old or not isinstance(old, str):
        return new == old
    resolved = resolve(old, environ)
    return (
        new in (resolved, mask_secrets(str(resolved), name=name))
        if has_reference(old)
        else new == mask_secrets(old, name=name)
    )


def _exactly(data: Mapping[str, Any]) -> str:
    """For comparison: tells 1 from true and 1.0, and takes one NaN for another."""
    return json.dumps(data, sort_keys=True)


def _json_text(text: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    if text and _exactly(after) == _exactly(before):
        return text
    return json.dumps(after, indent=2, ensure_ascii=False) + "\n"
