"""The house stays small and without circles. Its floors are held by import-linter, see ``pyproject.toml``."""

from __future__ import annotations

import ast
import re
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
OF_A_PERSON = {
    "deerflow.accounts": "Sessions, tokens and schedules end with their person, or with the person's password.",
    "deerflow.features.channels.bindings": "An account on a platform has one person; a guest may write so much a day.",
    "deerflow.features.channels.conversations": "A conversation is found by its person.",
    "deerflow.features.channels.gate": "A notice goes to the chat where its person wrote last.",
    "deerflow.features.channels.turn": "Two people are compared: the one who writes, and the one whose thread it is.",
    "deerflow.features.channels.turns": "The owner of a thread acts in it; the person is that owner, or is looked up.",
    "deerflow.features.mcp.rows": "Access to a server is its person's, and is found by both.",
    "deerflow.features.memory.rows": "A memory is found by its person and agent.",
    "deerflow.features.personal_data": "A person's archive holds what is theirs, not what they may see.",
    "deerflow.features.retention": "What belongs to a person is counted, and deleted with them.",
    "deerflow.features.usage.service": "Everyone sees their own figures, administrators those of others: no rows of one owner.",
    "deerflow.storage.approvals": "A grant holds for runs of the person who gave it.",
    "deerflow.storage.budgets": "Usage is summed by person.",
    "deerflow.storage.visibility": "It decides.",
    "deerflow_app.gateway.auth": "A cookie is worth something while its session is that user's.",
}
"""Modules that may compare owners; all others ask ``deerflow.storage.visibility`` who may see and change what."""
OWNER = re.compile(r"\b(?:user|owner)_id\W*(?:=|<>|!=|(?<!not )in\b)", re.IGNORECASE)
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


def compares_owners(source: str) -> bool:
    """Return whether Python code, or SQL text in it, compares the owner of something with a person."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            if OWNER.search(node.value):
                return True
        elif isinstance(node, ast.Compare):
            equal = any(isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for op in node.ops)
            if equal and any(is_owner(side) for side in (node.left, *node.comparators)):
                return True
        elif isinstance(node, ast.Attribute) and node.attr in ("in_", "is_", "is_not", "not_in"):
            if is_owner(node.value):
                return True
    return False


def is_owner(node: ast.expr) -> bool:
    """Return whether an expression is the ``user_id`` of something other than the local user."""
    if isinstance(node, ast.Attribute):
        return node.attr == "user_id" and ast.unparse(node.value) != "LOCAL_PRINCIPAL"
    return isinstance(node, ast.Subscript) and ast.unparse(node.slice) == "'user_id'"


def test_one_place_decides_who_may_see_what():
    comparing = {module(path) for path in SOURCES if path.suffix == ".py" and compares_owners(path.read_text())}
    assert comparing <= OF_A_PERSON.keys(), "Use deerflow.storage.visibility, or give the reason in OF_A_PERSON."
    assert comparing >= OF_A_PERSON.keys(), "A module that compares no owners any more leaves the list."


@pytest.mark.parametrize(
    "planted",
    [
        'tail = "WHERE thread_id = ? AND user_id = ?"',
        'tail = f"WHERE {name} = ? AND t.user_id=?"',
        'tail = """WHERE owner_id <> ?"""',
        'tail = "WHERE user_id IN (SELECT id FROM friends)"',
        "query.where(threads.c.user_id == principal.user_id)",
        'query.where(threads.c["user_id"] == person)',
        "query.where(threads.c.user_id.in_(people))",
        "if run.user_id != principal.user_id: raise NotFoundError",
        "if row.user_id in (None, person): pass",
    ],
)
def test_a_comparison_of_owners_is_found(planted: str):
    assert compares_owners(planted)


@pytest.mark.parametrize(
    "allowed",
    [
        '"""Rows with user_id = ? are meant."""',
        "Run(user_id=principal.user_id)",
        'sql.insert(connection, threads, row, "ON CONFLICT (user_id, agent) DO NOTHING")',
        "if user_id == LOCAL_PRINCIPAL.user_id: pass",
        "own = row.user_id is not None",
        'tail = f"WHERE thread_id = ? AND {readable(threads)}"',
    ],
)
def test_what_compares_no_owners_is_not_found(allowed: str):
    assert not compares_owners(allowed)
