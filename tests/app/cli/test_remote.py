"""The terminal beside a running server: a real server process, real terminals, a scripted model."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx
import pytest
from bench.scripted_openai import Delay, Reply, ScriptedOpenAI, Text, ToolCalls
from tests.app.cli.conftest import Ended
from tests.app.cli.terminal_session import TerminalSession
from tests.support import warm_python
from tests.support.gateway_process import GUARD, GatewayProcess, until
from tests.support.warm_python import WarmPython

from deerflow_app.gateway import running_server
from deerflow_app.remote import INTERNAL_HEADER, Address, ServerConnection, UnreachableError
from deerflow_app.remote.client import RemoteClient

CONFIG = "config_version: 9\nsandbox:\n  tool_image:\n    enabled: false\ntitle:\n  enabled: false\n"
REPORT = "/mnt/user-data/outputs/report 数据.md"
COMMAND = [sys.executable, "-c", "from deerflow_app.cli.main import main; main()"]


class Site:
    """A server, and the folder in which its person works."""

    def __init__(self, root: Path, endpoint: ScriptedOpenAI) -> None:
        self.folder = root
        self.endpoint = endpoint
        self.server = GatewayProcess(root, auth=True, model_url=endpoint.base_url, config=CONFIG)

    def run(self, *argv: str, stdin: str = "") -> Ended:
        ended = warm_python.run([*COMMAND, *argv], cwd=self.folder, input=stdin, timeout=GUARD)
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def begin(self, *argv: str) -> subprocess.Popen[str]:
        return WarmPython([*COMMAND, *argv], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def address(self) -> Address:
        found = running_server(self.server.home)
        assert found
        return Address(found.url, {INTERNAL_HEADER: found.token}, local=True)

    def http(self, method: str, path: str, body: Any = None) -> Any:
        """As the page of the same person asks."""
        address = self.address()
        headers = dict(address.headers)
        answer = httpx.request(
            method, address.url + path, json=body, headers=headers, timeout=GUARD, trust_env=False
        ).raise_for_status()
        return answer.json()

    def say(self, thread: str, words: str, *, wait: bool = True) -> Any:
        """A turn that another program starts."""
        body = {"input": {"messages": [{"role": "user", "content": words}]}, "if_not_exists": "create"}
        return self.http("POST", f"/api/threads/{thread}/runs{'/wait' if wait else ''}", body)

    def runs(self, thread: str) -> list[str]:
        return [run["status"] for run in self.http("GET", f"/api/threads/{thread}/runs")]

    def texts(self, thread: str) -> list[str]:
        messages = self.http("GET", f"/api/threads/{thread}/state")["values"]["messages"]
        return [message["content"] for message in messages]


@pytest.fixture(scope="module")
def running() -> Iterator[Site]:
    root = Path(tempfile.mkdtemp(prefix="deerflow-remote-"))
    root.chmod(0o711)  # a sandbox with a user id of its own must get through
    with ScriptedOpenAI() as endpoint:
        site = Site(root, endpoint)
        with site.server.start():
            yield site
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def site(running: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """The server, and a shell in which DeerFlow finds it."""
    monkeypatch.setenv("DEER_FLOW_HOME", str(running.server.home))
    monkeypatch.setenv("OPENAI_BASE_URL", running.endpoint.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-scripted")
    running.endpoint.reset()
    if not running.server.is_healthy():
        running.server.restart()
    return running


def slowly(words: str) -> Delay:
    """An answer that takes minutes after its first words."""
    return Delay(0, Text(chunks=[words, *[f"{number} " for number in range(1000)]]), between=0.2)


def held(gate: threading.Event, asked: threading.Event, reply: Reply) -> Any:
    """A reply that comes when the test lets it."""

    def answer(_request: dict[str, Any]) -> Reply:
        asked.set()
        assert gate.wait(GUARD)
        return reply

    return answer


def test_a_task_is_done_by_the_server_with_files_in_and_out(site: Site) -> None:
    (site.folder / 'sales "数据".csv').write_text("a,b\n1,2\n")
    site.endpoint.script(
        ToolCalls(("bash", {"description": "Read", "command": "cat /mnt/user-data/uploads/*"})),
        ToolCalls(("write_file", {"description": "Write", "path": REPORT, "content": "# Report\n"})),
        ToolCalls(("present_files", {"filepaths": [REPORT]})),
        Text("It is done."),
    )
    ended = site.run("run", "report on it", "--file", 'sales "数据".csv', "--out", "here", "--json")
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    assert f"Connected to {site.server.url}" in ended.err and "● Run Read" in ended.err
    assert (told["text"], told["error"]) == ("It is done.", None)
    assert told["artifacts"] == [{"path": REPORT, "file": str(site.folder / "here" / Path(REPORT).name)}]
    assert (site.folder / "here" / Path(REPORT).name).read_text() == "# Report\n"
    assert told["usage"]["total_tokens"] > 0
    assert "1,2" in json.dumps(site.endpoint.requests[1]["messages"])
    assert site.runs(told["thread_id"]) == ["success"], "the server has done it"
    assert told["thread_id"] in [thread["thread_id"] for thread in site.http("POST", "/api/threads/search", {})]


def test_a_thread_of_the_browser_is_listed_shown_and_continued(site: Site) -> None:
    site.endpoint.script(Text("An answer in the browser."))
    site.say("of-the-browser", "asked in the browser")
    site.endpoint.script(Text("An answer in the terminal."))
    with TerminalSession(cwd=site.folder) as session:
        session.wait_for(f"Connected to {site.server.url}")
        session.say("/chats")
        assert "asked in the browser" in session.wait_for("/resume NUMBER")
        session.say("/resume of-the-browser")
        session.wait_for("An answer in the browser.")
        session.say("asked in the terminal")
        session.wait_for("An answer in the terminal.")
        session.say("/exit")
        assert session.ended() == 0
    assert site.texts("of-the-browser")[-1] == "An answer in the terminal."
    assert "asked in the browser" in json.dumps(site.endpoint.requests[-1]["messages"])


def test_ctrl_c_stops_the_run_on_the_server_and_half_an_answer_is_kept(site: Site) -> None:
    site.endpoint.script(slowly("Half an answer "), Text("I know what I said."))
    with TerminalSession(cwd=site.folder) as session:
        session.say("talk")
        session.wait_for("Half an answer")
        session.interrupt()
        session.wait_for("Stopped after")
        session.say("and now?")
        session.wait_for("I know what I said.")
    (thread,) = [
        thread["thread_id"]
        for thread in site.http("POST", "/api/threads/search", {})
        if thread["values"]["title"] == "talk"
    ]
    until(lambda: site.runs(thread) == ["success", "interrupted"])  # the answer stands there before the run has ended
    assert site.texts(thread)[1].startswith("Half an answer")


def test_a_turn_that_is_going_on_is_joined_live(site: Site) -> None:
    gate, asked = threading.Event(), threading.Event()
    site.endpoint.script(
        ToolCalls(("bash", {"description": "First step", "command": "echo one"})), held(gate, asked, Text("Joined."))
    )
    site.say("going-on", "work", wait=False)
    assert asked.wait(GUARD)
    with TerminalSession("--thread", "going-on", cwd=site.folder) as session:
        shown = session.wait_for("The agent is at work.")
        assert shown.count("● Run First step") == 1
        gate.set()
        assert "● Run First step" not in session.wait_for("Joined."), "what stood there already is not told again"
        session.wait_for("tokens in")
    assert site.runs("going-on") == ["success"]


def test_a_message_into_a_running_turn_is_refused_with_the_way_out(site: Site) -> None:
    gate, asked = threading.Event(), threading.Event()
    site.endpoint.script(held(gate, asked, Text("done")))
    site.say("busy", "work", wait=False)
    assert asked.wait(GUARD)
    ended = site.run("run", "me too", "--thread", "busy")
    gate.set()
    assert ended.code == 1 and "/resume" in ended.err and "Traceback" not in ended.err
    until(lambda: site.runs("busy") == ["success"])


def test_a_server_that_is_killed_and_started_again_costs_nothing(site: Site) -> None:
    asked = threading.Event()
    site.endpoint.script(
        ToolCalls(("bash", {"description": "First step", "command": "echo one >> /mnt/user-data/outputs/log"})),
        lambda _request: (asked.set(), Delay(1000, Text("never")))[1],
    )
    process = site.begin("run", "work", "--json")
    assert process.stderr is not None
    while "● Run First step" not in process.stderr.readline():
        assert process.poll() is None
    assert asked.wait(GUARD)
    site.endpoint.reset()
    site.endpoint.script(Text("Finished after all."))
    site.server.restart()
    out, err = process.communicate(timeout=GUARD)
    told = json.loads(out)
    assert (process.returncode, told["text"], told["error"]) == (0, "Finished after all.", None), (told, err)
    assert "● Run First step" not in err, "nothing is told twice"
    assert site.runs(told["thread_id"]) == ["success"]
    assert [file.read_text() for file in site.server.home.rglob(f"{told['thread_id']}/**/outputs/log")] == ["one\n"]


async def test_a_server_that_is_gone_for_good_is_told_and_the_thread_is_kept(site: Site) -> None:
    asked = threading.Event()
    site.endpoint.script(lambda _request: (asked.set(), Delay(1000, Text("never")))[1])
    client = await asyncio.to_thread(lambda: RemoteClient(ServerConnection(site.address()), patience=0.5))
    killing = asyncio.create_task(asyncio.to_thread(lambda: asked.wait(60) and site.server.kill()))
    with pytest.raises(UnreachableError) as gone:
        async with aclosing(client.astream("work", thread_id="orphan")) as events:
            async for _ in events:
                pass
    await killing
    assert "gone in the middle" in str(gone.value) and "deerflow --thread orphan" in gone.value.remedy
    with pytest.raises(UnreachableError, match="does not answer"):
        await client.athread_state("orphan")
    await client.aclose()

    site.endpoint.reset()
    site.endpoint.script(Text("Done without a server."))
    ended = await asyncio.to_thread(site.run, "--thread", "orphan")
    assert "Done without a server." in ended.out, ended.err
    assert "Connected to" not in ended.err


def test_local_works_beside_the_server_on_the_same_threads(site: Site) -> None:
    site.endpoint.script(Text("Done here."))
    told = json.loads((ended := site.run("run", "work", "--local", "--json")).out)
    assert told["text"] == "Done here." and "Connected to" not in ended.err
    site.endpoint.script(Text("Done there."))
    assert site.say(told["thread_id"], "go on")["messages"][-1]["content"] == "Done there."


def test_a_configuration_of_ones_own_is_not_handed_to_a_server_with_another(site: Site) -> None:
    (site.folder / "own.yaml").write_text(CONFIG)
    site.endpoint.script(Text("Done with mine."), Text("Done with theirs."))
    ended = site.run("run", "work", "--config", "own.yaml")
    assert (ended.code, ended.out) == (0, "Done with mine.\n")
    assert "works without it, with" in ended.err and "own.yaml" in ended.err
    same = site.run("run", "work", "--config", "./config.yaml")
    assert (same.code, same.out) == (0, "Done with theirs.\n")
    assert "Connected to" in same.err


def test_a_server_elsewhere_is_reached_with_a_token(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEER_FLOW_HOME", str(tmp_path / "empty"))
    monkeypatch.setenv("DEER_FLOW_API_URL", f"{site.server.url}/")
    monkeypatch.setenv("DEER_FLOW_API_KEY", site.server.token("read", "write"))
    site.endpoint.script(
        ToolCalls(("write_file", {"description": "Write", "path": REPORT, "content": "far"})),
        ToolCalls(("present_files", {"filepaths": [REPORT]})),
        Text("Delivered."),
    )
    ended = site.run(stdin="deliver\n/files\n")
    assert (ended.code, ended.out) == (0, "Delivered.\n"), ended.err
    fetched = site.folder / "deerflow-out" / Path(REPORT).name
    assert fetched.read_text() == "far" and str(fetched.name) in ended.err
    assert f"{Path(REPORT).name}  3 B" in ended.err

    monkeypatch.setenv("DEER_FLOW_API_KEY", "df_wrong")
    refused = site.run("run", "x", "--json")
    assert refused.code == 2 and "DEER_FLOW_API_KEY" in json.loads(refused.out)["error"]["remedy"]

    monkeypatch.setenv("DEER_FLOW_API_URL", "http://127.0.0.1:9")
    nobody = site.run("run", "x")
    assert (nobody.code, nobody.out) == (1, "") and "127.0.0.1:9 does not answer" in nobody.err


@pytest.mark.parametrize(
    ("argv", "message"),
    [(["x", "--model", "nope"], "no model 'nope'"), (["x", "--thread", "../../etc"], "Invalid thread id")],
)
def test_bad_input_is_one_clear_message(site: Site, argv: list[str], message: str) -> None:
    ended = site.run("run", *argv)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err and "Traceback" not in ended.err


async def test_a_thread_that_is_not_there_is_empty(site: Site) -> None:
    client = await asyncio.to_thread(lambda: RemoteClient(ServerConnection(site.address())))
    assert (await client.athread_state("not-there"))["values"]["messages"] == []
    assert [event async for event in client.aresume("not-there")] == []
    await client.aclose()


async def test_mcp_servers_of_a_server_are_added_seen_and_removed(site: Site) -> None:
    client = await asyncio.to_thread(lambda: RemoteClient(ServerConnection(site.address())))
    await client.aupdate_mcp_config({"gone": {"type": "http", "url": "http://127.0.0.1:9/mcp"}})
    assert [(one["name"], one["state"]) for one in await client.alist_mcp_servers()] == [("gone", "failed")]
    assert (await client.arestart_mcp_server("gone"))["state"] == "failed"
    assert await client.aread_mcp_log("gone")
    await client.aupdate_mcp_config({})
    assert await client.aget_mcp_config() == {"mcp_servers": {}}
    assert await client.asearch_chats("zebra") == []
    await client.aclose()
