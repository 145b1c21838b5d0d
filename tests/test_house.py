"""The house stays small and without circles. Its floors are held by import-linter, see ``pyproject.toml``."""

from __future__ import annotations

import ast
import tokenize
import tomllib
from collections import Counter
from dataclasses import fields
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from deerflow.context import RunContext

PACKAGES = Path(__file__).parents[1] / "packages"
CEILINGS = tomllib.loads((Path(__file__).parent / "ceilings.toml").read_text())
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}
SOURCES = sorted(path for path in PACKAGES.rglob("*.py*") if path.suffix in (".py", ".pyi"))


def room(path: Path) -> str:
    """``deerflow.runs`` for everything in that folder and below, ``deerflow.features.memory`` for a noun; modules beside the folders
    belong to the package."""
    package, *rest = path.relative_to(PACKAGES).parts[1:]
    depth = 2 if len(rest) > 2 and rest[0] == "features" else 1
    return ".".join([package, *rest[:depth]]) if len(rest) > 1 else package


def size(path: Path) -> int:
    """How many tokens of Python the file has, without comments, docstrings and layout."""
    docstrings = {
        (node.body[0].value.lineno, node.body[0].value.col_offset)
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
        and isinstance(node.body[0].value, ast.Constant)
        and isinstance(node.body[0].value.value, str)
    }
    with path.open("rb") as file:
        return sum(
            token.type not in LAYOUT and token.start not in docstrings for token in tokenize.tokenize(file.readline)
        )


def imports() -> dict[str, set[str]]:
    """Which module imports which, imports for type checkers and inside of functions included."""
    modules = {module(path): path for path in SOURCES if path.suffix == ".py"}
    found: dict[str, set[str]] = {}
    for name, path in modules.items():
        targets: set[str] = set()
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                targets |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                targets |= inner & modules.keys()
                if inner - modules.keys():
                    targets.add(node.module)
        found[name] = targets & modules.keys() - {name}
    return found


def module(path: Path) -> str:
    parts = path.relative_to(PACKAGES).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def sizes() -> Counter[str]:
    found = Counter[str]()
    for source in SOURCES:
        found[room(source)] += size(source)
    return found


def test_each_room_stays_under_its_ceiling():
    rooms = CEILINGS["rooms"]
    assert rooms.keys() == sizes().keys(), "Each room has a ceiling in tests/ceilings.toml, and each ceiling a room."
    over = {name: tokens for name, tokens in sizes().items() if tokens > rooms[name]}
    assert not over, "Too large. Delete something, or raise the ceiling and say why in the commit."


def test_the_context_of_a_run_stays_no_bag():
    assert len(fields(RunContext)) <= 12, "What belongs to a noun goes into things, and is found by its type."


def test_no_modules_import_each_other_in_a_circle():
    try:
        TopologicalSorter(imports()).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))
