"""Take the text from a document (PDF, Office, mail) as Markdown with marks for its pages, inside a converter."""

# pyright: reportMissingImports=false

from __future__ import annotations

import contextlib
import email
import email.policy
import importlib
import io
import re
import shutil
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePath
from typing import Any

from deerflow.sandbox.converters.program import Unreadable
from deerflow.security.html import decoded, readable, seen

MOST_BYTES = 20 << 20
"""Of the text."""
MOST_UNPACKED, MOST_XML = 512 << 20, 40 << 20
"""Bytes of an Office file's parts, and of one that holds text: more of it is never read in time."""
MOST_PAGES = 3000
OLD = {".doc": "docx", ".ppt": "pptx"}
PAGES = (".html", ".htm", ".xhtml")
PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp")
OFFICE = {
    ".html": "Html",
    ".docx": "Docx",
    ".pptx": "Pptx",
    ".xlsx": "Xlsx",
    ".xls": "Xls",
    ".epub": "Epub",
    ".msg": "OutlookMsg",
}
NO_IMAGE = (
    "cannot be converted: the tool image, which holds the programs for that, is missing. `deerflow doctor` says why."
)
_FORGED = re.compile(r"<!--(?= *(page|text of)\b)", re.IGNORECASE)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def warm(*, name: str, seconds: float) -> None:
    """Load the libraries for a document of this name."""
    _load(PurePath(name).suffix.lower())


@cache
def _load(kind: str) -> None:
    if kind in PAGES:
        readable("<p>A sentence to begin with.</p>", None)
        return
    library = "pypdfium2" if kind == ".pdf" else "PIL.Image" if kind in PICTURES else "markitdown.converters"
    with contextlib.suppress(ImportError):
        importlib.import_module(library)


def work(data: bytes, *, name: str, seconds: float) -> tuple[dict[str, Any], bytes]:
    """Return the text in UTF-8. ``seconds``: how long it may take; what a PDF gives until then is kept."""
    text, until = io.BytesIO(), time.monotonic() + seconds * 0.8
    text.write(f"<!-- text of {name} -->\n\n".encode("utf-8", "replace"))
    try:
        for piece in _pieces(data, name, until):
            text.write(piece.encode("utf-8", "replace")[: max(0, MOST_BYTES - text.tell())])
            if text.tell() >= MOST_BYTES:
                text.write(b"\n[The rest of the text is left out.]\n")
                break
    except ImportError as error:
        raise Unreadable(NO_IMAGE) from error
    except subprocess.TimeoutExpired as error:
        raise Unreadable(f"takes more than {seconds:g} seconds to read.") from error
    except (Unreadable, MemoryError):
        raise
    except Exception as error:
        what = " ".join(str(error).split())[:200] or type(error).__name__
        raise Unreadable(f"is damaged or not what its name says: {what}") from error
    return {}, text.getvalue()


def _pieces(data: bytes, name: str, until: float) -> Iterator[str]:
    """The pieces of a document's text. Raises Unreadable."""
    kind = PurePath(name).suffix.lower()
    if data.startswith(b"%PDF-") or kind == ".pdf":
        return _pages_of(data, until)
    if kind in PAGES:
        return iter([_page(data)])
    if kind in PICTURES:
        from PIL import Image

        return iter([_read_picture(Image.open(io.BytesIO(data)), until)])
    if kind == ".eml":
        return _mail_of(data)
    if data.startswith(_OLE) and kind in (".docx", ".xlsx", ".pptx"):
        raise Unreadable("is encrypted. Ask for a copy without a password.")
    if kind in OLD:
        return iter([_old_office(data, name, until)])
    return iter([_markdown(data, kind)])


def _markdown(data: bytes, kind: str) -> str:
    # Each kind's own converter: the one for all of them loads a model that guesses the kind.
    converters = importlib.import_module("markitdown.converters")
    info = importlib.import_module("markitdown").StreamInfo(extension=kind)
    if data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            sizes = {part.filename: part.file_size for part in parts.infolist()}
        if sum(sizes.values()) > MOST_UNPACKED:
            raise Unreadable(f"unpacks to more than {MOST_UNPACKED >> 20} MB.")
        if any(size > MOST_XML for name, size in sizes.items() if name.endswith((".xml", ".html", ".xhtml"))):
            raise Unreadable(f"holds more than {MOST_XML >> 20} MB of text in one part. Read parts of it with Python.")
    converter = getattr(converters, f"{OFFICE[kind]}Converter")()
    return _FORGED.sub("< !--", converter.convert(io.BytesIO(data), info).markdown)


def _page(data: bytes) -> str:
    """A page as ``web_fetch`` shows it: the same reader, and nothing that a person would not see."""
    page = readable(decoded(data))
    return _FORGED.sub("< !--", f"# {page.title}\n\n{page.text}\n" if page.title else f"{page.text}\n")


def _pages_of(data: bytes, until: float) -> Iterator[str]:
    import pypdfium2 as pdfium

    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        if "password" in str(error).lower():
            raise Unreadable("is encrypted. Ask for its password, or for a copy without one.") from None
        raise
    titles: dict[int, list[tuple[int, str]]] = {}
    for entry in document.get_toc(max_depth=4):
        target = entry.get_dest() if hasattr(entry, "get_dest") else entry
        number = target.get_index() if hasattr(target, "get_index") else getattr(target, "page_index", None)
        title = entry.get_title() if hasattr(entry, "get_title") else entry.title
        if number is not None and title.strip():
            titles.setdefault(number, []).append((entry.level + 1, " ".join(title.split())))
    for number in range(len(document)):
        if number >= MOST_PAGES or time.monotonic() > until:
            why = "are not converted" if number >= MOST_PAGES else "are not converted: there was no time left"
            yield f"[The other {len(document) - number} pages {why}. Read them with Python (pypdf).]\n"
            return
        page = document[number]
        text = page.get_textpage().get_text_bounded().replace("\r\n", "\n").replace("\0", "")
        if not text.strip() and shutil.which("tesseract"):
            text = _read_picture(page.render(scale=2).to_pil(), until)
        text = _FORGED.sub("< !--", text)
        for level, title in titles.get(number, ()):
            text = _with_heading(text, level, title)
        yield f"<!-- page {number + 1} of {len(document)} -->\n\n{text.strip()}\n\n"


def _with_heading(text: str, level: int, title: str) -> str:
    """Make the line that says ``title`` a heading, or put one at the top."""
    lines, heading = text.split("\n"), f"{'#' * level} {title}"
    for index, line in enumerate(lines):
        if " ".join(line.split()) == title:
            return "\n".join([*lines[:index], heading, *lines[index + 1 :]])
    return f"{heading}\n\n{text}"


def _read_picture(picture: Any, until: float) -> str:
    """Its text by OCR, if a program for that is installed."""
    if (left := until - time.monotonic()) < 1:
        return "[A picture; there was no time left to read it.]"
    if shutil.which("tesseract") is None:
        raise Unreadable("is a picture, and no program that reads pictures is installed here.")
    stream = io.BytesIO()
    picture.convert("RGB").save(stream, "PNG")
    command = ["tesseract", "stdin", "stdout"]
    return subprocess.run(command, input=stream.getvalue(), capture_output=True, timeout=left).stdout.decode(
        "utf-8", "replace"
    )


def _mail_of(data: bytes) -> Iterator[str]:
    message = email.message_from_bytes(data, policy=email.policy.default)
    yield "".join(f"**{name}:** {message[name]}\n" for name in ("From", "To", "Cc", "Date", "Subject") if message[name])
    if (body := message.get_body(("plain", "html"))) is not None:  # type: ignore[attr-defined]
        text = body.get_content()
        if body.get_content_subtype() == "html":
            text = _markdown(seen(text).encode(), ".html")
        yield f"\n{_FORGED.sub('< !--', text)}\n"
    if names := [part.get_filename() or part.get_content_type() for part in message.iter_attachments()]:  # type: ignore[attr-defined]
        yield "\nAttachments: " + ", ".join(names) + "\n"


def _old_office(data: bytes, name: str, until: float) -> str:
    kind = PurePath(name).suffix.lower()
    new = OLD[kind]
    if (office := shutil.which("soffice") or shutil.which("libreoffice")) is None:
        raise Unreadable(f"has the format of Office 97, for which no program is installed here. Ask for it as {new}.")
    with tempfile.TemporaryDirectory() as folder:
        old, made = Path(folder) / f"old{kind}", Path(folder) / f"old.{new}"
        old.write_bytes(data)
        command = [office, "--headless", "--convert-to", new, "--outdir", folder, str(old)]
        subprocess.run(command, check=True, capture_output=True, timeout=max(1.0, until - time.monotonic()))
        return _markdown(made.read_bytes(), f".{new}")
