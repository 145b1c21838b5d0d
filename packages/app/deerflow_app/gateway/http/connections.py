"""uvicorn's quick HTTP parser, with an end to what a client may send before its request has begun."""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADER_BYTES = 64 * 1024


class BoundedHttp(HttpToolsProtocol):
    """Closes connections whose request line and headers are larger than HEADER_BYTES: the parser would keep all of it."""

    _in_head = False
    _head_bytes = 0

    def data_received(self, data: bytes) -> None:
        # A body may follow in the same piece; that counts only if the head ended in a later one.
        if self._in_head and self._grown_too_large(data):
            return
        super().data_received(data)
        if self._in_head and self._head_bytes == 0:
            self._grown_too_large(data)

    def _grown_too_large(self, data: bytes) -> bool:
        self._head_bytes += len(data)
        if self._head_bytes <= HEADER_BYTES:
            return False
        self.send_400_response("The address or the headers are too large.")
        return True

    def on_message_begin(self) -> None:
        self._in_head, self._head_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()
