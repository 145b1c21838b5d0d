"""The program's versions side by side, and the one that is used.

::

    versions/0.1.0/    a virtual environment; ``.complete`` is written last
    current            a link to the version that is used; what starts DeerFlow goes through it
    previous           a link to the one before, for `deerflow rollback`

Each change of a link is one rename: whenever this is killed, ``current`` leads to a whole version.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from deerflow.sandbox.tool_image import OTHER_ENVIRONMENTS, find_uv, uv_cause

INSTALL_VAR = "DEER_FLOW_INSTALL"
KEPT_DAYS = 7
_COMPLETE = ".complete"
_LOCKED = "lib/python*/site-packages/deerflow_app/locked.txt"


class InstallationError(Exception):
    """A version could not be had or installed. The message says why; the version in use is untouched."""


@dataclass(frozen=True, slots=True)
class Wheels:
    """The source of new versions: a directory of wheels, or the package index that uv is set up for."""

    directory: Path | None = None

    @property
    def of_deerflow(self) -> list[str]:
        return ["--no-index", "--find-links", str(self.directory)] if self.directory else []

    @property
    def of_others(self) -> list[str]:
        return ["--find-links", str(self.directory)] if self.directory else []


@dataclass(frozen=True, slots=True)
class Installation:
    """The versions below ``root``. Every method blocks."""

    root: Path

    @classmethod
    def find(cls, environ: Mapping[str, str] = os.environ) -> Installation:
        """The one that ``DEER_FLOW_INSTALL`` names, else the one that this program is of, else the default place."""
        if named := environ.get(INSTALL_VAR):
            return cls(Path(named).expanduser().absolute())
        here = Path(sys.prefix)
        is_one = here.parent.name == "versions" and (here / _COMPLETE).exists()
        return cls(here.parents[1] if is_one else Path("~/.local/lib/deerflow").expanduser())

    @property
    def current(self) -> Path | None:
        """The environment in use; None: nothing was updated yet."""
        return self._led("current")

    @property
    def previous(self) -> Path | None:
        """The environment before; None: there was no update, or it has been taken back."""
        found = self._led("previous")
        return None if found == self.current else found

    @property
    def program(self) -> Path:
        """The program to start, also after the next update: behind the link while there is one."""
        return (self.root / "current" if self.current else Path(sys.prefix)) / "bin/deerflow"

    def newest(self, wheels: Wheels) -> str:
        """Return the newest version that can be had. Raises InstallationError."""
        bare = ["--quiet", "--no-deps", "--no-header", "--no-annotate", "--python", sys.executable]
        found = _uv("pip", "compile", *bare, *wheels.of_deerflow, "-")
        return found.strip().partition("==")[2]

    def build(self, version: str, wheels: Wheels) -> Path:
        """Return the environment of a version, made unless it is there. Raises InstallationError."""
        place = self.root / "versions" / str(Version(version))
        if (place / _COMPLETE).exists():
            return place
        shutil.rmtree(place, ignore_errors=True)  # of an update that was killed
        place.parent.mkdir(parents=True, exist_ok=True)
        python = str(place / "bin/python")
        _uv("venv", "--quiet", "--no-project", "--python", sys.executable, str(place))
        install = ["pip", "install", "--quiet", "--python", python]
        own = [f"deerflow=={version}", f"deerflow-harness=={version}"]
        _uv(*install, "--no-deps", *wheels.of_deerflow, *own)
        for locked in place.glob(_LOCKED):
            _uv(*install, "--require-hashes", *wheels.of_others, "-r", str(locked))
        with (place / _COMPLETE).open("w") as file:
            os.fsync(file.fileno())
        return place

    def switch(self, to: Path) -> None:
        """Let ``current`` lead to another environment, and ``previous`` to the one before."""
        before = self.current or Path(sys.prefix)
        if before == to:
            return
        self._lead("previous", before)
        self._lead("current", to)
        if (mark := before / _COMPLETE).exists():
            os.utime(mark)  # since then it is not used

    def switch_back(self) -> None:
        """Let ``current`` lead to the environment before; there is no further way back then."""
        if (before := self.previous) is not None:
            self._lead("current", before)

    def tidy(self) -> None:
        """Remove versions that have been out of use for a week, and what killed updates left."""
        for leftover in self.root.glob(".trial-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        for place in self.root.glob("versions/*"):
            mark = place / _COMPLETE
            since = mark.stat().st_mtime if mark.exists() else 0.0
            if place not in (self.current, self.previous) and time.time() - since > KEPT_DAYS * 86_400:
                mark.unlink(missing_ok=True)
                shutil.rmtree(place, ignore_errors=True)

    def _led(self, name: str) -> Path | None:
        link = self.root / name
        return Path(os.path.abspath(link.parent / link.readlink())) if link.is_symlink() else None  # noqa: PTH100

    def _lead(self, name: str, to: Path) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        new = self.root / f".{name}-{os.getpid()}"
        new.unlink(missing_ok=True)
        new.symlink_to(os.path.relpath(to, self.root) if to.is_relative_to(self.root) else to)
        new.replace(self.root / name)
        descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)  # a power cut must not leave both changes in the wrong order
        finally:
            os.close(descriptor)


def _uv(*arguments: str) -> str:
    """Run uv, with the name of the product on stdin, and return what it prints. Raises InstallationError."""
    if (uv := find_uv()) is None:
        raise InstallationError("uv was not found beside this Python or on PATH. Install it with: pip install uv")
    environment = {name: value for name, value in os.environ.items() if name not in OTHER_ENVIRONMENTS}
    done = subprocess.run(
        [uv, *arguments], input="deerflow", env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise InstallationError(
            f"The new version could not be installed: {uv_cause(done.stderr)}. The one in use is untouched.\n"
            f"{done.stderr.strip()}"
        )
    return done.stdout
