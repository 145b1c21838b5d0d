"""claude-to-deerflow: its one script drives a real gateway."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.docs.served import served
from tests.skills.conftest import PUBLIC

SCRIPT = PUBLIC / "claude-to-deerflow/scripts/deerflow.py"
Drive = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("server")
    environ = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "DEER_FLOW_HOME": str(folder / "home"),
    }
    with served(folder, environ, with_token=True) as more:

        def run(*arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-I", str(SCRIPT), *arguments]
            return subprocess.run(
                command,
                cwd=folder,
                env={"PATH": os.environ["PATH"], **more, **changes},
                capture_output=True,
                text=True,
                timeout=120,
            )

        yield run


def test_a_conversation_with_files_goes_there_and_back(drive: Drive, tmp_path: Path):
    assert "answers. Models: demo" in drive("status").stdout
    (tmp_path / "zahlen ü.csv").write_text("a,b\n1,2\n")
    first = drive(
        "chat",
        "Look around and write a report.",
        "--file",
        str(tmp_path / "zahlen ü.csv"),
        "--save",
        str(tmp_path / "got"),
    )
    assert first.returncode == 0 and first.stdout.strip(), first.stderr
    thread = re.search(r"^thread (\S+)$", first.stderr, re.MULTILINE)
    assert thread is not None and "uploaded" in first.stderr
    delivered = drive("files", thread[1]).stdout.split()
    assert delivered and all(path.startswith("/mnt/user-data/outputs/") for path in delivered)
    assert {path.name for path in (tmp_path / "got").iterdir()} == {Path(path).name for path in delivered}
    fetched = drive("fetch", thread[1], "/mnt/user-data/uploads/zahlen ü.csv", "--into", str(tmp_path / "back"))
    assert (tmp_path / "back/zahlen ü.csv").read_text() == "a,b\n1,2\n", fetched.stderr
    again = drive("chat", "hello", "--thread", thread[1])
    assert again.returncode == 0, again.stderr
    history = drive("history", thread[1]).stdout
    assert "Look around and write a report." in history and "hello" in history
    assert '"status": "success"' in drive("status", thread[1]).stdout
    assert thread[1] in drive("threads").stdout and drive("stop", thread[1]).returncode == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"DEERFLOW_TOKEN": "df_wrong"}, "deerflow token create"),
        ({"DEERFLOW_URL": "http://127.0.0.1:9"}, "Is DeerFlow running?"),
    ],
)
def test_what_is_missing_is_named(drive: Drive, changes: dict[str, str], message: str):
    done = drive("status", **changes)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr


def test_a_thread_that_is_not_there_is_named(drive: Drive):
    done = drive("history", "no-such-thread")
    assert done.returncode == 2 and "404" in done.stderr
