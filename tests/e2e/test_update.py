"""Updates with real wheels built here: killed at each step, on both databases, one of two working versions is always there."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support.gateway_process import GUARD, until

from deerflow.storage.migrate import HEAD, READABLE_FROM
from deerflow_app.cli.installation import Installation, Wheels

ROOT = Path(__file__).parents[2]
STEPS = ("Installing", "Trying it", "Switching over")
ADDITIVE = "0.2.0"
BREAKING = "0.3.0"
MIGRATION = '''"""Of a test."""

import sqlalchemy as sa
from alembic import op

revision = "{number}"
down_revision = "{before}"


def upgrade() -> None:
    op.create_table("of_{number}", sa.Column("name", sa.String()))
'''


def _edit(file: Path, *changes: tuple[str, str]) -> None:
    text = file.read_text()
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after)
    file.write_text(text)


def _build(checkout: Path, version: str, migrations: Sequence[str], readable_from: str, to: Path) -> None:
    """Wheels of this source as ``version``, with further migrations."""
    shutil.rmtree(checkout, ignore_errors=True)
    shutil.copytree(
        ROOT / "packages", checkout / "packages", ignore=shutil.ignore_patterns("web", "__pycache__", "dist")
    )
    for folder in ("docs", "requirements"):
        shutil.copytree(ROOT / folder, checkout / folder)
    for file in ("CHANGELOG.md", "config.example.yaml"):
        shutil.copy(ROOT / file, checkout)
    page = checkout / "packages/app/deerflow_app/gateway/web"
    page.mkdir()
    (page / "index.html").write_text("<p>The page</p>")
    storage, before = checkout / "packages/harness/deerflow/storage", HEAD
    schema = storage / "migrations/sqlite.sql"
    for number in migrations:
        (storage / f"migrations/versions/{number}_of_a_test.py").write_text(
            MIGRATION.format(number=number, before=before)
        )
        schema.write_text(schema.read_text() + f"CREATE TABLE of_{number} (\n\tname VARCHAR\n);\n")
        before = number
    _edit(storage / "migrate.py", (f'HEAD = "{HEAD}"', f'HEAD = "{before}"'))
    _edit(storage / "migrate.py", (f'READABLE_FROM = "{READABLE_FROM}"', f'READABLE_FROM = "{readable_from}"'))
    for name in ("harness", "app"):
        project = checkout / "packages" / name
        _edit(project / "pyproject.toml", ('version = "0.1.0"', f'version = "{version}"'))
        if name == "app":
            _edit(project / "pyproject.toml", ("deerflow-harness==0.1.0", f"deerflow-harness=={version}"))
        subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", to], cwd=project, check=True)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    folder = tmp_path_factory.mktemp("wheels")
    first, second = f"{int(HEAD) + 1:04}", f"{int(HEAD) + 2:04}"
    for version, migrations, readable_from in (
        ("0.1.0", [], HEAD),
        (ADDITIVE, [first], HEAD),
        (BREAKING, [first, second], second),
    ):
        _build(folder / "checkout", version, migrations, readable_from, folder)
    return Wheels(folder)


class Site:
    """An installation of 0.1.0 with one thread, and a person who updates it."""

    def __init__(self, folder: Path, wheels: Wheels, database: dict[str, Any]) -> None:
        self.folder, self.wheels = folder, wheels
        self.installation = Installation(folder / "program")
        self.environment = {
            **{name: os.environ[name] for name in os.environ if name.startswith(("UV_", "PIP_", "SSL_"))},
            "PATH": os.environ["PATH"],
            "HOME": os.environ["HOME"],
            "XDG_CONFIG_HOME": str(folder / "config"),
            "DEER_FLOW_HOME": str(folder / "home"),
            "DEER_FLOW_INSTALL": str(self.installation.root),
        }
        lines = "".join(f"  {key}: {value}\n" for key, value in database.items())
        text = f"sandbox:\n  tool_image:\n    enabled: false\ndatabase:\n{lines}"
        (folder / "config.yaml").write_text(text)
        self.installation.switch(self.installation.build("0.1.0", wheels))

    def call(self, *line: str, code: int = 0) -> str:
        done = subprocess.run(
            [self.installation.program, *line],
            cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=4 * GUARD,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def version(self) -> str:
        found = re.search(r"deerflow (\S+)", self.call("--version"))
        assert found
        return found[1]

    def works(self) -> bool:
        return "error" not in self.call("run", "Say hello.", "--local")

    def offer(self, version: str) -> Path:
        """A directory with the wheels up to a version."""
        folder = self.folder / f"up-to-{version}"
        folder.mkdir(exist_ok=True)
        assert self.wheels.directory
        for wheel in self.wheels.directory.glob("*.whl"):
            if wheel.name.split("-")[1] <= version:
                shutil.copy(wheel, folder)
        return folder

    def update_killed_at(self, step: str, version: str) -> None:
        line = [self.installation.program, "update", "--from", self.offer(version)]
        log = self.folder / "update.log"
        with log.open("w") as output:
            process = subprocess.Popen(
                line, cwd=self.folder, env={**self.environment, "PYTHONUNBUFFERED": "1"}, stdout=output, stderr=output,
                start_new_session=True,
            )  # fmt: skip
            until(lambda: step in log.read_text() or process.poll() is not None, log.read_text)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(params=["sqlite", "postgres"])
def site(request: pytest.FixtureRequest, tmp_path: Path, wheels: Wheels) -> Iterator[Site]:
    database = {"backend": request.param}
    if request.param == "postgres":
        database["postgres_url"] = request.getfixturevalue("postgres_url")
    yield Site(tmp_path, wheels, database)


@pytest.mark.nightly
def test_a_killed_update_leaves_a_working_version_and_a_rollback_loses_nothing_that_fits(
    site: Site, request: pytest.FixtureRequest
) -> None:
    assert site.version() == "0.1.0" and site.works()
    for step in STEPS:
        site.update_killed_at(step, ADDITIVE)
        assert site.version() in ("0.1.0", ADDITIVE) and site.works()
    site.call("update", "--from", str(site.offer(ADDITIVE)))
    assert site.version() == ADDITIVE and site.works()
    assert "nothing was put back" in site.call("rollback")
    assert site.version() == "0.1.0" and site.works()

    site.call("update", "--from", str(site.offer(BREAKING)))
    assert site.version() == BREAKING and site.works()
    if "postgres" in request.node.name:
        assert "deerflow restore ARCHIVE" in site.call("rollback", code=1)
        assert site.version() == BREAKING and site.works()
    else:
        assert "What is newer is kept in" in site.call("rollback")
        assert site.version() == "0.1.0" and site.works()
