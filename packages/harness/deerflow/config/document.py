"""A configuration file as plain data, and what is wrong with it in words for the person who can put it right."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Never

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

KeyPath = tuple[str | int, ...]

MAX_DEPTH = 100
MAX_NODES = 100_000

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE, _TIMESTAMP = "tag:yaml.org,2002:merge", "tag:yaml.org,2002:timestamp"
_COLLECTIONS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """One thing to put right. ``line`` is 1-based; ``key`` looks like ``models[0].name``."""

    message: str
    file: Path | None = None
    line: int | None = None
    key: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file and self.line else str(self.file or "")
        text = ": ".join(filter(None, (place, self.key, self.message)))
        return f"{text} {self.remedy}".strip()


class ConfigError(Exception):
    """The configuration, or the part of it that is needed now, cannot be used. ``str()`` says where, why and what to do."""

    def __init__(self, *problems: ConfigProblem) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


def key_path(parts: Sequence[str | int]) -> str:
    """``("models", 0, "name")`` as people write it: ``models[0].name``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return text.removeprefix(".")


@dataclass(frozen=True)
class Document:
    """One file as data, before environment variables are resolved."""

    file: Path
    data: dict[str, Any] = field(default_factory=dict)
    root: Node | None = None
    """The YAML that the data was read from."""

    def line(self, key: KeyPath) -> int | None:
        """The line of a key, or of the nearest key above that the file holds."""
        node, line = self.root, None
        for part in key:
            children = _children(node)
            if part not in children:
                break
            node, line = children[part]
        return line

    def value(self, key: KeyPath) -> Any:
        """What the file says there, or None."""
        found: Any = self.data
        for part in key:
            try:
                found = found[part]
            except (KeyError, IndexError, TypeError):
                return None
        return found


def _children(node: Node | None) -> dict[str | int, tuple[Node, int]]:
    """What a mapping or a list holds, each with its line."""
    if isinstance(node, MappingNode):
        return {str(key.value): (value, key.start_mark.line + 1) for key, value in node.value}
    if isinstance(node, SequenceNode):
        return {index: (item, item.start_mark.line + 1) for index, item in enumerate(node.value)}
    return {}


def read_text(file: Path) -> str:
    """The file as text. Raises ConfigError if it cannot be read or is not UTF-8; FileNotFoundError passes."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise
    except UnicodeDecodeError as error:
        message, remedy = f"not UTF-8 text ({error.reason} at byte {error.start}).", "Save it as UTF-8."
    except OSError as error:
        message, remedy = f"cannot be read: {error.strerror}.", "Check that it is a file and that you may read it."
    raise ConfigError(ConfigProblem(message, file, remedy=remedy))


def write_text(file: Path, text: str, mode: int = 0o644) -> None:
    """Write a file whole or not at all. Other users cannot read it before it has its ``mode``."""
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(descriptor)
        temporary.chmod(mode)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def parse_yaml(text: str, file: Path) -> Document:
    """A YAML file whose root is a mapping; an empty one is an empty mapping. Raises ConfigError naming the line."""
    try:
        _check_depth(text, file)
        root = yaml.compose(text, Loader=_Loader)
        data = None if root is None else _JsonReader(file).value(root, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(part for part in (error.context, error.problem) if part)
        line = mark.line + 1 if mark else None
        raise ConfigError(ConfigProblem(f"not valid YAML: {what}.", file, line, remedy=_yaml_remedy(what))) from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(ConfigProblem(f"not valid YAML: {str(error).splitlines()[0]}.", file)) from None
    return Document(file, _mapping({} if data is None else data, file, "keys and values", "config.example.yaml"), root)


def parse_json(text: str, file: Path) -> Document:
    """A JSON file whose root is an object. Raises ConfigError naming the line of a syntax error."""
    try:
        data = json.loads(text) if text.strip() else {}
    except json.JSONDecodeError as error:
        message = f"not valid JSON: {error.msg} (column {error.colno})."
        raise ConfigError(ConfigProblem(message, file, error.lineno)) from None
    except (ValueError, RecursionError):
        raise ConfigError(ConfigProblem("not valid JSON: nested too deeply or a number is too long.", file)) from None
    return Document(file, _mapping(data, file, "an object", "extensions_config.example.json"))


def _mapping(data: Any, file: Path, wanted: str, example: str) -> dict[str, Any]:
    if isinstance(data, dict):
        return data
    kind = {list: "a list", str: "text"}.get(type(data), f"a {type(data).__name__}")
    raise ConfigError(ConfigProblem(f"should hold {wanted}, but holds {kind}.", file, 1, remedy=f"See {example}."))


class _JsonReader:
    """Turns YAML nodes into data. Dates stay text, keys become text, doubled keys are errors."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._scalars = yaml.constructor.SafeConstructor()
        self._open: set[int] = set()
        self._count = 0

    def value(self, node: Node, at: KeyPath) -> Any:
        self._count += 1
        if self._count > MAX_NODES:
            self._fail(node, at, f"holds more than {MAX_NODES} values; aliases (*name) multiply what they stand for")
        if isinstance(node, ScalarNode):
            return self._scalar(node, at)
        if id(node) in self._open:
            self._fail(node, at, "an alias (*name) contains itself")
        if node.tag not in _COLLECTIONS:
            self._fail(node, at, f"{node.tag} is not supported")
        self._open.add(id(node))
        if isinstance(node, MappingNode):
            data = self._pairs(node, at)
        else:
            data = [self.value(item, (*at, index)) for index, item in enumerate(node.value)]
        self._open.remove(id(node))
        return data

    def _pairs(self, node: MappingNode, at: KeyPath) -> dict[str, Any]:
        data: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, value in node.value:
            if key.tag == _MERGE:
                for source in value.value if isinstance(value, SequenceNode) else [value]:
                    if not isinstance(source, MappingNode):
                        self._fail(value, (), "'<<' needs a mapping to merge")
                    merged = {**self.value(source, at), **merged}
                continue
            if not isinstance(key, ScalarNode):
                self._fail(key, at, "a key must be text")
            if key.value in data:
                first = next(other.start_mark.line + 1 for other, _ in node.value if other.value == key.value)
                self._fail(key, (*at, key.value), f"is there twice, first on line {first}", "Keep one of them.")
            data[key.value] = self.value(value, (*at, key.value))
        return {**merged, **data}

    def _scalar(self, node: ScalarNode, at: KeyPath) -> Any:
        if node.tag == _TIMESTAMP:
            return node.value
        try:
            value = self._scalars.construct_object(node)
        except (LookupError, ValueError, TypeError, AttributeError):
            # A tag such as !!bool is believed by PyYAML's constructors, whatever follows it.
            self._fail(node, at, f"{node.value!r} is no {node.tag.rpartition(':')[2]}")
        if not isinstance(value, str | int | float | bool | None):
            self._fail(node, at, f"{node.tag} is not supported", "Write it as text in quotes.")
        return value

    def _fail(self, node: Node, at: KeyPath, message: str, remedy: str = "") -> Never:
        raise ConfigError(ConfigProblem(message + ".", self._file, node.start_mark.line + 1, key_path(at), remedy))


def _check_depth(text: str, file: Path) -> None:
    # The C composer recurses without a limit and takes the process down with it.
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            message = f"is nested more than {MAX_DEPTH} levels deep."
            raise ConfigError(ConfigProblem(message, file, event.start_mark.line + 1))


def _yaml_remedy(what: str) -> str:
    if "\\t" in what:
        return "Indent with spaces, not tabs."
    if "mapping values are not allowed" in what:
        return "Put text that holds ': ' in quotes, and check the indentation."
    return "Check the indentation and quotes there." if what else ""
