"""The ground under a running gateway gives way: disk, database, configuration. It says so, loses nothing, and goes on."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from bench.scripted_openai import ScriptedOpenAI, Text
from tests.support.gateway_process import GatewayProcess, gateway_process, until

CONFIG = "title:\n  enabled: false\n"
PRIVATE = re.compile(r"Traceback|site-packages|\.py\b|secret-of-the-test|password=|/home\b|/tmp/")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[ScriptedOpenAI]:
    with ScriptedOpenAI() as endpoint:
        yield endpoint


@pytest.fixture
def gateway(endpoint: ScriptedOpenAI, tmp_path: Path) -> Iterator[GatewayProcess]:
    with gateway_process(tmp_path, model_url=endpoint.base_url, config=CONFIG) as process:
        yield process


def run(client: httpx.Client, thread: str, text: str = "hello") -> httpx.Response:
    body = {"input": {"messages": [{"role": "user", "content": text}]}}
    return client.post(f"/api/threads/{thread}/runs/wait", json=body)


def new_thread(client: httpx.Client) -> str:
    return client.post("/api/threads", json={}).raise_for_status().json()["thread_id"]


def messages(client: httpx.Client, thread: str) -> list[str]:
    state = client.get(f"/api/threads/{thread}/state").raise_for_status().json()
    return [message["content"] for message in state["values"].get("messages", ())]


def check_refusal(answer: httpx.Response) -> None:
    assert answer.status_code == 503, answer.text
    assert answer.json()["detail"] and not PRIVATE.search(answer.text), answer.text


@contextmanager
def tiny_disk(path: Path, size: str) -> Iterator[Path]:
    """A file system of its own. Without the right to mount, nothing bounds a directory."""
    path.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path], capture_output=True).returncode:
        pytest.skip("This user may not mount a small disk to fill up.")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=True)


def fill(disk: Path) -> Path:
    """The file that takes all the room there is."""
    ballast = disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass
    return ballast


def test_a_full_disk_is_said_loses_nothing_and_is_got_over(endpoint: ScriptedOpenAI, tmp_path: Path):
    with tiny_disk(tmp_path / "disk", "24m") as disk:
        variables = {"DEER_FLOW_HOME": str(disk / "home")}
        with gateway_process(tmp_path, model_url=endpoint.base_url, config=CONFIG, environment=variables) as gateway:
            with gateway.client() as client:
                thread = new_thread(client)
                endpoint.script(Text("Before."), key="disk-1")
                assert run(client, thread, "key:disk-1").json()["messages"][-1]["content"] == "Before."
                ballast = fill(disk)
                check_refusal(_refused(client, gateway))
                assert messages(client, thread)[-1] == "Before."
                assert gateway.is_healthy()
                ballast.unlink()
                endpoint.script(Text("After."), key="disk-2")
                assert run(client, thread, "key:disk-2").json()["messages"][-1]["content"] == "After."
                assert messages(client, thread)[1::2] == ["Before.", "After."]


@contextmanager
def no_room(gateway: GatewayProcess) -> Iterator[None]:
    """No file of the gateway may grow, which needs no right to mount: to whoever writes it is as on a full disk."""
    room = max(file.stat().st_size for file in [gateway.log, *gateway.home.rglob("*.db*")]) + 65_536
    before = resource.prlimit(gateway.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(gateway.pid, resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        yield
    finally:
        resource.prlimit(gateway.pid, resource.RLIMIT_FSIZE, before)


@pytest.mark.nightly  # a full disk, by day, is one of these walls
def test_files_that_cannot_grow_are_said_lose_nothing_and_are_got_over(
    gateway: GatewayProcess, endpoint: ScriptedOpenAI
):
    with gateway.client() as client:
        thread = new_thread(client)
        endpoint.script(Text("Before."), key="room-1")
        assert run(client, thread, "key:room-1").json()["messages"][-1]["content"] == "Before."
        endpoint.script(*[Text("Too long to be kept just now. " * 20_000)] * 9, key="room-2")
        waiting = new_thread(client)
        with no_room(gateway):
            upload = client.post(f"/api/threads/{thread}/uploads", files={"files": ("large.bin", os.urandom(3 << 20))})
            assert upload.status_code in (503, 507) and not PRIVATE.search(upload.text), upload.text
            begun = client.post(
                f"/api/threads/{waiting}/runs",
                json={"input": {"messages": [{"role": "user", "content": "key:room-2"}]}},
            )
            if begun.status_code != 200:
                check_refusal(begun)
            check_refusal(_refused(client, gateway))
            assert messages(client, thread)[:2] == ["key:room-1", "Before."], "reading goes on"
            assert gateway.is_healthy()
        assert client.post(f"/api/threads/{thread}/uploads", files={"files": ("small.txt", b"x")}).status_code == 200
        endpoint.script(Text("After."), key="room-3")
        if begun.status_code == 200:
            joined = client.get(f"/api/threads/{waiting}/runs/{begun.json()['run_id']}/join")
            assert "messages" in joined.json(), f"{joined.text[:500]}\n{gateway.output[-2000:]}"
            assert "kept just now" in joined.json()["messages"][-1]["content"], "it waited for room"
        after = run(client, thread, "key:room-3")
        assert after.json()["messages"][-1]["content"] == "After.", after.text
        assert [text for text in messages(client, thread) if text in ("Before.", "After.")] == ["Before.", "After."]


@pytest.mark.parametrize("end", [pytest.param("terminate", marks=pytest.mark.nightly), "kill"])
def test_a_server_that_starts_on_a_full_disk_shows_what_is_there_until_there_is_room(
    endpoint: ScriptedOpenAI, tmp_path: Path, end: str
):
    with tiny_disk(tmp_path / "disk", "24m") as disk:
        variables = {"DEER_FLOW_HOME": str(disk / "home")}
        with gateway_process(tmp_path, model_url=endpoint.base_url, config=CONFIG, environment=variables) as gateway:
            with gateway.client() as client:
                thread = new_thread(client)
                endpoint.script(Text("Before."), key="start-1")
                run(client, thread, "key:start-1").raise_for_status()
                headers = dict(client.headers)
            getattr(gateway, end)()
            ballast = fill(disk)
            gateway.launch()
            gateway.started()
            with httpx.Client(base_url=gateway.url, headers=headers, trust_env=False, timeout=60) as client:
                assert messages(client, thread)[-1] == "Before."
                assert client.post("/api/threads/search", json={}).json()[0]["thread_id"] == thread
                refused = _refused(client, gateway)
                check_refusal(refused)
                assert refused.json()["code"] == "no_space" and "make room" in refused.json()["detail"]
                ballast.unlink()
                endpoint.script(Text("After."), key="start-2")
                assert run(client, thread, "key:start-2").json()["messages"][-1]["content"] == "After."
                assert messages(client, thread)[1::2] == ["Before.", "After."]


@pytest.mark.parametrize("damage", ["page", pytest.param("row", marks=pytest.mark.nightly)])
def test_what_is_garbled_in_the_database_is_said_and_never_a_bare_500(
    endpoint: ScriptedOpenAI, tmp_path: Path, damage: str
):
    with GatewayProcess(tmp_path, model_url=endpoint.base_url, config=CONFIG) as gateway:
        with gateway.start().client() as client:
            thread = new_thread(client)
            endpoint.script(Text("Before."))
            run(client, thread).raise_for_status()
        assert gateway.terminate() == 0
        garble(next(gateway.home.rglob("deerflow.db")), damage)
        with gateway.start().client() as client:
            asked = [client.get(f"/api/threads/{thread}{what}") for what in ("", "/state", "/messages")]
            asked.append(client.post(f"/api/threads/{thread}/history", json={}))
        damaged = [answer.json() for answer in asked if answer.status_code == 503]
        assert damaged and {answer.status_code for answer in asked} <= {200, 503}, [answer.text for answer in asked]
        assert {each["code"] for each in damaged} == {"damaged"} and "deerflow restore" in damaged[0]["detail"]
        assert "the database is damaged" in gateway.output


def garble(file: Path, damage: str) -> None:
    """Make nothing of the checkpoints: the page that their table begins with, or what stands in its rows."""
    with closing(sqlite3.connect(file)) as database:
        (page,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'checkpoint_steps'").fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
        if damage == "row":
            database.execute("UPDATE checkpoint_steps SET checkpoint = randomblob(length(checkpoint))")
            database.commit()
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    if damage == "page":
        with file.open("r+b") as raw:
            raw.seek((page - 1) * size)
            raw.write(os.urandom(size))


def test_a_second_server_is_refused_while_the_first_does_not_answer(gateway: GatewayProcess, tmp_path: Path):
    (tmp_path / "second").mkdir()
    variables = {"DEER_FLOW_HOME": str(gateway.home)}
    with GatewayProcess(tmp_path / "second", config=CONFIG, environment=variables) as second:
        gateway.signal(signal.SIGSTOP)
        try:
            second.launch()
            assert second.wait() == 1
        finally:
            gateway.signal(signal.SIGCONT)
        assert f"Another DeerFlow uses {gateway.home}" in second.output and "Traceback" not in second.output
        gateway.kill()
        second.start()
        assert second.is_healthy()


def _refused(client: httpx.Client, gateway: GatewayProcess) -> httpx.Response:
    """What a write is answered with that needs more room than there is."""
    answers: list[httpx.Response] = []

    def refused() -> bool:
        answers.append(client.post("/api/threads", json={"metadata": {"large": os.urandom(100_000).hex()}}))
        return answers[-1].status_code >= 500

    until(refused, lambda: gateway.output)
    return answers[-1]


def test_a_database_that_someone_locks_for_a_while_is_waited_for(gateway: GatewayProcess, endpoint: ScriptedOpenAI):
    file = next(gateway.home.rglob("*.db"))
    with (
        gateway.client() as client,
        ThreadPoolExecutor(1) as another,
        closing(sqlite3.connect(file, isolation_level=None)) as other,
    ):
        thread = new_thread(client)
        endpoint.script(Text("Here."), key="lock")
        other.execute("BEGIN IMMEDIATE")
        try:
            answer = another.submit(run, client, thread, "key:lock")
            assert client.get("/health").status_code == 200
            assert client.get(f"/api/threads/{thread}").status_code == 200, "reading goes on"
            assert not answer.done()
        finally:
            other.execute("ROLLBACK")
        assert answer.result().json()["messages"][-1]["content"] == "Here."


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_database_file_that_vanishes_under_the_server_is_said_at_once_or_survived(gateway: GatewayProcess, how: str):
    file = next(gateway.home.rglob("*.db"))
    with gateway.client() as client:
        new_thread(client)
        aside = file.with_suffix(".aside")
        file.rename(aside)
        if how == "replaced":
            file.write_bytes(b"this is no database" * 100)
        answer = client.post("/api/threads", json={})
        assert answer.status_code in (200, 503) and not PRIVATE.search(answer.text)
        assert gateway.is_healthy()


def test_a_damaged_database_is_named_and_left_as_it_is(endpoint: ScriptedOpenAI, tmp_path: Path):
    with GatewayProcess(tmp_path, model_url=endpoint.base_url, config=CONFIG) as gateway:
        gateway.start()
        file = next(gateway.home.rglob("*.db"))
        assert gateway.terminate() == 0
        file.write_bytes(damaged := b"this is no database" * 100)
        gateway.launch()
        assert gateway.wait() != 0
        assert "no SQLite database" in gateway.output and str(file) in gateway.output, gateway.output
        assert "deerflow restore" in gateway.output and "Traceback" not in gateway.output
        assert file.read_bytes() == damaged


def test_a_configuration_that_cannot_be_read_stops_the_start_but_not_the_running_server(
    gateway: GatewayProcess, endpoint: ScriptedOpenAI, tmp_path: Path
):
    with gateway.client() as client:
        thread = new_thread(client)
        for broken in ("models: [", "title: 5\n", "\x00\x01", "- a\n- b\n"):
            gateway.config.write_text(broken)
            endpoint.script(Text("Still here."), key="config")
            assert run(client, thread, "key:config").json()["messages"][-1]["content"] == "Still here."
    gateway.terminate()
    gateway.config.write_text("models: [")
    gateway.launch()
    assert gateway.wait() == 2
    assert "Traceback" not in gateway.output and "config.yaml" in gateway.output, gateway.output


def test_a_port_that_is_taken_and_a_home_that_is_no_directory_are_named(endpoint: ScriptedOpenAI, tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with GatewayProcess(tmp_path, port=port, config=CONFIG) as gateway:
            gateway.launch()
            assert gateway.wait() == 1
            assert f"Port {port}" in gateway.output and "--port" in gateway.output
            assert "Traceback" not in gateway.output
    home = tmp_path / "file"
    home.write_text("not a directory")
    with GatewayProcess(tmp_path, config=CONFIG, environment={"DEER_FLOW_HOME": str(home)}) as gateway:
        gateway.launch()
        assert gateway.wait() != 0
        assert str(home) in gateway.output and "Traceback" not in gateway.output
