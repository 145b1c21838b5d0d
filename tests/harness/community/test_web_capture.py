"""Pages opened in a real Chromium, in a real sandbox: what a person would see, and no way out of it."""

from __future__ import annotations

import asyncio
import json
import re
import struct
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from tests.harness.community.conftest import HOST, Web
from tests.harness.sandbox.conftest import Sandboxes, data_dir, namespace_provider, sandboxes

from deerflow.community.capture.tools import BROWSERS, web_capture_tool
from deerflow.config import AppConfig
from deerflow.config.schema import Origin
from deerflow.context import RunContext
from deerflow.context.machine import Machine
from deerflow.identity import Principal
from deerflow.sandbox.interface import OUTPUTS, WORKSPACE
from deerflow.sandbox.local import LocalSandboxProvider
from deerflow.tools import get_available_tools
from deerflow.tools.registry import program_of

__all__ = ["data_dir", "namespace_provider", "sandboxes"]

pytestmark = [
    pytest.mark.skipif(program_of(BROWSERS) is None, reason="no Chromium is installed"),
    pytest.mark.timeout(300),
]
OPEN = {"mode": "none", "allow_nets": [f"{HOST}/32"]}
Capture = Callable[..., Awaitable[str]]


@pytest.fixture
def capture(sandboxes: Sandboxes, web: Web) -> Capture:
    async def captured(url: str, network: dict[str, Any] = OPEN, timeout: float = 60, **args: Any) -> str:
        context = RunContext(
            thread_id="t",
            principal=Principal("u"),
            machine=Machine(provider=sandboxes.provider, policy=await asyncio.to_thread(sandboxes.policy)),
            config=AppConfig.model_validate(
                {
                    "tools": [{"name": "web_capture", "group": "web", "timeout": timeout,
                               "use": "deerflow.community.capture.tools:web_capture_tool"}],
                    "sandbox": {"network": network},
                }
            ).with_origin(Origin()),
        )  # fmt: skip
        return (await _call(context, url=url, **args)).text

    return captured


async def _call(context: RunContext, **args: Any) -> ToolMessage:
    runtime = ToolRuntime(
        state={}, context=context, config={}, stream_writer=lambda _: None, tool_call_id="c", store=None
    )
    call = {"type": "tool_call", "name": "web_capture", "id": "c", "args": {**args, "runtime": runtime}}
    return await web_capture_tool.ainvoke(call)


async def _picture(sandboxes: Sandboxes, text: str) -> tuple[int, int]:
    (path,) = re.findall(r"^Screenshot: (/mnt/user-data/workspace/\S+\.png)$", text, re.MULTILINE)
    data, _ = await (await sandboxes.acquire()).read(path)
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", data[16:24])


async def test_a_page_is_seen_as_its_scripts_made_it(capture: Capture, web: Web, sandboxes: Sandboxes):
    url = web.put(
        "/app",
        "<title>Deer</title><p id=p>Loading</p><p style='display:none'>Hidden order</p><div style='height:3000px'>x</div>"
        "<script>alert('hello'); setTimeout(() => p.textContent = 'Made by ' + 'a script', 300)</script>",
    )
    text = await capture(url)
    assert text.startswith(f"# Deer\n\nSource: {url}\n"), text
    assert "Made by a script" in text and "Hidden order" not in text and "Loading" not in text
    assert await _picture(sandboxes, text) == (1280, 900)
    assert (await _picture(sandboxes, await capture(url, full_page=True)))[1] > 3000
    (kept,) = re.findall(r"^Kept as: (\S+)$", text, re.MULTILINE)
    data, _ = await (await sandboxes.acquire()).read(kept)
    assert b"Made by a script" in data


async def test_a_page_that_never_ends_loading_is_shown_as_far_as_it_is(capture: Capture, web: Web):
    web.put("/hang", "")
    url = web.put("/slow", "<p>What is there already.</p><img src=/hang>")
    text = await capture(url, timeout=15)
    assert "What is there already." in text and "still loading" in text


async def test_a_page_that_keeps_the_browser_busy_is_given_up(capture: Capture, web: Web):
    text = await capture(web.put("/loop", "<p>x</p><script>for(;;);</script>"), timeout=8)
    assert text.startswith("Error:") and "busy" in text


async def test_a_page_reaches_neither_this_machine_nor_its_files(
    capture: Capture, web: Web, data_dir: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(data_dir))
    secrets: list[str] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        secrets.append((await reader.read(200)).decode("latin-1"))
        writer.close()

    async with await asyncio.start_server(listen, "127.0.0.1", 0) as private:
        port = private.sockets[0].getsockname()[1]
        tries = [
            f"http://127.0.0.1:{port}/a", f"http://localhost:{port}/b", f"http://[::1]:{port}/c", f"http://0:{port}/d",
            "http://169.254.169.254/latest/meta-data/", "file:///etc/passwd",
        ]  # fmt: skip
        script = f"""for (const url of {json.dumps(tries)}) {{
            fetch(url, {{mode: "no-cors"}}).catch(() => 0);
            const frame = document.createElement("iframe"); frame.src = url; document.body.append(frame);
            new Image().src = url;
        }}
        try {{ new WebSocket("ws://127.0.0.1:{port}/e") }} catch {{}}
        try {{ new RTCPeerConnection({{iceServers: [{{urls: "stun:127.0.0.1:{port}"}}]}}).createDataChannel("x") }} catch {{}}"""
        text = await capture(web.put("/try", f"<p>A page.</p><script>{script}</script>"))
        assert "A page." in text and "root:" not in text and secrets == []
        for start in (f"http://127.0.0.1:{port}/x", "file:///etc/passwd", "chrome://version", "data:text/html,x"):
            assert (await capture(start)).startswith("Error:")
        for where in (f"http://127.0.0.1:{port}/x", f"http://localhost:{port}/x", "file:///etc/passwd"):
            text = await capture(web.put("/redirect", "", status=302, Location=where))
            assert text.startswith("Error:") and "root:" not in text, text
            moves = f"<p>Before.</p><script>location = {json.dumps(where)}</script>"
            assert "root:" not in await capture(web.put("/moves", moves))
        assert secrets == []
    assert not list(data_dir.glob("deerflow-*"))


LOCAL = """<title>Local</title><link rel=stylesheet href=style.css><p>Shown.</p><script src=gone.js></script>
<script>console.error("told", 42); addEventListener("load", () => { document.body.append("Made."); throw new Error("broken here") })</script>"""


async def test_a_file_of_the_thread_is_shown_with_what_stands_beside_it_and_its_errors(
    capture: Capture, web: Web, sandboxes: Sandboxes
):
    sandbox = await sandboxes.acquire()
    await sandbox.write(f"{OUTPUTS}/my site/index.html", LOCAL.encode())
    await sandbox.write(f"{OUTPUTS}/my site/style.css", b"p { text-transform: uppercase }")
    text = await capture(f"{OUTPUTS}/my site/index.html")
    assert text.startswith(f"# Local\n\nFile: {OUTPUTS}/my site/index.html\nScreenshot: "), text
    assert "SHOWN." in text and "Made." in text, "scripts ran, and the style sheet beside it counts"
    for error in ("- told 42", "broken here", "gone.js"):
        assert error in text, text
    assert await _picture(sandboxes, text) == (1280, 900)
    await sandbox.write(f"{OUTPUTS}/good.html", b"<p>Good.</p>")
    assert "No errors in the console." in await capture(f"{OUTPUTS}/good.html", full_page=True)
    assert (await capture(f"{OUTPUTS}/none.html")).startswith("Error:")
    assert (await capture("/etc/shadow")).startswith("Error:")
    assert not (await sandbox.glob(WORKSPACE, "**/.capture-*", include_dirs=True))[0]
    shot = f"{program_of(BROWSERS)} --headless --no-sandbox --disable-gpu --screenshot=$PWD/s.png ../outputs/good.html"
    assert (await sandbox.exec(f"{shot} && test -s s.png", timeout=60)).exit_code == 0


async def test_files_and_refusals_are_told_apart(capture: Capture, web: Web):
    assert "Use web_fetch" in await capture(web.put("/f.zip", b"PK", "application/zip"))
    assert "answered 404" in await capture(f"{web.base}/nothing")
    refused = await capture(f"http://{HOST}:1/")
    assert refused.startswith("Error:")


async def test_an_allowlist_holds_for_pages_and_all_that_they_load(capture: Capture, web: Web):
    url = web.put("/page", "<p>A page.</p>")
    allowlist = {"mode": "allowlist", "allow": ["example.org"], "allow_nets": [f"{HOST}/32"]}
    text = await capture(url, network=allowlist)
    assert text.startswith("Error:") and web.requests == []


async def test_without_isolation_no_browser_is_started(web: Web, context: RunContext):
    local = replace(
        context,
        machine=replace(context.machine, provider=LocalSandboxProvider(allow_host_bash=True)),
        config=AppConfig.model_validate({"sandbox": {"network": OPEN}}).with_origin(Origin()),
    )
    message = await _call(local, url=web.put("/page", "<p>A page.</p>"))
    assert "cannot keep a browser out of private networks" in message.text and web.requests == []


def test_without_chromium_there_is_no_such_tool(monkeypatch: pytest.MonkeyPatch):
    assert "web_capture" in [tool.name for tool in get_available_tools(app_config=AppConfig())]
    assert "web_capture" not in [tool.name for tool in get_available_tools(app_config=AppConfig(), sandbox=False)]
    monkeypatch.setattr("deerflow.tools.registry.program_of", lambda names: None)
    assert "web_capture" not in [tool.name for tool in get_available_tools(app_config=AppConfig())]
