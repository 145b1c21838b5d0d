"""Prepare a picture for a model, inside a converter: the one place where that is done."""

from __future__ import annotations

import contextlib
import hashlib
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deerflow.sandbox.converters.program import Unreadable

if TYPE_CHECKING:
    from PIL import Image

MAX_BYTES = 50 << 20
"""Of a picture that is prepared."""
MAX_SENT_BYTES = 400_000
"""Each request carries the picture again, until it leaves."""
MAX_SIDE = 1568
"""Pixels. Providers scale larger ones down, and bill and refuse them by their size."""
SENT = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp"}
"""Formats that every provider takes, and their types."""
_TAKEN = (*SENT, "GIF", "BMP", "TIFF", "AVIF", "HEIF")
_UPRIGHT, _ORIENTATION = 1, 0x0112


@dataclass(frozen=True, slots=True)
class Picture:
    """Bytes fit to be sent."""

    data: bytes
    mime_type: str
    about: str
    """Its size, and what was done to it."""


def mime_type_of(data: bytes) -> str | None:
    """Return the type of a picture by its first bytes; None: it is none that is taken."""
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith((b"II*\0", b"MM\0*")):
        return "image/tiff"
    if data.startswith(b"BM") and data[6:10] == bytes(4):
        return "image/bmp"
    if data[4:8] == b"ftyp":
        brands = data[8:64]
        found = {
            b"avif": "image/avif",
            b"avis": "image/avif",
            b"heic": "image/heic",
            b"heix": "image/heic",
            b"mif1": "image/heic",
        }
        return next((kind for brand, kind in found.items() if brand in brands), None)
    return None


def is_document(data: bytes) -> bool:
    """Return whether a file is a PDF, of which pages are shown."""
    return mime_type_of(data) is None and b"%PDF-" in data[:1024]


def digest(data: bytes) -> str:
    """Return the name of a picture by what it holds."""
    return hashlib.sha256(data).hexdigest()[:32]


def warm(**_: Any) -> None:
    """Load the library with its formats, which takes no time when it is loaded."""
    with contextlib.suppress(ImportError):
        from PIL import Image

        Image.preinit()
        Image.init()
    with contextlib.suppress(ImportError):
        import pi_heif  # type: ignore[import-not-found]

        pi_heif.register_heif_opener()


def work(data: bytes, *, page: int) -> tuple[dict[str, Any], bytes]:
    """Prepare a picture for a model: upright, in a format and of a size that every provider takes.

    Args:
        page: of a PDF, or of a picture with several, counted from 1; 0: the first one of a picture.

    Returns:
        Its type, its sizes (as it is, and as shown) and the number of its pages; and the bytes to send, none if those given will do.
    """
    is_pdf = is_document(data)
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        if is_pdf:
            raise Unreadable("must be made a picture, for which the tool image is missing.") from None
        return _as_it_is(data), b""
    try:
        with _rendered(data, page) if is_pdf else _opened(data, page) as image:
            size, pages = [image.width, image.height], 1 if is_pdf else getattr(image, "n_frames", 1)
            kind = SENT.get(image.format or "", "")
            upright = image.getexif().get(_ORIENTATION, _UPRIGHT) == _UPRIGHT
            if kind and upright and pages == 1 and max(size) <= MAX_SIDE and len(data) <= MAX_SENT_BYTES:
                image.load()
                return {"mime_type": kind, "size": size, "pages": pages, "shown": size}, b""
            smaller, form, shown = _prepared(image)
            if (size[0] > size[1]) != (shown[0] > shown[1]):
                size.reverse()
            return {"mime_type": SENT[form], "size": size, "pages": pages, "shown": shown}, smaller
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError, ValueError) as error:
        raise Unreadable(f"cannot be decoded ({type(error).__name__}).") from error


def _opened(data: bytes, page: int) -> Image.Image:
    from PIL import Image

    image = Image.open(io.BytesIO(data), formats=[form for form in _TAKEN if form in Image.OPEN])
    if page > 1:
        if page > (pages := getattr(image, "n_frames", 1)):
            raise Unreadable(f"has {pages} pages.")
        image.seek(page - 1)
    return image


def _rendered(data: bytes, number: int) -> Image.Image:
    """A page of a PDF as a picture whose letters can be read."""
    import pypdfium2 as pdfium  # type: ignore[import-not-found]

    try:
        document = pdfium.PdfDocument(data)
        if not 1 <= number <= len(document):
            raise Unreadable(f"has {len(document)} pages.")
        page = document[number - 1]
        return page.render(scale=min(2.0, MAX_SIDE / max(*page.get_size(), 1))).to_pil()
    except pdfium.PdfiumError as error:
        locked = "password" in str(error).lower()
        raise Unreadable("needs its password." if locked else "is damaged: its pages cannot be found.") from error


def _prepared(image: Image.Image) -> tuple[bytes, str, list[int]]:
    """Return the bytes to send, their format and size."""
    from PIL import ImageOps

    image.draft(None, (MAX_SIDE, MAX_SIDE))  # a large JPEG need not be decoded in full
    image.load()
    upright = ImageOps.exif_transpose(image)
    sharp = upright.mode in ("1", "P", "PA", "LA", "RGBA") or "transparency" in upright.info
    plain = upright.convert("RGBA") if sharp else _eight_bits(upright).convert("RGB")
    plain.thumbnail((MAX_SIDE, MAX_SIDE))
    data, form = (_encoded(plain, "PNG", optimize=True), "PNG") if sharp else (b"", "JPEG")
    while not 0 < len(data) <= MAX_SENT_BYTES:
        plain = _on_white(plain)
        data, form = _encoded(plain, "JPEG", quality=80), "JPEG"
        if len(data) > MAX_SENT_BYTES:
            plain.thumbnail((plain.width * 3 // 4, plain.height * 3 // 4))
    return data, form, [plain.width, plain.height]


def _eight_bits(image: Image.Image) -> Image.Image:
    """Scale what has more than eight bits, which would be white all over."""
    if not image.mode.startswith(("I", "F")):
        return image
    wide = image.convert("I").convert("F") if image.mode.startswith("I") else image
    ends: Any = (0.0, 65535.0) if image.mode.startswith("I;16") else wide.getextrema()
    low, high = float(ends[0]), float(ends[1])
    scale = 255 / ((high - low) or 1)
    return wide.point(lambda value: value * scale + -low * scale).convert("L")


def _on_white(image: Image.Image) -> Image.Image:
    """Letters on nothing are mostly dark."""
    from PIL import Image

    if image.mode != "RGBA":
        return image
    ground = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(ground, image).convert("RGB")


def _encoded(image: Image.Image, form: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def _as_it_is(data: bytes) -> dict[str, Any]:
    """Describe a picture by its head where nothing can decode it. Raises Unreadable if it would have to be changed."""
    mime_type = mime_type_of(data) or ""
    if mime_type and mime_type not in SENT.values():
        raise Unreadable("must be converted, for which the tool image is missing: `deerflow doctor` says why.")
    size = _size(data, mime_type)
    if size is None:
        raise Unreadable("cannot be decoded.")
    if max(size) > MAX_SIDE or len(data) > MAX_SENT_BYTES:
        raise Unreadable("must be made smaller, for which the tool image is missing: `deerflow doctor` says why.")
    return {"mime_type": mime_type, "size": size, "pages": 1, "shown": size}


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
