"""Frames of Feishu's long connection: protobuf messages (``pbbp2.FeishuFrame``), read and written by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

CONTROL, DATA = 0, 1
_INCOMPLETE = 64
"""Messages of which parts may be missing at one time; beyond it the oldest is forgotten and Feishu sends it again."""


@dataclass(frozen=True, slots=True)
class FeishuFrame:
    """One binary WebSocket message.

    Args:
        service: from the address of the connection; Feishu expects it in each ping.
        method: CONTROL (ping, pong) or DATA (events and their acknowledgements).
        headers: ``type``, ``message_id``, ``sum`` (number of parts), ``seq`` (number of this part), ``trace_id``.
    """

    service: int
    method: int
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    payload: bytes = b""
    seq_id: int = 0
    log_id: int = 0
    payload_encoding: str = ""
    payload_type: str = ""
    log_id_new: str = ""

    def dump(self) -> bytes:
        numbers = (self.seq_id, self.log_id, self.service, self.method)  # required fields 1 to 4
        parts = [_varint(number << 3) + _varint(value) for number, value in enumerate(numbers, 1)]
        parts += [_bytes(5, _bytes(1, key.encode()) + _bytes(2, value.encode())) for key, value in self.headers.items()]
        for number, text in ((6, self.payload_encoding), (7, self.payload_type)):
            parts += [_bytes(number, text.encode())] if text else []
        parts += [_bytes(8, self.payload)] if self.payload else []
        parts += [_bytes(9, self.log_id_new.encode())] if self.log_id_new else []
        return b"".join(parts)

    @classmethod
    def load(cls, data: bytes) -> FeishuFrame:
        """Raises ValueError if these bytes are no frame."""
        numbers, texts, headers, payload = [0] * 5, dict[int, str](), dict[str, str](), b""
        for number, value in _fields(data):
            if isinstance(value, int):
                if number in (1, 2, 3, 4):
                    numbers[number] = value
            elif number == 5:
                header = {key: part.decode() for key, part in _fields(value) if isinstance(part, bytes)}
                headers[header.get(1, "")] = header.get(2, "")
            elif number == 8:
                payload = value
            elif number in (6, 7, 9):
                texts[number] = value.decode()
        _, seq_id, log_id, service, method = numbers
        return cls(
            _int32(service),
            _int32(method),
            headers,
            payload,
            seq_id,
            log_id,
            texts.get(6, ""),
            texts.get(7, ""),
            texts.get(9, ""),
        )

    def answer(self, payload: bytes) -> FeishuFrame:
        """Return this frame as its own acknowledgement."""
        return replace(self, headers={**self.headers, "biz_rt": "1"}, payload=payload)


class Assembly:
    """Messages that arrive in several frames."""

    def __init__(self) -> None:
        self._parts: dict[str, dict[int, bytes]] = {}

    def add(self, frame: FeishuFrame) -> bytes | None:
        """Return the whole message when this was the part that was missing. Raises ValueError for a part that cannot be one."""
        total, number = int(frame.headers.get("sum", "1")), int(frame.headers.get("seq", "0"))
        if total <= 1:
            return frame.payload
        if not 0 <= number < total:
            raise ValueError(f"part {number} of {total}")
        key = frame.headers.get("message_id", "")
        parts = self._parts.setdefault(key, {})
        parts[number] = frame.payload
        if len(parts) == total:
            del self._parts[key]
            return b"".join(parts[index] for index in range(total))
        if len(self._parts) > _INCOMPLETE:
            del self._parts[next(iter(self._parts))]
        return None


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1  # a negative one is written as its two's complement
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _bytes(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _int32(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, at = _read_varint(data, at)
            yield number, value
            continue
        size = {1: 8, 5: 4}.get(kind)  # fixed widths, in no field that is known
        if kind == 2:
            size, at = _read_varint(data, at)
        if size is None or at + size > len(data):
            raise ValueError("not a frame")
        yield number, data[at : at + size]
        at += size


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number & (1 << 64) - 1, at
    raise ValueError("not a frame")
