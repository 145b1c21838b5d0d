"""Programs of third parties run in sandboxes of their own."""

from __future__ import annotations

import asyncio
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.harness.mcp.conftest import SERVER, World, config_of

from deerflow.config import Paths
from deerflow.context.run_options import RunOptions
from deerflow.harness import Harness


def in_sandbox(**more: Any) -> dict[str, Any]:
    """The same server; its sandbox sees this Python and the packages that it needs."""
    packages, python = sysconfig.get_paths()["purelib"], Path(sys.executable).resolve()
    seen = {packages: "/opt/packages", str(SERVER.parent): "/opt/server"}
    if not python.is_relative_to("/usr"):
        seen[sys.base_prefix] = sys.base_prefix
    mounts = [{"host_path": host, "container_path": path, "read_only": True} for host, path in seen.items()]
    environment = {"PYTHONPATH": "/opt/packages", **more.pop("env", {})}
    args = [f"/opt/server/{more.pop('program', 'server.py')}"]
    return {"command": str(python), "args": args, "mounts": mounts, "env": environment, **more}


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


async def test_a_sandboxed_program_that_is_not_there_is_named_and_one_that_ends_alike_is_not(world: World) -> None:
    await world.tools(
        {"gone": {"command": "no-such-program-x"}, "ends": {"command": "sh", "args": ["-c", "no-such-y"]}}
    )
    gone, ends = await world.state("gone"), await world.state("ends")
    assert (gone["reason"], gone["values"]) == ("not_found", {"program": "no-such-program-x"})
    assert gone["error"] == "no-such-program-x was not found"
    assert ends["reason"] == "ended"


async def test_a_machine_without_a_sandbox_refuses_programs_and_says_what_to_do(world: World, tmp_path: Path) -> None:
    from deerflow.sandbox.auto import UnavailableSandboxProvider
    from deerflow.sandbox.interface import Problem

    world.provider = UnavailableSandboxProvider(tmp_path, [Problem("none", "No isolation.", "Install bubblewrap.")])
    assert await world.tools({"s": {"command": "python3"}}) == {}
    assert "Install bubblewrap" in (await world.state("s"))["error"]


async def test_a_server_that_asks_for_it_works_on_the_files_of_each_thread(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deerflow.features.mcp.servers.MAX_THREADS", 1)
    tools = await world.tools({"s": in_sandbox(thread_files=True, env={"SECRET": "s3cret"})})
    harness = await asyncio.to_thread(Harness.build, config_of({}), Paths(tmp_path), ())
    harness = replace(harness, sandbox_provider=world.provider)
    said: list[str] = []
    for thread in ("t1", "t2", "t2", "t1"):
        context = await harness.run_context(thread, RunOptions())
        sandbox = await context.sandbox()
        runtime = SimpleNamespace(context=context, tool_call_id="c1")
        name = f"{len(said)}.txt"
        said.append((await tools["s_note"].coroutine(runtime, name=name, text=thread)).content)
        assert await sandbox.read(f"/mnt/user-data/workspace/{name}") == (thread.encode(), 2), said
        seen = await sandbox.exec(f"echo more >>{name}; cat {name}; ls -a /mnt/mcp; env; cat /proc/[0-9]*/environ")
        assert "t1more" in seen.output or "t2more" in seen.output, "the agent can change what the server wrote"
        assert "s3cret" not in seen.output and ".mcp-" not in seen.output
    assert "1.txt" not in said[3] and "0.txt" in said[3], "each thread has its own files"
    assert "s3cret" in said[0] and len(world.servers._running) == 2, "the one that was idle longest made room"
    without = await world.call("s_note", name="x", text="y")
    assert without.status == "error" and "files of a thread" in without.content


async def test_a_server_that_asks_where_it_may_work_gets_the_workspace(world: World, tmp_path: Path) -> None:
    tools = await world.tools({"s": in_sandbox(program="odd_server.py", thread_files=True)})
    harness = await asyncio.to_thread(Harness.build, config_of({}), Paths(tmp_path), ())
    context = await replace(harness, sandbox_provider=world.provider).run_context("t1", RunOptions())
    said = (await tools["s_roots"].coroutine(SimpleNamespace(context=context, tool_call_id="c1"))).content
    assert "file:///mnt/user-data/workspace" in said
