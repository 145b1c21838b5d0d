"""Files out of a multipart body while it comes in; nothing is held but the piece that was read last."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from urllib.parse import unquote

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect, Request

from deerflow.errors import InvalidRequestError, RequestError

MAX_PARTS = 1000
"""Parts of any kind, since those that are no files are skipped."""

_EXTENDED_NAME = re.compile(rb"filename\*=(?:utf-8|UTF-8)''([^;\s]+)")


class BodyError(RequestError):
    """The body is not what its headers say."""

    code = "invalid_body"


@dataclass(slots=True)
class _Part:
    header: bytes = b""
    headers: dict[bytes, bytes] = field(default_factory=dict)
    filename: str | None = None


class MultipartFile:
    """One file of the body. Its chunks have to be read before the next file comes."""

    def __init__(self, filename: str, chunks: AsyncIterator[bytes]) -> None:
        self.filename = filename
        self._chunks = chunks

    def chunks(self) -> AsyncIterator[bytes]:
        return self._chunks


async def multipart_files(request: Request, field_name: str) -> AsyncGenerator[MultipartFile, None]:
    """The files sent in the field ``field_name``; other parts are skipped.

    Raises:
        InvalidRequestError: the body is no form. BodyError: it is broken, or was cut.
    """
    events = _events(request, field_name)
    async for event in events:
        if isinstance(event, str):
            file = MultipartFile(event, _until_end(events))
            yield file
            async for _ in file.chunks():
                # Whoever did not want it all does not get the rest as the next file.
                pass


async def _until_end(events: AsyncIterator[str | bytes | None]) -> AsyncGenerator[bytes, None]:
    async for event in events:
        if not isinstance(event, bytes):
            return
        yield event


async def _events(request: Request, field_name: str) -> AsyncGenerator[str | bytes | None, None]:
    """The name of a file, its bytes, and None at its end; again for the next one."""
    reader = _Reader(_boundary(request), field_name)
    try:
        async for chunk in request.stream():
            reader.feed(chunk)
            while reader.events:
                yield reader.events.popleft()
    except ClientDisconnect:
        raise BodyError("The upload was cut off.") from None
    if not reader.ended:
        raise BodyError("The body ends before the form does.")


def _boundary(request: Request) -> bytes:
    kind, options = parse_options_header(request.headers.get("content-type"))
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not boundary:
        raise InvalidRequestError("Send the files as multipart/form-data, each in a field 'files'.")
    return boundary


class _Reader:
    """Turns the parser's callbacks into events."""

    def __init__(self, boundary: bytes, field_name: str) -> None:
        self.events: deque[str | bytes | None] = deque()
        self.ended = False
        self._field = field_name.encode()
        self._part = _Part()
        self._parts = 0
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_field": self._name,
                "on_header_value": self._value,
                "on_header_end": self._header_end,
                "on_headers_finished": self._open,
                "on_part_data": self._data,
                "on_part_end": self._end,
                "on_end": self._finish,
            },
        )
        self._value_so_far = b""

    def feed(self, chunk: bytes) -> None:
        try:
            self._parser.write(chunk)
        except FormParserError:
            raise BodyError("The form cannot be read: it is not valid multipart/form-data.") from None

    def _begin(self) -> None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise BodyError(f"The form has more than {MAX_PARTS} parts.")
        self._part = _Part()

    def _name(self, data: bytes, start: int, end: int) -> None:
        self._part.header += data[start:end]

    def _value(self, data: bytes, start: int, end: int) -> None:
        self._value_so_far += data[start:end]

    def _header_end(self) -> None:
        self._part.headers[self._part.header.lower()] = self._value_so_far
        self._part.header = self._value_so_far = b""

    def _open(self) -> None:
        disposition = self._part.headers.get(b"content-disposition", b"")
        _, options = parse_options_header(disposition)
        name = options.get(b"filename")
        if name is None and (extended := _EXTENDED_NAME.search(disposition)):
            # Against RFC 7578, but some clients send names that are not ASCII in no other way.
            name = unquote(extended[1].decode("ascii", "replace")).encode()
        # A file input left empty sends a part without a name.
        if name and options.get(b"name") == self._field:
            self._part.filename = name.decode("utf-8", "replace")
            self.events.append(self._part.filename)

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._part.filename is not None:
            self.events.append(bytes(data[start:end]))

    def _end(self) -> None:
        if self._part.filename is not None:
            self.events.append(None)

    def _finish(self) -> None:
        self.ended = True
