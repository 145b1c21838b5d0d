"""A person has ten hostile pages read: the server stops all the same, and the run goes on after the next start."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from bench.parsers import HOSTILE
from bench.scripted_openai import ScriptedOpenAI, Text, ToolCalls
from tests.support.gateway_process import GatewayProcess, until

PAGES = 10
DRAIN = 3.0


@pytest.fixture
def root() -> Iterator[Path]:
    """A sandbox with a user id of its own must get through, as it does not through pytest's directories."""
    folder = Path(tempfile.mkdtemp(prefix="deerflow-pages-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def web() -> Iterator[tuple[str, list[str]]]:
    """Each page is one element with tens of thousands of attributes, the first time. Yields the address and the paths asked for."""
    asked: list[str] = []

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = b"<p>Deer eat grass.</p>" if self.path in asked else HOSTILE
            asked.append(self.path)
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.2", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.2:{server.server_port}", asked
    server.shutdown()
    server.server_close()


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_a_stop_does_not_wait_for_hostile_pages(root: Path, web: tuple[str, list[str]], home_with_tools: str) -> None:
    base, asked = web
    (root / "home").mkdir(mode=0o711)
    (root / "home" / "tools").symlink_to(Path(home_with_tools) / "tools")
    fetch = {"name": "web_fetch", "group": "web", "use": "deerflow.community.fetch.tools:web_fetch_tool"}
    network = {"allow_nets": ["127.0.0.2/32"]}
    config = {
        "tools": [fetch],
        "sandbox": {"network": network, "tool_image": {"enabled": True}},
        "runs": {"drain_seconds": DRAIN},
    }
    calls = [("web_fetch", {"url": f"{base}/{number}"}) for number in range(PAGES)]
    model = ScriptedOpenAI()
    model.script(ToolCalls(*calls), Text("They are read."))
    with model, GatewayProcess(root, model_url=model.base_url, config=yaml.safe_dump(config)) as server:
        server.start()
        with server.client() as http:
            thread = http.post("/api/threads", json={}).raise_for_status().json()["thread_id"]
            said = {"input": {"messages": [{"role": "user", "content": "Read these pages."}]}}
            run = http.post(f"/api/threads/{thread}/runs", json=said).raise_for_status().json()["run_id"]
            until(lambda: len(set(asked)) == PAGES, lambda: server.output)
        began = time.monotonic()
        assert server.terminate() == 0
        print(f"ended {time.monotonic() - began:.1f} s after SIGTERM; {DRAIN:.0f} s are for runs to end")
        server.start()
        with server.client() as http:
            path = f"/api/threads/{thread}/runs/{run}"
            ended = "success", "interrupted"  # it may ask whether pages that it has begun to read are read again
            until(lambda: http.get(path).json()["status"] in ended, lambda: server.output)
