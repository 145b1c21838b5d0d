"""A real sandbox for the tests of what ours does beyond the contract."""

from __future__ import annotations

import asyncio
import secrets
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.sandbox.environment import thread_policy

from deerflow.sandbox.interface import Limits, Policy
from deerflow.sandbox.isolated import IsolatedSandbox
from deerflow.sandbox.isolation.namespaces import BwrapSandboxProvider, UsernsSandboxProvider
from deerflow.sandbox.provider import IsolatingProvider


@dataclass
class Sandboxes:
    """A provider and the directories of its threads."""

    provider: IsolatingProvider
    data_dir: Path

    def policy(self, thread_id: str = "t", **changes: Any) -> Policy:
        return replace(thread_policy(self.data_dir, thread_id, Limits()), **changes)

    async def acquire(self, thread_id: str = "t", **changes: Any) -> IsolatedSandbox:
        policy = await asyncio.to_thread(self.policy, thread_id, **changes)
        sandbox = await self.provider.acquire(thread_id, user_id="u", policy=policy)
        assert isinstance(sandbox, IsolatedSandbox)
        return sandbox


@pytest.fixture(scope="session")
def namespace_provider(tmp_path_factory: pytest.TempPathFactory) -> type[IsolatingProvider]:
    """The provider with namespaces that works here."""
    reports = []
    for kind in (BwrapSandboxProvider, UsernsSandboxProvider):
        reports.append(kind(tmp_path_factory.mktemp("probe")).probe())
        if reports[-1].ok:
            return kind
    pytest.skip("\n".join(map(str, reports)))


@pytest.fixture
def data_dir() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="deerflow-test-", dir="/var/tmp"))
    yield directory
    subprocess.run(["rm", "-rf", "--", str(directory)], check=True)


@pytest.fixture
async def sandboxes(
    namespace_provider: Callable[..., IsolatingProvider], data_dir: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Sandboxes]:
    """``@pytest.mark.parametrize("sandboxes", [{...}], indirect=True)`` gives the provider's options."""
    provider = namespace_provider(data_dir, **getattr(request, "param", {}))
    yield Sandboxes(provider, data_dir)
    await provider.shutdown()


@pytest.fixture(scope="session")
def shared_provider(namespace_provider: Callable[..., IsolatingProvider]) -> Iterator[Sandboxes]:
    """One provider for all tests that need but a thread of their own."""
    directory = Path(tempfile.mkdtemp(prefix="deerflow-test-", dir="/var/tmp"))
    provider = namespace_provider(directory)
    yield Sandboxes(provider, directory)
    asyncio.run(provider.shutdown())
    subprocess.run(["rm", "-rf", "--", str(directory)], check=True)


@pytest.fixture
async def sandbox(shared_provider: Sandboxes) -> AsyncIterator[IsolatedSandbox]:
    sandbox = await shared_provider.acquire(secrets.token_hex(6))
    yield sandbox
    await shared_provider.provider.release(sandbox.id, destroy=True)
