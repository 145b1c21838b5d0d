"""The kind of a document by what it holds; its name only decides between kinds of text."""

from __future__ import annotations

import io
import re
import zipfile

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLE_KINDS = (
    ("EncryptedPackage", "encrypted"),
    ("__properties_version1.0", "msg"),
    ("WordDocument", "doc"),
    ("PowerPoint Document", "ppt"),
    ("Workbook", "xls"),
    ("Book", "xls"),
)
"""Streams of compound files, as their directory names them, the deciding ones first."""
_OOXML = (
    (b"ms-excel.sheet.binary", "xlsb"),
    (b"wordprocessingml", "docx"),
    (b"ms-word", "docx"),
    (b"presentationml.pres", "pptx"),
    (b"presentationml.slide", "pptx"),
    (b"ms-powerpoint", "pptx"),
    (b"spreadsheetml", "xlsx"),
    (b"ms-excel.sheet", "xlsx"),
)
_ODF = {"text": "odt", "spreadsheet": "ods", "presentation": "odp", "graphics": "odp"}
_PICTURES = ("png", "jpg", "jpeg", "tif", "tiff", "bmp", "webp")
_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--.{0,500}?-->\s*)?<(?:!doctype html|html|head|body|table|div|h1)\b",
    re.IGNORECASE | re.DOTALL,
)
_PAGES = ("html", "htm", "xhtml")


def kind_of(data: bytes, ending: str) -> str:
    """Return the kind of a document: one of those that readers are named after, ``encrypted``, ``zip``, ``picture`` or ``text``.

    Args:
        ending: of its name, without the dot.
    """
    head = data[:4096]
    if b"%PDF-" in head[:1024]:
        return "pdf"
    if head.startswith(b"PK\x03\x04"):
        return _kind_of_archive(data)
    if head.startswith(OLE):
        return _kind_of_compound(data)
    if head.lstrip().startswith(b"{\\rtf"):
        return "rtf"
    if head.startswith((b"\x89PNG", b"\xff\xd8\xff", b"II*\0", b"MM\0*", b"BM")) or head[8:12] == b"WEBP":
        return "picture" if ending in _PICTURES else "other"
    if ending in ("eml", "mbox"):
        return "mbox" if head.startswith(b"From ") else "eml"
    return "html" if ending in _PAGES or _HTML.match(head) else "text"


def _kind_of_archive(data: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = set(archive.namelist())

        def start(name: str, size: int) -> bytes:
            with archive.open(name) as part:
                return part.read(size)

        if "mimetype" in names:
            kind = start("mimetype", 100).decode("ascii", "replace").strip()
            return "epub" if kind.endswith("epub+zip") else _ODF.get(kind.rpartition(".")[2].partition("-")[0], "zip")
        if "META-INF/container.xml" in names:
            return "epub"
        types = start("[Content_Types].xml", 1 << 20) if "[Content_Types].xml" in names else b""
    found = next((kind for mark, kind in _OOXML if mark in types), "")
    folders = {name.partition("/")[0] for name in names}
    return found or next(
        (kind for folder, kind in (("word", "docx"), ("ppt", "pptx"), ("xl", "xlsx")) if folder in folders), "zip"
    )


def _kind_of_compound(data: bytes) -> str:
    """By the names in its directory, which are written in UTF-16."""
    return next((kind for name, kind in _OLE_KINDS if name.encode("utf-16-le") in data), "compound")
