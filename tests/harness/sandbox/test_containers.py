"""Containers as sandboxes: what can be held without an engine. With one, `make test-docker` runs the whole contract."""

from __future__ import annotations

import asyncio
import base64
import json
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.sandbox.environment import thread_policy

from deerflow.community.aio_sandbox import AioSandboxProvider
from deerflow.community.aio_sandbox.container import ContainerLauncher
from deerflow.community.aio_sandbox.containers import ContainerProvider
from deerflow.community.aio_sandbox.engine import ContainerEngine
from deerflow.config import AppConfig, Paths
from deerflow.sandbox.interface import SandboxUnavailableError
from deerflow.sandbox.isolation.plan import PYTHON_FLAGS, SUPERVISOR_SOURCE, LaunchRequest, start_message
from deerflow.sandbox.isolation.seccomp import build_filter
from deerflow.sandbox.policy import build_sandbox_provider
from deerflow.sandbox.supervisor import frame


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The supervisor as a container's first process: over standard input and output."""
    (tmp_path / "threads").mkdir()
    policy = thread_policy(tmp_path, "t")
    message = start_message(LaunchRequest(policy), home=str(tmp_path))
    message["environment"]["HOME"] = str(tmp_path)
    message["limits"] = {}
    message["filter"] = base64.b64encode(build_filter()).decode()
    command = [sys.executable, *PYTHON_FLAGS, str(SUPERVISOR_SOURCE)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(frame({"op": "start", **message}))
        process.stdin.flush()
        assert answer(process) == {"event": "ready"}
        yield process
        process.stdin.close()
        assert process.wait(20) == 0


def answer(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None
    (length,) = struct.unpack(">I", process.stdout.read(4))
    return json.loads(process.stdout.read(length))


def run(process: subprocess.Popen[bytes], command: str) -> str:
    assert process.stdin is not None
    process.stdin.write(frame({"op": "exec", "id": 1, "command": command, "timeout": 20, "stateless": True}))
    process.stdin.flush()
    output = b""
    while (event := answer(process))["event"] != "end":
        output += base64.b64decode(event["data"])
    return (output + base64.b64decode(event["tail"])).decode()


def test_a_supervisor_without_a_launcher_keeps_its_channel_to_itself_and_installs_the_filter(
    supervisor: subprocess.Popen[bytes],
):
    assert run(supervisor, "cat; readlink /proc/self/fd/0; echo done") == "/dev/null\ndone\n"
    program = "import ctypes, os; print(ctypes.CDLL(None, use_errno=True).unshare(0x10000000), ctypes.get_errno())"
    assert run(supervisor, f"{sys.executable} -c '{program}'").startswith("-1 ")
    assert "Seccomp:\t2" in run(supervisor, "cat /proc/self/status")


async def test_without_an_engine_commands_are_refused_with_what_to_do(tmp_path: Path):
    provider = ContainerProvider(tmp_path, docker_socket=tmp_path / "none.sock")
    [problem] = (await asyncio.to_thread(provider.probe)).problems
    assert problem.code == "engine-missing" and "DOCKER_HOST" in problem.fix
    sandbox = await provider.acquire("t", user_id="u", policy=await asyncio.to_thread(thread_policy, tmp_path, "t"))
    await sandbox.write("/mnt/user-data/workspace/a", b"files work")
    with pytest.raises(SandboxUnavailableError, match="No container engine answers"):
        await sandbox.exec("true")
    await provider.shutdown()


def test_the_configuration_names_engine_image_and_where_the_host_has_our_directories(tmp_path: Path):
    config = AppConfig.model_validate(
        {
            "sandbox": {
                "use": "deerflow.community.aio_sandbox:AioSandboxProvider",
                "image": "mine",
                "container_prefix": "p",
            }
        }
    )
    environ = {"DOCKER_HOST": "unix:///somewhere/engine.sock", "DEER_FLOW_HOST_BASE_DIR": "/srv/deerflow"}
    environ["DEER_FLOW_HOST_SKILLS_PATH"] = "/srv/skills"
    built = build_sandbox_provider(config, Paths(tmp_path, environ=environ))
    assert isinstance(built, AioSandboxProvider) and isinstance(provider := built.backend, ContainerProvider)
    assert (provider._image, provider._prefix, provider._engine.socket) == ("mine", "p", Path("/somewhere/engine.sock"))
    assert provider._host_paths == {tmp_path: Path("/srv/deerflow"), Path.cwd() / "skills": Path("/srv/skills")}
    assert provider.sockets_dir == tmp_path, "the engine's machine must find the proxy's socket, too"


def body(tmp_path: Path, host_paths: dict[Path, Path]) -> dict[str, Any]:
    launcher = ContainerLauncher(ContainerEngine(tmp_path / "none"), "image", "p", tmp_path / "sandbox", host_paths)
    return launcher.body(LaunchRequest(thread_policy(tmp_path, "t"), 200_001), "u:t")


def test_a_gateway_in_a_container_names_directories_as_the_engines_machine_has_them(tmp_path: Path):
    mounts = {one["Target"]: one for one in body(tmp_path, {tmp_path: Path("/srv/deerflow")})["HostConfig"]["Mounts"]}
    assert mounts["/mnt/user-data/workspace"]["Source"] == "/srv/deerflow/threads/t/workspace"
    assert all(one["Source"].startswith("/srv/deerflow/") for one in mounts.values())
    assert mounts["/mnt/skills"]["ReadOnly"] and mounts["/opt/agent.py"]["ReadOnly"]


def test_a_container_gets_no_right_no_network_and_a_user_of_its_own(tmp_path: Path):
    made = body(tmp_path, {})
    host = made["HostConfig"]
    assert (made["User"], host["NetworkMode"], host["CapDrop"]) == ("200001:200001", "none", ["ALL"])
    assert made["NetworkDisabled"]
    assert host["ReadonlyRootfs"] and host["SecurityOpt"] == ["no-new-privileges"] and "/sys" in host["MaskedPaths"]
    assert (host["PidsLimit"], host["Memory"]) == (128, (1024 + 64) << 20) and host["Memory"] == host["MemorySwap"]
    assert made["StdinOnce"] and host["AutoRemove"], "it ends with whoever holds its input"
    assert "Env" not in made, "what a container is given can be read with docker inspect"
