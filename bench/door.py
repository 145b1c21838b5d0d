"""``python -m bench.door``: how fast untrusted text passes the door, in MB/s of processor time, up to 10 MB; what ``web_fetch`` adds to a download."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
from langchain.tools import ToolRuntime

from deerflow.community.fetch.tools import web_fetch_tool
from deerflow.config import AppConfig, Paths
from deerflow.config.schema import Origin
from deerflow.context import RunContext
from deerflow.context.machine import Machine
from deerflow.identity import Principal
from deerflow.sandbox.auto import AutoSandboxProvider
from deerflow.sandbox.converters import Converters
from deerflow.sandbox.interface import WORKSPACE, Mount, Policy
from deerflow.sandbox.local import LocalSandboxProvider
from deerflow.sandbox.tool_image import ToolImage
from deerflow.security.text import disarmed, sanitize

TEXTS = {
    "English": "The quick brown fox  jumps over the lazy dog.\n",
    "German": "Über größere Brücken läuft der naïve Hund.\n",
    "Chinese": "今天天气很好我们去公园玩\n",
    "HTML": "<p class='x'>hello <b>world</b></p>\n",
    "emoji": "All is well 😀 👍 🇫🇷\n",
    "spaces": " ",
    "zero width": "a\u200b",
    "stacked accents": "\u0300\u0316",
    "tag characters": "\U000e0041",
    "brackets": "<",
    "labels": "\n### ",
}
SIZES = (1_000_000, 10_000_000)
"""Characters."""


def rate(work: Callable[[str], object], text: str) -> float:
    """MB of UTF-8 per second."""
    size = len(text.encode()) / 1e6
    began = time.process_time()
    work(text)
    return size / (time.process_time() - began)


HOST = "127.0.0.2"
PAGES = (20, 100, 400)
"""kB of HTML, of which a fifth is text, as in pages of newspapers."""
ROUNDS = 15


def page(kilobytes: int) -> bytes:
    sentence = "Deer are hoofed ruminant mammals, and eat <b>grass</b>, leaves and fruit. "
    paragraph = f"<p>{sentence * 5}<a href='/wild'>More on deer</a></p>\n"
    body = paragraph * (kilobytes * 200 // len(paragraph))
    body += f"<script>{'let it = 1;' * (kilobytes * 800 // 11)}</script>"
    return f"<!doctype html><title>Deer</title><nav><a href=/>Home</a></nav><article>{body}</article>".encode()


async def fetching() -> None:
    """Print what ``web_fetch`` adds to the download of a page, in ms of the clock: reading, cleaning, keeping it."""
    data = b""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + data)
        await writer.drain()
        writer.close()

    config = AppConfig.model_validate({"sandbox": {"network": {"allow_nets": [f"{HOST}/32"]}}}).with_origin(Origin())
    with tempfile.TemporaryDirectory() as directory:
        policy = Policy(mounts=(Mount(Path(directory), WORKSPACE),))
        provider, paths = LocalSandboxProvider(), Paths()
        converters = Converters(AutoSandboxProvider(paths.base_dir), ToolImage(paths.tools_dir))
        context = RunContext(
            thread_id="t",
            principal=Principal("u"),
            config=config,
            machine=Machine(provider=provider, policy=policy, converters=converters),
        )
        runtime = ToolRuntime(state={}, context=context, config={}, stream_writer=print, tool_call_id="c", store=None)
        async with await asyncio.start_server(serve, HOST, 0) as server:
            url = f"http://{HOST}:{server.sockets[0].getsockname()[1]}/"

            async def bare() -> None:
                async with httpx.AsyncClient(trust_env=False, verify=False) as client:
                    (await client.get(url)).raise_for_status()

            async def fetch() -> None:
                call = {"type": "tool_call", "name": "web_fetch", "id": "c", "args": {"url": url, "runtime": runtime}}
                assert (await web_fetch_tool.ainvoke(call)).text.startswith("# Deer")

            for size in PAGES:
                data = page(size)
                (plain, plain_cpu), (whole, cpu) = await _medians(bare), await _medians(fetch)
                print(
                    f"web_fetch of {size:3} kB: {whole - plain:5.1f} ms over a download of {plain:4.1f} ms, "
                    f"{cpu - plain_cpu:5.1f} ms of this process' processor time"
                )
        await converters.shutdown()


async def _medians(work: Callable[[], Awaitable[None]]) -> tuple[float, float]:
    """Of the clock and of the processor, in ms."""
    took: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        began, cpu = time.perf_counter(), time.process_time()
        await work()
        took.append(((time.perf_counter() - began) * 1000, (time.process_time() - cpu) * 1000))
    clock, processor = zip(*took[2:], strict=True)
    return statistics.median(clock), statistics.median(processor)


def main() -> None:
    """Print a line per kind of text; the two sizes have the same rate where time is linear."""
    sanitize("é\U0001f600")
    disarmed("é")  # tables
    for name, piece in TEXTS.items():
        texts = [(piece * (size // len(piece) + 1))[:size] for size in SIZES]
        clean = [rate(lambda text: sanitize(text, len(text)), text) for text in texts]
        calm = [rate(lambda text: disarmed(text, foreign=True), text) for text in texts]
        print(f"{name:16} sanitize {clean[0]:6.0f} {clean[1]:6.0f}   disarm {calm[0]:6.0f} {calm[1]:6.0f}")
    asyncio.run(fetching())


if __name__ == "__main__":
    main()
