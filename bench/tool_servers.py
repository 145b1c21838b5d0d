"""What MCP servers cost: a first turn with twenty, three of which never answer, and a request that has a hundred tools to search.

The floor has no dead server, and no server. ``python -m bench.tool_servers PORT`` is one that lives.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.figures import Figure, above_floor
from bench.worker import Options
from deerflow.config import ConfigSource, Paths
from deerflow.context.run_options import RunOptions
from deerflow.features.mcp.offer import ServersForRun
from deerflow.identity import LOCAL_PRINCIPAL
from deerflow.runs.request import RunRequest
from deerflow.runtime import Runtime

SUBJECTS = ("ours",)
ROUNDS = 1
LIVE, DEAD, TOOLS, REPEATS = 17, 3, 6, 5


async def measure(subject: str, options: Options) -> dict[str, Any]:
    """Seconds of the first turn of a runtime, the live servers that it has then, and tokens of the next request."""
    data, repeats = Path(options.data), 1 if options.quick else REPEATS
    with socket.socket() as silent, socket.socket() as free:
        for one in (silent, free):
            one.bind(("127.0.0.1", 0))
        silent.listen()
        port = free.getsockname()[1]
        free.close()
        server = subprocess.Popen([sys.executable, "-m", "bench.tool_servers", str(port)], stderr=subprocess.DEVNULL)
        try:
            await _until_open(port)
            live = {f"live{number}": _entry(port) for number in range(LIVE)}
            dead = {f"dead{number}": _entry(silent.getsockname()[1]) for number in range(DEAD)}
            found: dict[str, list[dict[str, float]]] = {"none": [], "live": [], "dead": []}
            for number in range(repeats + 1):
                for kind, servers in (("none", {}), ("live", live), ("dead", {**dead, **live})):
                    found[kind].append(await _first_turn(options, data / f"{kind}-{number}", servers))
        finally:
            server.kill()
            server.wait()
    # The first turns of all import what the others have.
    return {
        kind: {name: statistics.median(reading[name] for reading in readings[1:]) for name in readings[0]}
        for kind, readings in found.items()
    }


def figures(results: dict[str, list[dict[str, Any]]]) -> list[Figure]:
    (found,) = results["ours"]
    none, live, dead = (found[kind] for kind in ("none", "live", "dead"))
    name, floor = f"{LIVE + DEAD} MCP servers, {DEAD} dead", f"floor: the {LIVE} that live"
    tools = f"fixed prompt, {LIVE * TOOLS} deferred tools"
    return [
        Figure(f"{name}: first turn", "s", dead["turn"], live["turn"], above_floor(1, "s"), floor),
        Figure(f"{name}: all that live are there", "s", dead["ready"], live["ready"], above_floor(1, "s"), floor),
        Figure(tools, "tokens", live["tokens"], none["tokens"], above_floor(400, "tokens"), "floor: no server"),
    ]


async def _first_turn(options: Options, data: Path, servers: dict[str, Any]) -> dict[str, float]:
    data.mkdir(mode=0o711, parents=True)
    file = data / "extensions_config.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    os.environ["DEER_FLOW_EXTENSIONS_CONFIG_PATH"] = str(file)
    model = {"name": "m", "use": "langchain_openai:ChatOpenAI", "model": "m", "api_key": "k"}
    settings = {
        "models": [{**model, "base_url": options.base_url}],
        "sandbox": {"tool_image": {"enabled": False}},
        "title": {"enabled": False},
        "database": {"backend": "sqlite"},
    }
    runtime = Runtime(ConfigSource(None, overrides=settings), Paths(data))
    await runtime.start()
    began = time.perf_counter()
    request = RunRequest(input={"messages": [{"role": "user", "content": "Hello."}]}, if_not_exists="create")
    run = await runtime.runs.start(LOCAL_PRINCIPAL, request, thread_id="t")
    await runtime.runs.wait(LOCAL_PRINCIPAL, run.run_id)
    turn = time.perf_counter() - began
    expected = sum(TOOLS for name in servers if name.startswith("live"))
    async with asyncio.timeout(60):
        while await _count(runtime) < expected:
            await asyncio.sleep(0.01)
    ready = time.perf_counter() - began
    table = await runtime.agent_provider.context_table(LOCAL_PRINCIPAL, {}, RunOptions())
    await runtime.aclose()
    return {"turn": turn, "ready": ready, "tokens": table["system"] + table["tools"]}


async def _count(runtime: Runtime) -> int:
    """Return the number of tools of servers that are up."""
    supplies = await runtime.agent_provider.harness.supplies(LOCAL_PRINCIPAL, RunOptions())
    return sum(len(one.tools) for one in supplies if isinstance(one, ServersForRun))


def _entry(port: int) -> dict[str, str]:
    return {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"}


async def _until_open(port: int) -> None:
    async with asyncio.timeout(60):
        while True:
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    return
            await asyncio.sleep(0.02)


def serve(port: int) -> None:
    """A server of six tools with arguments that take words to explain."""
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("bench")
    for number in range(TOOLS):

        def work(repository: str, title: str = "", labels: list[str] | None = None) -> str:
            return repository

        about = f"Does the work of number {number} in a repository: finds, compares and changes what has that title."
        server.add_tool(work, name=f"work{number}", description=about)
    server.run("streamable-http", port=port)


if __name__ == "__main__":
    serve(int(sys.argv[1]))
