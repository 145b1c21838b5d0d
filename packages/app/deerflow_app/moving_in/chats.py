"""Exports of chat programs: a JSON file, or an archive that holds it, read one chat at a time."""

from __future__ import annotations

import asyncio
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import IO, Any

import orjson

from deerflow.errors import InvalidRequestError
from deerflow.identity import Principal
from deerflow_app.moving_in import chatgpt, claude, open_webui
from deerflow_app.moving_in.json_objects import MAX_OBJECT, objects
from deerflow_app.moving_in.report import MoveReport
from deerflow_app.moving_in.threads import KIND, ThreadImport, one_line

SOURCES = (chatgpt, claude, open_webui)
_CONVERSATIONS = re.compile(r"conversations[-_\d]*\.json")
"""Names of the files with chats in the archives of ChatGPT and Claude, which hold others beside them."""
EXPORTS = "Give the archive or the conversations.json that ChatGPT or Claude export, or the JSON of Open WebUI's export of chats."
_DAMAGED = (ValueError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
_BROKEN = (LookupError, TypeError, ValueError, AttributeError, RecursionError)


async def import_chats(file: Path, principal: Principal, threads: ThreadImport, report: MoveReport) -> None:
    """Make threads of all chats in a file. Those that are broken are named and left out.

    Raises:
        InvalidRequestError: the file is no export that is known; says what it should be.
        OSError: it cannot be read.
    """
    number = unknown = 0
    found = _texts(file)
    while True:
        number += 1
        name = f"number {number}"
        try:
            text = await asyncio.to_thread(next, found, b"")
        except _DAMAGED as error:
            if number == 1:
                raise InvalidRequestError(f"{file} is damaged, or no export: {error} {EXPORTS}") from error
            report.add(KIND, "not", f"{name} and what follows", f"the file is damaged: {error}")
            return
        if text == b"":
            break
        try:
            if text is None:
                raise ValueError(f"it has more than {MAX_OBJECT >> 20} MB.")
            item = orjson.loads(text)
            name = one_line(item.get("title") or item.get("name") or name)
            source = next((each for each in SOURCES if each.is_it(item)), None)
            if source is None:
                unknown += 1
                report.add(KIND, "not", name, "it has the form of no export that is known.")
                continue
            chat = source.read(item)
        except _BROKEN as error:
            report.add(KIND, "not", name, f"it cannot be read: {_why(error)}")
            continue
        await threads.chat(principal, source.ORIGIN, chat)
    if number - 1 == unknown:
        raise InvalidRequestError(f"{file} holds no chats in a form that is known. {EXPORTS}")


def _texts(file: Path) -> Iterator[Any]:
    with ExitStack() as stack:
        if not zipfile.is_zipfile(file):
            yield from objects(stack.enter_context(file.open("rb")))
            return
        archive = stack.enter_context(zipfile.ZipFile(file))
        names = [name for name in archive.namelist() if name.endswith(".json") and "__MACOSX" not in name]
        chosen = [name for name in names if _CONVERSATIONS.fullmatch(PurePosixPath(name).name)] or names
        for name in sorted(chosen):
            opened: IO[bytes] = stack.enter_context(archive.open(name))
            yield from objects(opened)


def _why(error: BaseException) -> str:
    text = f"{error.args[0]} is missing." if isinstance(error, KeyError) and error.args else str(error)
    return text if isinstance(error, KeyError | ValueError) else f"{type(error).__name__}: {text}"
