"""The part of the contract suite that holds without isolation."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.contracts.sandbox.checks import CHECKS
from tests.contracts.sandbox.environment import Check, Environment, NotApplicable, open_environment

from deerflow.sandbox.local import LocalSandboxProvider

KNOWN_GAPS = {"37": "without namespaces a daemon that drops session and environment cannot be told from others"}
AT_LEAST = {"34", "34.1", "35", "36", "40", "43", "44", "45", "46", "47", "48.1", "49", "54", "55", "56", "59", "59.1"}


@pytest.fixture(scope="module")
def environment() -> Iterator[Environment]:
    data_dir = Path(tempfile.mkdtemp(prefix="deerflow-contract-", dir="/var/tmp"))
    stack = AsyncExitStack()
    with asyncio.Runner() as runner:
        provider = LocalSandboxProvider(allow_host_bash=True)
        yield runner.run(stack.enter_async_context(open_environment(provider, data_dir)))
        runner.run(stack.aclose())
    # The suite leaves trees that are too deep for shutil.rmtree.
    subprocess.run(["rm", "-rf", "--", str(data_dir)], check=True)


def test_enough_of_the_suite_applies(environment: Environment) -> None:
    applicable = {check.id for check in CHECKS if check.unmet(environment.sandbox.isolation) is None}
    assert applicable >= AT_LEAST


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: f"{check.id}-{check.title}")
async def test_the_promise_is_kept(environment: Environment, check: Check) -> None:
    if (reason := check.unmet(environment.sandbox.isolation)) is not None:
        pytest.skip(f"no isolation: {reason}")
    if check.id in KNOWN_GAPS:
        pytest.skip(f"known gap: {KNOWN_GAPS[check.id]}")
    try:
        await check.run(environment)
    except NotApplicable as error:
        pytest.skip(str(error))
