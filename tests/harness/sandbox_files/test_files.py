"""Reading, writing, listing and removing, with the trees that sandboxes really leave behind."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.descriptors import open_below

from deerflow.sandbox.files import SandboxFiles, SandboxIsADirectoryError, SandboxNotADirectoryError, shown_path
from deerflow.sandbox.interface import (
    OUTPUTS,
    SKILLS,
    WORKSPACE,
    Entry,
    Mount,
    SandboxFileError,
    SandboxFileNotFoundError,
    SandboxPermissionError,
)

from .conftest import Tree, chain, make_tree

ODD_NAMES = ["new\nline", "-rf", "sp ace", "ünï", "\udcff\udcfe", "\u202egnp.exe", "tab\t", "*", "a'b\"c", "$(id)"]


# reading ------------------------------------------------------------------------------------------------------------


def test_a_range_of_bytes_and_the_whole_size(tree: Tree) -> None:
    tree.put("a", b"0123456789")
    assert tree.files.read(f"{WORKSPACE}/a") == (b"0123456789", 10)
    assert tree.files.read(f"{WORKSPACE}/a", 3, 4) == (b"3456", 10)
    assert tree.files.read(f"{WORKSPACE}/a", 20) == (b"", 10)
    assert tree.files.read(f"{WORKSPACE}/a", 0, 0) == (b"", 10)


def test_a_sparse_terabyte_costs_only_what_is_asked_for(tree: Tree) -> None:
    with tree.put("huge", b"start").open("r+b") as file:
        file.truncate(1 << 40)
    data, size = tree.files.read(f"{WORKSPACE}/huge", limit=1 << 20)
    assert (len(data), data[:5], size) == (1 << 20, b"start", 1 << 40)


def test_a_descriptor_for_streaming_is_read_only_and_private(tree: Tree) -> None:
    tree.put("a", b"stream")
    fd = tree.files.open_fd(f"{WORKSPACE}/a")
    try:
        assert os.read(fd, 100) == b"stream"
        assert not os.get_inheritable(fd)
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.write(fd, b"x")
    finally:
        os.close(fd)


def test_a_directory_is_not_a_file_and_a_file_is_not_a_directory(tree: Tree) -> None:
    tree.put("file")
    for path in (WORKSPACE, "/mnt/user-data", "/"):
        with pytest.raises(SandboxIsADirectoryError):
            tree.files.read(path)
        with pytest.raises(SandboxIsADirectoryError):
            tree.files.write(path, b"")
    with pytest.raises(SandboxNotADirectoryError):
        tree.files.list(f"{WORKSPACE}/file")
    with pytest.raises(SandboxNotADirectoryError):
        tree.files.write(f"{WORKSPACE}/file/below", b"")


def test_negative_ranges_are_a_mistake_of_the_caller(tree: Tree) -> None:
    tree.put("a")
    with pytest.raises(ValueError, match="bytes"):
        tree.files.read(f"{WORKSPACE}/a", -1)


# writing ------------------------------------------------------------------------------------------------------------


def test_writing_makes_parents_and_replaces_or_appends(tree: Tree) -> None:
    path = f"{OUTPUTS}/a/b/c.txt"
    tree.files.write(path, b"one")
    tree.files.write(path, b"two")
    assert tree.files.read(path) == (b"two", 3)
    tree.files.write(path, b"+three", append=True)
    tree.files.write(f"{OUTPUTS}/a/new", b"x", append=True)
    assert tree.files.read(path) == (b"two+three", 9)
    assert sorted(path.name for path in (tree.root / "user-data/outputs/a/b").iterdir()) == ["c.txt"]


def test_a_replaced_file_keeps_its_mode_and_a_new_one_is_plain(tree: Tree) -> None:
    tree.put("run.sh").chmod(0o750)
    tree.files.write(f"{WORKSPACE}/run.sh", b"#!/bin/sh\n")
    tree.files.write(f"{WORKSPACE}/plain", b"")
    assert stat.S_IMODE((tree.workspace / "run.sh").stat().st_mode) == 0o750
    assert stat.S_IMODE((tree.workspace / "plain").stat().st_mode) == 0o644


def test_a_write_through_a_link_inside_the_sandbox_reaches_its_target(tree: Tree) -> None:
    tree.link("report", f"{OUTPUTS}/report.md")
    tree.files.write(f"{WORKSPACE}/report", b"made")
    assert tree.files.read(f"{OUTPUTS}/report.md")[0] == b"made"
    assert (tree.workspace / "report").is_symlink()


def test_readers_see_the_old_or_the_new_file_but_never_a_part(tree: Tree) -> None:
    path = f"{WORKSPACE}/a"
    versions = [bytes([65 + number]) * 100_000 for number in range(4)]
    tree.files.write(path, versions[0])
    seen: set[bytes] = set()
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen.add(tree.files.read(path)[0])

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(100):
        tree.files.write(path, versions[number % 4])
    stop.set()
    for reader in readers:
        reader.join()
    assert seen <= set(versions)


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "data", owner=False)
    tree.put("a", b"old")
    code = (
        "import resource, signal, sys\nfrom pathlib import Path\n"
        "from deerflow.sandbox.files import SandboxFiles\nfrom deerflow.sandbox.interface import *\n"
        "files = SandboxFiles([Mount(Path(sys.argv[1]), WORKSPACE)])\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: files.write(WORKSPACE + '/a', b'x' * 5000)\n"
        "except SandboxFileError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code, str(tree.workspace)], capture_output=True, text=True)
    assert f"File too large: {WORKSPACE}/a" in run.stdout
    assert [path.name for path in tree.workspace.iterdir()] == ["a"]
    assert (tree.workspace / "a").read_bytes() == b"old"


# looking ------------------------------------------------------------------------------------------------------------


def test_the_way_to_the_mounts_can_be_looked_at(tree: Tree) -> None:
    assert tree.files.list("/", depth=1) == ([Entry("/mnt", "directory")], False)
    names = [entry.path for entry in tree.files.list("/mnt", depth=1)[0]]
    assert names == ["/mnt/skills", "/mnt/user-data"]
    shown = [entry.path for entry in tree.files.list("/mnt/user-data/", depth=1)[0]]
    assert shown == ["/mnt/user-data/outputs", "/mnt/user-data/uploads", "/mnt/user-data/workspace"]
    for path in ("/", "/mnt", "/mnt/user-data", WORKSPACE):
        entry = tree.files.stat(path)
        assert entry is not None and (entry.path, entry.kind) == (path, "directory")


def test_stat_tells_kinds_after_links_and_none_for_nothing(tree: Tree) -> None:
    tree.put("a", b"12345")
    tree.link("to-a", "a")
    tree.link("to-dir", OUTPUTS)
    tree.link("dangling", "nowhere")
    tree.link("out", "/etc/passwd")
    found = tree.files.stat(f"{WORKSPACE}/to-a")
    assert found is not None and (found.kind, found.size, found.path) == ("file", 5, f"{WORKSPACE}/to-a")
    assert found.modified == pytest.approx((tree.workspace / "a").stat().st_mtime)
    directory = tree.files.stat(f"{WORKSPACE}/to-dir")
    assert directory is not None and directory.kind == "directory"
    for nothing in ("dangling", "missing", "missing/x", "a/x"):
        assert tree.files.stat(f"{WORKSPACE}/{nothing}") is None
    with pytest.raises(SandboxPermissionError):
        tree.files.stat(f"{WORKSPACE}/out")


def test_a_listing_goes_as_deep_as_asked_and_does_not_follow_links(tree: Tree) -> None:
    tree.put("b/c/d/e")
    tree.put("a")
    tree.link("l", "b")
    entries, cut = tree.files.list(WORKSPACE, depth=2)
    assert [(entry.path.removeprefix(WORKSPACE), entry.kind) for entry in entries] == [
        ("/a", "file"),
        ("/b", "directory"),
        ("/b/c", "directory"),
        ("/l", "link"),
    ]
    assert not cut
    assert len(tree.files.list(WORKSPACE, depth=9)[0]) == 6
    assert [entry.path for entry in tree.files.list(f"{WORKSPACE}/l", depth=1)[0]] == [f"{WORKSPACE}/l/c"]


def test_noisy_directories_are_named_but_not_unfolded(tree: Tree) -> None:
    tree.put("node_modules/left-pad/index.js")
    tree.put(".git/HEAD")
    tree.put("build/out.js")
    shown = [entry.path.removeprefix(WORKSPACE + "/") for entry in tree.files.list(WORKSPACE, depth=3)[0]]
    assert shown == [".git", "build", "build/out.js", "node_modules"]
    inside = [entry.path for entry in tree.files.list(f"{WORKSPACE}/node_modules", depth=2)[0]]
    assert inside == [f"{WORKSPACE}/node_modules/left-pad", f"{WORKSPACE}/node_modules/left-pad/index.js"]


def test_a_listing_of_nothing_is_an_error_not_empty(tree: Tree) -> None:
    with pytest.raises(SandboxFileNotFoundError):
        tree.files.list(f"{WORKSPACE}/missing")
    assert tree.files.list(WORKSPACE) == ([], False)


@pytest.mark.nightly
def test_fifty_thousand_entries_are_cut_at_the_cap(tree: Tree) -> None:
    for number in range(50_000):
        (tree.workspace / f"{number:05}").touch()
    entries, cut = tree.files.list(WORKSPACE)
    assert cut and [entry.path for entry in entries[:2]] == [f"{WORKSPACE}/00000", f"{WORKSPACE}/00001"]
    assert len(entries) == 1000
    assert tree.files.list(WORKSPACE, cap=50_000)[1] is False
    assert tree.files.glob(WORKSPACE, "4999?", cap=3) == ([f"{WORKSPACE}/4999{n}" for n in range(3)], True)
    tree.files.remove(f"{WORKSPACE}/00000")
    (tree.workspace / "many").mkdir()
    for number in range(0, 40_000, 2):
        (tree.workspace / f"{number + 1:05}").rename(tree.workspace / f"many/{number}")
    os.chown(tree.workspace / "many", tree.uid, tree.uid)
    tree.files.remove(f"{WORKSPACE}/many")
    assert not (tree.workspace / "many").exists()


def test_odd_names_go_round_and_are_shown_without_tricks(tree: Tree) -> None:
    for name in ODD_NAMES:
        tree.files.write(f"{WORKSPACE}/{name}", name.encode("utf-8", "surrogateescape"))
    entries, _ = tree.files.list(WORKSPACE)
    assert {entry.path.removeprefix(WORKSPACE + "/") for entry in entries} == set(ODD_NAMES)
    for entry in entries:
        data, _ = tree.files.read(entry.path)
        assert data.decode("utf-8", "surrogateescape") == entry.path.removeprefix(WORKSPACE + "/")
    shown = {shown_path(name) for name in ODD_NAMES}
    assert {"new\\nline", "\\xff\\xfe", "\\u202egnp.exe", "tab\\t", "ünï", "sp ace"} <= shown
    assert sorted(tree.files.glob(WORKSPACE, "*")[0]) == sorted(f"{WORKSPACE}/{name}" for name in ODD_NAMES)
    for name in ODD_NAMES:
        tree.files.remove(f"{WORKSPACE}/{name}")
    assert tree.files.list(WORKSPACE) == ([], False)


# deep and hostile trees ---------------------------------------------------------------------------------------------


def test_a_tree_five_thousand_deep_can_be_listed_searched_and_removed(tree: Tree) -> None:
    chain(tree.workspace, 5000)
    assert len(tree.files.list(WORKSPACE)[0]) == 2
    assert tree.files.list(WORKSPACE, depth=5000)[1] is True
    found, cut = tree.files.glob(WORKSPACE, "**", include_dirs=True, cap=10_000)
    assert len(found) > 1000 and cut
    with pytest.raises(SandboxFileError, match="too long"):
        tree.files.read(WORKSPACE + "/d" * 5000 + "/x")
    tree.files.remove(f"{WORKSPACE}/d")
    assert list(tree.workspace.iterdir()) == []


def test_reading_deep_paths_needs_few_descriptors(tree: Tree) -> None:
    chain(tree.workspace, 1500)
    opened: list[int] = []

    def most(action: Callable[[], object]) -> int:
        before = len(open_below(tree.root))
        action()
        opened.append(len(open_below(tree.root)) - before)
        return opened[-1]

    deep = WORKSPACE + "/d" * 1500
    assert most(lambda: tree.files.stat(deep)) <= 4
    assert most(lambda: tree.files.list(deep)) == 0
    assert most(lambda: tree.files.glob(WORKSPACE, "**/x")) == 0
    with pytest.raises(SandboxFileNotFoundError):
        tree.files.read(f"{deep}/x")
    assert most(lambda: tree.files.remove(f"{WORKSPACE}/d")) == 0


def test_a_wide_and_deep_tree_is_removed_whatever_its_modes(tree: Tree) -> None:
    for top in range(5):
        for deep in range(5):
            tree.put(f"t/{top}/{deep}/x/y/file")
    tree.link("t/0/link", tree.root)
    for directory in ("t/1/1/x", "t/2", "t/3/3"):
        (tree.workspace / directory).chmod(0)
    tree.files.remove(f"{WORKSPACE}/t")
    assert list(tree.workspace.iterdir()) == []
    assert tree.secret.exists()


def test_unreadable_directories_are_left_out_of_searches(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        tree = make_tree(tmp_path / "data", owner=True)
        for parent in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
            parent.chmod(0o755)
    else:
        tree = make_tree(tmp_path / "data", owner=False)
    tree.put("open/a.txt")
    tree.put("closed/b.txt")
    (tree.workspace / "closed").chmod(0)
    assert tree.files.glob(WORKSPACE, "**/*.txt") == ([f"{WORKSPACE}/open/a.txt"], False)
    assert [entry.path for entry in tree.files.list(WORKSPACE, depth=2)[0]] == [
        f"{WORKSPACE}/closed",
        f"{WORKSPACE}/open",
        f"{WORKSPACE}/open/a.txt",
    ]
    (tree.workspace / "closed").chmod(0o755)


# mounts -------------------------------------------------------------------------------------------------------------


def test_a_mount_inside_a_mount_covers_what_is_below_it(tmp_path: Path) -> None:
    for name in ("outer/inner", "inner"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "outer/inner/covered").write_text("")
    (tmp_path / "inner/seen.txt").write_text("seen")
    (tmp_path / "outer/link").symlink_to("inner/seen.txt")
    files = SandboxFiles([Mount(tmp_path / "outer", "/mnt/data"), Mount(tmp_path / "inner", "/mnt/data/inner", True)])
    assert files.read("/mnt/data/inner/seen.txt")[0] == b"seen"
    assert files.read("/mnt/data/link")[0] == b"seen"
    assert files.read("/mnt/data/inner/../link")[0] == b"seen"
    assert files.glob("/mnt/data", "**/*") == (["/mnt/data/inner/seen.txt", "/mnt/data/link"], False)
    assert [entry.path for entry in files.list("/mnt/data", depth=2)[0]] == [
        "/mnt/data/inner",
        "/mnt/data/inner/seen.txt",
        "/mnt/data/link",
    ]
    with pytest.raises(SandboxPermissionError):
        files.write("/mnt/data/inner/x", b"")
    with pytest.raises(SandboxPermissionError):
        files.remove("/mnt/data/inner")
    files.write("/mnt/data/x", b"")


def test_a_mount_made_later_is_found_and_closing_is_not_the_end(tmp_path: Path) -> None:
    files = SandboxFiles([Mount(tmp_path / "later", WORKSPACE)])
    with pytest.raises(SandboxFileNotFoundError):
        files.write(f"{WORKSPACE}/a", b"")
    assert files.stat(WORKSPACE) is None
    (tmp_path / "later").mkdir()
    files.write(f"{WORKSPACE}/a", b"A")
    files.close()
    before = len(open_below(tmp_path))
    files.close()
    assert files.read(f"{WORKSPACE}/a")[0] == b"A"
    files.close()
    assert len(open_below(tmp_path)) == before


def test_closing_while_others_work_disturbs_nobody(tree: Tree) -> None:
    tree.put("a", b"A")
    failures: list[Exception] = []
    stop = threading.Event()

    def read() -> None:
        try:
            while not stop.is_set():
                assert tree.files.read(f"{WORKSPACE}/a")[0] == b"A"
        except Exception as error:
            failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for _ in range(2000):
        tree.files.close()
    stop.set()
    for reader in readers:
        reader.join()
    assert failures == []


def test_mounts_must_have_absolute_paths(tmp_path: Path) -> None:
    for path in ("relative", "/mnt/../etc", ""):
        with pytest.raises(ValueError, match="absolute"):
            SandboxFiles([Mount(tmp_path, path)])


def test_skills_can_be_read_but_are_listed_as_they_are(tree: Tree) -> None:
    assert tree.files.read(f"{SKILLS}/SKILL.md") == (b"skill\n", 6)
