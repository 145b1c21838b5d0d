"""Writing YAML as its author would have: the new values in the old text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from io import StringIO
from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

_YAML_1_1 = yaml.resolver.Resolver()
_OPEN_KEY = re.compile(r"[^#]*:\s*(#.*)?$")


def yaml_text(text: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """``text``, which holds ``before``, made to hold ``after``. What stays the same keeps its layout and its comments."""
    writer = round_trip(text)
    document = writer.load(text)
    if document is None:
        # A file of comments only: ruamel would forget them.
        return (text.rstrip("\n") + "\n" if text.strip() else "") + (dump(writer, plain_yaml(after)) if after else "")
    _apply(document, before, after)
    return dump(writer, document)


def _apply(document: Any, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    keys = {_text_key(key): key for key in document}
    for name in [name for name in keys if name not in after]:
        del document[keys.pop(name)]
    for name, value in after.items():
        _replace(document, keys.get(name, name), before.get(name), value, known=name in before and name in keys)


def _apply_list(document: Any, before: list[Any], after: list[Any]) -> None:
    del document[len(after) :]
    for index, value in enumerate(after):
        if index < len(document):
            _replace(document, index, before[index], value, known=True)
        else:
            document.append(plain_yaml(value))


def _replace(document: Any, key: Any, before: Any, value: Any, *, known: bool) -> None:
    # repr tells 1 from True and from 1.0, which are equal.
    if known and repr(before) == repr(value):
        return
    if known and isinstance(before, Mapping) and isinstance(value, Mapping):
        _apply(document[key], before, value)
    elif known and isinstance(before, list) and isinstance(value, list):
        _apply_list(document[key], before, value)
    else:
        document[key] = plain_yaml(value)


def _text_key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key, default=str)


def round_trip(text: str) -> Any:
    """A ruamel.yaml instance that writes a document back in the layout of ``text``."""
    writer = YAML()
    writer.Representer = _Representer
    writer.preserve_quotes = True
    writer.width = 1 << 20
    mapping, offset = _layout(text)
    writer.indent(mapping=mapping, sequence=offset + 2, offset=offset)
    return writer


class _Representer(RoundTripRepresenter):
    """Writes numbers such as ``1e-05`` so that YAML 1.1 takes them for numbers, too."""

    def represent_float(self, data: float) -> Any:
        text = repr(data)
        if "e" in text and "." not in text:
            return self.represent_scalar("tag:yaml.org,2002:float", text.replace("e", ".0e"))
        return super().represent_float(data)


_Representer.add_representer(float, _Representer.represent_float)


def dump(writer: Any, document: Any) -> str:
    """The document as text."""
    stream = StringIO()
    writer.dump(document, stream)
    return stream.getvalue()


def plain_yaml(value: Any) -> Any:
    """``value`` such that ruamel's YAML 1.2 is read the same by YAML 1.1, in which ``yes`` and ``1_0`` are no text."""
    if isinstance(value, Mapping):
        return {key: plain_yaml(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_yaml(item) for item in value]
    if isinstance(value, str) and _YAML_1_1.resolve(yaml.ScalarNode, value, (True, False)) != "tag:yaml.org,2002:str":
        return DoubleQuotedScalarString(value)
    return value


def _layout(text: str) -> tuple[int, int]:
    """How far mappings, and lists, are indented below their key where the text first does it."""
    mapping, offset = 2, 2
    found: set[str] = set()
    key_indent: int | None = None
    for line in text.splitlines():
        content = line.lstrip()
        if not content or content.startswith("#"):
            continue
        indent = len(line) - len(content)
        is_item = content.startswith("- ")
        if key_indent is not None and is_item and indent >= key_indent and "list" not in found:
            found.add("list")
            offset = indent - key_indent
        elif key_indent is not None and not is_item and indent > key_indent and "mapping" not in found:
            found.add("mapping")
            mapping = indent - key_indent
        key_indent = indent if not is_item and _OPEN_KEY.match(content) else None
    return mapping, offset
