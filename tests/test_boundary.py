"""The harness is a library: it never reaches up into the app."""

from __future__ import annotations

import ast
from pathlib import Path

HARNESS = Path(__file__).parents[1] / "packages" / "harness" / "deerflow"


def _imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return names


def test_the_harness_never_imports_the_app():
    files = list(HARNESS.rglob("*.py"))
    assert len(files) > 30
    offenders = [
        path for path in files if any(name.split(".")[0] in ("deerflow_app", "app") for name in _imports(path))
    ]
    assert offenders == []
