"""The unit that `deerflow service install` writes is one that systemd accepts, whatever the paths are called."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.app.cli.conftest import Ended
from tests.support import warm_python
from tests.support.gateway_process import COMMAND, GUARD

from deerflow_app.cli.commands import service


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / 'a "place" with 100% and $HOME'
    folder.mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("DEER_FLOW_HOME", str(folder / "data"))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    return folder


def call(folder: Path, *line: str) -> Ended:
    done = warm_python.run([*COMMAND, "service", *line], cwd=folder, timeout=GUARD)
    return Ended(done.returncode, done.stdout, done.stderr)


def test_the_unit_is_written_looked_at_and_removed(folder: Path) -> None:
    (folder / "config.yaml").write_text("models: []\n")
    installed = call(folder, "install", "--port", "2030", "--no-start")
    assert installed.code == 0, installed.err
    text = (file := service.unit_file()).read_text()
    assert '"serve" "--port" "2030" "--config"' in text and "100%% and $$HOME/config.yaml" in text
    assert "Wrote" in installed.out and str(folder) in installed.out
    looked = call(folder, "status")
    assert looked.code == 1 and str(file) in looked.out and "does not answer" in looked.out
    assert call(folder, "remove").code == 0 and not file.exists()
    assert "deerflow service install" in call(folder, "remove").err


def test_a_unit_that_systemd_does_not_accept_is_named(folder: Path) -> None:
    file = service.unit_file()
    file.parent.mkdir(parents=True)
    file.write_text("[Service]\nExecStart=/no/such/program\nRestrat=always\n")
    problem = service._problem(file)
    if shutil.which("systemd-analyze") is None:
        assert problem == "", "nothing can look at the unit, and it is installed all the same"
    else:
        assert "Restrat" in problem and "/no/such/program" in problem


def test_an_update_lets_the_unit_start_the_new_version_and_keeps_the_rest(folder: Path) -> None:
    file = service.unit_file()
    file.parent.mkdir(parents=True)
    file.write_text('[Service]\nExecStart="/old/bin/deerflow" "serve" "--port" "2030"\n# mine\n')
    said: list[str] = []
    service.restart(Path("/new $x/bin/deerflow"), said.append)
    assert file.read_text() == '[Service]\nExecStart="/new $$x/bin/deerflow" "serve" "--port" "2030"\n# mine\n'
    assert said == ["The service is not at work; it starts the new version."]
