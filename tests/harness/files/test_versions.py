from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from deerflow.config import Paths
from deerflow.files import versions as file_versions
from deerflow.files.content import thread_files
from deerflow.files.versions import FileVersions, RunChanges
from deerflow.sandbox.files import SandboxFiles
from deerflow.storage.tables import utc_now

OUT, WORK = "/mnt/user-data/outputs", "/mnt/user-data/workspace"


class Thread:
    def __init__(self, home: Path, files: SandboxFiles, kept: FileVersions) -> None:
        self.data, self.files, self.kept = home / "user-data", files, kept
        self.outputs, self.workspace = self.data / "outputs", self.data / "workspace"

    def run(self, run_id: str = "r", since: datetime | None = None) -> dict[str, str]:
        """What the run that ends now has changed, by name below user-data."""
        noted = self.kept.record_run(self.files, run_id, since=since)
        return told(noted)

    def contents(self, name: str) -> list[bytes]:
        """Of all versions, the newest first."""
        path = f"{OUT}/{name}"
        return [read(self.kept.open(path, version.version)) for version in self.kept.versions(path)]


def told(noted: RunChanges | None) -> dict[str, str]:
    return {} if noted is None else {file.path.removeprefix("/mnt/user-data/"): file.change for file in noted.files}


def read(fd: int) -> bytes:
    with os.fdopen(fd, "rb") as file:
        return file.read()


@pytest.fixture
def thread(tmp_path: Path) -> Iterator[Thread]:
    paths = Paths(tmp_path)
    home = paths.ensure_thread_dirs("t1", "anna")
    with thread_files(paths, "t1", "anna") as files:
        yield Thread(home, files, FileVersions(home / "versions"))


def stored(thread: Thread) -> list[Path]:
    return list((thread.data.parent / "versions" / "blobs").iterdir())


def test_a_run_is_told_what_it_created_modified_and_deleted(thread: Thread):
    (thread.outputs / "a.md").write_text("a")
    (thread.workspace / "w.py").write_text("w")
    assert thread.run("r1") == {"outputs/a.md": "created", "workspace/w.py": "created"}
    (thread.outputs / "a.md").write_text("aa")
    (thread.workspace / "w.py").unlink()
    (thread.outputs / "b.md").write_text("b")
    assert thread.run("r2") == {"outputs/a.md": "modified", "outputs/b.md": "created", "workspace/w.py": "deleted"}
    assert thread.run("r3") == {}
    assert [noted.run_id for noted in thread.kept.changes()] == ["r2", "r1"]


def test_every_version_of_a_delivered_file_can_be_read_even_after_it_was_deleted(thread: Thread):
    for text in ("one", "two", "three"):
        (thread.outputs / "a.md").write_text(text)
        thread.run(text)
    (thread.outputs / "a.md").unlink()
    thread.run("gone")
    assert thread.contents("a.md") == [b"three", b"two", b"one"]
    assert [version.run_id for version in thread.kept.versions(f"{OUT}/a.md")] == ["three", "two", "one"]
    with pytest.raises(FileNotFoundError):
        thread.kept.open(f"{OUT}/a.md", 4)


def test_a_file_that_was_only_touched_has_not_changed(thread: Thread):
    (thread.outputs / "a.md").write_text("a")
    thread.run()
    os.utime(thread.outputs / "a.md", (1, 1))
    assert thread.run() == {}
    assert len(thread.contents("a.md")) == 1


def test_what_was_there_before_anything_was_kept_is_not_said_to_be_the_runs(thread: Thread):
    (thread.outputs / "old.md").write_text("old")
    unpacked = thread.outputs / "unpacked.md"
    unpacked.write_text("new, with the time of its archive")
    os.utime(unpacked, (1, 1))
    later = utc_now() + timedelta(hours=1)
    assert thread.run(since=later) == {}
    assert thread.contents("old.md") == [b"old"]
    assert thread.kept.versions(f"{OUT}/old.md")[0].run_id is None


def test_a_first_run_that_unpacks_old_files_is_told_them(thread: Thread):
    unpacked = thread.outputs / "unpacked.md"
    unpacked.write_text("new, with the time of its archive")
    os.utime(unpacked, (1, 1))
    assert thread.run(since=datetime(2020, 1, 1, tzinfo=UTC)) == {"outputs/unpacked.md": "created"}


def test_no_link_is_followed_and_no_pipe_is_waited_for(thread: Thread, tmp_path: Path):
    (tmp_path / "secret").write_text("SECRET")
    (thread.outputs / "host").symlink_to(tmp_path / "secret")
    (thread.outputs / "dir").symlink_to("/etc")
    (thread.outputs / "inside").symlink_to("/mnt/user-data/workspace/w.py")
    (thread.workspace / "w.py").write_text("w")
    os.mkfifo(thread.outputs / "pipe")
    assert thread.run() == {"workspace/w.py": "created"}
    assert stored(thread) == []


def test_a_link_that_takes_a_files_place_after_it_was_listed_gives_no_foreign_content(
    thread: Thread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "secret").write_text("SECRET")
    (thread.outputs / "a.md").write_text("a")
    open_fd = thread.files.open_fd

    def swapped(path: str, *, below: str = "/") -> int:
        (thread.outputs / "a.md").unlink()
        (thread.outputs / "a.md").symlink_to(tmp_path / "secret")
        return open_fd(path, below=below)

    monkeypatch.setattr(thread.files, "open_fd", swapped)
    thread.run()
    assert stored(thread) == []


def test_the_store_is_bounded_and_gives_up_what_was_replaced_first(thread: Thread, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(file_versions, "MAX_STORED_BYTES", 30)
    (thread.outputs / "keep").write_text("k" * 10)
    thread.run()
    for letter in "abcd":
        (thread.outputs / "a").write_text(letter * 10)
        thread.run()
    assert thread.contents("keep") == [b"k" * 10]
    assert thread.contents("a") == [b"d" * 10, b"c" * 10]
    assert sum(file.stat().st_size for file in stored(thread)) == 30
    for number in range(10):
        (thread.outputs / f"more{number}").write_text(str(number) * 10)
    thread.run()
    assert len(stored(thread)) == 3


@pytest.mark.parametrize(
    ("limit", "value", "shown"),
    [
        ("MAX_VERSIONS", 2, lambda thread: len(thread.contents("a")) == 2),
        ("MAX_RUNS", 2, lambda thread: len(thread.kept.changes()) == 2),
        ("MAX_CHANGES", 0, lambda thread: thread.kept.changes()[0].truncated),
        ("MAX_VERSION_BYTES", 0, lambda thread: not stored(thread) and len(thread.kept.changes()) == 4),
    ],
)
def test_limits_hold(
    thread: Thread, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, shown: Callable[[Thread], bool]
):
    monkeypatch.setattr(file_versions, limit, value)
    for text in ("1", "22", "333", "4444"):
        (thread.outputs / "a").write_text(text)
        thread.run(text)
    assert shown(thread)


def test_of_a_directory_that_is_too_large_nothing_is_said_to_be_deleted(
    thread: Thread, monkeypatch: pytest.MonkeyPatch
):
    for number in range(5):
        (thread.outputs / f"{number}").write_text("x")
    assert len(thread.run()) == 5
    monkeypatch.setattr(file_versions, "MAX_FILES", 3)
    assert thread.run() == {}


def test_an_edit_is_a_version_of_a_person_and_not_the_next_runs(thread: Thread):
    (thread.outputs / "a.md").write_text("agent")
    thread.run("r1")
    (thread.outputs / "a.md").write_text("background")
    thread.kept.record_edit(thread.files, f"{OUT}/a.md")
    (thread.outputs / "a.md").write_text("person")
    thread.kept.record_edit(thread.files, f"{OUT}/a.md")
    assert thread.contents("a.md") == [b"person", b"background", b"agent"]
    assert [version.run_id for version in thread.kept.versions(f"{OUT}/a.md")] == [None, None, "r1"]
    assert thread.run("r2") == {}


def test_a_chat_without_files_leaves_nothing_behind(thread: Thread):
    assert thread.run() == {}
    assert not (thread.data.parent / "versions").exists()


def test_what_cannot_be_read_any_more_is_begun_anew(thread: Thread):
    (thread.outputs / "a.md").write_text("a")
    thread.run()
    (thread.data.parent / "versions" / "manifest.json").write_bytes(b"{\0")
    assert thread.kept.changes() == []
    assert thread.run() == {"outputs/a.md": "created"}


def test_names_that_are_no_text_are_left_out(thread: Thread):
    (thread.outputs / os.fsdecode(b"\xff")).write_text("x")
    (thread.outputs / "文件 1.md").write_text("x")
    assert thread.run() == {"outputs/文件 1.md": "created"}


def test_a_thread_that_is_gone_is_not_made_anew(tmp_path: Path):
    paths = Paths(tmp_path)
    paths.ensure_thread_dirs("t1", "anna")
    with thread_files(paths, "t1", "anna") as files, closing(files):
        (paths.outputs("t1", "anna") / "a").write_text("a")
        files.list(OUT)
        kept = FileVersions(paths.thread_dir("t1", "anna") / "versions")
        paths.remove(paths.thread_dir("t1", "anna"))
        assert kept.record_run(files, "r", since=None) is None
        with pytest.raises(FileNotFoundError):
            FileVersions(tmp_path / "none" / "versions").record_run(_full(tmp_path), "r", since=None)
    assert not paths.thread_dir("t1", "anna").exists()


def _full(home: Path) -> SandboxFiles:
    paths = Paths(home / "other")
    paths.ensure_thread_dirs("t", "u")
    (paths.outputs("t", "u") / "a").write_text("a")
    with thread_files(paths, "t", "u") as files:
        return files
