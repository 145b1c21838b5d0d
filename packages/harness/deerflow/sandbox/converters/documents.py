"""Take the text from a document (PDF, Office, mail, book, page) as Markdown, inside a converter.

The kind comes from what the file holds. Each kind has a reader of its own, which yields pieces.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import contextlib
import importlib
import io
import subprocess
import time
import zipfile
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import PurePath
from typing import Any

from deerflow.sandbox.converters import books, letters, mail, old_office, opendocument, pdf, sheets, slides, word
from deerflow.sandbox.converters.kinds import kind_of
from deerflow.sandbox.converters.markdown import MARKUP, piece_of
from deerflow.sandbox.converters.program import Unreadable
from deerflow.security.encodings import recognised
from deerflow.security.html import decoded, readable

MOST_BYTES = 20 << 20
"""Of the text."""
NO_IMAGE = (
    "cannot be converted: the tool image, which holds the programs for that, is missing. `deerflow doctor` says why."
)
_READERS = {
    "docx": word.read,
    "xlsx": sheets.read,
    "xls": sheets.read_binary,
    "xlsb": sheets.read_binary,
    "pptx": slides.read,
    "odt": opendocument.read,
    "ods": opendocument.read,
    "odp": opendocument.read,
    "epub": books.read,
    "eml": mail.read,
    "mbox": mail.read_mailbox,
    "msg": mail.read_outlook,
}
_LIBRARIES = {
    ".pdf": ("pypdfium2",),
    ".pptx": ("lxml.etree", "pptx"),
    ".xlsx": ("lxml.etree", "openpyxl.styles.numbers", "openpyxl.utils.datetime"),
    ".xlsm": ("lxml.etree", "openpyxl.styles.numbers", "openpyxl.utils.datetime"),
    ".xls": ("python_calamine",),
    ".xlsb": ("python_calamine",),
    ".msg": ("oxmsg",),
    ".rtf": ("striprtf.striprtf",),
    ".html": ("lxml.html", "html_to_markdown"),
}


def warm(*, name: str, seconds: float) -> None:
    """Load the libraries for a document of this name."""
    _load(PurePath(name).suffix.lower())


@cache
def _load(ending: str) -> None:
    for library in _LIBRARIES.get(ending, ("lxml.etree",)):
        with contextlib.suppress(ImportError):
            importlib.import_module(library)


def work(data: bytes, *, name: str, seconds: float) -> tuple[dict[str, Any], bytes]:
    """Return the text in UTF-8. ``seconds``: how long it may take; what a PDF gives until then is kept."""
    text, until = io.BytesIO(), time.monotonic() + seconds * 0.8
    try:
        for piece in _pieces(data, name, until):
            text.write(piece_of(piece).encode("utf-8", "replace")[: max(0, MOST_BYTES - text.tell())])
            if text.tell() >= MOST_BYTES:
                text.write(b"\n[The rest of the text is left out.]\n")
                break
    except ImportError as error:
        raise Unreadable(NO_IMAGE) from error
    except subprocess.TimeoutExpired as error:
        raise Unreadable(f"takes more than {seconds:g} seconds to read.") from error
    except (Unreadable, MemoryError):
        raise
    except BaseException as error:
        # Libraries in Rust raise a PanicException, which is no Exception.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise Unreadable(_why(data, error)) from error
    return {}, _head(name, text.getvalue()) + text.getvalue()


def _pieces(data: bytes, name: str, until: float) -> Iterator[str]:
    """The pieces of a document's text. Raises Unreadable."""
    kind = kind_of(data, PurePath(name).suffix.lower().lstrip("."))
    if kind in old_office.NEW:
        data, kind = old_office.renewed(data, kind, until), old_office.NEW[kind]
    if kind == "pdf":
        return pdf.read(data, name, until)
    if kind in _READERS:
        return _READERS[kind](data)
    if kind == "picture":
        return letters.read(data, until)
    if kind == "rtf":
        return _rich_text(data)
    if kind == "html":
        return _page(data)
    if kind == "text":
        return _text(data)
    raise Unreadable(_NO_READER.get(kind, _NO_READER["other"]))


_NO_READER = {
    "encrypted": "needs its password. Ask for it, or for a copy without one.",
    "zip": "is a ZIP archive, not a document. List and unpack it in bash.",
    "compound": "is a file of an old Office program that is not known here. Ask for it in a newer format, or as PDF.",
    "other": "is not what its name says. Look at its first bytes in bash.",
}


def _rich_text(data: bytes) -> Iterator[str]:
    from striprtf.striprtf import rtf_to_text

    yield rtf_to_text(data.decode("latin-1"), errors="replace") + "\n"


def _page(data: bytes) -> Iterator[str]:
    """A page as ``web_fetch`` shows it: the same reader, and nothing that a person would not see."""
    page = readable(decoded(data))
    yield f"# {page.title}\n\n{page.text}\n" if page.title else f"{page.text}\n"


def _text(data: bytes) -> Iterator[str]:
    encoding = recognised(data)
    if not encoding.usual:
        yield f"[read as {encoding.name}]\n\n"
    yield encoding.decode(data)


def _head(name: str, text: bytes) -> bytes:
    """The mark that a text begins with, and what its signs mean."""
    used = [meaning for sign, meaning in MARKUP.items() if sign.encode() in text]
    head = f"<!-- text of {name} -->\n\n" + (f"<!-- in this text: {', '.join(used)} -->\n\n" if used else "")
    return head.encode("utf-8", "replace")


def _why(data: bytes, error: BaseException) -> str:
    """Return the reason why a file cannot be read: its damage, where that is certain, else that we cannot read it."""
    if data[:5] == b"%PDF-":
        cut = b"%%EOF" not in data[-2048:]
    else:
        cut = data[:2] == b"PK" and not zipfile.is_zipfile(io.BytesIO(data))
    if cut:
        return "is damaged: its end is missing. Ask for it once more."
    if isinstance(error, zipfile.BadZipFile | zlib.error):
        return "is damaged: a part of it cannot be unpacked. Ask for it once more."
    return "is built in a way that is not known here. Try Python in bash, or ask for it as PDF."
