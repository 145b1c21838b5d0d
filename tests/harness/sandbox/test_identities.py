"""Uids of threads, and the handing over of their directories."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deerflow.sandbox.isolation.namespaces import BwrapSandboxProvider
from deerflow.sandbox.isolation.plan import adopt, thread_uid

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
UID = 231_313


def test_a_thread_keeps_its_uid(tmp_path: Path) -> None:
    database = tmp_path / "ids.db"
    assert [thread_uid(database, owner, 300_000) for owner in ("u:a", "u:b", "u:a")] == [300_000, 300_001, 300_000]
    assert thread_uid(database, "u:b", 300_000) == 300_001


def test_two_threads_never_get_one_uid_even_at_once(tmp_path: Path) -> None:
    owners = [f"u:{number}" for number in range(30)]
    with ThreadPoolExecutor(8) as pool:
        uids = list(pool.map(lambda owner: thread_uid(tmp_path / "ids.db", owner), owners))
    assert len(set(uids)) == len(owners)
    assert min(uids) == 200_000


def test_two_installations_share_no_uid(tmp_path: Path) -> None:
    starts = {BwrapSandboxProvider(tmp_path / name)._uid("u:a") for name in ("one", "two")}
    assert len(starts) == 2
    assert all(200_000 <= start < 1_000_000_000 for start in starts)


@as_root
def test_everything_below_is_handed_over_and_no_link_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("x")
    thread = tmp_path / "thread"
    (thread / "a/b").mkdir(parents=True)
    (thread / "a/b/file").write_text("x")
    (thread / "link").symlink_to(outside)
    (thread / "directory").symlink_to(tmp_path)
    adopt(thread, UID)
    for path in (thread, thread / "a", thread / "a/b", thread / "a/b/file"):
        assert path.stat().st_uid == UID, path
    assert outside.stat().st_uid == 0
    assert tmp_path.stat().st_uid == 0


@as_root
def test_a_file_with_a_second_name_elsewhere_is_not_given_away(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    (tmp_path / "thread").mkdir()
    os.link(secret, tmp_path / "thread/innocent")
    adopt(tmp_path / "thread", UID)
    assert secret.stat().st_uid == 0


@as_root
def test_a_link_in_place_of_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(OSError):
        adopt(tmp_path / "link", UID)
    assert (tmp_path / "real").stat().st_uid == 0


@as_root
def test_others_may_not_look_into_a_threads_directory(tmp_path: Path) -> None:
    (tmp_path / "thread").mkdir(mode=0o777)
    adopt(tmp_path / "thread", UID)
    assert (tmp_path / "thread").stat().st_mode & 0o777 == 0o700
