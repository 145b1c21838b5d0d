"""Glob patterns mean what people expect, and cannot be made to burn time."""

from __future__ import annotations

import pytest

from deerflow.sandbox.files.tree import GlobPattern
from deerflow.sandbox.interface import WORKSPACE, SandboxFileError

from .conftest import Tree


def matches(pattern: str, path: str) -> bool:
    compiled = GlobPattern(pattern)
    progress, matched = compiled.start(), False
    for name in path.split("/"):
        progress, matched = compiled.step(progress, name)
    return matched


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.py", "a.py", True),
        ("*.py", "deep/er/a.py", True),
        ("./*.py", "a.py", True),
        ("./*.py", "deep/a.py", False),
        ("/*.py", "deep/a.py", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/*.py", "other/src/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/x/y/z/a.py", True),
        ("src/**/*.py", "lib/a.py", False),
        ("**/*.py", "a.py", True),
        ("**/test/**", "a/test/b/c", True),
        ("**/test/**", "a/test", False),
        ("**", "a/b", True),
        ("**/a/**/b", "a/x/a/y/b", True),
        ("*", ".hidden", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("[ab].txt", "a.txt", True),
        ("[!ab].txt", "a.txt", False),
        ("[^ab].txt", "c.txt", True),
        ("[^ab].txt", "a.txt", False),
        ("*.{py,txt}", "x/a.txt", True),
        ("*.{py,txt}", "a.md", False),
        ("{src,lib}/**/*.{c,h}", "lib/a/b.h", True),
        ("{a,{b,c}}.txt", "c.txt", True),
        ("a{.txt,}", "a", True),
        ("{a}", "{a}", True),
        ("a.b", "axb", False),
        ("(a+)+$", "aaaa", False),
        ("new\nline", "new\nline", True),
    ],
)
def test_a_pattern_matches(pattern: str, path: str, expected: bool) -> None:
    assert matches(pattern, path) is expected


@pytest.mark.parametrize(
    "pattern", ["", "/", "..", "../x", "a/../b", "x" * 2000, "{a,b}" * 10, "{" * 500 + "a,b" + "}" * 500 + "{a,b}" * 8]
)
def test_a_senseless_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(SandboxFileError):
        GlobPattern(pattern)


def test_a_pattern_made_to_backtrack_takes_no_time() -> None:
    # Exponential for a backtracking matcher; here it would simply never return.
    assert not matches("*a" * 200 + "b", "a" * 250)
    assert not matches("/".join(["**"] * 100 + ["b"]), "/".join(["a"] * 500))
    assert not matches("{**/,}" * 5 + "*a*a*a*a*a*a*b", "/".join(["a" * 200] * 50))


def test_a_pattern_may_repeat_the_path_that_is_searched(tree: Tree) -> None:
    tree.put("src/a.py")
    assert tree.files.glob(WORKSPACE, f"{WORKSPACE}/src/*.py")[0] == [f"{WORKSPACE}/src/a.py"]
    assert tree.files.glob(f"{WORKSPACE}/", f"{WORKSPACE}/**/*.py")[0] == [f"{WORKSPACE}/src/a.py"]


def test_made_directories_are_skipped_unless_named(tree: Tree) -> None:
    for name in (
        "a.js",
        "node_modules/b.js",
        ".git/hooks/c.js",
        ".venv/d.js",
        "x/__pycache__/e.js",
        "build/f.js",
        ".github/g.js",
    ):
        tree.put(name)
    found = [path.removeprefix(WORKSPACE + "/") for path in tree.files.glob(WORKSPACE, "*.js")[0]]
    assert found == [".github/g.js", "a.js", "build/f.js"]
    assert tree.files.glob(WORKSPACE, "node_modules/*")[0] == [f"{WORKSPACE}/node_modules/b.js"]
    assert tree.files.glob(WORKSPACE, ".git/**")[0] == [f"{WORKSPACE}/.git/hooks/c.js"]
    assert tree.files.glob(f"{WORKSPACE}/node_modules", "*")[0] == [f"{WORKSPACE}/node_modules/b.js"]


def test_directories_come_only_when_asked_for_and_links_are_not_followed(tree: Tree) -> None:
    tree.put("d/a")
    tree.link("l", "d")
    assert tree.files.glob(WORKSPACE, "*")[0] == [f"{WORKSPACE}/d/a", f"{WORKSPACE}/l"]
    assert tree.files.glob(WORKSPACE, "*", include_dirs=True)[0] == [
        f"{WORKSPACE}/d",
        f"{WORKSPACE}/d/a",
        f"{WORKSPACE}/l",
    ]


def test_the_cap_cuts_and_says_so(tree: Tree) -> None:
    for number in range(5):
        tree.put(str(number))
    assert tree.files.glob(WORKSPACE, "*", cap=3) == ([f"{WORKSPACE}/{number}" for number in range(3)], True)
    assert tree.files.glob(WORKSPACE, "*", cap=5)[1] is False


def test_a_search_may_begin_above_the_mounts(tree: Tree) -> None:
    tree.put("a.txt")
    assert tree.files.glob("/", "**/*.{txt,md}")[0] == ["/mnt/skills/SKILL.md", f"{WORKSPACE}/a.txt"]
