"""One warm converter as the host sees it: a process and its control socket. Everything here runs on the spawner's loop."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from deerflow.sandbox.converters.program import SIZES, head_of
from deerflow.sandbox.session import Launch
from deerflow.sandbox.spawner import Spawner, kill_tree
from deerflow.sandbox.supervisor import memory_file

START_SECONDS = 60.0
"""To load libraries, on a machine with better things to do."""
MOST_HEAD = 8 << 20
MODULES = (
    "deerflow.security.text",
    "deerflow.security.unseen",
    "deerflow.security.encodings",
    "deerflow.security.head",
    "deerflow.security.main_part",
    "deerflow.security.markdown",
    "deerflow.security.html",
    "deerflow.sandbox.converters.pages",
    "deerflow.sandbox.converters.pictures",
    "deerflow.sandbox.converters.codecs",
    "deerflow.sandbox.converters.markdown",
    "deerflow.sandbox.converters.kinds",
    "deerflow.sandbox.converters.parts",
    "deerflow.sandbox.converters.equations",
    "deerflow.sandbox.converters.charts",
    "deerflow.sandbox.converters.cells",
    "deerflow.sandbox.converters.letters",
    "deerflow.sandbox.converters.numbering",
    "deerflow.sandbox.converters.word",
    "deerflow.sandbox.converters.sheets",
    "deerflow.sandbox.converters.slides",
    "deerflow.sandbox.converters.opendocument",
    "deerflow.sandbox.converters.pdf_words",
    "deerflow.sandbox.converters.pdf_tables",
    "deerflow.sandbox.converters.pdf",
    "deerflow.sandbox.converters.mail",
    "deerflow.sandbox.converters.books",
    "deerflow.sandbox.converters.old_office",
    "deerflow.sandbox.converters.documents",
)
"""What a converter runs, in the order of their imports."""
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "OPENBLAS_NUM_THREADS": "1",
}


class ConverterDiedError(Exception):
    """A converter ended or said what it must not."""


class Converter:
    """A started converter, which reads one file at a time. Build it with ``start``."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        launch: Launch,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._launch = launch

    @classmethod
    async def start(cls, prepare: Callable[[int], Launch], spawner: Spawner) -> Converter:
        """Spawn a converter and wait until it is ready.

        Args:
            prepare: everything up to the fork, given the converter's end of the control socket; ``start`` is added to what
                the program begins with. Blocks.

        Raises:
            ConverterDiedError: it does not start; says what it wrote last.
        """
        stderr = await asyncio.to_thread(memory_file)
        try:
            reader, writer, process, launch = await _spawned(prepare, spawner, stderr)
            converter = cls(process, reader, writer, launch)
            try:
                program, modules = await asyncio.to_thread(_sources)
                writer.write(len(program).to_bytes(4, "big") + program)
                writer.write(head_of({"uid": 0, **launch.start, "environment": ENVIRONMENT, "modules": modules}))
                await converter._answer(0, START_SECONDS)
            except BaseException as error:
                await asyncio.shield(converter.close())
                if not isinstance(error, ConverterDiedError):
                    raise
                said = os.pread(stderr, 4096, 0).decode("utf-8", "replace").strip()
                raise ConverterDiedError(said or str(error)) from error
            return converter
        finally:
            os.close(stderr)

    @property
    def alive(self) -> bool:
        return not self._reader.at_eof() and not self._writer.is_closing()

    async def ask(self, head: dict[str, Any], data: bytes, most: int) -> tuple[dict[str, Any], bytes]:
        """Have a file read. Whoever is cancelled meanwhile must close the converter.

        Args:
            head: what it shall do.
            data: the file.
            most: bytes that the answer may have.

        Raises:
            ConverterDiedError: it ended, or broke the rules; close it.
        """
        self._writer.write(head_of(head, len(data)))
        self._writer.write(data)
        return await self._answer(most, head["limits"]["patience"] + START_SECONDS)

    async def _answer(self, most: int, seconds: float) -> tuple[dict[str, Any], bytes]:
        try:
            async with asyncio.timeout(seconds):
                size, rest = SIZES.unpack(await self._reader.readexactly(SIZES.size))
                if size > MOST_HEAD or rest > most:
                    raise ConverterDiedError("It answered too much.")
                head = json.loads(await self._reader.readexactly(size))
                data = await self._reader.readexactly(rest)
        except (OSError, ValueError, asyncio.IncompleteReadError, TimeoutError) as error:
            raise ConverterDiedError(f"It did not answer ({type(error).__name__}).") from error
        if not isinstance(head, dict):
            raise ConverterDiedError("It did not answer as it must.")
        return head, data

    async def close(self) -> None:
        """Kill the converter and all that it started. Idempotent."""
        self._writer.close()
        if not self._launch.pid_namespace:
            await asyncio.to_thread(kill_tree, self._process.pid, self._launch.uid)
        self._process.kill()
        await asyncio.to_thread(self._process.wait)


async def _spawned(
    prepare: Callable[[int], Launch], spawner: Spawner, stderr: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, subprocess.Popen[bytes], Launch]:
    host, inside = socket.socketpair()
    try:
        with inside:
            launch = await asyncio.to_thread(prepare, inside.fileno())
            try:
                descriptors = [*launch.descriptors, inside.fileno()]
                process = await spawner.spawn(launch.argv, descriptors=descriptors, stderr=stderr)
            finally:
                for descriptor in launch.descriptors:
                    os.close(descriptor)
        return *await asyncio.open_unix_connection(sock=host), process, launch
    except BaseException as error:
        host.close()
        if isinstance(error, OSError):
            raise ConverterDiedError(str(error)) from error
        raise


@cache
def _sources() -> tuple[bytes, dict[str, str]]:
    """The program, and the modules that it runs. Blocks."""

    def source(name: str) -> str:
        spec = find_spec(name)
        assert spec is not None and spec.origin is not None
        return Path(spec.origin).read_text("utf-8")

    program = source("deerflow.sandbox.converters.program").encode()
    return program, {name: source(name) for name in MODULES}
