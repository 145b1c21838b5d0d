"""Pages as a person sees them: a headless Chromium of the server opens them, each time in a sandbox of its own."""

from __future__ import annotations

import asyncio
import json
import secrets
import shlex
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from langchain_core.tools import ToolException
from pydantic import Field

from deerflow.community.web import OPENS_ADDRESS, check, keep, network_of, options_of, shown_page
from deerflow.config.schema import AppConfig
from deerflow.sandbox.interface import WORKSPACE, Mount, Policy, Sandbox, SandboxError, sandbox_id
from deerflow.security.html import Page
from deerflow.security.outbound import Outbound
from deerflow.security.text import inline
from deerflow.tools.decorator import Runtime, async_tool
from deerflow.tools.registry import NEEDS_PROGRAM, program_of
from deerflow.tools.shell import settings

BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
OWNER = "capture"
"""Whose the sandboxes of browsers are."""
MOST_HEIGHT = 8000
MOST_PICTURE, MOST_TEXT = 20 << 20, 16 << 20


@async_tool("web_capture", metadata={**OPENS_ADDRESS, NEEDS_PROGRAM: BROWSERS})
async def web_capture_tool(
    url: Annotated[str, Field(description="With https://, exactly as the user or a tool gave it")],
    runtime: Runtime,
    full_page: Annotated[
        bool, Field(description="The picture shows the whole page, not only its first screen")
    ] = False,
) -> str:
    """Open a page in a browser: its text after its scripts ran, and a screenshot as a PNG file for view_image.
    Slower than web_fetch: use it for pages that need JavaScript, and to see what a page looks like."""
    options, config = options_of(runtime, "web_capture"), settings(runtime)
    check(Outbound(network_of(config)), url)
    try:
        async with _own_sandbox(runtime, config) as sandbox:
            page, picture = await _captured(sandbox, url, float(options["timeout"]), full_page)
    except SandboxError as error:
        raise ToolException(f"Error: {error}") from error
    where = await keep(picture, page["url"], ".png", runtime)
    notes = [f"Screenshot: {where}" if where else "The screenshot could not be kept."]
    if not page["loaded"]:
        notes.append("The page was still loading when it was captured.")
    if full_page and page["height"] > page["shown_height"]:
        notes.append(f"The picture shows the first {page['shown_height']} of {page['height']} pixels.")
    return await shown_page(Page(page["title"], page["text"]), page["url"], options, runtime, notes)


@asynccontextmanager
async def _own_sandbox(runtime: Runtime, config: AppConfig) -> AsyncIterator[Sandbox]:
    """One that holds nothing but a browser's own files, and whose network is that of the tools for the web."""
    provider = runtime.context.sandbox_provider
    if provider is None:
        raise SandboxError("This agent runs without a sandbox, and so without a browser. Use web_fetch.")
    base, key = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="deerflow-capture-")), secrets.token_hex(8)
    limits = replace(runtime.context.sandbox_policy.limits, file_size_mb=256, disk_mb=1024, cpu_seconds=120)
    network = network_of(config)
    policy = Policy((Mount(base / "work", WORKSPACE),), base / "home", base / "tmp", {}, network, limits)
    try:
        await asyncio.to_thread(base.chmod, 0o711)
        sandbox = await provider.acquire(key, user_id=OWNER, policy=policy)
        if sandbox.isolation.network != network.mode:
            raise SandboxError("This sandbox cannot keep a browser out of private networks. Use web_fetch.")
        yield sandbox
    finally:
        await asyncio.shield(provider.release(sandbox_id(key, OWNER), destroy=True))
        await asyncio.to_thread(shutil.rmtree, base, ignore_errors=True)


async def _captured(sandbox: Sandbox, url: str, seconds: float, full_page: bool) -> tuple[dict[str, Any], bytes]:
    height = MOST_HEIGHT if full_page else 900
    argv = [program_of(BROWSERS) or BROWSERS[0], url, WORKSPACE, f"{seconds:g}", str(height)]
    program = (
        f"{shlex.join(['python3', '-', *argv])} <<'END-OF-PROGRAM'\n{await asyncio.to_thread(_program)}\nEND-OF-PROGRAM"
    )
    done = await sandbox.exec(program, timeout=seconds + 10, max_output=8192)
    if done.exit_code == 3:
        raise SandboxError(f"{inline(url)} {inline(done.output, 400)}")
    if done.timed_out or done.killed_for:
        why = f"needs too much {done.killed_for}" if done.killed_for else f"takes more than {seconds:g} seconds"
        raise SandboxError(f"{inline(url)} {why}. Try another source.")
    if done.exit_code != 0:
        raise SandboxError(f"The browser did not work: {inline(done.output[-300:], 300)}")
    text, size = await sandbox.read(f"{WORKSPACE}/page.json", limit=MOST_TEXT)
    picture, bytes_ = await sandbox.read(f"{WORKSPACE}/page.png", limit=MOST_PICTURE)
    if size > MOST_TEXT or bytes_ > MOST_PICTURE:
        raise SandboxError(f"{inline(url)} is too large to be captured. Leave out full_page.")
    return json.loads(text), picture


@cache
def _program() -> str:
    return Path(__file__).with_name("browse.py").read_text("utf-8")
