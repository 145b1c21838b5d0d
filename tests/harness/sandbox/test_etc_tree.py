"""The curated /etc: what it shows, what it keeps back, when it is built anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from deerflow.sandbox.isolation.plan import SYNTHETIC, ensure_etc_tree


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    source = tmp_path / "etc"
    (source / "ssl/certs").mkdir(parents=True)
    (source / "ssl/private").mkdir(mode=0o700)
    (source / "ssl/private/key.pem").write_text("private key")
    (source / "ssl/certs/a.pem").write_text("certificate")
    (source / "ssl/certs/hash.0").symlink_to("a.pem")
    (source / "ssl/secret.pem").write_text("not for everybody")
    (source / "ssl/secret.pem").chmod(0o640)
    (source / "passwd").write_text("host:x:0:0::/root:/bin/bash\n")
    (source / "shadow").write_text("host:hash\n")
    (source / "ld.so.cache").write_text("cache")
    (source / "localtime").symlink_to("/usr/share/zoneinfo/UTC")
    (source / "extra.conf").write_text("extra")
    for name in ("passwd", "shadow", "ld.so.cache", "extra.conf", "ssl/certs/a.pem"):
        (source / name).chmod(0o644)
    return source


def files(tree: Path) -> set[str]:
    return {str(path.relative_to(tree)) for path in tree.rglob("*") if not path.is_dir() or path.is_symlink()}


def test_only_what_programs_need_is_there(etc: Path, tmp_path: Path) -> None:
    tree = ensure_etc_tree(tmp_path / "state", source=etc)
    assert files(tree) == {"ld.so.cache", "localtime", "ssl/certs/a.pem", "ssl/certs/hash.0", *SYNTHETIC}


def test_settings_of_office_programs_are_there(etc: Path, tmp_path: Path) -> None:
    for name in (
        "libreoffice/sofficerc",
        "fonts/fonts.conf",
        "R/Renviron",
        "texmf/web2c/texmf.cnf",
        "ghostscript/fontmap.d/x.conf",
    ):
        (etc / name).parent.mkdir(parents=True, exist_ok=True)
        (etc / name).write_text("setting")
        (etc / name).chmod(0o644)
    tree = ensure_etc_tree(tmp_path / "state", source=etc)
    assert (tree / "libreoffice/sofficerc").read_text() == "setting"
    assert {"R/Renviron", "texmf/web2c/texmf.cnf", "ghostscript/fontmap.d/x.conf", "fonts/fonts.conf"} <= files(tree)


def test_an_etc_that_nobody_may_list_gives_what_has_a_fixed_name(
    etc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = os.listdir

    def refuse(path: Path) -> list[str]:
        if path == etc:
            raise PermissionError(path)
        return listed(path)

    monkeypatch.setattr(os, "listdir", refuse)
    tree = ensure_etc_tree(tmp_path / "state", source=etc)
    monkeypatch.undo()
    assert files(tree) == {"ld.so.cache", "localtime", "ssl/certs/a.pem", "ssl/certs/hash.0", *SYNTHETIC}


def test_a_link_to_itself_is_left_out(etc: Path, tmp_path: Path) -> None:
    (etc / "timezone").symlink_to("timezone")
    assert "timezone" not in files(ensure_etc_tree(tmp_path / "state", source=etc))


def test_accounts_are_made_up(etc: Path, tmp_path: Path) -> None:
    tree = ensure_etc_tree(tmp_path / "state", source=etc)
    assert "host" not in (tree / "passwd").read_text()
    assert "agent:x:1000:1000" in (tree / "passwd").read_text()


def test_everybody_can_read_it_whatever_the_umask(etc: Path, tmp_path: Path) -> None:
    tree = ensure_etc_tree(tmp_path / "state", source=etc)
    for path in (tree, *tree.rglob("*")):
        if not path.is_symlink():
            assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644), path


def test_a_link_that_leads_out_is_followed_once(etc: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("content")
    (tmp_path / "elsewhere").chmod(0o644)
    (etc / "services").symlink_to(tmp_path / "elsewhere")
    copied = ensure_etc_tree(tmp_path / "state", source=etc) / "services"
    assert not copied.is_symlink()
    assert copied.read_text() == "content"


def test_a_dangling_link_is_left_out(etc: Path, tmp_path: Path) -> None:
    (etc / "protocols").symlink_to("/nonexistent/file")
    assert not (ensure_etc_tree(tmp_path / "state", source=etc) / "protocols").is_symlink()


def test_it_is_built_once_and_again_when_the_host_changes(etc: Path, tmp_path: Path) -> None:
    first = ensure_etc_tree(tmp_path / "state", source=etc)
    assert ensure_etc_tree(tmp_path / "state", source=etc) == first
    (etc / "ld.so.cache").write_text("a longer cache")
    second = ensure_etc_tree(tmp_path / "state", source=etc)
    assert second != first
    assert (second / "ld.so.cache").read_text() == "a longer cache"


def test_extra_files_are_added(etc: Path, tmp_path: Path) -> None:
    tree = ensure_etc_tree(tmp_path / "state", [str(etc / "extra.conf")], source=etc)
    assert (tree / "extra.conf").read_text() == "extra"


def test_extra_directories_are_whole_whichever_is_named_first(etc: Path, tmp_path: Path) -> None:
    (etc / "own/below").mkdir(parents=True)
    for name in ("own/a.conf", "own/below/b.conf"):
        (etc / name).write_text("extra")
        (etc / name).chmod(0o644)
    extra = [str(etc / "own/below"), f"{etc}/x/../own"]
    tree = ensure_etc_tree(tmp_path / "state", extra, source=etc)
    assert {"own/a.conf", "own/below/b.conf"} <= files(tree)


@pytest.mark.parametrize("name", ["/root/.ssh", "../passwd", "/etc2/x", ""])
def test_extra_files_outside_of_etc_are_refused(etc: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="etc_extra"):
        ensure_etc_tree(tmp_path / "state", [name], source=etc)


def test_extra_files_cannot_climb_out_of_etc(etc: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="etc_extra"):
        ensure_etc_tree(tmp_path / "state", [f"{etc}/../elsewhere"], source=etc)


def test_extra_files_that_only_root_may_read_stay_out(etc: Path, tmp_path: Path) -> None:
    (etc / "shadow").chmod(0o640)
    tree = ensure_etc_tree(tmp_path / "state", [str(etc / "shadow")], source=etc)
    assert "shadow" not in files(tree)


def test_a_half_built_tree_is_never_used(etc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("deerflow.sandbox.isolation.plan.shutil.copyfile", fail)
    with pytest.raises(OSError, match="disk full"):
        ensure_etc_tree(tmp_path / "state", source=etc)
    assert list((tmp_path / "state").iterdir()) == []
