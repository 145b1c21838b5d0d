"""Pages as a person sees them: a headless Chromium of the server opens them, each in a sandbox of its own, or files in the thread's."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from langchain_core.tools import ToolException
from pydantic import Field

from deerflow.community.web import OPENS_ADDRESS, Options, check, keep, options_of, shown_page
from deerflow.config.schema import AppConfig
from deerflow.sandbox.interface import WORKSPACE, Policy, Sandbox, SandboxError
from deerflow.sandbox.temporary import temporary_sandbox
from deerflow.security.html import Page
from deerflow.security.outbound import Outbound
from deerflow.security.text import inline
from deerflow.tools.decorator import Runtime, async_tool
from deerflow.tools.download import kept_path, network_of
from deerflow.tools.registry import NEEDS_PROGRAM, program_of
from deerflow.tools.shell import absolute, cut_tail, settings

BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
OWNER = "capture"
"""Whose the sandboxes of browsers are."""
MOST_HEIGHT = 8000
MOST_PICTURE, MOST_TEXT = 20 << 20, 16 << 20


@async_tool("web_capture", metadata={**OPENS_ADDRESS, NEEDS_PROGRAM: BROWSERS})
async def web_capture_tool(
    url: Annotated[
        str,
        Field(description="With https://, exactly as the user or a tool gave it; or the absolute path of an HTML file"),
    ],
    runtime: Runtime,
    full_page: Annotated[
        bool, Field(description="The picture shows the whole page, not only its first screen")
    ] = False,
) -> str:
    """Open a page in a browser: its text after its scripts ran, and a screenshot for view_image; of a file in the thread
    also the errors of the console. Slower than web_fetch: for pages that need JavaScript, and to see how one looks."""
    options, config = options_of(runtime, "web_capture"), settings(runtime)
    if url.startswith(("/", "file:///mnt/")):
        return await _file_shown(url.removeprefix("file://"), runtime, options, full_page)
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


async def _file_shown(path: str, runtime: Runtime, options: Options, full_page: bool) -> str:
    """Show a file of the thread in the thread's own sandbox, which sees what stands beside it and has the thread's network."""
    path = absolute(path)
    try:
        sandbox = await runtime.context.sandbox()
        found = await sandbox.stat(path)
        if found is None or found.kind != "file":
            raise ToolException(f"Error: {path} is not a file of this thread. Use ls to see what is there.")
        page, picture = await _captured(sandbox, f"file://{quote(path)}", float(options["timeout"]), full_page)
        where = kept_path(picture, path, ".png")
        await sandbox.write(where, picture)
    except SandboxError as error:
        raise ToolException(f"Error: {error}") from error
    notes = [f"Screenshot: {where}", *(["The page was still loading when it was captured."] * (not page["loaded"]))]
    errors = [f"- {inline(text, 400)}" for text in page["errors"]]
    notes.append("Errors in the console:\n" + "\n".join(errors) if errors else "No errors in the console.")
    text = cut_tail(page["text"], int(options["contents_max_characters"]), "Read the file for the rest.")
    return f"# {inline(page['title']) or 'Untitled'}\n\nFile: {path}\n" + "\n".join(notes) + f"\n\n{text}"


@asynccontextmanager
async def _own_sandbox(runtime: Runtime, config: AppConfig) -> AsyncIterator[Sandbox]:
    """One that holds nothing but a browser's own files, and whose network is that of the tools for the web."""
    provider = runtime.context.machine.provider
    if provider is None:
        raise SandboxError("This agent runs without a sandbox, and so without a browser. Use web_fetch.")
    limits = replace(runtime.context.machine.policy.limits, file_size_mb=256, disk_mb=1024, cpu_seconds=120)
    network = network_of(config)
    async with temporary_sandbox(provider, OWNER, Policy(network=network, limits=limits)) as sandbox:
        if sandbox.isolation.network != network.mode:
            raise SandboxError("This sandbox cannot keep a browser out of private networks. Use web_fetch.")
        yield sandbox


async def _captured(sandbox: Sandbox, url: str, seconds: float, full_page: bool) -> tuple[dict[str, Any], bytes]:
    height, directory = MOST_HEIGHT if full_page else 900, f"{WORKSPACE}/.capture-{secrets.token_hex(4)}"
    program, browser = await asyncio.to_thread(_program), program_of(BROWSERS) or BROWSERS[0]
    argv = ["python3", "-c", program, browser, url, directory, f"{seconds:g}", str(height)]
    try:
        done = await sandbox.run(argv, timeout=seconds + 10)
        if done.exit_code == 3:
            raise SandboxError(f"{inline(url)} {inline(done.output, 400)}")
        if done.timed_out or done.killed_for:
            why = f"needs too much {done.killed_for}" if done.killed_for else f"takes more than {seconds:g} seconds"
            raise SandboxError(f"{inline(url)} {why}. Try another source.")
        if done.exit_code != 0:
            raise SandboxError(f"The browser did not work: {inline(done.output[-300:], 300)}")
        text, size = await sandbox.read(f"{directory}/page.json", limit=MOST_TEXT)
        picture, bytes_ = await sandbox.read(f"{directory}/page.png", limit=MOST_PICTURE)
    finally:
        with suppress(SandboxError):
            await sandbox.remove(directory)
    if size > MOST_TEXT or bytes_ > MOST_PICTURE:
        raise SandboxError(f"{inline(url)} is too large to be captured. Leave out full_page.")
    return json.loads(text), picture


@cache
def _program() -> str:
    return Path(__file__).with_name("browse.py").read_text("utf-8")
