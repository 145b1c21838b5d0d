"""Reading the files: plain data together with the line on which each key stands."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Never

import yaml
from yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from deerflow.config.errors import ConfigError, ConfigProblem, key_path

KeyPath = tuple[str | int, ...]

MAX_DEPTH = 100
MAX_NODES = 100_000

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE, _TIMESTAMP = "tag:yaml.org,2002:merge", "tag:yaml.org,2002:timestamp"
_COLLECTIONS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


@dataclass(frozen=True)
class Document:
    """One file as data, before environment variables are resolved."""

    file: Path
    data: dict[str, Any] = field(default_factory=dict)
    lines: Mapping[KeyPath, int] = field(default_factory=dict)

    def line(self, key: KeyPath) -> int | None:
        """The line of a key, or of the nearest key above that the file holds."""
        while key and key not in self.lines:
            key = key[:-1]
        return self.lines.get(key)

    def value(self, key: KeyPath) -> Any:
        """What the file says there, or None."""
        found: Any = self.data
        for part in key:
            try:
                found = found[part]
            except (KeyError, IndexError, TypeError):
                return None
        return found


def read_text(file: Path) -> str:
    """The file as text. Raises ConfigError if it cannot be read or is not UTF-8; FileNotFoundError passes."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise
    except UnicodeDecodeError as error:
        raise ConfigError(
            ConfigProblem(f"not UTF-8 text ({error.reason} at byte {error.start}).", file, remedy="Save it as UTF-8.")
        ) from None
    except OSError as error:
        raise ConfigError(
            ConfigProblem(
                f"cannot be read: {error.strerror}.", file, remedy="Check that it is a file and that you may read it."
            )
        ) from None


def parse_yaml(text: str, file: Path) -> Document:
    """A YAML file whose root is a mapping; an empty one is an empty mapping. Raises ConfigError naming the line."""
    try:
        _check_depth(text, file)
        root = yaml.compose(text, Loader=_Loader)
        reader = _Reader(file)
        data = {} if root is None else reader.convert(root, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(part for part in (error.context, error.problem) if part)
        raise ConfigError(
            ConfigProblem(f"not valid YAML: {what}.", file, mark.line + 1 if mark else None, remedy=_yaml_remedy(what))
        ) from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(ConfigProblem(f"not valid YAML: {str(error).splitlines()[0]}.", file)) from None
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise ConfigError(
            ConfigProblem(
                f"should hold keys and values, but holds {_kind(data)}.", file, 1, remedy="See config.example.yaml."
            )
        )
    return Document(file, data, reader.lines if root is not None else {})


def parse_json(text: str, file: Path) -> Document:
    """A JSON file whose root is an object. Raises ConfigError naming the line of a syntax error."""
    try:
        data = json.loads(text) if text.strip() else {}
    except json.JSONDecodeError as error:
        raise ConfigError(
            ConfigProblem(f"not valid JSON: {error.msg} (column {error.colno}).", file, error.lineno)
        ) from None
    except (ValueError, RecursionError):
        raise ConfigError(ConfigProblem("not valid JSON: nested too deeply or a number is too long.", file)) from None
    if not isinstance(data, dict):
        raise ConfigError(
            ConfigProblem(
                f"should hold an object, but holds {_kind(data)}.",
                file,
                1,
                remedy="See extensions_config.example.json.",
            )
        )
    return Document(file, data)


class _Reader:
    """Turns YAML nodes into data. Dates stay text, keys become text, doubled keys are errors."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.lines: dict[KeyPath, int] = {}
        self._scalars = yaml.constructor.SafeConstructor()
        self._open: set[int] = set()
        self._count = 0

    def convert(self, node: Node, at: KeyPath) -> Any:
        self._count += 1
        if self._count > MAX_NODES:
            self._fail(node, at, f"holds more than {MAX_NODES} values; aliases (*name) multiply what they stand for")
        if id(node) in self._open:
            self._fail(node, at, "an alias (*name) contains itself")
        self._open.add(id(node))
        try:
            if isinstance(node, CollectionNode) and node.tag not in _COLLECTIONS:
                self._fail(node, at, f"{node.tag} is not supported")
            if isinstance(node, MappingNode):
                return self._mapping(node, at)
            if isinstance(node, SequenceNode):
                return [self._item(item, (*at, index)) for index, item in enumerate(node.value)]
            return self._scalar(node, at)
        finally:
            self._open.discard(id(node))

    def _item(self, node: Node, at: KeyPath) -> Any:
        self.lines.setdefault(at, node.start_mark.line + 1)
        return self.convert(node, at)

    def _mapping(self, node: MappingNode, at: KeyPath) -> dict[str, Any]:
        data: dict[str, Any] = {}
        seen: dict[str, int] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                for source in self._merge_sources(value_node):
                    merged = {**self.convert(source, at), **merged}
                continue
            key, line = self._key(key_node, at), key_node.start_mark.line + 1
            if key in seen:
                self._fail(key_node, (*at, key), f"is there twice, first on line {seen[key]}", "Keep one of them.")
            seen[key] = self.lines[(*at, key)] = line
            data[key] = self.convert(value_node, (*at, key))
        return {**merged, **data}

    def _merge_sources(self, node: Node) -> Iterator[Node]:
        for source in node.value if isinstance(node, SequenceNode) else [node]:
            if not isinstance(source, MappingNode):
                self._fail(node, (), "'<<' needs a mapping to merge")
            yield source

    def _key(self, node: Node, at: KeyPath) -> str:
        if not isinstance(node, ScalarNode):
            self._fail(node, at, "a key must be text")
        return node.value

    def _scalar(self, node: Node, at: KeyPath) -> Any:
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
        raise ConfigError(ConfigProblem(message + ".", self.file, node.start_mark.line + 1, key_path(at), remedy))


def _check_depth(text: str, file: Path) -> None:
    # The C composer recurses without a limit and takes the process down with it.
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise ConfigError(
                    ConfigProblem(f"is nested more than {MAX_DEPTH} levels deep.", file, event.start_mark.line + 1)
                )
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _yaml_remedy(what: str) -> str:
    if "\\t" in what:
        return "Indent with spaces, not tabs."
    if "mapping values are not allowed" in what:
        return "Put text that holds ': ' in quotes, and check the indentation."
    return "Check the indentation and quotes there." if what else ""


def _kind(data: object) -> str:
    return "a list" if isinstance(data, list) else "text" if isinstance(data, str) else f"a {type(data).__name__}"
