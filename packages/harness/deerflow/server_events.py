"""Server-sent events as they come in over HTTP (WHATWG HTML, section 9.2.6)."""

from __future__ import annotations

from typing import NamedTuple


class Event(NamedTuple):
    name: bytes
    data: bytes
    id: bytes = b""


BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class EventDecoder:
    """Cuts bytes into whole events; retry times, comments and a byte order mark at the beginning are skipped."""

    def __init__(self) -> None:
        self._is_first_line = True
        self._partial: list[bytes] = []
        self._name = self._id = b""
        self._data: list[bytes] = []

    def feed(self, received: bytes) -> list[Event]:
        """The events that are complete with these bytes."""
        if b"\n" not in received and b"\r" not in received and not self._holds_cr():
            self._partial.append(received)
            return []
        events: list[Event] = []
        for line in self._lines(received):
            if self._is_first_line:
                line, self._is_first_line = line.removeprefix(BYTE_ORDER_MARK), False
            if not line:
                if self._data:
                    events.append(Event(self._name, b"\n".join(self._data), self._id))
                self._name, self._data = b"", []
            elif line.startswith(b"data:"):
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif line.startswith(b"event:"):
                self._name = line[6:].strip()
            elif line.startswith(b"id:"):
                self._id = line[3:].strip()
        return events

    def _holds_cr(self) -> bool:
        return bool(self._partial) and self._partial[-1].endswith(b"\r")

    def _lines(self, received: bytes) -> list[bytes]:
        text = b"".join([*self._partial, received])
        held = b""
        if b"\r" in text:
            # A last CR may be the first half of a CRLF.
            held = b"\r" if text.endswith(b"\r") else b""
            text = text[: len(text) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = text.split(b"\n")
        self._partial = [rest + held] if rest or held else []
        return lines
