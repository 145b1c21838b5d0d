"""Pods as sandboxes: DeerFlow, the provisioner, a cluster's API and what runs in a pod, each over real HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from tests.contracts.sandbox.shell import exit_codes, long_command
from tests.support.kubernetes_cluster import Cluster
from tests.support.provisioners import TOKEN, provisioner

from deerflow.community import remote_http, remote_sandbox
from deerflow.community.aio_sandbox import AioSandboxProvider
from deerflow.community.aio_sandbox.pods import pod_name
from deerflow.config.paths import Paths
from deerflow.config.schema import AppConfig
from deerflow.sandbox.interface import Policy, Sandbox, SandboxNotFoundError, SandboxRuntimeError
from deerflow.sandbox.policy import thread_policy
from deerflow.sandbox.session import SessionDiedError

THREAD, USER = "t", "u"
POD = f"sandbox-{pod_name(f'{USER}:{THREAD}')}"


@pytest.fixture
def policy(paths: Paths) -> Policy:
    paths.ensure_thread_dirs(THREAD, USER)
    return thread_policy(AppConfig(), paths, THREAD, USER)


@pytest.fixture
def patience() -> float:
    """Seconds for which the provisioner waits for a pod."""
    return 20.0


@pytest.fixture
def url(cluster: Cluster, patience: float) -> Iterator[str]:
    with provisioner(cluster, patience) as url:
        yield url


@pytest.fixture
async def provider(url: str, paths: Paths) -> AsyncIterator[AioSandboxProvider]:
    provider = AioSandboxProvider(paths.base_dir, provisioner_url=url, provisioner_token=TOKEN)
    yield provider
    await provider.shutdown()


@pytest.fixture
async def sandbox(provider: AioSandboxProvider, policy: Policy) -> Sandbox:
    return await provider.acquire(THREAD, user_id=USER, policy=policy)


async def test_directory_and_variables_go_on_from_command_to_command_and_files_are_on_the_volume(
    sandbox: Sandbox, cluster: Cluster
):
    await sandbox.write("/mnt/user-data/workspace/deep/a.txt", b"hello\n")
    assert cluster.all("pods") == [], "files need no pod"
    result = await sandbox.exec("cd deep && export KEPT='a b' && cat a.txt")
    assert (result.output, result.exit_code, result.cwd) == ("hello\n", 0, "/mnt/user-data/workspace/deep")
    assert result.moved
    result = await sandbox.exec("echo $KEPT; pwd; echo more > b.txt; exit 3")
    assert (result.output, result.exit_code) == ("a b\n/mnt/user-data/workspace/deep\n", 3)
    assert await sandbox.read("/mnt/user-data/workspace/deep/b.txt") == (b"more\n", 5)
    assert [pod["metadata"]["name"] for pod in cluster.all("pods")] == [POD]
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


async def test_its_pod_is_removed_with_it_and_everything_of_the_pod_with_that(
    provider: AioSandboxProvider, sandbox: Sandbox, cluster: Cluster
):
    await sandbox.exec("true")
    assert sandbox.awake and cluster.all("services") and cluster.all("secrets")
    await provider.release(sandbox.id, destroy=True)
    while cluster.all("pods"):
        await asyncio.sleep(0.02)
    assert not cluster.all("services") and not cluster.all("secrets")


async def test_a_pod_sees_its_thread_alone_where_file_tools_see_it(sandbox: Sandbox, paths: Paths, cluster: Cluster):
    skills = await asyncio.to_thread(paths.ensure_skills_dir, USER)
    await asyncio.to_thread((skills / "SKILL.md").write_text, "mine")
    await sandbox.write("/tmp/by-tool", b"1")
    await sandbox.write("/home/agent/by-tool", b"2")
    await sandbox.exec("cat /tmp/by-tool /home/agent/by-tool > /mnt/user-data/outputs/all; echo 3 > /tmp/by-command")
    assert await sandbox.read("/mnt/user-data/outputs/all") == (b"12", 2)
    assert await sandbox.read("/tmp/by-command") == (b"3\n", 2)
    seen = await sandbox.exec(
        "ls /mnt /mnt/user-data; cat /mnt/skills/custom/SKILL.md; echo no > /mnt/skills/custom/new"
    )
    assert seen.output.startswith(
        "/mnt:\nacp-workspace\nskills\nuser-data\n\n/mnt/user-data:\noutputs\nuploads\nworkspace\nmine"
    )
    assert "Read-only file system" in seen.output
    # Of the folder around it a link could be put in its place, which would lead tools to wherever it points.
    moved = await sandbox.exec("mv /mnt/user-data/workspace /mnt/user-data/w || echo [$SANDBOX_API_KEY]")
    assert moved.output.endswith("\n[]\n")
    assert (await sandbox.exec("id -u; grep CapEff /proc/self/status")).output == "10001\nCapEff:\t0000000000000000\n"
    [pod] = cluster.all("pods")
    claims = {mount["subPath"] for mount in pod["spec"]["containers"][0]["volumeMounts"]}
    assert claims and all(
        path.startswith((f"users/{USER}/threads/{THREAD}/", f"users/{USER}/skills/")) for path in claims
    )


async def test_a_pod_serves_commands_to_the_one_that_has_its_key(sandbox: Sandbox, cluster: Cluster):
    await sandbox.exec("true")
    [service] = cluster.all("services")
    address = f"http://{service['spec']['clusterIP']}:8080"
    for headers in ({}, {"X-AIO-API-Key": ""}, {"X-AIO-API-Key": TOKEN}, {"X-AIO-API-Key": "\xe9"}):
        given = {key: value.encode("latin-1") for key, value in headers.items()}
        async with httpx.AsyncClient(base_url=address, headers=given, trust_env=False) as http:
            assert (await http.post("/v1/shell/exec", json={"command": "id"})).status_code == 401
            assert (await http.get("/v1/sandbox")).status_code == 401


async def test_what_a_command_leaves_behind_keeps_no_answer_back(sandbox: Sandbox):
    assert (await sandbox.exec("sleep 60 & echo here", timeout=20)).output == "here\n"


async def test_a_pod_that_was_evicted_is_named_and_the_next_command_has_another(sandbox: Sandbox, cluster: Cluster):
    await sandbox.exec("export KEPT=1; cd /tmp")
    [pod] = cluster.all("pods")
    cluster.kubelet.end(POD, "Evicted")
    with pytest.raises(SessionDiedError, match="The next command starts a new one"):
        while True:
            await sandbox.exec("true")
    assert (await sandbox.exec("echo $KEPT; pwd")).output == "1\n/tmp\n"
    [new] = cluster.all("pods")
    assert new["metadata"]["uid"] != pod["metadata"]["uid"]


async def test_a_pod_that_is_gone_when_it_is_asked_for_again_is_replaced_before_the_command(
    sandbox: Sandbox, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(remote_sandbox, "CLAIM_INTERVAL", 0.0)
    await sandbox.start_process("sleep 60")
    cluster.kubelet.end(POD, "Evicted")
    assert (await sandbox.exec("echo here")).output == "here\n"
    assert await sandbox.list_processes() == [] and len(cluster.kubelet.started) == 2


async def test_a_command_that_kills_all_that_it_can_reach_does_not_end_the_sandbox(sandbox: Sandbox):
    with pytest.raises(SandboxRuntimeError):
        await sandbox.exec("kill -9 -1")
    assert (await sandbox.exec("echo back")).output == "back\n"


@pytest.mark.parametrize("patience", [0.2])
async def test_a_pod_that_begins_late_is_waited_for(sandbox: Sandbox, cluster: Cluster):
    cluster.kubelet.delay = 0.5  # longer than the provisioner waits
    assert (await sandbox.exec("echo here")).output == "here\n"


@pytest.mark.parametrize("patience", [0.2])
async def test_a_pod_that_never_gets_ready_is_removed_and_the_reason_is_said(
    sandbox: Sandbox, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    cluster.kubelet.unschedulable = "0/3 nodes are available: 3 Insufficient memory."
    with monkeypatch.context() as impatient:
        impatient.setattr(remote_http, "READY_TIMEOUT", 1.0)
        with pytest.raises(SandboxRuntimeError, match=r"Its pod is Pending\. Unschedulable: 0/3 nodes are available"):
            await sandbox.exec("true")
    cluster.kubelet.unschedulable = ""
    assert (await sandbox.exec("echo room again")).output == "room again\n"


async def test_an_image_that_cannot_be_had_is_named_at_once(sandbox: Sandbox, cluster: Cluster):
    cluster.kubelet.waits_for = ("ImagePullBackOff", 'Back-off pulling image "deerflow-sandbox"')
    with pytest.raises(
        SandboxRuntimeError, match='Pod creation failed: ImagePullBackOff: Back-off pulling image "deerflow'
    ):
        await sandbox.exec("true")
    while cluster.all("pods"):
        await asyncio.sleep(0.02)


async def test_a_provisioner_that_refuses_or_is_not_there_is_named(url: str, policy: Policy, tmp_path: Path):
    wrong = AioSandboxProvider(tmp_path / "data", provisioner_url=url, provisioner_token="wrong")
    sandbox = await wrong.acquire(THREAD, user_id=USER, policy=policy)
    with pytest.raises(SandboxRuntimeError, match="Show the provisioner's token"):
        await sandbox.exec("true")
    await wrong.shutdown()
    missing = AioSandboxProvider(tmp_path / "data", provisioner_url="http://127.0.0.1:1")
    [problem] = (await asyncio.to_thread(missing.probe)).problems
    assert problem.code == "provisioner-missing"


async def test_a_worker_that_is_done_with_a_thread_leaves_the_pod_to_the_one_that_asked_for_it_since(
    url: str, paths: Paths, policy: Policy, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(remote_sandbox, "CLAIM_INTERVAL", 0.0)
    workers = [AioSandboxProvider(paths.base_dir, provisioner_url=url, provisioner_token=TOKEN) for _ in range(3)]
    first, second, third = [await one.acquire(THREAD, user_id=USER, policy=policy) for one in workers]
    for sandbox in (first, second, third, second):
        await sandbox.exec("echo >> /home/agent/uses")
    process = await second.start_process("sleep 60")
    await workers[0].release(first.id, destroy=True)
    await workers[2].shutdown()
    assert (await second.read_process(process.id)).running
    first = await workers[0].acquire(THREAD, user_id=USER, policy=policy)
    assert (await first.exec("wc -l < /home/agent/uses")).output == "4\n"  # takes it back
    await workers[1].shutdown()
    assert len(cluster.kubelet.started) == len(cluster.all("pods")) == 1
    await workers[0].shutdown()
    while cluster.all("pods"):
        await asyncio.sleep(0.02)


async def test_a_thread_works_on_while_the_provisioner_restarts(
    cluster: Cluster, paths: Paths, policy: Policy, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(remote_sandbox, "CLAIM_INTERVAL", 0.0)
    with provisioner(cluster) as url:
        worker = AioSandboxProvider(paths.base_dir, provisioner_url=url, provisioner_token=TOKEN)
        sandbox = await worker.acquire(THREAD, user_id=USER, policy=policy)
        assert (await sandbox.exec("echo 1")).output == "1\n"
    assert (await sandbox.exec("echo 2")).output == "2\n"
    await worker.shutdown()
