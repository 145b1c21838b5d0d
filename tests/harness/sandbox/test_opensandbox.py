"""Sandboxes of OpenSandbox, beside what the contract says of any: how they are asked for, kept and given back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.contracts.sandbox.environment import thread_policy
from tests.support.opensandbox import KEY, OpenSandboxService, opensandbox

from deerflow.community import remote_sandbox
from deerflow.community.opensandbox import OpenSandboxProvider
from deerflow.config import AppConfig, Paths
from deerflow.sandbox.interface import Policy, Sandbox, SandboxRuntimeError, SandboxUnavailableError
from deerflow.sandbox.policy import build_sandbox_provider
from deerflow.sandbox.session import SessionDiedError


@pytest.fixture
def service(tmp_path: Path) -> Iterator[OpenSandboxService]:
    with opensandbox({"deerflow": tmp_path}) as double:
        yield double


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    return thread_policy(tmp_path, "t")


@pytest.fixture
async def provider(service: OpenSandboxService, tmp_path: Path) -> AsyncIterator[OpenSandboxProvider]:
    provider = OpenSandboxProvider(tmp_path, opensandbox_url=service.url, opensandbox_key=KEY)
    yield provider
    await provider.shutdown()
    assert service.up == []


@pytest.fixture
async def sandbox(provider: OpenSandboxProvider, policy: Policy) -> Sandbox:
    return await provider.acquire("t", user_id="u", policy=policy)


async def test_its_network_is_closed_whatever_the_configuration_says(
    service: OpenSandboxService, provider: OpenSandboxProvider, sandbox: Sandbox
):
    looked = await sandbox.exec("python3 -c 'import socket; print(len(socket.if_nameindex()))'")
    assert looked.output == "1\n", "its own loopback alone"
    [body] = service.bodies
    assert body["networkPolicy"] == {"defaultAction": "deny", "egress": []}
    assert 60 <= body["timeout"] <= 600, "it ends by itself if its worker is killed"
    assert "network" in " ".join(sandbox.isolation.warnings)


async def test_a_data_directory_that_is_a_volume_is_mounted_by_its_name(service: OpenSandboxService, tmp_path: Path):
    provider = OpenSandboxProvider(
        tmp_path, opensandbox_url=f"{service.url}/v1/", opensandbox_key=KEY, opensandbox_volume="deerflow"
    )
    policy = await asyncio.to_thread(thread_policy, tmp_path, "t")
    sandbox = await provider.acquire("t", user_id="u", policy=policy)
    await sandbox.write("/mnt/user-data/uploads/a", b"hello")
    assert (await sandbox.exec("cp ../uploads/a ../outputs/b; cat /mnt/skills/*")).output == "a skill\n"
    assert await sandbox.read("/mnt/user-data/outputs/b") == (b"hello", 5)
    [body] = service.bodies
    assert all(one["pvc"] == {"claimName": "deerflow", "createIfNotExists": False} for one in body["volumes"])
    assert {one["mountPath"] for one in body["volumes"] if one["readOnly"]} == {"/mnt/skills"}
    await provider.shutdown()


async def test_a_sandbox_is_waited_for_and_one_that_fails_is_named_and_given_back(
    service: OpenSandboxService, sandbox: Sandbox
):
    service.failure = "no such image"
    with pytest.raises(SandboxRuntimeError, match="runtime_error: no such image"):
        await sandbox.exec("true")
    assert service.up == []
    service.failure, service.pending = "", 2
    assert (await sandbox.exec("echo here")).output == "here\n"


async def test_a_sandbox_that_has_ended_is_named_and_the_next_command_has_another(
    service: OpenSandboxService, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
):
    await sandbox.exec("export KEPT=1; cd /tmp")
    await asyncio.to_thread(service.end, service.up[0])
    with pytest.raises(SessionDiedError, match="The next command starts a new one"):
        await sandbox.exec("true")
    assert (await sandbox.exec("echo $KEPT; pwd")).output == "1\n/tmp\n"
    monkeypatch.setattr(remote_sandbox, "CLAIM_INTERVAL", 0.0)
    await asyncio.to_thread(service.end, service.up[0])
    assert (await sandbox.exec("echo seen before")).output == "seen before\n"


async def test_a_lease_is_renewed_while_the_sandbox_is_up_and_used_or_not(
    service: OpenSandboxService, provider: OpenSandboxProvider, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
):
    await sandbox.exec("true")
    monkeypatch.setattr(remote_sandbox, "RENEW_INTERVAL", 0.0)
    await provider.spawner.call(provider.reap(asyncio.get_running_loop().time()))
    assert service.renewed == service.up


async def test_a_cancelled_command_ends_with_all_that_it_started(sandbox: Sandbox):
    running = asyncio.create_task(sandbox.exec("setsid sleep 300 & echo > /tmp/up; sleep 300"))
    while await sandbox.stat("/tmp/up") is None:
        await asyncio.sleep(0.02)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    while (await sandbox.exec("grep -al '^sleep.300' /proc/[0-9]*/cmdline")).output:
        await asyncio.sleep(0.02)


async def test_background_processes_are_read_and_killed_and_a_whole_output_is_kept(sandbox: Sandbox):
    process = await sandbox.start_process("echo one; sleep 60")
    while not (seen := await sandbox.read_process(process.id)).output:
        await asyncio.sleep(0.02)
    assert (seen.output, seen.running) == ("one\n", True)
    assert (await sandbox.kill_process(process.id)).exit_code == 137
    kept = await sandbox.exec("seq 1000", max_output=100, keep_output="/tmp/kept/all", keep_after=100)
    assert kept.kept and kept.truncated and kept.output.startswith("1\n2\n") and kept.output.endswith("\n1000\n")
    data, _ = await sandbox.read("/tmp/kept/all")
    assert data == b"".join(b"%d\n" % number for number in range(1, 1001))


async def test_a_command_that_kills_all_that_it_can_reach_does_not_end_the_sandbox(sandbox: Sandbox):
    with pytest.raises(SandboxRuntimeError):
        await sandbox.exec("kill -9 -1")
    for _ in range(3):
        try:
            answer = await sandbox.exec("echo back")
            break
        except SandboxRuntimeError:
            continue
    assert answer.output == "back\n"


async def test_a_service_that_refuses_or_is_not_there_is_named(service: OpenSandboxService, tmp_path: Path):
    for url, key, said in ((service.url, "wrong", "UNAUTHORIZED"), ("http://127.0.0.1:1", KEY, "opensandbox_url")):
        provider = OpenSandboxProvider(tmp_path, opensandbox_url=url, opensandbox_key=key)
        sandbox = await provider.acquire("t", user_id="u", policy=await asyncio.to_thread(thread_policy, tmp_path, "t"))
        with pytest.raises(SandboxUnavailableError, match=said):
            await sandbox.exec("true")
        await provider.shutdown()


def test_the_configuration_names_service_key_and_volume(tmp_path: Path):
    use = "deerflow.community.opensandbox:OpenSandboxProvider"
    settings = {"use": use, "opensandbox_url": "http://o:8080", "opensandbox_key": "k", "opensandbox_volume": "v"}
    provider = build_sandbox_provider(AppConfig.model_validate({"sandbox": settings}), Paths(tmp_path, environ={}))
    assert isinstance(provider, OpenSandboxProvider)
    assert (provider._service.url, provider._volume) == ("http://o:8080/v1", "v")
