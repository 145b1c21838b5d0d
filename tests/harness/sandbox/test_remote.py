"""Pods by a provisioner, against a double of its API and of the pods' HTTP contract."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.contracts.sandbox.environment import thread_policy
from tests.contracts.sandbox.shell import exit_codes, long_command
from tests.support.remote_sandboxes import TOKEN, RemoteSandboxes, remote_sandboxes

from deerflow.community.aio_sandbox import AioSandboxProvider
from deerflow.community.aio_sandbox.remote import pod_name
from deerflow.sandbox.interface import Policy, Sandbox, SandboxNotFoundError, SandboxRuntimeError

THREAD = "t"


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    return thread_policy(tmp_path, THREAD)


@pytest.fixture
def service(policy: Policy, tmp_path: Path) -> Iterator[RemoteSandboxes]:
    with remote_sandboxes(policy.mounts[0].host.parent, tmp_path) as service:
        yield service


@pytest.fixture
async def provider(service: RemoteSandboxes, tmp_path: Path) -> AsyncIterator[AioSandboxProvider]:
    provider = AioSandboxProvider(tmp_path / "data", provisioner_url=service.url, provisioner_token=TOKEN)
    yield provider
    await provider.shutdown()


@pytest.fixture
async def sandbox(provider: AioSandboxProvider, policy: Policy) -> Sandbox:
    return await provider.acquire(THREAD, user_id="u", policy=policy)


async def test_directory_and_variables_go_on_from_command_to_command_and_files_are_on_the_volume(
    sandbox: Sandbox, service: RemoteSandboxes
):
    await sandbox.write("/mnt/user-data/workspace/deep/a.txt", b"hello\n")
    assert service.pods == {}, "files need no pod"
    service.not_ready = 1
    result = await sandbox.exec("cd deep && export KEPT='a b' && cat a.txt")
    assert (result.output, result.exit_code, result.cwd) == ("hello\n", 0, "/mnt/user-data/workspace/deep")
    assert result.moved
    result = await sandbox.exec("echo $KEPT; pwd; echo more > b.txt; exit 3")
    assert (result.output, result.exit_code) == ("a b\n/mnt/user-data/workspace/deep\n", 3)
    assert await sandbox.read("/mnt/user-data/workspace/deep/b.txt") == (b"more\n", 5)
    assert service.pods == {pod_name("u:t"): THREAD}
    [match], _ = await sandbox.grep("/mnt/user-data/workspace", "mor.")
    assert (match.path, match.line) == ("/mnt/user-data/workspace/deep/b.txt", "more")


async def test_it_keeps_what_the_contract_says_of_any_shell(sandbox: Sandbox):
    class Here:
        @staticmethod
        async def sh(command: str):
            return await sandbox.exec(command)

    await long_command(Here)  # pyright: ignore[reportArgumentType]
    await exit_codes(Here)  # pyright: ignore[reportArgumentType]


async def test_a_secret_is_seen_by_its_command_alone_and_a_slow_command_is_given_up(sandbox: Sandbox):
    assert (await sandbox.exec("echo $TOKEN; export TOKEN", env={"TOKEN": "s3cr3t"})).output == "s3cr3t\n"
    assert (await sandbox.exec("echo [$TOKEN]")).output == "[]\n"
    result = await sandbox.exec("sleep 60", timeout=0.3)
    assert result.timed_out and result.exit_code is None
    assert (await sandbox.exec("seq 100000", max_output=1000)).truncated
    assert (await sandbox.run(["sh", "-c", "exit 7"])).exit_code == 7


async def test_background_processes_are_read_and_killed(sandbox: Sandbox):
    process = await sandbox.start_process("echo one; sleep 60")
    while not (seen := await sandbox.read_process(process.id)).output:
        await asyncio.sleep(0.05)
    assert (seen.output, seen.running) == ("one\n", True)
    killed = await sandbox.kill_process(process.id)
    assert (killed.running, killed.exit_code) == (False, 137)
    assert [one.running for one in await sandbox.list_processes()] == [False]
    with pytest.raises(SandboxNotFoundError):
        await sandbox.read_process("p9-none")


async def test_its_pod_is_removed_with_it_and_when_it_was_idle(
    provider: AioSandboxProvider, sandbox: Sandbox, service: RemoteSandboxes
):
    await sandbox.exec("true")
    assert sandbox.awake
    await provider.release(sandbox.id, destroy=True)
    assert service.removed == [pod_name("u:t")] and not service.pods


async def test_a_provisioner_that_refuses_or_is_not_there_is_named(
    service: RemoteSandboxes, policy: Policy, tmp_path: Path
):
    wrong = AioSandboxProvider(tmp_path / "data", provisioner_url=service.url, provisioner_token="wrong")
    sandbox = await wrong.acquire(THREAD, user_id="u", policy=policy)
    with pytest.raises(SandboxRuntimeError, match="does not give a sandbox"):
        await sandbox.exec("true")
    await wrong.shutdown()
    missing = AioSandboxProvider(tmp_path / "data", provisioner_url="http://127.0.0.1:1")
    [problem] = (await asyncio.to_thread(missing.probe)).problems
    assert problem.code == "provisioner-missing"
