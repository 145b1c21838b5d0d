"""A command line in a folder of its own, with a scripted model behind it."""

from __future__ import annotations

import io
import logging
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from bench.scripted_openai import ScriptedOpenAI
from tests.support import warm_python


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


Cli = Callable[..., Ended]


@pytest.fixture
def data_dir(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data directory that a sandbox with a user id of its own can reach: pytest's are closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="deerflow-cli-"))
    folder.chmod(0o711)
    monkeypatch.setenv("DEER_FLOW_HOME", str(folder / "data"))
    yield folder / "data"
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_dir: Path) -> Path:
    """The folder where the person works."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedOpenAI]:
    """The only model: a scripted one, found through the environment."""
    with ScriptedOpenAI() as scripted:
        monkeypatch.setenv("OPENAI_BASE_URL", scripted.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-scripted")
        monkeypatch.setenv("OPENAI_MODEL", "scripted-model")
        yield scripted


@pytest.fixture
def without_tool_image(folder: Path) -> None:
    """The sandbox's Python packages take a minute to build; most tests do not need them."""
    (folder / "config.yaml").write_text("config_version: 9\nsandbox:\n  tool_image:\n    enabled: false\n")


@pytest.fixture
def cli(
    folder: Path, without_tool_image: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cli]:
    """Runs the command line in this process: ``cli("run", "task", stdin="...")``."""
    from deerflow_app.cli.main import main

    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level

    def run(*argv: str, stdin: str = "") -> Ended:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(list(argv))
        out, err = capsys.readouterr()
        return Ended(ended.value.code or 0, out, err)  # type: ignore[arg-type]

    yield run
    root.handlers[:], _ = handlers, root.setLevel(level)
    logging.captureWarnings(False)


@pytest.fixture
def cli_process(folder: Path, without_tool_image: None) -> Cli:
    """As ``cli``, each call in a process of its own, as from a shell."""

    def run(*argv: str, stdin: str = "") -> Ended:
        command = [sys.executable, "-c", "from deerflow_app.cli.main import main; main()", *argv]
        ended = warm_python.run(command, cwd=folder, input=stdin, timeout=120)
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    return run
