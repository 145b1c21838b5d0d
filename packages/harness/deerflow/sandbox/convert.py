"""A program for the inside of a sandbox: it writes the text of a document as Markdown, with marks for its pages.

It runs with the packages of the tool image, so that a hostile document meets no library of the host. ``argv``: the document, the
file to write, and the seconds it may take. Status 3: the document has no text that can be had; why is on standard output.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import email
import email.policy
import io
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MOST_BYTES = 20 << 20
"""Of text that is written."""
MOST_UNPACKED = 512 << 20
"""Bytes of an Office file's parts."""
MOST_PAGES = 3000
OLD = {".doc": "docx", ".ppt": "pptx"}
PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp")
_FORGED = re.compile(r"<!--(?= *(page|text of)\b)", re.IGNORECASE)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


class Unreadable(Exception):
    """``str`` goes on a sentence that begins with the document's name."""


def text_of(path: Path, until: float) -> Iterator[str]:
    """The pieces of a document's text. Raises Unreadable."""
    kind, head = path.suffix.lower(), path.open("rb").read(8)
    if head.startswith(b"%PDF-") or kind == ".pdf":
        return pages_of(path, until)
    if kind in PICTURES:
        from PIL import Image

        return iter([read_picture(Image.open(path), until)])
    if kind == ".eml":
        return mail_of(path)
    if head == _OLE and kind in (".docx", ".xlsx", ".pptx"):
        raise Unreadable("is encrypted. Ask for a copy without a password.")
    if kind in OLD:
        return iter([old_office(path, until)])
    if head.startswith(b"PK"):
        with zipfile.ZipFile(path) as parts:
            if sum(part.file_size for part in parts.infolist()) > MOST_UNPACKED:
                raise Unreadable(f"unpacks to more than {MOST_UNPACKED >> 20} MB.")
    return iter([markdown_of(path)])


def markdown_of(path: Path) -> str:
    from markitdown import MarkItDown

    return _FORGED.sub("< !--", MarkItDown(enable_plugins=False).convert_local(path).markdown)


def pages_of(path: Path, until: float) -> Iterator[str]:
    import pypdfium2 as pdfium

    try:
        document = pdfium.PdfDocument(path)
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
    for number in range(min(len(document), MOST_PAGES)):
        page = document[number]
        text = page.get_textpage().get_text_bounded().replace("\r\n", "\n").replace("\0", "")
        if not text.strip() and shutil.which("tesseract"):
            text = read_picture(page.render(scale=2).to_pil(), until)
        text = _FORGED.sub("< !--", text)
        for level, title in titles.get(number, ()):
            text = with_heading(text, level, title)
        yield f"<!-- page {number + 1} of {len(document)} -->\n\n{text.strip()}\n\n"
    if len(document) > MOST_PAGES:
        yield f"[The other {len(document) - MOST_PAGES} pages are not converted.]\n"


def with_heading(text: str, level: int, title: str) -> str:
    """Make the line that says ``title`` a heading, or put one at the top."""
    lines, heading = text.split("\n"), f"{'#' * level} {title}"
    for index, line in enumerate(lines):
        if " ".join(line.split()) == title:
            return "\n".join([*lines[:index], heading, *lines[index + 1 :]])
    return f"{heading}\n\n{text}"


def read_picture(picture: Any, until: float) -> str:
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


def mail_of(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        message = email.message_from_binary_file(file, policy=email.policy.default)
    yield "".join(f"**{name}:** {message[name]}\n" for name in ("From", "To", "Cc", "Date", "Subject") if message[name])
    if (body := message.get_body(("plain", "html"))) is not None:  # type: ignore[attr-defined]
        text = body.get_content()
        if body.get_content_subtype() == "html":
            with tempfile.NamedTemporaryFile("w", suffix=".html") as page:
                page.write(text)
                page.flush()
                text = markdown_of(Path(page.name))
        yield f"\n{_FORGED.sub('< !--', text)}\n"
    if names := [part.get_filename() or part.get_content_type() for part in message.iter_attachments()]:  # type: ignore[attr-defined]
        yield "\nAttachments: " + ", ".join(names) + "\n"


def old_office(path: Path, until: float) -> str:
    new = OLD[path.suffix.lower()]
    if (office := shutil.which("soffice") or shutil.which("libreoffice")) is None:
        raise Unreadable(f"has the format of Office 97, for which no program is installed here. Ask for it as {new}.")
    with tempfile.TemporaryDirectory() as folder:
        command = [office, "--headless", "--convert-to", new, "--outdir", folder, str(path)]
        subprocess.run(command, check=True, capture_output=True, timeout=max(1.0, until - time.monotonic()))
        return markdown_of(Path(folder) / f"{path.stem}.{new}")


def main(source: str, target: str, seconds: str) -> None:
    path, out = Path(source), Path(target)
    try:
        pieces, left = text_of(path, time.monotonic() + float(seconds) * 0.8), MOST_BYTES
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("wb", dir=out.parent, prefix=".", delete=False) as draft:
            made = Path(draft.name)
            try:
                draft.write(f"<!-- text of {path.name} -->\n\n".encode("utf-8", "replace"))
                for piece in pieces:
                    data = piece.encode("utf-8", "replace")[:left]
                    draft.write(data)
                    if (left := left - len(data)) <= 0:
                        draft.write(b"\n[The rest of the text is left out.]\n")
                        break
                made.chmod(0o644)
                made.replace(out)
            except BaseException:
                made.unlink()
                raise
    except Unreadable as error:
        give_up(f"{path.name} {error}")
    except ImportError as error:
        give_up(f"{path.name} cannot be converted: {error}.")
    except Exception as error:
        what = " ".join(str(error).split())[:200] or type(error).__name__
        give_up(f"{path.name} is damaged or not what its name says: {what}")


def give_up(why: str) -> None:
    sys.stdout.write(why)
    sys.exit(3)


if __name__ == "__main__":
    main(*sys.argv[1:])
