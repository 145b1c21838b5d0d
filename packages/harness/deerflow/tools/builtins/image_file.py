"""Pictures that a model can be shown: checked, and small enough for every provider."""

from __future__ import annotations

import io
from dataclasses import dataclass

MAX_FILE_BYTES = 20 * 1024 * 1024
MAX_SENT_BYTES = 3_500_000
"""Anthropic refuses pictures of more than 5 MB in base64, with the whole request, and so for the rest of the thread."""
MAX_SIDE = 2000
"""Pixels. Providers scale larger ones down, or refuse them when there are many."""

MIME_TYPES = {".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".webp": "image/webp"}
_EXTENSIONS = {"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp"}


@dataclass(frozen=True, slots=True)
class Picture:
    """Bytes fit to be sent."""

    data: bytes
    mime_type: str

    @property
    def extension(self) -> str:
        return _EXTENSIONS[self.mime_type]


def mime_type_of(data: bytes) -> str | None:
    """The picture's type by its first bytes."""
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def prepare(data: bytes, mime_type: str) -> Picture:
    """Decode a picture and make it smaller if need be. CPU work: not for an event loop.

    Raises:
        ValueError: the picture is damaged or has too many pixels.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data)) as image:
            image.load()
            if max(image.size) <= MAX_SIDE and len(data) <= MAX_SENT_BYTES:
                return Picture(data, mime_type)
            return _smaller(image)
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError) as error:
        raise ValueError(f"the picture cannot be decoded ({type(error).__name__})") from error


def _smaller(image: object) -> Picture:
    from PIL import Image

    assert isinstance(image, Image.Image)
    image.thumbnail((MAX_SIDE, MAX_SIDE))
    if image.mode in ("RGBA", "LA", "P", "PA"):
        data = _encoded(image.convert("RGBA"), "PNG", optimize=True)
        if len(data) <= MAX_SENT_BYTES:
            return Picture(data, "image/png")
    return Picture(_encoded(image.convert("RGB"), "JPEG", quality=85), "image/jpeg")


def _encoded(image: object, form: str, **options: object) -> bytes:
    from PIL import Image

    assert isinstance(image, Image.Image)
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()
