"""What `pip install` takes is the whole product, and is not made without the page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest
from tests.support.gateway_process import GUARD, until

ROOT = Path(__file__).parents[2]
PAGE = "deerflow_app/gateway/web"


def wheel(project: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=GUARD)


def names(project: Path) -> set[str]:
    done = wheel(project)
    assert done.returncode == 0, done.stderr
    return set(zipfile.ZipFile(next(project.glob("dist/*.whl"))).namelist())


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The packages and what they take from elsewhere in the repository; without the page."""
    shutil.copytree(ROOT / "packages", tmp_path / "packages", ignore=shutil.ignore_patterns("web", "__pycache__"))
    shutil.copy(ROOT / "config.example.yaml", tmp_path)
    shutil.copy(ROOT / "CHANGELOG.md", tmp_path)
    for name in ("docs", "requirements"):
        shutil.copytree(ROOT / name, tmp_path / name)
    return tmp_path


def test_a_wheel_is_not_built_without_the_page_and_names_one_version_of_everything(checkout: Path):
    project = checkout / "packages/app"
    done = wheel(project)
    assert done.returncode != 0 and "The page has not been built" in done.stderr
    (project / PAGE).mkdir()
    (project / PAGE / "index.html").write_text("<p>The page</p>")
    guides = {f"deerflow_app/guides/{name}.md" for name in ("changes", "workspace", "channels/slack")}
    assert {f"{PAGE}/index.html", "deerflow_app/locked.txt", *guides} <= names(project)
    _one_version(checkout)


def _one_version(checkout: Path) -> None:
    """An update of the program brings the harness of the same version, and the extra the versions it was tested with."""
    app, harness = (_metadata(checkout / "packages" / name) for name in ("app", "harness"))
    requires = app.get_all("Requires-Dist") or []
    assert f"deerflow-harness=={app['Version']}" in requires and harness["Version"] == app["Version"]
    locked = [one for one in requires if one.endswith("extra == 'locked'")]
    tested = re.findall(r"^[\w.\[\]-]+==", (ROOT / "requirements/run.txt").read_text(), re.MULTILINE)
    assert len(locked) == len(tested) > 50 and all("==" in one for one in locked)


def _metadata(project: Path) -> Message:
    if not list(project.glob("dist/*.whl")):
        names(project)
    with zipfile.ZipFile(next(project.glob("dist/*.whl"))) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name))


def test_a_wheel_has_what_lies_outside_of_the_package_in_the_repository(checkout: Path):
    skill = checkout / "skills/public/some-skill"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: some-skill\ndescription: Some.\n---\n")
    found = names(checkout / "packages/harness")
    assert {"deerflow/config/config.example.yaml", "deerflow/sandbox/tools.txt"} <= found
    assert "deerflow/skills/public/some-skill/SKILL.md" in found


@pytest.mark.nightly
def test_an_installed_wheel_serves_the_page_outside_of_a_checkout(tmp_path: Path):
    folder = tmp_path / "a place with spaces"
    folder.mkdir()
    uv = str(Path(sys.executable).with_name("uv"))
    python = folder / "env/bin/python"
    subprocess.run(["make", "wheels"], cwd=ROOT, check=True)
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, folder / "env"], check=True)
    wheels = sorted(map(str, (ROOT / "dist").glob("*.whl")))
    locked = ["--require-hashes", "-r", str(ROOT / "requirements/run.txt")]
    for what in (locked, ["--no-deps", *wheels]):
        subprocess.run([uv, "pip", "install", "--quiet", "--python", python, *what], check=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder / "home")}
    deerflow = str(python.with_name("deerflow"))
    subprocess.run([deerflow, "config", "init"], cwd=folder, env=environment, check=True)
    assert (folder / "config.yaml").read_text() == (ROOT / "config.example.yaml").read_text()
    with (folder / "log").open("w+") as log:
        server = subprocess.Popen(
            [deerflow, "serve", "--port", "0"], cwd=folder, env=environment, stdout=log, stderr=log
        )
        try:
            url = until(lambda: re.search(r"is ready: (\S+)", (folder / "log").read_text()))[1]
            page = subprocess.run(["curl", "-sS", "--noproxy", "*", url], capture_output=True, text=True, check=True)
            assert "<!DOCTYPE html>" in page.stdout and "/_next/static/" in page.stdout
            until(lambda: "Preparing the sandbox's Python packages" in (folder / "log").read_text())
        finally:
            server.terminate()
            assert server.wait(GUARD) == 0
