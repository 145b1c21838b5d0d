"""`compose.scale.yaml` as it stands, with services that are killed: `make test-docker`."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[2]
PATIENCE = 180.0
COMMANDS = 6
"""Of each run: one every second, so that all kills fall into it."""
KILLED = ("worker_1", "gateway_1", "worker_2", "postgres_1", "gateway_2", "nginx_1")

T = TypeVar("T")


def until(condition: Callable[[], T], explain: Callable[[], str] = str) -> T:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            if value := condition():
                return value
        except (httpx.HTTPError, KeyError):
            pass
        assert time.monotonic() < deadline, f"Waited in vain.\n{explain()}"
        time.sleep(0.2)


def free_port() -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return str(taken.getsockname()[1])


class Scaled:
    """The whole of it, under a project's name of its own."""

    def __init__(self) -> None:
        images = {name: f"deerflow-test-{name}" for name in ("postgres", "nginx")}
        for name, tag in images.items():
            flags = os.environ.get("DOCKER_BUILD_FLAGS", "").split()
            self.run("docker", "build", *flags, "-q", "-t", tag, str(ROOT / f"tests/deploy/images/{name}"))
        self.ports = {"PORT": free_port(), "MODEL_PORT": free_port()}
        self.environ = {
            **os.environ, **self.ports, "POSTGRES_PASSWORD": "secret", "SOURCES": str(ROOT),
            "POSTGRES_IMAGE": images["postgres"], "NGINX_IMAGE": images["nginx"],
        }  # fmt: skip
        self.address = f"http://127.0.0.1:{self.ports['PORT']}"
        self.model = f"http://127.0.0.1:{self.ports['MODEL_PORT']}"

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command,
            cwd=ROOT / "deploy",
            env=getattr(self, "environ", None),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def compose(self, *arguments: str) -> str:
        program = ["docker-compose"] if shutil.which("docker-compose") else ["docker", "compose"]
        files = ("-f", "compose.scale.yaml", "-f", str(ROOT / "tests/deploy/scale.yaml"))
        return self.run(*program, "-p", "deerflowtest", *files, *arguments)

    def kill(self, service: str) -> None:
        [container] = [
            line
            for line in self.run("docker", "ps", "--format", "{{.Names}}").split()
            if line.replace("-", "_") == f"deerflowtest_{service}"
        ]
        # As a crash: `docker kill` would count as stopped by hand, and restart nothing.
        pid = self.run("docker", "inspect", "--format", "{{.State.Pid}}", container).strip()
        self.run("kill", "-9", pid)


@pytest.fixture(scope="module")
def scaled() -> Iterator[Scaled]:
    scaled = Scaled()
    try:
        scaled.compose("up", "-d", "--scale", "gateway=2", "--scale", "worker=2")
        yield scaled
    finally:
        scaled.compose("down", "-v", "-t", "5")


@pytest.fixture(scope="module")
def client(scaled: Scaled) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=scaled.address, timeout=60) as client:
        until(lambda: client.get("/api/ok").is_success, lambda: scaled.compose("logs", "--tail", "40"))
        code = re.search(r"setup code (\S+)", scaled.compose("logs", "gateway"))
        account = {"email": "a@example.org", "password": "correct horse battery", "setup_code": code and code[1]}
        client.post("/api/v1/auth/initialize", json=account).raise_for_status()
        client.headers["x-csrf-token"] = client.cookies["csrf_token"]
        yield client


def replies(text: str) -> list[dict[str, Any]]:
    command = {"command": "sleep 1; echo did >> /mnt/user-data/workspace/done; hostname"}
    # A reply that a kill cut off is spent: the end is there more than once.
    return [{"kind": "tool_calls", "calls": [["bash", command]]}] * COMMANDS + [{"kind": "text", "text": text}] * 4


def test_workers_say_that_they_are_healthy_and_the_page_is_served(scaled: Scaled, client: httpx.Client):
    assert "<html" in client.get("/", follow_redirects=True).text
    until(
        lambda: (
            scaled.run("docker", "ps", "--filter", "name=deerflowtest", "--format", "{{.Status}}").count("(healthy)")
            == 5
        )
    )


def test_whatever_is_killed_each_run_ends_right(scaled: Scaled, client: httpx.Client):
    runs: list[tuple[str, str]] = []
    for number in range(4):
        httpx.post(
            f"{scaled.model}/script", json={"replies": replies(f"end {number}"), "key": f"r{number}"}
        ).raise_for_status()
        thread = client.post("/api/threads", json={}).raise_for_status().json()["thread_id"]
        body = {"assistant_id": "lead_agent", "input": {"messages": [{"role": "user", "content": f"key:r{number} go"}]}}
        runs.append((thread, client.post(f"/api/threads/{thread}/runs", json=body).raise_for_status().json()["run_id"]))
    for service in KILLED:
        scaled.kill(service)
        time.sleep(3)
    for number, (thread, run) in enumerate(runs):
        status = until(
            lambda thread=thread, run=run: _ended(client, thread, run), lambda: scaled.compose("logs", "--tail", "60")
        )
        assert status == "success"
        state = client.get(f"/api/threads/{thread}/state").raise_for_status().json()
        assert f"end {number}" in json.dumps(state["values"]["messages"][-1])


def _ended(client: httpx.Client, thread: str, run: str) -> str | None:
    status = client.get(f"/api/threads/{thread}/runs/{run}").raise_for_status().json()["status"]
    return None if status in ("pending", "running") else status
