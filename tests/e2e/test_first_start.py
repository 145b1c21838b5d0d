"""The first minutes of an installation as its operator has them, and the first after a damage."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from bench.scripted_openai import Delay, ScriptedOpenAI, Text
from tests.support import warm_python
from tests.support.gateway_process import COMMAND, GUARD, PASSWORD, GatewayProcess, until

FIRST = {"email": "ada@example.org", "password": PASSWORD}
CONFIG = "title: {enabled: false}\nsandbox: {tool_image: {enabled: false}}\n"


@pytest.fixture
def piped(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A gateway for the whole network whose output is read by a program, as that of a container is."""
    (tmp_path / "config.yaml").write_text(CONFIG)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "DEER_FLOW_HOME": str(tmp_path / "home")}
    command = [*COMMAND, "serve", "--no-ui", "--host", "0.0.0.0", "--port", "0", "--config", "config.yaml"]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    guard = threading.Timer(GUARD, process.kill)
    guard.start()
    yield process
    guard.cancel()
    process.kill()
    process.wait()


def test_a_program_that_reads_the_output_learns_at_once_that_it_is_ready_and_how_to_set_it_up(
    piped: subprocess.Popen[str],
):
    assert piped.stdout
    ready, told = piped.stdout.readline(), piped.stdout.readline()
    url, code = re.findall(r"http://127\.0\.0\.1:\d+", ready), re.findall(r"(?:[A-Z2-7]{4}-){2}[A-Z2-7]{4}", told)
    assert url and code, (ready, told)
    with httpx.Client(base_url=url[0], headers={"x-forwarded-for": "192.0.2.1"}, trust_env=False, timeout=60) as client:
        assert client.get("/api/v1/auth/setup-status").json()["code_required"] is True
        assert client.post("/api/v1/auth/initialize", json=FIRST).json()["code"] == "setup_code_required"
        made = client.post("/api/v1/auth/initialize", json=FIRST | {"setup_code": code[0]})
        assert made.status_code == 201, made.text


def test_a_damaged_database_is_brought_back_from_a_backup(tmp_path: Path):
    with ScriptedOpenAI() as endpoint, GatewayProcess(tmp_path, model_url=endpoint.base_url, config=CONFIG) as gateway:
        gateway.start()
        endpoint.script(Text("Worth keeping."))
        body = {"input": {"messages": [{"role": "user", "content": "hello"}]}}
        with gateway.client() as client:
            thread = client.post("/api/threads", json={}).json()["thread_id"]
            client.post(f"/api/threads/{thread}/runs/wait", json=body).raise_for_status()
        deerflow(gateway, "backup", "kept.tar.gz")
        file = next(gateway.home.rglob("deerflow.db"))
        assert gateway.terminate() == 0
        damage(file)
        gateway.launch()
        assert gateway.wait() == 1
        assert str(file) in gateway.output and "deerflow restore" in gateway.output, gateway.output
        assert "Traceback" not in gateway.output

        deerflow(gateway, "restore", "kept.tar.gz")

        gateway.start()
        with gateway.client() as client:
            state = client.get(f"/api/threads/{thread}/state").raise_for_status().json()
        assert state["values"]["messages"][-1]["content"] == "Worth keeping."


@pytest.mark.parametrize("resume", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_a_run_that_a_backup_caught_in_the_middle_goes_on_only_if_asked_to(tmp_path: Path, resume: bool):
    with ScriptedOpenAI() as endpoint, GatewayProcess(tmp_path, model_url=endpoint.base_url, config=CONFIG) as gateway:
        gateway.start()
        endpoint.script(Delay(GUARD, Text("Never finished.")))
        body = {"assistant_id": "lead_agent", "input": {"messages": [{"role": "user", "content": "pay the bill"}]}}
        with gateway.client() as client:
            thread = client.post("/api/threads", json={}).json()["thread_id"]
            run = client.post(f"/api/threads/{thread}/runs", json=body).raise_for_status().json()["run_id"]
            until(lambda: endpoint.requests)
            deerflow(gateway, "backup", "kept.tar.gz")
            assert "is whole" in deerflow(gateway, "backup", "kept.tar.gz", "--verify")
        gateway.kill()
        deerflow(gateway, "restore", "kept.tar.gz", *["--resume"] * resume)
        asked = len(endpoint.requests)
        endpoint.script(Text("Paid."))

        gateway.start()
        with gateway.client() as client:
            address = f"/api/threads/{thread}/runs/{run}"
            until(lambda: client.get(address).json()["status"] not in ("pending", "running"), lambda: gateway.output)
            assert client.get(address).json()["status"] == ("success" if resume else "interrupted")
            messages = client.get(f"/api/threads/{thread}/state").raise_for_status().json()["values"]["messages"]
        assert [each["content"] for each in messages] == ["pay the bill", *["Paid."] * resume]
        assert len(endpoint.requests) - asked == int(resume)


def damage(file: Path) -> None:
    """Its beginning is whole, so that it still passes for a database."""
    content = bytearray(file.read_bytes())
    content[100:] = os.urandom(len(content) - 100)
    file.write_bytes(content)


def deerflow(gateway: GatewayProcess, *arguments: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(gateway.root), "DEER_FLOW_HOME": str(gateway.home)}
    command = [*COMMAND, *arguments, "--config", str(gateway.config)]
    done = warm_python.run(command, cwd=gateway.root, env=environment, timeout=GUARD)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_what_was_said_without_a_key_is_there_when_there_is_one(tmp_path: Path):
    model = "models:\n  - name: m\n    use: langchain_openai:ChatOpenAI\n    model: x\n"
    with ScriptedOpenAI() as endpoint, GatewayProcess(tmp_path, config=CONFIG + model) as gateway:
        gateway.environment |= {"OPENAI_BASE_URL": endpoint.base_url, "OPENAI_API_KEY": ""}
        gateway.start()
        with gateway.client() as client:
            thread = client.post("/api/threads", json={}).json()["thread_id"]
            _say(client, thread, "hello")
            [run] = client.get(f"/api/threads/{thread}/runs").json()
            assert run["status"] == "error" and run["error"] and _texts(client, thread) == ["hello"]
            assert client.get(f"/api/threads/{thread}").json()["values"]["title"] == "hello"
        gateway.environment["OPENAI_API_KEY"] = "k"
        gateway.restart()
        endpoint.script(Text("Hello."))
        with gateway.client() as client:
            _say(client, thread, "and now?")
            assert _texts(client, thread) == ["hello", "and now?", "Hello."]


def _say(client: httpx.Client, thread: str, text: str) -> None:
    body = {"input": {"messages": [{"role": "user", "content": text}]}}
    client.post(f"/api/threads/{thread}/runs/wait", json=body)


def _texts(client: httpx.Client, thread: str) -> list[str]:
    state = client.get(f"/api/threads/{thread}/state").json()
    return [message["content"] for message in state["values"]["messages"]]
