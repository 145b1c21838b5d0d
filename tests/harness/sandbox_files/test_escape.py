"""Whatever the sandbox plants, the file tools stay inside its directories."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from deerflow.sandbox.files import SandboxFiles
from deerflow.sandbox.files import tree as files_tree
from deerflow.sandbox.interface import (
    OUTPUTS,
    SKILLS,
    WORKSPACE,
    Mount,
    SandboxFileError,
    SandboxFileNotFoundError,
    SandboxPermissionError,
)

from .conftest import SANDBOX_UID, SECRET, Tree, make_tree

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can lend the rights of another user")


@pytest.mark.parametrize("target", ["/etc/shadow", "../../../secret.txt", "/proc/self/environ", "../../..", "/"])
def test_a_link_out_of_the_sandbox_yields_no_bytes(tree: Tree, target: str) -> None:
    tree.link("trap", target)
    for path in (f"{WORKSPACE}/trap", f"{WORKSPACE}/trap/secret.txt", f"{WORKSPACE}/trap/etc/passwd"):
        with pytest.raises(SandboxFileError):
            tree.files.read(path)


def test_a_link_by_host_path_to_the_own_directory_leads_nowhere(tree: Tree) -> None:
    tree.put("a.txt")
    tree.link("by-host-path", tree.workspace / "a.txt")
    with pytest.raises(SandboxPermissionError):
        tree.files.read(f"{WORKSPACE}/by-host-path")


def test_links_inside_the_sandbox_work(tree: Tree) -> None:
    tree.put("dir/a.txt", b"A")
    tree.link("absolute", f"{WORKSPACE}/dir/a.txt")
    tree.link("relative", "dir/a.txt")
    tree.link("dir/up", "../dir/a.txt")
    tree.link("directory", f"{WORKSPACE}/dir")
    tree.link("skills", SKILLS)
    tree.link("over-the-fence", "../outputs/b.txt")
    tree.files.write(f"{OUTPUTS}/b.txt", b"B")
    for name in ("absolute", "relative", "dir/up", "directory/a.txt", "directory/../dir/up"):
        assert tree.files.read(f"{WORKSPACE}/{name}") == (b"A", 1)
    assert tree.files.read(f"{WORKSPACE}/over-the-fence") == (b"B", 1)
    assert tree.files.read(f"{WORKSPACE}/skills/SKILL.md") == (b"skill\n", 6)


def test_dots_after_a_link_climb_from_where_it_leads(tree: Tree) -> None:
    tree.put("deep/er/x", b"")
    tree.put("deep/here", b"right")
    tree.put("here", b"wrong")
    tree.link("link", "deep/er")
    assert tree.files.read(f"{WORKSPACE}/link/../here")[0] == b"right"


def test_a_loop_of_links_is_an_error(tree: Tree) -> None:
    tree.link("a", "b")
    tree.link("b", "a")
    tree.link("self", "self/self")
    for name in ("a", "self", "a/x"):
        with pytest.raises(SandboxFileError, match="links"):
            tree.files.read(f"{WORKSPACE}/{name}")


def test_a_link_bomb_ends_soon(tree: Tree) -> None:
    for number in range(30):
        tree.link(f"l{number}", "/".join([f"l{number + 1}"] * 2))
    tree.put("x/y")
    with pytest.raises(SandboxFileError):
        tree.files.read(f"{WORKSPACE}/l0/x/y")
    assert tree.files.read(WORKSPACE + "/x/.." * 600 + "/x/y")[0] == b"content\n"
    tree.put("a/" * 200 + "y")
    with pytest.raises(SandboxFileError, match="winds"):
        tree.files.read(WORKSPACE + "/a" * 200 + "/../a" * 600)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/",
        "/mnt",
        "/mnt/user-data",
        "/mnt/user-data/../../etc/passwd",
        "/mnt/user-data/other/x",
        WORKSPACE + "/../../../etc/passwd",
        WORKSPACE + "-evil/x",
        "/proc/1/environ",
        "/mnt/skillsx/a",
    ],
)
def test_paths_outside_of_the_mounts_are_refused(tree: Tree, path: str) -> None:
    with pytest.raises(SandboxFileError) as refused:
        tree.files.read(path)
    assert str(tree.root) not in str(refused.value)
    with pytest.raises(SandboxFileError):
        tree.files.write(path, b"x")


@pytest.mark.parametrize(
    "path", ["", "relative", "~/x", "file:///etc/passwd", WORKSPACE + "/a\0b", WORKSPACE + "/\ud800"]
)
def test_what_is_no_absolute_path_is_refused(tree: Tree, path: str) -> None:
    with pytest.raises(SandboxFileError):
        tree.files.read(path)


def test_a_planted_link_does_not_redirect_a_write(tree: Tree) -> None:
    tree.link("out", tree.secret)
    tree.link("outdir", tree.root)
    tree.link("skill", f"{SKILLS}/SKILL.md")
    for name in ("out", "outdir/secret.txt", "outdir/new.txt", "skill"):
        for append in (False, True):
            with pytest.raises(SandboxPermissionError):
                tree.files.write(f"{WORKSPACE}/{name}", b"pwned", append=append)
    assert tree.secret.read_bytes() == SECRET
    assert not (tree.root / "new.txt").exists()
    assert (tree.root / "skills/SKILL.md").read_text() == "skill\n"


def test_removing_a_link_leaves_its_target(tree: Tree) -> None:
    tree.put("dir/inner/keep.txt")
    tree.link("dir/out", tree.root)
    tree.link("inside", "dir/inner")
    tree.files.remove(f"{WORKSPACE}/inside")
    assert (tree.workspace / "dir/inner/keep.txt").exists()
    tree.files.remove(f"{WORKSPACE}/dir")
    assert tree.secret.exists()
    assert list(tree.workspace.iterdir()) == []


def test_removing_what_someone_keeps_filling_comes_to_an_end(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.put("filled/dir/file")
    unlinked = files_tree._unlinked

    def refilled(directory: int, name: str) -> bool:
        removed = unlinked(directory, name)
        if name == "file":
            os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=directory))
        return removed

    monkeypatch.setattr(files_tree, "_unlinked", refilled)
    with pytest.raises(SandboxFileError, match="keeps writing"):
        tree.files.remove(f"{WORKSPACE}/filled")


@pytest.mark.parametrize(
    "path", [WORKSPACE, "/mnt/user-data", "/", "/mnt", SKILLS, f"{SKILLS}/SKILL.md", WORKSPACE + "/../workspace"]
)
def test_mounts_and_read_only_files_cannot_be_removed(tree: Tree, path: str) -> None:
    with pytest.raises(SandboxPermissionError):
        tree.files.remove(path)
    assert (tree.root / "skills/SKILL.md").exists()


def test_read_only_mounts_cannot_be_written(tree: Tree) -> None:
    for path in (f"{SKILLS}/SKILL.md", f"{SKILLS}/new/file.txt"):
        with pytest.raises(SandboxPermissionError, match="Read-only"):
            tree.files.write(path, b"x")
    assert sorted(path.name for path in (tree.root / "skills").iterdir()) == ["SKILL.md"]


def test_pipes_sockets_and_devices_are_refused_without_waiting(tree: Tree) -> None:
    os.mkfifo(tree.workspace / "fifo", 0o666)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tree.workspace / "socket"))
        names = ["fifo", "socket"]
        if os.geteuid() == 0:
            os.mknod(tree.workspace / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
            names.append("zero")
        for name in names:
            with pytest.raises(SandboxFileError, match="Not a regular file"):
                tree.files.read(f"{WORKSPACE}/{name}")
            for append in (False, True):
                with pytest.raises(SandboxFileError, match="Not a regular file"):
                    tree.files.write(f"{WORKSPACE}/{name}", b"x", append=append)
            entry = tree.files.stat(f"{WORKSPACE}/{name}")
            assert entry is not None and entry.kind == "other"


def test_a_file_that_becomes_a_pipe_while_it_is_opened_does_not_hang(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "data", owner=False)
    spare = tree.workspace / "spare"
    os.mkfifo(spare)
    tree.put("victim")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            os.rename(tree.workspace / "victim", tree.workspace / "held")
            os.rename(spare, tree.workspace / "victim")
            os.rename(tree.workspace / "victim", spare)
            os.rename(tree.workspace / "held", tree.workspace / "victim")

    swapping = threading.Thread(target=swap)
    swapping.start()
    outcomes: set[str] = set()
    end = time.monotonic() + 1
    try:
        while time.monotonic() < end:
            try:
                outcomes.add(tree.files.read(f"{WORKSPACE}/victim")[0].decode())
            except SandboxFileError as error:
                outcomes.add(str(error).partition(":")[0])
    finally:
        stop.set()
        swapping.join()
    assert "content\n" in outcomes
    assert outcomes <= {"content\n", "Not a regular file", "No such file or directory"}


SWAPPER = """
import ctypes, os, sys
work, outside = sys.argv[1:]
os.chdir(work)
rename = ctypes.CDLL(None).renameat2
names = (("d", outside), ("f", outside + "/secret.txt"), ("up", "../../../"))
for name, target in names:
    os.symlink(target, name + ".link")
while True:
    # RENAME_EXCHANGE: by turns the sandbox's own, and a link to what lies outside, without a gap.
    for name, _ in names:
        rename(-100, name.encode(), -100, (name + ".link").encode(), 2)
"""


@pytest.mark.parametrize("kind", ["read", "write"])
def test_swapping_links_under_the_walk_never_leads_outside(tmp_path: Path, kind: str) -> None:
    # With root's own rights, so that nothing but the walk itself protects the secret.
    tree = make_tree(tmp_path / "data", owner=False)
    tree.put("d/secret.txt", b"harmless")
    tree.put("f", b"harmless")
    tree.put("up/secret.txt", b"harmless")
    swapper = subprocess.Popen([sys.executable, "-c", SWAPPER, str(tree.workspace), str(tree.root)])
    seen: set[bytes] = set()
    errors = 0
    before = sorted(path.name for path in tree.root.iterdir())
    end = time.monotonic() + 3
    try:
        while time.monotonic() < end:
            for name in ("d/secret.txt", "f", "up/secret.txt", "d/../f"):
                try:
                    if kind == "read":
                        seen.add(tree.files.read(f"{WORKSPACE}/{name}")[0])
                    else:
                        tree.files.write(f"{WORKSPACE}/{name}", b"harmless")
                        tree.files.write(f"{WORKSPACE}/{name}", b"", append=True)
                except SandboxFileError:
                    errors += 1
    finally:
        swapper.kill()
        swapper.wait()
    assert errors > 0, "the race never happened"
    assert not [data for data in seen if SECRET in data]
    assert kind == "write" or b"harmless" in seen
    assert tree.secret.read_bytes() == SECRET
    assert sorted(path.name for path in tree.root.iterdir()) == before


@needs_root
def test_as_root_even_an_open_door_shows_only_what_the_sandbox_user_may_see(tmp_path: Path) -> None:
    # The mount itself is wrong here: only the lent rights protect.
    tmp_path.chmod(0o755)
    private = tmp_path / "root-only"
    private.write_bytes(SECRET)
    private.chmod(0o640)
    (tmp_path / "root-dir").mkdir(mode=0o700)
    files = SandboxFiles([Mount(tmp_path, "/mnt/wrong")], owner=SANDBOX_UID)
    with pytest.raises(SandboxPermissionError):
        files.read("/mnt/wrong/root-only")
    with pytest.raises(SandboxPermissionError):
        files.write("/mnt/wrong/new", b"x")
    with pytest.raises(SandboxPermissionError):
        files.list("/mnt/wrong/root-dir")
    assert private.read_bytes() == SECRET
    assert os.listdir(tmp_path / "root-dir") == []


def thread_status(field: str) -> list[str]:
    lines = Path("/proc/thread-self/status").read_text().splitlines()
    return next(line.split()[1:] for line in lines if line.startswith(field))


@needs_root
def test_lent_rights_are_given_back_whatever_happens(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    private = tmp_path / "root-only"
    private.write_bytes(SECRET)
    private.chmod(0o600)
    files = SandboxFiles([Mount(tmp_path, "/mnt/wrong")], owner=SANDBOX_UID)
    groups = thread_status("Groups:")
    for attempt in (
        lambda: files.read("/mnt/wrong/root-only"),
        lambda: files.glob("/mnt/wrong", ".."),
        lambda: files.read("/nope"),
    ):
        with pytest.raises(SandboxFileError):
            attempt()
        assert private.read_bytes() == SECRET
    assert thread_status("Uid:") == thread_status("Gid:") == ["0"] * 4
    assert thread_status("Groups:") == groups


@needs_root
def test_what_is_written_for_the_sandbox_belongs_to_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    tree = make_tree(tmp_path / "data", owner=True)
    tmp_path.parent.chmod(0o755)
    tree.files.write(f"{WORKSPACE}/new/dir/file.txt", b"x")
    tree.files.write(f"{WORKSPACE}/new/log.txt", b"x", append=True)
    for path in ("new", "new/dir", "new/dir/file.txt", "new/log.txt"):
        info = (tree.workspace / path).stat()
        assert (info.st_uid, info.st_gid) == (SANDBOX_UID, SANDBOX_UID)


def test_only_root_may_act_for_another_user(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        code = (
            "import os, sys; os.setuid(65534)\n"
            "from deerflow.sandbox.files import SandboxFiles\n"
            "try: SandboxFiles([], owner=1)\n"
            "except ValueError: sys.exit(7)"
        )
        assert subprocess.run([sys.executable, "-c", "import deerflow.sandbox.files\n" + code]).returncode == 7
    else:
        with pytest.raises(ValueError, match="Only root"):
            SandboxFiles([], owner=os.geteuid() + 1)


def test_errors_never_show_host_paths(tree: Tree) -> None:
    tree.put("file.txt")
    tree.link("out", tree.secret)
    (tree.workspace / "locked").mkdir(mode=0)
    messages: list[str] = []
    for action in (
        lambda: tree.files.read(f"{WORKSPACE}/missing/x"),
        lambda: tree.files.read(f"{WORKSPACE}/file.txt/x"),
        lambda: tree.files.read(f"{WORKSPACE}/out"),
        lambda: tree.files.read(WORKSPACE),
        lambda: tree.files.write(f"{SKILLS}/x", b""),
        lambda: tree.files.list(f"{WORKSPACE}/file.txt"),
        lambda: tree.files.remove(f"{WORKSPACE}/missing"),
        lambda: tree.files.glob(f"{WORKSPACE}/missing", "*"),
        lambda: tree.files.read(WORKSPACE + "/a" * 3000),
        lambda: tree.files.read(WORKSPACE + "/" + "n" * 300),
    ):
        with pytest.raises(SandboxFileError) as raised:
            action()
        assert not isinstance(raised.value.__cause__, OSError)
        messages.append(str(raised.value))
    assert not [message for message in messages if str(tree.root) in message or "Errno" in message]
    assert all("/mnt/" in message for message in messages)


def test_a_missing_file_is_told_apart_from_a_forbidden_one(tree: Tree) -> None:
    with pytest.raises(SandboxFileNotFoundError):
        tree.files.read(f"{WORKSPACE}/missing")
    with pytest.raises(SandboxPermissionError):
        tree.files.read("/etc/passwd")
