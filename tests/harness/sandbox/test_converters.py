"""Files of strangers are taken apart outside of this process, where each is limited and none can hold up another person's."""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import tempfile
import zlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest
from PIL import Image
from tests.documents.office import full_word
from tests.support.converters import small_image
from tests.support.shared import shared_directory

from deerflow.sandbox.converters import Converters, UnreadableError
from deerflow.sandbox.isolation.landlock import LandlockSandboxProvider
from deerflow.sandbox.provider import IsolatingProvider
from deerflow.sandbox.tool_image import ToolImage

PAGE = b"<title>Deer</title><p>Deer eat <a href='/g'>grass</a>, leaves and fruit, all day long.</p><p hidden>SECRET</p>"
SLOW = b"<p " + b" ".join(b"a%d=1" % number for number in range(80_000)) + b">x</p>"
"""One element with 80,000 attributes: each is compared with all before."""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolImage]:
    """At a place that every user may pass through."""
    built = small_image(shared_directory(tmp_path_factory))
    root = Path(tempfile.mkdtemp(prefix="deerflow-image-", dir="/var/tmp"))
    root.chmod(0o755)
    shutil.copytree(built.path(), root / built.path().name, symlinks=True)
    yield ToolImage(root, built.path().parent.parent / "small.txt")
    shutil.rmtree(root)


@pytest.fixture(params=["namespaces", "landlock", "plain"])
async def limited(
    namespace_provider: type[IsolatingProvider], image: ToolImage, data_dir: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Converters]:
    """Converters that give a file little."""
    kinds = {"namespaces": namespace_provider, "landlock": LandlockSandboxProvider}
    kind = kinds.get(request.param)
    made = Converters(kind(data_dir) if kind else None, image, seconds=1, memory=100 << 20)
    yield made
    await made.shutdown()


def processes() -> list[psutil.Process]:
    """Converters of this process, launchers included: those of the session's pool too."""
    return [
        one
        for one in psutil.Process().children(recursive=True)
        if "sys.modules[name] = program" in " ".join(one.cmdline())
    ]


async def test_a_page_that_takes_too_long_is_an_honest_error_and_the_next_is_read(limited: Converters) -> None:
    with pytest.raises(UnreadableError, match="takes more than 1 seconds to read"):
        await limited.page(SLOW, "mallory")
    page = await limited.page(PAGE, "alice", url="https://example.org/a/")
    assert page.title == "Deer" and page.text.startswith("Deer eat") and "SECRET" not in page.text
    assert page.links == ("https://example.org/g",)


async def test_a_picture_that_needs_too_much_memory_is_an_honest_error(limited: Converters) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    head = (6000).to_bytes(4, "big") * 2 + bytes([8, 2, 0, 0, 0])
    rows = zlib.compress(bytes(18_001) * 6000, 1)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    with pytest.raises(UnreadableError, match=r"needs more than 100 MB of memory|takes more than 1 seconds"):
        await limited.picture(png, "mallory")


async def test_it_holds_no_secrets_no_network_and_ends_with_the_pool(
    limited: Converters, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = await asyncio.to_thread(processes)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    await limited.page(PAGE, "alice")
    running = [one for one in await asyncio.to_thread(processes) if one not in others]

    def look() -> None:
        assert running and not any(b"sk-secret" in Path(f"/proc/{one.pid}/environ").read_bytes() for one in running)
        assert running[-1].uids().real != 0, "it does not read files of strangers as root"
        if limited.describe()[0] in ("bwrap", "userns"):
            assert os.readlink(f"/proc/{running[-1].pid}/ns/net") != os.readlink("/proc/self/ns/net")

    await asyncio.to_thread(look)
    await limited.shutdown()
    await asyncio.to_thread(psutil.wait_procs, running, timeout=10)
    assert not {*await asyncio.to_thread(processes)} - {*others}


async def test_one_persons_pages_do_not_occupy_all_converters(converters: Converters) -> None:
    done: list[str] = []

    async def read(person: str) -> None:
        try:
            await converters.page(PAGE if person == "alice" else SLOW, person)
        finally:
            done.append(person)

    hostile = [asyncio.create_task(read("mallory")) for _ in range(3)]
    await asyncio.sleep(0)
    await asyncio.create_task(read("alice"))
    assert done == ["alice"]
    for task in hostile:
        task.cancel()
    await asyncio.gather(*hostile, return_exceptions=True)
    assert (await converters.page(PAGE, "mallory")).title == "Deer", "a cancelled one leaves its place"


async def test_a_converter_that_dies_is_replaced(converters: Converters) -> None:
    await converters.page(PAGE, "alice")
    for one in await asyncio.to_thread(processes):
        one.kill()
    assert (await converters.page(PAGE, "alice")).title == "Deer"


async def test_without_the_tool_image_pages_are_text_and_pictures_stay_as_they_are() -> None:
    converters = Converters()
    try:
        page = await converters.page(PAGE, "alice", url="https://example.org/")
        assert (page.title, page.text) == ("Deer", "Deer eat grass, leaves and fruit, all day long.")
        for form in ("PNG", "JPEG", "WEBP"):
            for options in ({}, {"lossless": True}):
                small, buffer = Image.new("RGB", (7, 5), "red"), io.BytesIO()
                small.save(buffer, form, **options)
                data = buffer.getvalue()
                assert (await converters.picture(data, "alice")).about.startswith("7 x 5 pixels")
                with pytest.raises(UnreadableError, match="cannot be decoded"):
                    await converters.picture(data[:20], "alice")
        buffer = io.BytesIO()
        Image.new("RGB", (3000, 5)).save(buffer, "PNG")
        for refused in (
            converters.picture(buffer.getvalue(), "alice"),
            converters.document(full_word(), "a.docx", "alice"),
            converters.document(b"%PDF-1.7", "a.pdf", "alice"),
        ):
            with pytest.raises(UnreadableError, match=r"tool image.*missing.*deerflow doctor"):
                await refused
        assert converters.describe() == ("", False)
    finally:
        await converters.shutdown()


async def test_text_of_other_kinds_comes_as_it_is(converters: Converters) -> None:
    page = await converters.page(b"a,b\n1,<p hidden>2</p>", "alice", html=False)
    assert (page.title, page.text, page.links) == ("", "a,b\n1,<p hidden>2</p>", ())
