from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from deerflow.sandbox.files import SandboxFiles
from deerflow.sandbox.interface import OUTPUTS, SKILLS, UPLOADS, WORKSPACE, Mount

SANDBOX_UID = 270_001
SECRET = b"the host's secret\n"


@dataclass
class Tree:
    """A thread's directories on the host, a secret outside of them, and the file tools over them."""

    root: Path
    files: SandboxFiles
    uid: int

    @property
    def workspace(self) -> Path:
        return self.root / "user-data/workspace"

    @property
    def secret(self) -> Path:
        return self.root / "secret.txt"

    def put(self, relative: str, data: bytes = b"content\n") -> Path:
        """A file in the workspace, as the agent would have made it."""
        path = self.workspace / relative
        for parent in reversed(path.relative_to(self.workspace).parents):
            (self.workspace / parent).mkdir(exist_ok=True)
            os.chown(self.workspace / parent, self.uid, self.uid)
        path.write_bytes(data)
        os.chown(path, self.uid, self.uid)
        return path

    def link(self, relative: str, target: str | Path) -> Path:
        path = self.workspace / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        os.chown(path.parent, self.uid, self.uid)
        path.symlink_to(target)
        return path


def make_tree(root: Path, *, owner: bool) -> Tree:
    uid = SANDBOX_UID if owner and os.geteuid() == 0 else os.geteuid()
    for name in ("user-data/workspace", "user-data/uploads", "user-data/outputs", "skills"):
        (root / name).mkdir(parents=True)
    for name in ("workspace", "uploads", "outputs"):
        os.chown(root / "user-data" / name, uid, uid)
    (root / "skills/SKILL.md").write_text("skill\n")
    (root / "secret.txt").write_bytes(SECRET)
    mounts = [
        Mount(root / "user-data/workspace", WORKSPACE),
        Mount(root / "user-data/uploads", UPLOADS),
        Mount(root / "user-data/outputs", OUTPUTS),
        Mount(root / "skills", SKILLS, read_only=True),
    ]
    return Tree(root, SandboxFiles(mounts, owner=uid if owner else None), uid)


def chain(start: Path, depth: int, name: str = "d") -> None:
    """Directories nested ``depth`` deep, made as a sandbox would: one at a time, by descriptor."""
    uid = start.stat().st_uid
    fd = os.open(start, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=fd)
        os.chown(name, uid, uid, dir_fd=fd)
        above, fd = fd, os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(above)
    os.close(fd)


@pytest.fixture(params=["plain", "owner"])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tree]:
    """Once with the process's own rights, once (as root) with those of the sandbox's uid."""
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == os.geteuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o111)
    made = make_tree(tmp_path / "data", owner=request.param == "owner")
    yield made
    made.files.close()
    # A test that fails leaves a tree that is too deep for pytest, which then fails at the end of each later session.
    subprocess.run(["rm", "-rf", "--", str(made.root)], check=True)
