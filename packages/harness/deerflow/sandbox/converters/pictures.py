"""Decode a picture and make it small enough to be sent, inside a converter."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deerflow.sandbox.converters.program import Unreadable

if TYPE_CHECKING:
    from PIL import Image

MAX_SENT_BYTES = 400_000
"""Each request carries the picture again, until it leaves."""
MAX_SIDE = 2000
"""Pixels. Providers scale larger ones down, or refuse them when there are many."""


@dataclass(frozen=True, slots=True)
class Picture:
    """Bytes fit to be sent."""

    data: bytes
    mime_type: str
    about: str
    """Its size, and what was done to it."""


def warm(**_: Any) -> None:
    """Load the library with its formats, which takes no time when it is loaded."""
    with contextlib.suppress(ImportError):
        from PIL import Image

        Image.preinit()
        Image.init()


def work(data: bytes, *, mime_type: str) -> tuple[dict[str, Any], bytes]:
    """Return type and sizes (of the picture, and as shown), and the bytes to send; none if those given will do."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        return _as_it_is(data, mime_type), b""
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.load()
            size = [image.width, image.height]
            if max(size) <= MAX_SIDE and len(data) <= MAX_SENT_BYTES:
                return {"mime_type": mime_type, "size": size, "shown": size}, b""
            smaller, kind = _smaller(image)
            shown = [image.width, image.height]
            return {"mime_type": f"image/{kind.lower()}", "size": size, "shown": shown}, smaller
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError, ValueError) as error:
        raise Unreadable(f"cannot be decoded ({type(error).__name__}).") from error


def _smaller(image: Image.Image) -> tuple[bytes, str]:
    """Shrink ``image`` in place; its bytes and format."""
    image.thumbnail((MAX_SIDE, MAX_SIDE))
    alpha = image.mode in ("RGBA", "LA", "P", "PA")
    data, kind = (_encoded(image.convert("RGBA"), "PNG", optimize=True), "PNG") if alpha else (b"", "JPEG")
    while not 0 < len(data) <= MAX_SENT_BYTES:
        data, kind = _encoded(image.convert("RGB"), "JPEG", quality=80), "JPEG"
        if len(data) > MAX_SENT_BYTES:
            image.thumbnail((image.width * 3 // 4, image.height * 3 // 4))
    return data, kind


def _encoded(image: Image.Image, form: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def _as_it_is(data: bytes, mime_type: str) -> dict[str, Any]:
    """Describe a picture by its head where nothing can decode it. Raises Unreadable if it would have to be made smaller."""
    size = _size(data, mime_type)
    if size is None:
        raise Unreadable("cannot be decoded.")
    if max(size) > MAX_SIDE or len(data) > MAX_SENT_BYTES:
        raise Unreadable("must be made smaller, for which the tool image is missing: `deerflow doctor` says why.")
    return {"mime_type": mime_type, "size": size, "shown": size}


def _size(data: bytes, mime_type: str) -> list[int] | None:
    """Width and height as the head of a whole PNG, JPEG or WebP says; None: it is cut or no such file."""
    if mime_type == "image/png" and data[12:16] == b"IHDR" and data.rstrip(b"\0")[-8:-4] == b"IEND":
        return [int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")]
    if mime_type == "image/webp" and len(data) >= 30 and int.from_bytes(data[4:8], "little") <= len(data):
        if data[12:16] == b"VP8X":
            return [1 + int.from_bytes(data[at : at + 3], "little") for at in (24, 27)]
        if data[12:16] == b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return [1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)]
        return [int.from_bytes(data[at : at + 2], "little") & 0x3FFF for at in (26, 28)]
    at = 2
    while mime_type == "image/jpeg" and b"\xff\xd9" in data[-64:] and data[at : at + 1] == b"\xff":
        kind, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            return [int.from_bytes(data[at + 7 : at + 9], "big"), int.from_bytes(data[at + 5 : at + 7], "big")]
        at += 2 + max(length, 2)
    return None
