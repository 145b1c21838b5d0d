"""Print the public interface of a Python package as Markdown, without importing it; name what has no docstring."""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef


def signature(node: Function) -> str:
    prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{prefix}{node.name}({ast.unparse(node.args)}){result}"


def first_line(node: ast.AST) -> str:
    text = ast.get_docstring(node) or ""  # type: ignore[arg-type]
    return text.strip().split("\n\n")[0].replace("\n", " ")


def outline(path: Path, name: str) -> Iterator[tuple[str, str, str]]:
    """Kind, signature and first sentence of what a module offers."""
    tree = ast.parse(path.read_text("utf-8"), filename=str(path))
    yield "module", name, first_line(tree)
    for node in tree.body:
        if isinstance(node, Function) and not node.name.startswith("_"):
            yield "function", signature(node), first_line(node)
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            bases = ", ".join(ast.unparse(base) for base in node.bases)
            yield "class", f"{node.name}({bases})" if bases else node.name, first_line(node)
            for inner in node.body:
                if isinstance(inner, Function) and (not inner.name.startswith("_") or inner.name == "__init__"):
                    yield "method", signature(inner), first_line(inner)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path, help="a package's folder or a module")
    parser.add_argument("--missing", action="store_true", help="list only what has no docstring")
    options = parser.parse_args()
    if not options.root.exists():
        print(f"{options.root} does not exist", file=sys.stderr)
        return 2
    single = options.root.is_file()
    files = (
        [options.root]
        if single
        else sorted(
            path
            for path in options.root.rglob("*.py")
            if not any(part.startswith((".", "test")) for part in path.relative_to(options.root).parts)
        )
    )
    count = lacking = 0
    for path in files:
        parts = [path.stem] if single else [options.root.name, *path.relative_to(options.root).with_suffix("").parts]
        name = ".".join(part for part in parts if part != "__init__")
        try:
            entries = list(outline(path, name))
        except SyntaxError as error:
            print(f"{path}:{error.lineno}: {error.msg}", file=sys.stderr)
            continue
        for kind, shown, text in entries:
            count += 1
            lacking += not text
            if options.missing and (text or "__init__" in shown):
                continue
            if kind == "module":
                print(f"\n## {shown}\n\n{text}".rstrip())
            else:
                print(
                    f"{'  ' if kind == 'method' else ''}- `{'class ' if kind == 'class' else ''}{shown}`{' — ' + text if text else ''}"
                )
    print(f"\n{count} entries, {lacking} without a docstring", file=sys.stderr)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
