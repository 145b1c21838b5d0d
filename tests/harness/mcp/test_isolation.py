"""Programs of third parties run in sandboxes of their own."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import Any

from tests.harness.mcp.conftest import SERVER, World


def in_sandbox(**more: Any) -> dict[str, Any]:
    """The same server; its sandbox sees this Python and the packages that it needs."""
    packages, python = sysconfig.get_paths()["purelib"], Path(sys.executable).resolve()
    seen = {packages: "/opt/packages", str(SERVER.parent): "/opt/server"}
    if not python.is_relative_to("/usr"):
        seen[sys.base_prefix] = sys.base_prefix
    mounts = [{"host_path": host, "container_path": path, "read_only": True} for host, path in seen.items()]
    environment = {"PYTHONPATH": "/opt/packages", **more.pop("env", {})}
    return {"command": str(python), "args": ["/opt/server/server.py"], "mounts": mounts, "env": environment, **more}


async def test_a_program_sees_its_own_home_and_the_declared_environment_only(world: World, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("keys")
    await world.tools({"s": in_sandbox(env={"SECRET": "s3cret", "LOOK_AT": str(secret)})})
    seen = (await world.call("s_environment")).content
    assert "secret=s3cret" in seen
    assert "home=/home/agent" in seen
    assert "sees=no" in seen


async def test_a_sandboxed_program_that_dies_comes_back_and_leaves_nothing_behind(world: World) -> None:
    await world.tools({"s": in_sandbox()})
    assert "the server speaks to its log" in world.servers.log("s")
    assert (await world.call("s_die")).status == "error"
    assert (await world.call("s_echo", text="x" * 300_000)).content == "x" * 300_000
    await world.servers.aclose()
    assert [path.name for path in world.servers.directory.glob("*/work/.mcp-*")] == []


async def test_a_machine_without_a_sandbox_refuses_programs_and_says_what_to_do(world: World, tmp_path: Path) -> None:
    from deerflow.sandbox.auto import UnavailableSandboxProvider
    from deerflow.sandbox.interface import Problem

    world.provider = UnavailableSandboxProvider(tmp_path, [Problem("none", "No isolation.", "Install bubblewrap.")])
    assert await world.tools({"s": {"command": "python3"}}) == {}
    assert "Install bubblewrap" in (await world.state("s"))["error"]
