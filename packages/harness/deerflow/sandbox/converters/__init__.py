"""Converters read what strangers made (pages, pictures, documents) outside of this process: a small pool, kept warm.

A converter is a process in a sandbox of its own with the tool image and nothing else: no files, no network, no secrets. Without the tool
image it is a process with an empty environment and limits that knows only Python's own library: it reads the text of pages.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from deerflow.config import AppConfig, Paths
from deerflow.sandbox.auto import AutoSandboxProvider
from deerflow.sandbox.converters.pictures import Picture
from deerflow.sandbox.converters.process import Converter, ConverterDiedError
from deerflow.sandbox.converters.program import BOOT
from deerflow.sandbox.interface import Policy, SandboxProvider, SandboxRuntimeError
from deerflow.sandbox.local import LocalSandboxProvider
from deerflow.sandbox.provider import IsolatingProvider
from deerflow.sandbox.session import Launch
from deerflow.sandbox.spawner import Spawner
from deerflow.sandbox.tool_image import ToolImage
from deerflow.security.encodings import KNOWN, Encoding, sample
from deerflow.security.head import NOTHING_SAID, Head
from deerflow.security.html import Page

SIZE = 2
"""Converters of a process."""
SECONDS, SLACK = 10.0, 10.0
MEMORY = 512 << 20
PROCESSES = 32
MOST_TEXT, MOST_PICTURE = 24 << 20, 8 << 20
MOST_NAME = 4096
MOST_LINKS = 5000
IDLE_SECONDS = 600.0
NOBODY = 65534
PICTURES = ("image/jpeg", "image/png", "image/webp")
_HERE = "deerflow.sandbox.converters"


class UnreadableError(Exception):
    """A file cannot be read. ``str()`` is a sentence without its subject: ``takes more than 10 seconds to read.``"""


@dataclass(slots=True)
class _ConverterPlace:
    """Room for one converter."""

    owner: str
    """Whose user id it has on the host, where this process is root."""
    converter: Converter | None = None
    tools: Path | None = None
    """The tool image that it was started with."""
    counted: bool = False
    """The kernel counts its processes apart from ours."""


class Converters:
    """The pool. Its methods may be awaited from any event loop, and raise SandboxRuntimeError if no converter can be had.

    A person has at most all converters but one: the others' files never wait for the ten that one person sent.
    """

    def __init__(
        self,
        provider: SandboxProvider | None = None,
        image: ToolImage | None = None,
        *,
        size: int = SIZE,
        seconds: float = SECONDS,
        memory: int = MEMORY,
    ) -> None:
        """
        Args:
            provider: confines the converters, if it can do so on this machine.
            image: holds the libraries; None: there is none.
            size: converters at once.
            seconds: of processor time that a file may take; of time it may take SLACK more, since the machine may be busy.
            memory: bytes that reading a file may take.
        """
        self._provider = provider
        self._image = image
        self._spawner = Spawner()
        self._places = [_ConverterPlace(f"converter:{number}") for number in range(size)]
        self._free = [*self._places]
        self._room = asyncio.Semaphore(size)
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._seconds = seconds
        self._limits = {"seconds": seconds, "patience": seconds + SLACK, "memory": memory}
        self._most_each = max(1, size - 1)
        self._idle: asyncio.TimerHandle | None = None
        self._resting: asyncio.Future[None] | None = None
        self._ended = False

    async def page(
        self, data: bytes, user_id: str, *, url: str | None = None, charset: str = "", html: bool = True
    ) -> Page:
        """Read a page of the web.

        Args:
            data: as it came, or text in UTF-8.
            user_id: for whom.
            url: where it stands, which its links are relative to.
            charset: its encoding, as the server has it.
            html: it is a page, whatever it begins with; else only if it begins like one.

        Raises:
            UnreadableError: it cannot be read.
        """
        options = {"url": url, "charset": charset, "html": html}
        head, text = await self._read("pages", options, data, user_id, MOST_TEXT)
        links = head.get("links")
        kept = [link for link in links if isinstance(link, str)] if isinstance(links, list) else []
        said = head.get("head")
        return Page(
            str(head.get("title") or ""),
            text.decode("utf-8", "replace"),
            tuple(kept[:MOST_LINKS]),
            Head(*(str(said.get(name) or "") for name in Head._fields)) if isinstance(said, dict) else NOTHING_SAID,
            plain=head.get("plain") is True,
            scripted=head.get("scripted") is True,
        )

    async def picture(self, data: bytes, user_id: str, *, page: int = 0) -> Picture:
        """Prepare a picture for a model, or a page of a PDF or TIFF. Raises UnreadableError."""
        head, prepared = await self._read("pictures", {"page": page}, data, user_id, MOST_PICTURE)
        try:
            (width, height), shown, pages = map(int, head["size"]), tuple(map(int, head["shown"])), int(head["pages"])
            kind = PICTURES[PICTURES.index(head["mime_type"])]
        except (LookupError, TypeError, ValueError) as error:
            raise UnreadableError("made its parser answer nonsense.") from error
        about = f"{width} x {height} pixels, {len(data) / 1000:.0f} kB"
        about += f", {max(page, 1)} of {pages} pictures in it" if pages > 1 else ""
        if not prepared:
            return Picture(data, kind, about)
        form = kind.partition("/")[2].upper()
        about += f"; shown to you as {form}, {shown[0]} x {shown[1]} pixels, {len(prepared) / 1000:.0f} kB"
        return Picture(prepared, kind, about)

    async def document(self, data: bytes, name: str, user_id: str) -> bytes:
        """Return the text of a document as Markdown in UTF-8. Raises UnreadableError."""
        return (await self._read("documents", {"name": name, "seconds": self._seconds}, data, user_id, MOST_TEXT))[1]

    async def encoding(self, data: bytes, user_id: str) -> Encoding:
        """Return the likeliest encoding of a text whose bytes prove none."""
        head, _ = await self._read("codecs", {}, await asyncio.to_thread(sample, data), user_id, MOST_NAME)
        codec = head.get("codec")
        return Encoding(codec if codec in KNOWN else "cp1252")

    def describe(self) -> tuple[str, bool]:
        """Return what confines the converters (empty: nothing) and whether they have the tool image. Blocks for a probe."""
        provider = self._isolating()
        return (provider.name if provider else ""), self._tools() is not None

    async def shutdown(self) -> None:
        """End all converters. Idempotent."""
        self._ended = True
        if self._spawner.running:
            with suppress(SandboxRuntimeError):  # shut down before
                await self._spawner.call(self._end(self._places))
        self._spawner.close()

    async def _read(
        self, module: str, options: dict[str, Any], data: bytes, user_id: str, most: int
    ) -> tuple[dict[str, Any], bytes]:
        head = {"module": f"{_HERE}.{module}", "options": options, "most": most}
        try:
            answer, body = await self._spawner.call(self._ask(head, data, user_id))
        except ConverterDiedError as error:
            raise SandboxRuntimeError(f"The file could not be given to a parser: {error}") from error
        if "unreadable" in answer:
            raise UnreadableError(str(answer["unreadable"])[:500])
        return answer, body

    # on the spawner's loop ------------------------------------------------------------------------------------------

    async def _ask(self, head: dict[str, Any], data: bytes, user_id: str) -> tuple[dict[str, Any], bytes]:
        turn = self._turns.get(user_id) or self._turns.setdefault(user_id, asyncio.Semaphore(self._most_each))
        async with turn, self._room:
            # The one that was used last, so that the others come to rest.
            place = self._free.pop()
            try:
                try:
                    return await self._ask_in(place, head, data)
                except ConverterDiedError:  # while it waited, perhaps: the kernel was short of memory
                    return await self._ask_in(place, head, data)
            finally:
                self._free.append(place)
                self._rest_later()

    async def _ask_in(self, place: _ConverterPlace, head: dict[str, Any], data: bytes) -> tuple[dict[str, Any], bytes]:
        converter = await self._warm(place)
        limits = self._limits | {"processes": PROCESSES if place.counted else None}
        try:
            return await converter.ask(head | {"limits": limits}, data, head["most"])
        except BaseException:
            await asyncio.shield(self._end([place]))
            raise

    async def _warm(self, place: _ConverterPlace) -> Converter:
        """The converter of a place, started if need be: also when the tool image has been built since."""
        if self._ended:
            raise SandboxRuntimeError("The server is stopping.")
        if place.converter is not None and (not place.converter.alive or place.tools is None):
            tools = await asyncio.to_thread(self._tools)
            if not place.converter.alive or tools is not None:
                await self._end([place])
        if place.converter is None:
            place.converter = await Converter.start(partial(self._launch, place), self._spawner)
        return place.converter

    async def _end(self, places: Sequence[_ConverterPlace]) -> None:
        for place in places:
            converter, place.converter = place.converter, None
            if converter is not None:
                await converter.close()

    def _rest_later(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._rest)

    def _rest(self) -> None:
        self._resting = asyncio.ensure_future(self._end([*self._free]))

    # blocking -------------------------------------------------------------------------------------------------------

    def _launch(self, place: _ConverterPlace, control: int) -> Launch:
        place.tools = tools = self._tools()
        program = ("-I", "-B", "-c", BOOT, str(control))
        if tools is None:
            place.counted = False
            return plain([sys.executable, "-S", *program])
        argv = [f"{tools}/bin/python", *program]
        provider = self._isolating()
        if provider is None:
            place.counted = False
            return plain(argv)
        policy = Policy(tools_dir=tools)
        launch, isolation = provider.confine(place.owner, policy, argv)
        place.counted = "nproc" in isolation.limits
        return launch

    def _tools(self) -> Path | None:
        status = self._image.status() if self._image is not None else None
        return status.path if status is not None and status.ready else None

    def _isolating(self) -> IsolatingProvider | None:
        """The provider, if it confines programs on this machine. Blocks for its probe."""
        provider = self._provider.choose() if isinstance(self._provider, AutoSandboxProvider) else self._provider
        if not isinstance(provider, IsolatingProvider):
            return None
        isolation = provider.probe().isolation
        return provider if isolation is not None and isolation.level != "none" else None


def build_converters(config: AppConfig, paths: Paths, provider: SandboxProvider, image: ToolImage) -> Converters:
    """The converters of a configuration: beside containers and remote sandboxes they have a provider of their own."""
    if not isinstance(provider, AutoSandboxProvider | IsolatingProvider) or isinstance(provider, LocalSandboxProvider):
        provider = AutoSandboxProvider(paths.base_dir, etc_extra=tuple(config.sandbox.etc_extra))
    return Converters(provider, image if config.sandbox.tool_image.enabled else None)


def plain(argv: list[str]) -> Launch:
    """A process that nothing confines but its own limits; one of root becomes another user before it reads a stranger's file."""
    return Launch(argv, [], {"uid": NOBODY if os.geteuid() == 0 else 0}, pid_namespace=False)
