"""Containers as sandboxes, beyond the contract of `tests/contracts/sandbox`: with the engine of this machine, `make test-docker`."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contracts.sandbox.environment import thread_policy

from deerflow.community.aio_sandbox.container import LABEL_OF_DATA, ContainerLauncher
from deerflow.community.aio_sandbox.containers import ContainerProvider
from deerflow.community.aio_sandbox.engine import ContainerEngine
from deerflow.config import Paths
from deerflow.sandbox.interface import Network, Policy, Sandbox
from deerflow.sandbox.isolated import IsolatedSandbox

pytestmark = pytest.mark.docker

SOCKET = Paths("/nowhere").docker_socket


@pytest.fixture
async def provider() -> AsyncIterator[ContainerProvider]:
    data_dir = Path(tempfile.mkdtemp(prefix="deerflow-test-", dir="/var/tmp"))
    data_dir.chmod(0o711)
    provider = ContainerProvider(data_dir, docker_socket=SOCKET, replicas=2)
    yield provider
    await provider.shutdown()
    await asyncio.to_thread(subprocess.run, ["rm", "-rf", "--", str(data_dir)], check=True)


def policy(provider: ContainerProvider, thread: str) -> Policy:
    return thread_policy(provider.state_dir.parent, thread)


async def sandbox(provider: ContainerProvider, thread: str, **changes: object) -> Sandbox:
    wanted = replace(await asyncio.to_thread(policy, provider, thread), **changes)
    return await provider.acquire(thread, user_id="u", policy=wanted)


async def test_beyond_the_replicas_the_longest_unused_container_ends_and_its_shell_goes_on_later(
    provider: ContainerProvider,
):
    first = await sandbox(provider, "first")
    await first.exec("mkdir deep && cd deep && export KEPT=yes")
    others = [await sandbox(provider, name) for name in ("second", "third")]
    for other in others:
        await other.exec("true")
    assert isinstance(first, IsolatedSandbox)
    assert not first.awake and all(other.awake for other in others)
    result = await first.exec("pwd; echo $KEPT")
    assert result.output == "/mnt/user-data/workspace/deep\nyes\n"


async def test_what_may_be_reached_is_reached_through_the_proxy_alone(provider: ContainerProvider):
    guarded = await sandbox(provider, "guarded", network=Network(mode="allowlist", allow=("example.org",)))
    code = (
        "import urllib.error, urllib.request as u\n"
        "try: u.urlopen('http://example.com')\n"
        "except urllib.error.HTTPError as e: print(e.code)"
    )
    assert (await guarded.exec(f'python3 -c "{code}"')).output == "403\n"
    assert (
        await guarded.exec("ls /sys/class/net 2>/dev/null; tail -n +3 /proc/net/dev | cut -d: -f1")
    ).output.split() == ["lo"]


async def test_a_container_that_was_made_and_never_started_is_cleared_away_by_the_next_server(
    provider: ContainerProvider, monkeypatch: pytest.MonkeyPatch
):
    engine = ContainerEngine(SOCKET)
    label = f"{LABEL_OF_DATA}={provider.state_dir}"
    body = {"Image": "deerflow-sandbox", "Labels": {LABEL_OF_DATA: str(provider.state_dir)}}
    await asyncio.to_thread(engine.create, f"deer-flow-sandbox-left-{provider.state_dir.parent.name}", body)
    monkeypatch.setattr("deerflow.community.aio_sandbox.containers.ABANDONED", -1.0)
    assert (await asyncio.to_thread(provider.probe)).ok
    assert await asyncio.to_thread(engine.never_started, label) == []


async def test_an_image_that_is_not_there_is_named_with_what_to_do(tmp_path: Path):
    missing = ContainerProvider(tmp_path, docker_socket=SOCKET, image="deerflow-no-such-image")
    [problem] = (await asyncio.to_thread(missing.probe)).problems
    assert problem.code == "image-missing" and "make docker-sandbox" in problem.fix


async def test_libraries_of_another_python_are_left_out_and_doctor_says_so(provider: ContainerProvider, tmp_path: Path):
    (tmp_path / "lib/python3.99").mkdir(parents=True)
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\n")
    without = await sandbox(provider, "without", tools_dir=tmp_path)
    assert (await without.exec("python3 -c 'print(1)'; test -e ~/venv || echo none")).output == "1\nnone\n"
    assert "another Python" in " ".join(without.isolation.warnings)


async def test_where_the_engines_processes_cannot_be_seen_commands_and_background_processes_go_on(
    provider: ContainerProvider, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ContainerLauncher, "_pid", lambda *_: 0)
    far = await sandbox(provider, "far")
    process = await far.start_process("sleep 300")
    assert (await far.exec("echo hi")).output == "hi\n"
    assert (await far.read_process(process.id)).running
    await provider.release(far.id, destroy=True)
    assert not far.awake
