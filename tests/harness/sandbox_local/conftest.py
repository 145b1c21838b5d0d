from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from deerflow.sandbox.interface import OUTPUTS, SKILLS, UPLOADS, WORKSPACE, Mount, Policy
from deerflow.sandbox.isolation.host_paths import HostPathsSandbox
from deerflow.sandbox.local import LocalSandboxProvider


def policy_over(root: Path, **changes: object) -> Policy:
    for name in ("workspace", "uploads", "outputs"):
        (root / "user-data" / name).mkdir(parents=True, exist_ok=True)
    (root / "skills").mkdir(exist_ok=True)
    (root / "skills/SKILL.md").write_text("skill\n")
    settings: dict[str, object] = {
        "mounts": (
            Mount(root / "user-data/workspace", WORKSPACE),
            Mount(root / "user-data/uploads", UPLOADS),
            Mount(root / "user-data/outputs", OUTPUTS),
            Mount(root / "skills", SKILLS, read_only=True),
        ),
        "home": root / "home",
        "tmp": root / "tmp",
    }
    return Policy(**(settings | changes))  # type: ignore[arg-type]


@dataclass
class Local:
    provider: LocalSandboxProvider
    sandbox: HostPathsSandbox
    root: Path

    @property
    def workspace(self) -> Path:
        return self.root / "user-data/workspace"


@pytest.fixture
async def local(tmp_path: Path) -> AsyncIterator[Local]:
    """A sandbox whose host directory has a name that no shell likes."""
    root = tmp_path / "it's a $(dir) & more"
    root.mkdir()
    provider = LocalSandboxProvider(allow_host_bash=True)
    sandbox = await provider.acquire("thread", user_id="user", policy=policy_over(root))
    assert isinstance(sandbox, HostPathsSandbox)
    yield Local(provider, sandbox, root)
    await provider.shutdown()
