"""uvicorn's quick HTTP parser, with an end to what a client may send around the bodies of its requests."""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 64 * 1024
HEAD_LINES = 200
_PIPELINED = 16


class BoundedHttp(HttpToolsProtocol):
    """Closes connections that send more than HEAD_BYTES or HEAD_LINES of headers and trailers with a request: the parser would
    keep all of it. Trailers are counted and dropped."""

    _refusal: str | None = None
    _in_head = False
    _lines = 0
    _bytes = 0
    _unparsed = 0

    def data_received(self, data: bytes) -> None:
        # What the parser has not called back about is what it keeps: a header, an address, an extension of a chunk.
        self._unparsed += len(data)
        super().data_received(data)
        if self._unparsed > HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("The address or the headers are too large.")

    def send_400_response(self, msg: str) -> None:
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.close()
        else:
            super().send_400_response(self._refusal or msg)

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= _PIPELINED:
            raise self._refused("Too many requests before the first answer.")
        self._in_head, self._lines, self._bytes, self._unparsed = True, 0, 0, 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._lines += 1
        self._count(len(name) + len(value) + len(": \r\n"))
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._unparsed = False, 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unparsed = 0
        super().on_message_complete()

    def _count(self, size: int) -> None:
        self._unparsed = 0
        self._bytes += size
        if self._bytes > HEAD_BYTES or self._lines > HEAD_LINES:
            raise self._refused("The address or the headers are too large.")

    def _refused(self, reason: str) -> Exception:
        """Raised in a callback, it makes the parser give up; the answer is a 400 with ``reason``."""
        self._refusal = reason
        return ValueError(reason)
