"""A sandbox that belongs to no thread and is gone, with its files, when its work is done."""

from __future__ import annotations

import asyncio
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from deerflow.sandbox.interface import WORKSPACE, Mount, Policy, Sandbox, SandboxProvider, sandbox_id


@asynccontextmanager
async def temporary_sandbox(
    provider: SandboxProvider, owner: str, policy: Policy | None = None
) -> AsyncIterator[Sandbox]:
    """Yield a sandbox that sees nothing but the machine's programs and directories of its own.

    Args:
        owner: whose it is, an id in place of a person's.
        policy: its network, limits, environment and tools; its directories are others.
    """
    base = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix=f"deerflow-{owner}-"))
    key = secrets.token_hex(8)
    places = {"mounts": (Mount(base / "work", WORKSPACE),), "home": base / "home", "tmp": base / "tmp"}
    policy = replace(policy or Policy(), **places)
    try:
        await asyncio.to_thread(base.chmod, 0o711)
        yield await provider.acquire(key, user_id=owner, policy=policy)
    finally:
        await asyncio.shield(_remove(provider, sandbox_id(key, owner), base))


async def _remove(provider: SandboxProvider, sandbox: str, base: Path) -> None:
    try:
        await provider.release(sandbox, destroy=True)
    finally:
        await asyncio.to_thread(shutil.rmtree, base, ignore_errors=True)
