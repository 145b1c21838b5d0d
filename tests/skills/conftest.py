"""Public skills run as an agent runs them: in the real sandbox, with the tool image, without network."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.support.shared import shared_directory

from deerflow.sandbox.interface import OUTPUTS, SKILLS, UPLOADS, WORKSPACE, ExecResult, Mount, Policy
from deerflow.sandbox.isolation.namespaces import BwrapSandboxProvider, UsernsSandboxProvider
from deerflow.sandbox.provider import IsolatingProvider
from deerflow.sandbox.tool_image import ToolImage

PUBLIC = Path(__file__).parents[2] / "skills/public"
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def runnable_blocks(text: str) -> list[str]:
    """The shell commands that a text shows and that run without network: its ``bash`` blocks, but for ``bash network``."""
    return [code for info, code in BLOCK.findall(text) if info.split() == ["bash"]]


@dataclass
class Result:
    """What commands left behind in the directories of a thread."""

    exit_code: int | None
    output: str
    directory: Path

    def file(self, name: str) -> Path:
        """A file in ``outputs``."""
        path = self.directory / "outputs" / name
        assert path.is_file(), f"{name} is missing; there are {sorted(p.name for p in path.parent.iterdir())}"
        return path


@dataclass
class SkillRunner:
    """Runs commands of skills, each time in the sandbox of a new thread."""

    provider: IsolatingProvider
    image: ToolImage
    root: Path
    examples: dict[str, Result] = field(default_factory=dict)
    threads: int = 0

    def __call__(self, command: str, *, files: dict[str, bytes | str] | None = None, timeout: float = 180) -> Result:
        """Run ``command``; ``files`` are put into uploads first."""
        policy = self.thread(files or {})
        assert policy.home is not None
        directory = policy.home.parent
        done = asyncio.run(self._exec(directory.name, policy, command, timeout))
        return Result(done.exit_code, done.output, directory)

    def thread(self, files: dict[str, bytes | str]) -> Policy:
        """Of a new thread with these uploads."""
        self.threads += 1
        directory = self.root / f"thread-{self.threads}"
        for name in ("workspace", "uploads", "outputs", "home", "tmp"):
            (directory / name).mkdir(parents=True)
        for name, content in files.items():
            target = directory / "uploads" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode() if isinstance(content, str) else content)
        self.image.seed_home(directory / "home")
        return Policy(
            mounts=(
                *(Mount(directory / path.rpartition("/")[2], path) for path in (WORKSPACE, UPLOADS, OUTPUTS)),
                Mount(self.root / "skills", SKILLS, read_only=True),
            ),
            home=directory / "home",
            tmp=directory / "tmp",
            tools_dir=self.image.path(),
        )

    async def _exec(self, thread_id: str, policy: Policy, command: str, timeout: float) -> ExecResult:
        sandbox = await self.provider.acquire(thread_id, user_id="u", policy=policy)
        try:
            return await sandbox.exec(command, timeout=timeout)
        finally:
            await self.provider.release(sandbox.id)

    def look(self, result: Result, code: str) -> Any:
        """What a program makes of the files in ``outputs``, with the libraries of the tool image: its variable ``answer``."""
        program = f"{code}\nimport json; print(json.dumps(answer, default=str))"
        command = [str(self.image.path() / "bin/python"), "-c", program]
        done = subprocess.run(command, cwd=result.directory / "outputs", capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def example(self, name: str) -> Result:
        """What the commands that SKILL.md shows leave behind; they run once."""
        if name not in self.examples:
            blocks = runnable_blocks((PUBLIC / name / "SKILL.md").read_text())
            self.examples[name] = self("set -e\n" + "\n".join(blocks))
        result = self.examples[name]
        assert result.exit_code == 0, result.output
        return result


@pytest.fixture(scope="session")
def skill(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SkillRunner]:
    image = ToolImage(shared_directory(tmp_path_factory) / "home" / "tools")
    image.build()
    root = Path(tempfile.mkdtemp(prefix="deerflow-skills-", dir="/var/tmp"))
    shutil.copytree(PUBLIC, root / "skills/public", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(["chmod", "-R", "a+rX", str(root / "skills")], check=True)
    kinds: tuple[Callable[[Path], IsolatingProvider], ...] = (BwrapSandboxProvider, UsernsSandboxProvider)
    provider = next(made for made in (kind(root) for kind in kinds) if made.probe().ok)
    yield SkillRunner(provider, image, root)
    asyncio.run(provider.shutdown())
    subprocess.run(["rm", "-rf", "--", str(root)], check=True)
