"""An update never strands anyone: whenever it is killed, one of the two versions is in use, whole."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import signal
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deerflow.config import ConfigSource, Paths
from deerflow_app.cli import installation as module
from deerflow_app.cli.commands.update import install
from deerflow_app.cli.failures import CommandFailure
from deerflow_app.cli.installation import Installation, InstallationError, Wheels

PROGRAM = """
import os, sqlite3, sys
def main():
    if sys.argv[1] == "trial":
        copy = os.environ["DEER_FLOW_TRIAL_DATABASE"]
        print("on the copy", sqlite3.connect(copy).execute("SELECT count(*) FROM users").fetchone())
        sys.exit({trial})
    import other
    print("{version}")
"""


def _wheel(folder: Path, name: str, version: str, files: dict[str, str], script: str = "") -> Path:
    """A wheel, as small as one can be."""
    module_name = name.replace("-", "_")
    info = f"{module_name}-{version}.dist-info"
    files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        **({f"{info}/entry_points.txt": f"[console_scripts]\n{script}\n"} if script else {}),
    }
    target = folder / f"{module_name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(target, "w") as archive:
        rows: list[str] = []
        for path, text in files.items():
            archive.writestr(path, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            rows.append(f"{path},sha256={digest},{len(text)}")
        archive.writestr(f"{info}/RECORD", "\n".join([*rows, f"{info}/RECORD,,", ""]))
    return target


@pytest.fixture
def wheels(tmp_path: Path) -> Wheels:
    """Two versions that work, and one that fails on the copy; each needs a package of the lock."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    digest = hashlib.sha256(_wheel(folder, "other", "1.0", {"other.py": ""}).read_bytes()).hexdigest()
    for version, trial in (("0.1.0", "0"), ("0.2.0", "0"), ("0.3.0", "'the tables do not fit'")):
        files = {
            "deerflow_app/__init__.py": PROGRAM.format(version=version, trial=trial),
            "deerflow_app/locked.txt": f"other==1.0 --hash=sha256:{digest}\n",
        }
        _wheel(folder, "deerflow", version, files, "deerflow = deerflow_app:main")
        _wheel(folder, "deerflow-harness", version, {"deerflow/__init__.py": ""})
    return Wheels(folder)


@pytest.fixture
def update(
    tmp_path: Path, wheels: Wheels, sqlite_template: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    monkeypatch.setenv("UV_OFFLINE", "1")
    paths = Paths(tmp_path / "home", environ={})
    paths.data_dir.mkdir(parents=True)
    shutil.copy(sqlite_template, paths.data_dir / "deerflow.db")
    source = ConfigSource(None, overrides={"database": {"backend": "sqlite", "sqlite_dir": str(paths.data_dir)}})

    def update(version: str, report: Callable[[str], None] = lambda line: None) -> None:
        install(Installation(tmp_path / "program"), version, wheels, source, paths, report)

    return update


def _version(installation: Installation) -> str:
    return subprocess.run(
        [installation.program, "--version"], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_a_kill_at_any_step_leaves_a_whole_version_in_use(
    tmp_path: Path, update: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    installation = Installation(tmp_path / "program")
    update("0.1.0")
    old = installation.current
    assert old and _version(installation) == "0.1.0"
    steps = found = 0
    while True:
        steps += 1
        if not _killed_at(steps, update, monkeypatch):
            break
        found += _version(installation) == "0.2.0"
        assert _version(installation) in ("0.1.0", "0.2.0")
        shutil.rmtree(installation.root / "versions/0.2.0", ignore_errors=True) if found == 0 else None
    assert steps > 8 and _version(installation) == "0.2.0" and installation.previous == old
    assert not list(installation.root.glob(".trial-*"))
    installation.switch_back()
    assert _version(installation) == "0.1.0" and installation.previous is None


def _killed_at(step: int, update: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Update in a process that is killed before its nth step; return whether it came to that."""
    if (child := os.fork()) == 0:
        try:
            done = 0

            def count(work: Callable[..., Any] = lambda *_: None) -> Callable[..., Any]:
                def counted(*given: Any) -> Any:
                    nonlocal done
                    done += 1
                    if done == step:
                        os.kill(os.getpid(), signal.SIGKILL)
                    return work(*given)

                return counted

            monkeypatch.setattr(module, "_uv", count(module._uv))
            monkeypatch.setattr(Installation, "_lead", count(Installation._lead))
            update("0.2.0", count())
        except BaseException:
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def test_a_version_that_fails_on_the_copy_is_not_used_and_says_why(tmp_path: Path, update: Callable[..., None]) -> None:
    update("0.2.0")
    with pytest.raises(CommandFailure, match=r"failed on a copy(.|\n)*on the copy \(0,\)(.|\n)*the tables do not fit"):
        update("0.3.0")
    assert _version(Installation(tmp_path / "program")) == "0.2.0"


def test_the_newest_version_is_found_and_one_that_is_missing_is_named(
    tmp_path: Path, wheels: Wheels, update: Callable[..., None]
) -> None:
    installation = Installation(tmp_path / "program")
    assert installation.newest(wheels) == "0.3.0"
    with pytest.raises(InstallationError, match=r"could not be installed(.|\n)*in use is untouched"):
        update("0.9.0")
    assert installation.current is None


def test_versions_out_of_use_stay_for_a_week(tmp_path: Path, update: Callable[..., None]) -> None:
    installation = Installation(tmp_path / "program")
    update("0.1.0")
    update("0.2.0")
    installation.switch_back()
    (installation.root / "versions/0.0.9").mkdir()
    installation.tidy()
    assert sorted(one.name for one in installation.root.glob("versions/*")) == ["0.1.0", "0.2.0"]
    os.utime(installation.root / "versions/0.2.0/.complete", (0, 0))
    installation.tidy()
    assert [one.name for one in installation.root.glob("versions/*")] == ["0.1.0"]
