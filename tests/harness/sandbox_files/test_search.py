"""grep: the same answers by ripgrep inside, by Python inside, and on the host; nothing hangs the server."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from deerflow.sandbox.files.search import grep_command, grep_files, parse_grep
from deerflow.sandbox.interface import WORKSPACE, GrepMatch, SandboxCommandError, SandboxFileError, SandboxRuntimeError

from .conftest import Tree, chain

Grep = Callable[..., tuple[list[GrepMatch], bool]]


def run_inside(tree: Tree, path: str, root: str, pattern: str, **options: object) -> tuple[list[GrepMatch], bool]:
    """The command as a sandbox would run it, with the workspace standing for its virtual path."""
    place = root.replace(WORKSPACE, str(tree.workspace))
    glob = options.pop("glob", None)
    glob = glob.replace(WORKSPACE, str(tree.workspace)) if isinstance(glob, str) else None
    command = grep_command(place, pattern, glob=glob, **options)  # type: ignore[arg-type]
    run = subprocess.run(
        ["/bin/bash", "-c", f"echo noise; {command}"], capture_output=True, env={"PATH": path}, timeout=60, check=False
    )
    assert run.stderr == b""
    matches, cut = parse_grep(run.stdout.decode())
    return [GrepMatch(m.path.replace(str(tree.workspace), WORKSPACE), m.line_number, m.line) for m in matches], cut


@pytest.fixture(params=["ripgrep", "python", "host"])
def grep(request: pytest.FixtureRequest, tree: Tree, tmp_path: Path) -> Grep:
    if request.param == "host":
        return lambda root, pattern, **options: grep_files(tree.files, root, pattern, **options)
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "python3").symlink_to("/usr/bin/python3")
    if request.param == "ripgrep":
        found = shutil.which("rg")
        if found is None:
            pytest.skip("ripgrep is not installed on this machine")
        (tools / "rg").symlink_to(found)
    return lambda root, pattern, **options: run_inside(tree, str(tools), root, pattern, **options)


def paths(found: tuple[list[GrepMatch], bool]) -> list[str]:
    return [match.path.removeprefix(WORKSPACE + "/") for match in found[0]]


def test_lines_are_found_with_their_numbers(tree: Tree, grep: Grep) -> None:
    tree.put("a.txt", b"one\nTwo\nthree two\n")
    tree.put("dir/b.txt", b"two without newline at the end: two")
    assert grep(WORKSPACE, "two") == (
        [
            GrepMatch(f"{WORKSPACE}/a.txt", 2, "Two"),
            GrepMatch(f"{WORKSPACE}/a.txt", 3, "three two"),
            GrepMatch(f"{WORKSPACE}/dir/b.txt", 1, "two without newline at the end: two"),
        ],
        False,
    )
    assert paths(grep(WORKSPACE, "two", case_sensitive=True)) == ["a.txt", "dir/b.txt"]
    assert grep(WORKSPACE, "^th.*o$", case_sensitive=True)[0] == [GrepMatch(f"{WORKSPACE}/a.txt", 3, "three two")]
    assert grep(WORKSPACE, "nothing") == ([], False)


def test_an_empty_line_is_a_line_but_the_end_of_a_file_is_not(tree: Tree, grep: Grep) -> None:
    tree.put("a", b"x\n\ny\n")
    assert [match.line_number for match in grep(WORKSPACE, "^$")[0]] == [2]


def test_a_literal_is_taken_as_it_is(tree: Tree, grep: Grep) -> None:
    tree.put("a", b"f(x) [1]* $HOME `id` 'q'\nfx 1\n")
    for literal in ("f(x)", "[1]*", "$HOME", "`id`", "'q'", "F(X) [1]* $home"):
        assert [match.line_number for match in grep(WORKSPACE, literal, literal=True)[0]] == [1]
    assert grep(WORKSPACE, "f(x", literal=True)[0]


def test_a_glob_narrows_the_search(tree: Tree, grep: Grep) -> None:
    for name in ("a.py", "src/b.py", "src/deep/c.py", "src/d.js", "e.txt"):
        tree.put(name, b"hit\n")
    assert paths(grep(WORKSPACE, "hit", glob="*.py")) == ["a.py", "src/b.py", "src/deep/c.py"]
    assert paths(grep(WORKSPACE, "hit", glob="src/*.py")) == ["src/b.py"]
    assert paths(grep(WORKSPACE, "hit", glob="src/**/*.{py,js}")) == ["src/b.py", "src/d.js", "src/deep/c.py"]
    assert paths(grep(WORKSPACE, "hit", glob="[!a].py")) == ["src/b.py", "src/deep/c.py"]
    assert paths(grep(WORKSPACE, "hit", glob=f"{WORKSPACE}/src/*.py")) == ["src/b.py"]


def test_made_directories_are_skipped_but_plain_ones_are_not(tree: Tree, grep: Grep) -> None:
    for name in (
        "a",
        "node_modules/b",
        "x/.git/c",
        ".venv/d",
        "__pycache__/e",
        "build/f",
        "logs/g.log",
        ".env/h",
        "env/i",
        ".gitignore",
    ):
        tree.put(name, b"hit\n")
    tree.put(".gitignore", b"*\nhit\n")
    assert paths(grep(WORKSPACE, "hit")) == [".env/h", ".gitignore", "a", "build/f", "env/i", "logs/g.log"]
    assert paths(grep(WORKSPACE, "hit", glob="node_modules/**")) == ["node_modules/b"]


def test_huge_files_are_searched_binary_ones_links_and_pipes_are_not(tree: Tree, grep: Grep) -> None:
    tree.put("text", b"hit\n")
    tree.put("binary", b"\0hit\n")
    tree.put("huge", b"hit\n" + b"x" * (3 << 20))
    tree.link("link", "text")
    tree.link("out", tree.secret)
    tree.link("outdir", tree.root)
    os.mkfifo(tree.workspace / "fifo", 0o666)
    assert paths(grep(WORKSPACE, "hit|secret")) == ["huge", "text", "binary"]


def test_odd_names_and_bytes_survive(tree: Tree, grep: Grep) -> None:
    names = ["new\nline", "-rf", "sp ace", "\udcff", "a:1:b", '["x",1,"y"]', "ünï"]
    for name in names:
        tree.put(name, b"hit \xff\xfe \xc3\xa9\n")
    found, _ = grep(WORKSPACE, "hit")
    assert sorted(match.path.removeprefix(WORKSPACE + "/") for match in found) == sorted(names)
    assert all(match.line.startswith("hit ") and match.line.endswith("é") for match in found)
    assert len(grep(WORKSPACE, "é")[0]) == len(names)


def test_one_file_can_be_searched(tree: Tree, grep: Grep) -> None:
    tree.put("dir/-a.txt", b"no\nhit\n")
    tree.put("dir/b.txt", b"hit\n")
    assert grep(f"{WORKSPACE}/dir/-a.txt", "hit") == ([GrepMatch(f"{WORKSPACE}/dir/-a.txt", 2, "hit")], False)


def test_the_cap_cuts_and_says_so(tree: Tree, grep: Grep) -> None:
    tree.put("a", b"hit\n" * 1000)
    tree.put("b", b"hit\n")
    found, cut = grep(WORKSPACE, "hit", cap=10)
    assert (len(found), cut) == (10, True)
    tree.put("a", b"hit\n" * 9)
    assert grep(WORKSPACE, "hit", cap=10)[1] is False


def test_long_lines_are_cut(tree: Tree, grep: Grep) -> None:
    tree.put("a", b"x" * 100_000 + b"hit" + b"y" * 100_000 + b"\n")
    assert [len(match.line) for match in grep(WORKSPACE, "hit")[0]] == [500]


@pytest.mark.parametrize("pattern", ["(", "[z-a]", "*a", "(?P<n>a)(?P<n>b)", "", "a\0b", "x" * 20_000])
def test_a_bad_pattern_is_said_to_be_one(tree: Tree, grep: Grep, pattern: str) -> None:
    tree.put("a", b"aaa\n")
    with pytest.raises(SandboxCommandError):
        grep(WORKSPACE, pattern)


def test_look_around_works_everywhere(tree: Tree, grep: Grep) -> None:
    tree.put("a", b"foobar\nfoobaz\n")
    assert [match.line for match in grep(WORKSPACE, r"foo(?!bar)")[0]] == ["foobaz"]
    assert [match.line for match in grep(WORKSPACE, r"(?<=foo)bar")[0]] == ["foobar"]


def test_a_missing_root_is_an_error(tree: Tree, grep: Grep) -> None:
    with pytest.raises((SandboxCommandError, SandboxFileError)):
        grep(f"{WORKSPACE}/missing", "x")


def test_a_very_deep_tree_does_not_stop_the_search(tree: Tree, grep: Grep) -> None:
    tree.put("z.txt", b"hit\n")
    chain(tree.workspace, 1500)
    assert "z.txt" in paths(grep(WORKSPACE, "hit"))
    tree.files.remove(f"{WORKSPACE}/d")


def test_a_catastrophic_pattern_ends_at_the_deadline_and_leaves_nothing(tree: Tree) -> None:
    tree.put("a", b"a" * 40 + b"!\n")
    before = threading.active_count()
    with pytest.raises(SandboxCommandError, match="longer than 1 seconds"):
        grep_files(tree.files, WORKSPACE, r"^(a+)+$", deadline=1)
    assert threading.active_count() == before
    # The server goes on meanwhile and after.
    assert grep_files(tree.files, WORKSPACE, "a!")[0]


def test_the_search_on_the_host_shows_only_virtual_paths_and_leads_nowhere(tree: Tree) -> None:
    tree.put("a", b"hit\n")
    tree.link("out", tree.root)
    for root in ("/etc", f"{WORKSPACE}/out", "/mnt/other"):
        with pytest.raises(SandboxFileError) as refused:
            grep_files(tree.files, root, "root")
        assert str(tree.root) not in str(refused.value)
    found, _ = grep_files(tree.files, "/", "hit|skill")
    assert [match.path for match in found] == ["/mnt/skills/SKILL.md", f"{WORKSPACE}/a"]


def test_an_output_without_an_end_is_not_taken_for_an_answer() -> None:
    for output in ("", "bash: python3: command not found\n", '["/a", 1, "x"]\n', "[1, 2]\n{}\n"):
        with pytest.raises(SandboxRuntimeError, match="did not finish"):
            parse_grep(output)


def test_the_command_is_one_safe_word_list() -> None:
    command = grep_command("/mnt/it's $(here)", "`id`; rm -rf \"$HOME\" '\n'", glob="*'$x")
    words = shlex.split(command)
    assert words[:5] == ["command", "python3", "-I", "-S", "-c"]
    assert len(words) == 7 and "$(here)" in words[6]


def test_ten_thousand_files_are_searched_without_delay_to_the_loop(tree: Tree) -> None:
    for number in range(10_000):
        (tree.workspace / f"{number}.txt").write_bytes(b"line\n" * 20 + (b"needle\n" if number == 9999 else b""))
    started = time.monotonic()
    assert [match.line_number for match in grep_files(tree.files, WORKSPACE, "needle")[0]] == [21]
    print(f"host grep over 10,000 files: {time.monotonic() - started:.2f} s")
