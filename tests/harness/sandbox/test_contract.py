"""The contract suite against every isolating provider, as the user who runs the tests.

``test_contract_as_user`` repeats it as an ordinary user where the tests run as root. A provider that this
machine does not support is skipped, which CI does not allow. Containers need an engine: `make test-docker`.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contracts.sandbox.checks import CHECKS
from tests.contracts.sandbox.environment import Check, Environment, NotApplicable, open_environment
from tests.support.opensandbox import KEY, opensandbox

from deerflow.community.aio_sandbox.containers import ContainerProvider
from deerflow.community.opensandbox import OpenSandboxProvider
from deerflow.config import Paths
from deerflow.sandbox.interface import ProbeReport
from deerflow.sandbox.isolation.landlock import LandlockSandboxProvider
from deerflow.sandbox.isolation.namespaces import BwrapSandboxProvider, UsernsSandboxProvider, examine_namespaces
from deerflow.sandbox.isolation.plan import Launcher
from deerflow.sandbox.provider import IsolatingProvider


class MaskedProcProvider(BwrapSandboxProvider):
    """What ``bwrap`` becomes in a container whose /proc is masked."""

    name = "noproc"

    def _examine(self) -> tuple[ProbeReport, Launcher | None]:
        whole = self._launcher(shutil.which("bwrap"))
        masked = replace(whole, features=replace(whole.features, fresh_proc=False))
        return examine_namespaces(self.name, masked, self.drops_root)


class EngineProvider(ContainerProvider):
    """The engine that ``DOCKER_HOST`` names."""

    def __init__(self, data_dir: Path) -> None:
        super().__init__(data_dir, docker_socket=Paths(data_dir).docker_socket)


class RemoteServiceProvider(OpenSandboxProvider):
    """A service of OpenSandbox that lives as long as its provider."""

    def __init__(self, data_dir: Path) -> None:
        self._double = ExitStack()
        service = self._double.enter_context(opensandbox())
        super().__init__(data_dir, opensandbox_url=service.url, opensandbox_key=KEY)

    async def shutdown(self) -> None:
        await super().shutdown()
        await asyncio.to_thread(self._double.close)


PROVIDERS = [
    BwrapSandboxProvider,
    pytest.param(UsernsSandboxProvider, marks=pytest.mark.nightly),
    pytest.param(MaskedProcProvider, marks=pytest.mark.nightly),
    pytest.param(LandlockSandboxProvider, marks=pytest.mark.nightly),
    pytest.param(EngineProvider, marks=pytest.mark.docker),
    RemoteServiceProvider,
]
LEAST_CHECKS = 71


@pytest.fixture(
    scope="module", params=PROVIDERS, ids=["bwrap", "userns", "noproc", "landlock", "container", "opensandbox"]
)
def environment(request: pytest.FixtureRequest) -> Iterator[Environment]:
    """One sandbox for all checks of a provider."""
    # Not tmp_path: Landlock works with the host's paths, whose parents the sandbox's uid must be able to pass, and
    # inside /tmp is another directory.
    data_dir = Path(tempfile.mkdtemp(prefix="deerflow-contract-", dir="/var/tmp"))
    data_dir.chmod(0o711)
    provider: IsolatingProvider = request.param(data_dir)
    report = provider.probe()
    if not report.ok:
        pytest.skip(str(report))
    stack = AsyncExitStack()
    with asyncio.Runner() as runner:
        yield runner.run(stack.enter_async_context(open_environment(provider, data_dir)))
        runner.run(stack.aclose())
    # The suite leaves trees that are too deep for shutil.rmtree.
    subprocess.run(["rm", "-rf", "--", str(data_dir)], check=True)


def test_the_suite_is_complete() -> None:
    ids = [check.id for check in CHECKS]
    assert len(set(ids)) == len(ids) >= LEAST_CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: f"{check.id}-{check.title}")
async def test_a_sandbox_keeps_its_promise(environment: Environment, check: Check) -> None:
    if (reason := check.unmet(environment.sandbox.isolation)) is not None:
        pytest.skip(f"{environment.sandbox.isolation.level}: {reason}")
    try:
        await check.run(environment)
    except NotApplicable as error:
        pytest.skip(str(error))
