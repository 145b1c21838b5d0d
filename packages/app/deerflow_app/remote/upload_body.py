"""Files as the body of an upload, read while they are sent: they may be larger than memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from uuid import uuid4

PIECE = 1 << 20


class UploadBody:
    """A form with each file in a field ``files`` (RFC 7578; names as browsers write them)."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = files
        self._boundary = uuid4().hex
        self.content_type = f"multipart/form-data; boundary={self._boundary}"

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        for path in self._files:
            name = path.name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
            head = f'--{self._boundary}\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n\r\n'
            yield head.encode("utf-8", "surrogateescape")
            file = await asyncio.to_thread(path.open, "rb")
            try:
                while piece := await asyncio.to_thread(file.read, PIECE):
                    yield piece
            finally:
                await asyncio.to_thread(file.close)
            yield b"\r\n"
        yield f"--{self._boundary}--\r\n".encode()
