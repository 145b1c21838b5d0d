"""docker/nginx in front of page and gateway, with the nginx of this machine."""

from __future__ import annotations

import http.server
import shutil
import socket
import string
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from bench.scripted_openai import Delay, ScriptedOpenAI, Text
from tests.support.gateway_process import PASSWORD, gateway_process, until

pytestmark = pytest.mark.nightly

TEMPLATE = Path(__file__).parents[2] / "docker/nginx/nginx.conf.template"
SAY = {
    "input": {"messages": [{"role": "user", "content": "hi"}]},
    "if_not_exists": "create",
    "stream_mode": ["messages-tuple"],
}


class Page(http.server.BaseHTTPRequestHandler):
    """Stands in for the Next.js server: says which path it was asked for."""

    def do_GET(self) -> None:
        body = f"page {self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def nginx(root: Path, page: int, gateway: int) -> Iterator[str]:
    binary = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if binary is None:
        pytest.skip("nginx is not installed")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    facts = {
        "PAGE_ADDRESS": f"127.0.0.1:{page}",
        "GATEWAY_ADDRESS": f"127.0.0.1:{gateway}",
        "LISTEN": f"127.0.0.1:{port}",
    }
    rendered = string.Template(TEMPLATE.read_text()).safe_substitute(facts)
    config = root / "nginx.conf"
    config.write_text(f"daemon off; pid {root}/nginx.pid; error_log {root}/nginx.log;\n" + rendered)
    with subprocess.Popen([binary, "-p", str(root), "-c", str(config)], stderr=subprocess.PIPE, text=True) as process:
        try:
            until(lambda: process.poll() is not None or _listens(port))
            assert process.poll() is None, process.stderr.read() if process.stderr else ""
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = tmp_path_factory.mktemp("nginx")
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as page,
        ScriptedOpenAI() as endpoint,
        gateway_process(
            root, auth=True, model_url=endpoint.base_url, environment={"AUTH_TRUSTED_PROXIES": "127.0.0.1"}
        ) as gateway,
        nginx(root, page.server_address[1], gateway.port) as address,
    ):
        threading.Thread(target=page.serve_forever, daemon=True).start()
        gateway.token("read")  # makes the account
        endpoint.script(Delay(0, Text("one two three four five six"), between=0.5))
        yield address
        page.shutdown()


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[httpx.Client]:
    """A browser that has signed in through the proxy."""
    with httpx.Client(base_url=url, headers={"Origin": url}, timeout=60, trust_env=False) as browser:
        form = {"username": "admin@example.org", "password": PASSWORD}
        browser.post("/api/v1/auth/login/local", data=form).raise_for_status()
        browser.headers["x-csrf-token"] = browser.cookies["csrf_token"]
        yield browser


def test_pages_come_from_the_page_and_the_rest_from_the_gateway(client: httpx.Client) -> None:
    assert client.get("/chats/runs").text == "page /chats/runs"
    assert client.get("/apiary").text == "page /apiary"
    assert client.get("/health").json()["status"] == "healthy"
    assert client.get("/api/models").status_code == 200


def test_another_site_is_refused_behind_the_proxy_as_well(client: httpx.Client) -> None:
    assert client.post("/api/threads", json={}, headers={"Origin": "http://evil.example"}).status_code == 403


def test_events_are_not_held_back(client: httpx.Client) -> None:
    with client.stream("POST", "/api/threads/t1/runs/stream", json=SAY) as answer:
        assert answer.status_code == 200
        pieces = sum("messages" in piece for piece in answer.iter_text())
    assert pieces > 3, "the pieces of the answer came together"


def test_large_uploads_pass(client: httpx.Client) -> None:
    sent = client.post("/api/threads/t2/uploads", files={"files": ("big.bin", b"x" * 3_000_000)})
    assert sent.status_code == 200, sent.text
