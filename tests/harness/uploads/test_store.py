from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from deerflow.uploads import (
    Outline,
    PathTraversalError,
    delete_upload,
    extract_outline,
    list_uploads,
    normalize_filename,
    save_uploads,
)


@pytest.mark.parametrize("name", ["", ".", "..", "a/..", "a\\b", "nul\0", "x" * 256])
def test_unusable_names_are_refused(name: str):
    with pytest.raises(ValueError):
        normalize_filename(name)


def test_directories_in_a_name_are_dropped():
    assert normalize_filename("../../etc/passwd") == "passwd"
    assert normalize_filename("報告 1.csv") == "報告 1.csv"


@pytest.fixture
def uploads(tmp_path: Path) -> Path:
    folder = tmp_path / "user-data" / "uploads"
    folder.mkdir(parents=True)
    return folder


def saved(uploads: Path, *files: tuple[str, bytes]) -> list[str]:
    return [upload.filename for upload in save_uploads([(name, io.BytesIO(data)) for name, data in files], uploads)]


def test_a_second_file_of_the_same_name_never_overwrites_the_first(uploads: Path):
    names = saved(uploads, *(("data.tar.gz", str(n).encode()) for n in range(3)))
    assert names == ["data.tar.gz", "data.tar_1.gz", "data.tar_2.gz"]
    assert (uploads / "data.tar.gz").read_text() == "0"


def test_a_planted_link_is_never_written_through(tmp_path: Path, uploads: Path):
    victim = tmp_path / "victim"
    victim.write_text("safe")
    (uploads / "x.txt").symlink_to(victim)
    (uploads / "y.txt").symlink_to(tmp_path / "not-there")
    assert saved(uploads, ("x.txt", b"evil"), ("y.txt", b"evil")) == ["x_1.txt", "y_1.txt"]
    assert victim.read_text() == "safe" and not (tmp_path / "not-there").exists()


def test_the_longest_name_still_finds_a_free_one(uploads: Path):
    name = "報" * 83 + ".csv"
    first, second = saved(uploads, (name, b""), (name, b""))
    assert first == name and second.endswith("_1.csv") and len(second.encode()) <= 255


def test_if_one_copy_fails_nothing_of_any_is_left_behind(tmp_path: Path, uploads: Path):
    class Broken(io.BytesIO):
        def read(self, *_: object) -> bytes:
            raise OSError("gone")

    with pytest.raises(OSError):
        save_uploads([("whole", io.BytesIO(b"1")), ("broken", Broken())], uploads)
    assert [*uploads.iterdir(), *(tmp_path / "incoming").iterdir()] == []


def test_only_regular_files_are_listed_and_a_missing_directory_is_empty(tmp_path: Path):
    (tmp_path / "b").write_text("22")
    (tmp_path / "a").write_text("1")
    (tmp_path / "d").mkdir()
    (tmp_path / "l").symlink_to(tmp_path / "a")
    assert [(u.filename, u.size, u.path) for u in list_uploads(tmp_path)] == [
        ("a", 1, "/mnt/user-data/uploads/a"),
        ("b", 2, "/mnt/user-data/uploads/b"),
    ]
    assert list_uploads(tmp_path / "none") == [] and not (tmp_path / "none").exists()


def test_deleting_never_leaves_the_directory(tmp_path: Path):
    outside = tmp_path / "outside"
    outside.write_text("kept")
    uploads = tmp_path / "u"
    uploads.mkdir()
    (uploads / "l").symlink_to(outside)
    for name in ("../outside", "l"):
        with pytest.raises(PathTraversalError):
            delete_upload(uploads, name)
    with pytest.raises(FileNotFoundError):
        delete_upload(uploads, "nothing")
    assert outside.read_text() == "kept"


def test_deleting_refuses_the_directory_above(tmp_path: Path):
    with pytest.raises(PathTraversalError):
        delete_upload(tmp_path, "..")


def test_a_file_that_goes_away_while_uploads_are_listed_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a").write_text("1")
    (tmp_path / "gone").write_text("1")
    lstat = Path.lstat

    def racing(path: Path):
        if path.name == "gone":
            path.unlink(missing_ok=True)
        return lstat(path)

    monkeypatch.setattr(Path, "lstat", racing)
    assert [upload.filename for upload in list_uploads(tmp_path)] == ["a"]


def test_an_outline_is_never_read_through_a_link_or_from_a_pipe(tmp_path: Path):
    (tmp_path / "host.md").write_text("# Secret of the host\n")
    (tmp_path / "link.md").symlink_to(tmp_path / "host.md")
    os.mkfifo(tmp_path / "pipe.md")
    assert extract_outline(tmp_path / "host.md").entries == (("Secret of the host", 1),)
    assert extract_outline(tmp_path / "link.md") == extract_outline(tmp_path / "pipe.md") == Outline()


def test_what_could_mislead_leaves_a_name_when_the_file_is_stored():
    assert normalize_filename("a<b>\"c'\u202efdp.exe\n.txt") == "a_b__c__fdp.exe_.txt"
    assert normalize_filename("Übersicht (1) – 報告.csv") == "Übersicht (1) – 報告.csv"
