"""Read PDF files: a mark for each page, bookmarks as headings, tables as tables, and what the page alone shows named."""

# pyright: reportMissingImports=false

from __future__ import annotations

import ctypes
import re
import shutil
import time
from collections.abc import Callable, Iterator
from typing import Any

from deerflow.sandbox.converters.letters import picture_text
from deerflow.sandbox.converters.markdown import Mark, heading, line
from deerflow.sandbox.converters.pdf_tables import with_tables
from deerflow.sandbox.converters.pdf_words import turned
from deerflow.sandbox.converters.program import Unreadable

MOST_PAGES = 3000
FEW_LETTERS = 40
"""Of a page that is a picture for the most part: its number, perhaps."""
MOST_FIELDS = 500


def read(data: bytes, name: str, until: float) -> Iterator[str]:
    """Yield the pages. ``until``: the moment of ``time.monotonic`` at which the rest is left out."""
    import pypdfium2 as pdfium

    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        if "password" in str(error).lower():
            raise Unreadable("needs its password. Ask for it, or for a copy without one.") from None
        raise
    document.init_forms()
    titles = _bookmarks(document)
    half = time.monotonic() + max(0.0, until - time.monotonic()) / 2
    for number in range(len(document)):
        if number >= MOST_PAGES or time.monotonic() > until:
            why = "are not converted" if number >= MOST_PAGES else "are not converted: there was no time left"
            yield f"[The other {len(document) - number} pages {why}. Read them with Python (pypdf).]\n"
            break
        page = document[number]
        text = _text(page, tables=time.monotonic() < half)
        for level, title in titles.get(number, ()):
            text = _with_heading(text, level, title)
        pieces = [text.strip(), *_picture(page, text, f"{name}#page={number + 1}", number + 1, until), *_notes(page)]
        body = "\n\n".join(piece for piece in pieces if piece)
        yield Mark(f"page {number + 1} of {len(document)}")
        yield f"{body or '[This page is empty.]'}\n\n"
        page.close()
    names = [document.get_attachment(at).get_name() for at in range(document.count_attachments())]
    if names:
        yield f"Attachments: {', '.join(map(line, names))}\n"


def _text(page: Any, *, tables: bool) -> str:
    words = page.get_textpage()
    text = words.get_text_bounded().replace("\r\n", "\n")
    # pdfium has a sign of its own where a line ends within a word.
    text = re.sub(r"(?<=\w)[\x02\ufffe]\n?(?=[^\W\d_])", "", text)
    text = turned(words, text)
    return with_tables(words, text) if tables else text


def _bookmarks(document: Any) -> dict[int, list[tuple[int, str]]]:
    import pypdfium2 as pdfium

    titles: dict[int, list[tuple[int, str]]] = {}
    for entry in document.get_toc(max_depth=4):
        try:
            target = entry.get_dest()
            number = target.get_index() if target is not None else None
        except pdfium.PdfiumError:
            continue
        if number is not None and (title := line(entry.get_title())):
            titles.setdefault(number, []).append((entry.level + 1, title))
    return titles


def _with_heading(text: str, level: int, title: str) -> str:
    """Make the line that says ``title`` a heading, or put one at the top."""
    lines = text.split("\n")
    for index, each in enumerate(lines):
        if line(each) == title:
            return "\n".join([*lines[:index], heading(level, title), *lines[index + 1 :]])
    return f"{heading(level, title)}\n\n{text}"


def _picture(page: Any, text: str, place: str, number: int, until: float) -> Iterator[str]:
    """Say that a page without text is a picture, and what is written in it where a program can tell."""
    from pypdfium2.raw import FPDF_PAGEOBJ_IMAGE

    if len(text.strip()) > FEW_LETTERS:
        return
    width, height = page.get_size()
    kinds = [(each.type, each.get_bounds()) for each in page.get_objects(max_depth=3)]
    covered = max((abs((b[2] - b[0]) * (b[3] - b[1])) for kind, b in kinds if kind == FPDF_PAGEOBJ_IMAGE), default=0.0)
    if not (covered > width * height / 3 or (kinds and not text.strip())):
        return
    if shutil.which("tesseract") and (found := picture_text(page.render(scale=2).to_pil(), until).strip()):
        yield f"[page {number} is a picture; this is what a program read in it]\n\n{found}"
    else:
        yield f"[page {number} is a picture: look at it with view_image {place}]"


def _notes(page: Any) -> Iterator[str]:
    """Return the notes of readers on the page, and in its fields."""
    from pypdfium2 import raw

    written = (raw.FPDF_ANNOT_TEXT, raw.FPDF_ANNOT_FREETEXT, raw.FPDF_ANNOT_HIGHLIGHT, raw.FPDF_ANNOT_UNDERLINE,
               raw.FPDF_ANNOT_STRIKEOUT)  # fmt: skip
    form = page.formenv
    for at in range(min(raw.FPDFPage_GetAnnotCount(page), MOST_FIELDS)):
        note = raw.FPDFPage_GetAnnot(page, at)
        kind = raw.FPDFAnnot_GetSubtype(note)
        if kind in written:
            text = _string(
                lambda buffer, size, note=note: raw.FPDFAnnot_GetStringValue(note, b"Contents", buffer, size)
            )
            if text:
                yield f"[note: {line(text)}]"
        elif kind == raw.FPDF_ANNOT_WIDGET and form is not None:
            name = _string(lambda buffer, size, note=note: raw.FPDFAnnot_GetFormFieldName(form, note, buffer, size))
            value = _string(lambda buffer, size, note=note: raw.FPDFAnnot_GetFormFieldValue(form, note, buffer, size))
            if value:
                yield f"[field {line(name)}: {line(value)}]"
        raw.FPDFPage_CloseAnnot(note)


def _string(ask: Callable[[Any, int], int]) -> str:
    from pypdfium2 import raw

    size = min(ask(None, 0), 1 << 20)
    buffer = ctypes.create_string_buffer(size)
    ask(ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), size)
    return buffer.raw[: max(size - 2, 0)].decode("utf-16-le", "replace").strip()
