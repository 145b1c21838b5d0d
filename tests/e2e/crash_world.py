"""DeerFlow as processes that are killed and started again: one with SQLite, or a gateway and two workers on PostgreSQL."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.crash_client import Client
from tests.e2e.crash_endpoint import FILE, CallsEndpoint
from tests.support.gateway_process import DeerFlowProcess, GatewayProcess

from deerflow.config import Paths

CONFIG = """
sandbox: {{tool_image: {{enabled: false}}}}
models: [{{name: scripted, use: "langchain_openai:ChatOpenAI", model: scripted-model, base_url: "{url}", api_key: k}}]
"""
POSTGRES = "database:\n  backend: postgres\n  postgres_url: {url}\n"
GUARD = 120.0


class World:
    """Args:
    root: a directory for everything.
    endpoint: the model.
    postgres_url: of an empty database; None: SQLite and one process.
    """

    def __init__(self, root: Path, endpoint: CallsEndpoint, postgres_url: str | None = None) -> None:
        self.root = root
        self.endpoint = endpoint
        config = CONFIG.format(url=endpoint.base_url) + (POSTGRES.format(url=postgres_url) if postgres_url else "")
        is_scaled = postgres_url is not None
        arguments = ("--no-execute",) if is_scaled else ()
        self.gateway = GatewayProcess(root, *arguments, config=config, model_url=endpoint.base_url)
        workers = ("worker-1", "worker-2") if is_scaled else ()
        self.processes: dict[str, DeerFlowProcess] = {"gateway": self.gateway} | {
            name: DeerFlowProcess(root, "worker", name=name, config=config, model_url=endpoint.base_url)
            for name in workers
        }
        self.executing = workers or ("gateway",)
        """Names of the processes that execute runs."""
        self.kills: Counter[str] = Counter()
        self._paths = Paths(self.gateway.home)

    def start(self) -> None:
        """Returns when all answer."""
        self.gateway.start()
        for name, process in self.processes.items():
            if name != "gateway":
                process.start()

    def kill(self, name: str) -> None:
        """``kill -9``."""
        self.processes[name].kill()
        self.kills[name] += 1

    def launch(self, name: str) -> None:
        """Start it again, and do not wait."""
        DeerFlowProcess.start(self.processes[name])

    async def ready(self, name: str, client: Client) -> None:
        """When it has come so far that it answers or takes runs."""
        process = self.processes[name]
        async with asyncio.timeout(GUARD):
            while not (await client.is_served() if process is self.gateway else "takes runs" in process.output):
                if not process.is_running:
                    raise AssertionError(f"{name} ended by itself:\n{process.output[-4000:]}")
                await asyncio.sleep(0.05)

    def lines(self, thread_id: str) -> Counter[str]:
        """What the commands of a thread have left behind."""
        file = self._paths.workspace(thread_id, "default") / FILE
        return Counter(file.read_text().split()) if file.exists() else Counter()

    def thread_dir(self, thread_id: str) -> Path:
        return self._paths.thread_dir(thread_id, "default")

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()

    def left_behind(self) -> list[str]:
        """Command lines of processes that still work in the world's directory."""
        return [line for line in map(_command_of, Path("/proc").glob("[0-9]*")) if str(self.root) in line]


def _command_of(process: Path) -> str:
    if process.name == str(os.getpid()):
        return ""
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


@contextmanager
def world(root: Path, endpoint: CallsEndpoint, postgres_url: str | None) -> Iterator[World]:
    made = World(root, endpoint, postgres_url)
    try:
        made.start()
        yield made
    finally:
        made.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(GUARD):
        while not condition():
            await asyncio.sleep(0.05)
