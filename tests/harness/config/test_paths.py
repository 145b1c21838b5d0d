from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from deerflow.config import Paths, project_root

BAD_IDS = ["", ".", "..", "a/b", "a\\b", "../x", "a b", "é", "a\n", "\0", "x" * 129]


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path / "base")


def test_the_base_is_the_argument_else_the_variable_else_the_project(tmp_path: Path) -> None:
    environ = {"DEER_FLOW_HOME": "/srv/home"}
    assert Paths(tmp_path, environ=environ).base_dir == tmp_path
    assert Paths(environ=environ).base_dir == Path("/srv/home")
    assert Paths(environ={"DEER_FLOW_HOME": "rel"}, cwd=tmp_path).base_dir == tmp_path / "rel"
    assert Paths(environ={}, cwd=tmp_path).base_dir == project_root(tmp_path) / ".deer-flow"
    assert Paths(environ={"DEER_FLOW_HOME": "~/x"}).base_dir == Path.home() / "x"


def test_the_layout_is_the_one_that_users_have(paths: Paths) -> None:
    base = paths.base_dir
    user = base / "users/u/threads/t"
    assert paths.thread_dir("t", "u") == user
    assert paths.workspace("t", "u") == user / "user-data/workspace"
    assert paths.uploads("t", "u") == user / "user-data/uploads"
    assert paths.outputs("t", "u") == user / "user-data/outputs"
    assert paths.acp("t", "u") == user / "acp-workspace"
    assert (paths.home("t", "u"), paths.tmp("t", "u")) == (user / "home", user / "tmp")
    assert paths.user_memory_file("u") == base / "users/u/memory.json"
    assert paths.agent_memory_file("My-Agent", "u") == base / "users/u/agents/my-agent/memory.json"
    assert paths.agent_memory_file("My-Agent") == base / "agents/my-agent/memory.json"
    assert paths.agent_dir("ABC") == base / "agents/abc"
    assert (paths.memory_file, paths.user_md_file, paths.soul_file) == (
        base / "memory.json",
        base / "USER.md",
        base / "SOUL.md",
    )
    assert (paths.data_dir, paths.tools_dir) == (base / "data", base / "tools")


def test_a_thread_is_deleted_alone(paths: Paths) -> None:
    paths.ensure_thread_dirs("t", "other")
    paths.ensure_thread_dirs("t", "u")
    (paths.outputs("t", "other") / "a").write_text("a")
    paths.remove(paths.thread_dir("t", "u"))
    assert (paths.outputs("t", "other") / "a").exists()
    assert not paths.thread_dir("t", "u").exists()


@pytest.mark.parametrize("bad", BAD_IDS)
def test_an_id_that_is_no_plain_name_is_refused(paths: Paths, bad: str) -> None:
    for use in (
        lambda: paths.thread_dir(bad, "u"),
        lambda: paths.thread_dir("t", bad),
        lambda: paths.agent_dir(bad),
        lambda: paths.user_memory_file(bad),
        lambda: paths.agent_memory_file("a", bad),
        lambda: paths.ensure_thread_dirs(bad, "u"),
        lambda: paths.remove(paths.thread_dir(bad, "u")),
    ):
        with pytest.raises(ValueError, match="Invalid"):
            use()


def test_directories_are_passable_on_the_way_and_private_at_the_end(paths: Paths) -> None:
    umask = os.umask(0o077)
    try:
        assert paths.ensure_thread_dirs("t", "u") == paths.thread_dir("t", "u")
    finally:
        os.umask(umask)

    def mode(path: Path) -> int:
        return path.stat().st_mode & 0o777

    way = paths.user_data("t", "u")
    while way != paths.base_dir.parent:
        assert mode(way) == 0o711, way
        way = way.parent
    for directory in (paths.workspace, paths.uploads, paths.outputs, paths.home, paths.tmp):
        assert mode(directory("t", "u")) == 0o700
    assert mode(paths.acp("t", "u")) == 0o755


def test_existing_directories_keep_their_modes(paths: Paths) -> None:
    paths.ensure_thread_dirs("t", "u")
    paths.workspace("t", "u").chmod(0o770)
    paths.ensure_thread_dirs("t", "u")
    assert paths.workspace("t", "u").stat().st_mode & 0o777 == 0o770


def test_deleting_follows_no_link_and_may_be_repeated(paths: Paths, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")
    paths.ensure_thread_dirs("t", "u")
    (paths.workspace("t", "u") / "link").symlink_to(precious)
    for _ in range(2):
        paths.remove(paths.thread_dir("t", "u"))
    assert (precious / "file").exists()
    assert not paths.thread_dir("t", "u").exists()


def test_forty_deletions_beside_a_writer_leave_nothing(paths: Paths) -> None:
    """The writer is inside, as a command in a sandbox is, and goes on for a while."""
    write = "n=0; while [ $n -lt 20 ]; do n=$((n+1)); mkdir -p d$n/e; echo x > d$n/e/f; done 2>/dev/null"
    for number in range(40):
        paths.ensure_thread_dirs(str(number), "u")
        workspace = paths.workspace(str(number), "u")
        with subprocess.Popen(["sh", "-c", f"echo; {write}"], cwd=workspace, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            paths.remove(paths.thread_dir(str(number), "u"))
            assert not paths.thread_dir(str(number), "u").exists()
    assert [*paths.deleted_dir.iterdir()] == [*(paths.user_dir("u") / "threads").iterdir()] == []


def test_what_its_owner_has_closed_is_removed(paths: Paths) -> None:
    paths.ensure_thread_dirs("t", "u")
    closed = paths.workspace("t", "u") / "closed"
    (closed / "deep").mkdir(parents=True)
    (closed / "deep").chmod(0)
    closed.chmod(0)
    paths.remove(paths.thread_dir("t", "u"))
    assert [*paths.deleted_dir.iterdir()] == []
