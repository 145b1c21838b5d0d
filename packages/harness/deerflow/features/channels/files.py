"""Files of a chat: those that a person sends become uploads of the thread, those that the agent hands over go to the chat."""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import httpx

from deerflow.errors import RequestError, TooLargeError
from deerflow.features.channels.config import VoiceConfig
from deerflow.features.channels.types import Adapter, ChannelError, FileRef, OutFile
from deerflow.features.transcription import MOST_BYTES, ask_endpoint
from deerflow.files.artifacts import ArtifactService
from deerflow.files.uploads import UploadService
from deerflow.identity import Principal
from deerflow.security.text import inline

MEGABYTE = 1 << 20
PIECE = MEGABYTE
MOST_OUT = 10
"""Files that one turn sends to a chat."""


@dataclass(slots=True)
class Taken:
    """Files of a message as far as they arrived.

    Args:
        names: of the uploads.
        notes: for the agent: which file did not arrive and why.
        spoken: the text of voice messages.
    """

    names: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    spoken: list[str] = field(default_factory=list[str])


class ChannelFiles:
    """Args:
    page: the address of a page, or an empty text if the server does not know its own.
    """

    def __init__(self, uploads: UploadService, artifacts: ArtifactService, page: Callable[[str], str]) -> None:
        self._uploads = uploads
        self._artifacts = artifacts
        self._page = page

    async def take(
        self,
        principal: Principal,
        thread_id: str,
        adapter: Adapter,
        files: Sequence[FileRef],
        transcription: VoiceConfig,
    ) -> Taken:
        """Bring files from the platform. One that does not come stops nothing: the message says so."""
        taken = Taken()
        for file in files:
            name = _name(file)
            try:
                if file.is_voice and transcription.base_url:
                    taken.spoken.append(await _transcribed(adapter, file, name, transcription))
                    continue
                if file.is_voice:
                    taken.notes.append("[A voice message. No transcription is configured, so it is only a file.]")
                incoming = _Incoming(name, adapter, file)
                saved = await self._uploads.save(principal, thread_id, _one(incoming))
                taken.names += [each.upload.filename for each in saved]
            except (RequestError, ChannelError, httpx.HTTPError) as error:
                taken.notes.append(f"[The file {inline(name, 100)} did not arrive: {inline(str(error), 300)}]")
        return taken

    async def handed_over(
        self, principal: Principal, thread_id: str, paths: Sequence[str], limit: int
    ) -> tuple[list[str], list[str]]:
        """Return the paths of files that the platform can carry, and a line for each that it cannot."""
        carried: list[str] = []
        notes: list[str] = []
        for path in paths:
            name = path.rpartition("/")[2]
            try:
                content = await self._artifacts.open(principal, thread_id, path)
            except RequestError as error:
                notes.append(f"{inline(name, 100)} is not there: {error}")
                continue
            content.close()
            if content.size > limit or len(carried) == MOST_OUT:
                where = self._page(f"/chats/{thread_id}") or "the page of this conversation"
                why = (
                    f"{content.size / MEGABYTE:.1f} MB are too large for this chat"
                    if content.size > limit
                    else "one of many"
                )
                notes.append(f"📎 {inline(name, 100)} ({why}): {where}")
                continue
            carried.append(path)
        return carried, notes

    async def open(self, body: Mapping[str, Any]) -> OutFile:
        """Return a file that was handed over, as an outbox row names it. Raises RequestError: it is gone, or cannot be read."""
        owner, path = Principal(body["user_id"], "user", "channel"), str(body["path"])
        name = path.rpartition("/")[2]

        async def pieces() -> AsyncGenerator[bytes, None]:
            content, offset = await self._artifacts.open(owner, body["thread_id"], path), 0
            try:
                while piece := await asyncio.to_thread(content.read, offset, PIECE):
                    offset += len(piece)
                    yield piece
            finally:
                content.close()

        content = await self._artifacts.open(owner, body["thread_id"], path)
        content.close()
        mime, _ = await asyncio.to_thread(mimetypes.guess_type, name)  # reads files at its first use
        return OutFile(name, content.size, mime or "application/octet-stream", pieces, str(body.get("caption") or ""))


@dataclass(slots=True)
class _Incoming:
    """A file of a platform as uploads take it; more than the platform's limit is not read."""

    filename: str
    adapter: Adapter
    file: FileRef

    async def chunks(self) -> AsyncIterator[bytes]:
        async for piece in limited(self.adapter, self.file, self.filename, self.adapter.caps.file_in):
            yield piece


async def limited(adapter: Adapter, file: FileRef, name: str, limit: int) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of a file. Raises TooLargeError as soon as they pass the limit, whatever size the platform named."""
    if file.size is not None and file.size > limit:
        raise _too_large(name, limit)
    size = 0
    pieces: Any = adapter.fetch(file)
    async with aclosing(pieces):
        async for piece in pieces:
            if (size := size + len(piece)) > limit:
                raise _too_large(name, limit)
            yield piece


def _too_large(name: str, limit: int) -> TooLargeError:
    if not limit:
        return TooLargeError("this platform hands over no files")
    return TooLargeError(f"{name} is larger than {limit / MEGABYTE:g} MB, which files from this chat may have")


async def _transcribed(adapter: Adapter, file: FileRef, name: str, config: VoiceConfig) -> str:
    sound = b"".join([piece async for piece in limited(adapter, file, name, min(MOST_BYTES, adapter.caps.file_in))])
    recording = name, sound, file.mime or "application/octet-stream"
    answer = await ask_endpoint(config.base_url, config.api_key, config.model, recording)
    return str(answer.get("text") or "").strip()


def _name(file: FileRef) -> str:
    """Return the last part of the name that the platform gives; a path in it leads nowhere."""
    plain = file.name.replace("\\", "/").rpartition("/")[2].replace("\0", "").strip()
    return plain if plain not in ("", ".", "..") else "voice.ogg" if file.is_voice else "file"


async def _one(file: _Incoming) -> AsyncIterator[_Incoming]:
    yield file
