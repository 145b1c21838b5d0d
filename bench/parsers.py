"""``python -m bench.parsers TOOLS``: what strangers' files cost the server's process and other people. TOOLS: a directory for the tool image.

Prints how long a warm converter takes for a simple page, and reading it in this process; a search of one person, alone and while another
person has ten hostile pages read; how fast the converters end then; what a large picture adds to the process; the answer to a large document.
"""

from __future__ import annotations

import asyncio
import io
import json
import statistics
import sys
import time
import zipfile
import zlib
from pathlib import Path

from langchain.tools import ToolRuntime

from deerflow.community.searx.tools import web_search_tool
from deerflow.config import AppConfig
from deerflow.config.schema import Origin
from deerflow.context import RunContext
from deerflow.context.machine import Machine
from deerflow.identity import Principal
from deerflow.sandbox.auto import AutoSandboxProvider
from deerflow.sandbox.converters import Converters, UnreadableError
from deerflow.sandbox.tool_image import ToolImage

HOST = "127.0.0.2"
SIMPLE = f"<title>Deer</title><article><h1>Deer</h1>{'<p>Deer are ruminants and eat <a href=/g>grass</a>.</p>' * 40}</article>".encode()
HOSTILE = b"<p " + b" ".join(b"a%d=" % number for number in range(59_000)) + b">x</p>"
"""516 kB: one element with tens of thousands of attributes."""
ROUNDS = 20


def picture() -> bytes:
    """A PNG of 8000 x 8000 pixels and 242 kB."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    head = (8000).to_bytes(4, "big") * 2 + bytes([8, 2, 0, 0, 0])
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(bytes(24_001) * 8000))
        + chunk(b"IEND", b"")
    )


def document() -> bytes:
    """A docx that unpacks to 60 MB."""
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    office = "http://schemas.openxmlformats.org"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{office}/package/2006/content-types"><Default Extension="rels" ContentType='
        '"application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" ContentType='
        '"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{office}/package/2006/relationships"><Relationship Id="r" Target="word/document.xml" '
        f'Type="{office}/officeDocument/2006/relationships/officeDocument"/></Relationships>',
        "word/document.xml": f'<w:document xmlns:w="{word}"><w:body>{"<w:p><w:r><w:t>x</w:t></w:r></w:p>" * 1_800_000}</w:body></w:document>',
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def resident() -> float:
    """MB of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


async def searches(converters: Converters) -> tuple[float, float]:
    """Return ms of a search, alone and while another person has ten hostile pages read."""
    answer = json.dumps({"results": [{"title": "Deer", "url": "https://example.org/", "content": "Deer"}] * 5}).encode()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(answer)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + answer)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, HOST, 0) as server:
        base = f"http://{HOST}:{server.sockets[0].getsockname()[1]}"
        entry = {
            "name": "web_search",
            "group": "web",
            "use": "deerflow.community.searx.tools:web_search_tool",
            "base_url": base,
        }
        config = AppConfig.model_validate({"tools": [entry]}).with_origin(Origin())
        context = RunContext("t", principal=Principal("alice"), config=config, machine=Machine(converters=converters))
        runtime = ToolRuntime(state={}, context=context, config={}, stream_writer=print, tool_call_id="c", store=None)
        call = {"type": "tool_call", "name": "web_search", "id": "c", "args": {"query": "deer", "runtime": runtime}}

        async def search() -> float:
            took: list[float] = []
            for _ in range(ROUNDS):
                began = time.perf_counter()
                assert "example.org" in (await web_search_tool.ainvoke(call)).text
                took.append((time.perf_counter() - began) * 1000)
            return statistics.median(took)

        await search()
        alone = await search()
        hostile = [asyncio.create_task(converters.page(HOSTILE, "mallory")) for _ in range(10)]
        await asyncio.sleep(0.5)
        beside = await search()
        began = time.perf_counter()
        page = await converters.page(SIMPLE, "alice")
        print(f"her page beside them: {(time.perf_counter() - began) * 1000:.0f} ms ({page.title})")
        began = time.perf_counter()
        for task in hostile:
            task.cancel()
        await asyncio.gather(*hostile, return_exceptions=True)
        print(f"ten hostile pages, cancelled: ended after {(time.perf_counter() - began) * 1000:.0f} ms")
        return alone, beside


async def main(tools: Path) -> None:
    image = ToolImage(tools)
    await asyncio.to_thread(image.build)
    converters = Converters(AutoSandboxProvider(tools.parent), image)
    await converters.page(SIMPLE, "alice")
    took: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        await converters.page(SIMPLE, "alice", url="https://example.org/")
        took.append((time.perf_counter() - began) * 1000)
    print(f"a simple page in a warm converter: {statistics.median(took):.1f} ms")
    alone, beside = await searches(converters)
    print(f"a search: {alone:.1f} ms alone, {beside:.1f} ms beside ten hostile pages ({beside / alone:.2f} x)")
    data = picture()
    before, began = resident(), time.perf_counter()
    shown = await converters.picture(data, "alice")
    grown = resident() - before
    print(
        f"PNG of {len(data) / 1000:.0f} kB: {time.perf_counter() - began:.1f} s, {grown:.1f} MB more here ({shown.about})"
    )
    data = await asyncio.to_thread(document)
    began = time.perf_counter()
    try:
        said = f"{len(await converters.document(data, 'large.docx', 'alice'))} bytes of text"
    except UnreadableError as error:
        said = f"large.docx {error}"
    print(f"docx of {len(data) / 1000:.0f} kB: {time.perf_counter() - began:.1f} s: {said}")
    began = time.perf_counter()
    await converters.shutdown()
    print(f"shutdown: {(time.perf_counter() - began) * 1000:.0f} ms")
    from deerflow.security.html import readable

    text = SIMPLE.decode()
    await asyncio.to_thread(readable, text)
    began = time.perf_counter()
    for _ in range(ROUNDS):
        await asyncio.to_thread(readable, text, "https://example.org/")
    print(f"the same page in this process: {(time.perf_counter() - began) / ROUNDS * 1000:.1f} ms")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]).absolute()))
