"""The text of documents that are no text: PDF, Office, mail, pages. Converters take it from them; the sandbox keeps it as Markdown."""

from __future__ import annotations

import hashlib
from pathlib import PurePosixPath

from deerflow.sandbox.converters import Converters, UnreadableError
from deerflow.sandbox.interface import UPLOADS, Sandbox, SandboxFileError, SandboxFileNotFoundError

READ_BY_TEXT = frozenset(
    f".{ending}"
    for ending in [
        "pdf",
        "docx",
        "docm",
        "dotx",
        "xlsx",
        "xlsm",
        "xltx",
        "xlsb",
        "xls",
        "pptx",
        "pptm",
        "ppsx",
        "odt",
        "ods",
        "odp",
        "rtf",
        "doc",
        "ppt",
        "msg",
        "eml",
        "mbox",
        "epub",
    ]
)
"""What ``read_file`` shows as text."""
_BEGIN = (b"{\\rtf", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
_PACKED = (b"[Content_Types].xml", b"mimetypeapplication/", b"word/", b"ppt/slides", b"xl/work")
PAGES = frozenset({".html", ".htm", ".xhtml"})
"""What a stranger may have written for a person's eyes and a model's: an upload is shown as ``web_fetch`` shows a page."""
CONVERTED = READ_BY_TEXT | PAGES | {".png", ".jpg", ".jpeg", ".tif", ".tiff"}
"""What is converted when it is uploaded, if the configuration says so."""
MOST_BYTES = 50 << 20
TEXTS = "/tmp/documents"
"""Directory of texts that cannot be beside their document."""
TEXT_MARK = "<!-- text of "
"""What the text of a document begins with."""


def is_document(path: str, head: bytes = b"") -> bool:
    """Return whether a file is a document, by its name or by its first bytes."""
    if PurePosixPath(path).suffix.lower() in READ_BY_TEXT or b"%PDF-" in head[:1024] or head.startswith(_BEGIN):
        return True
    return head.startswith(b"PK\x03\x04") and any(mark in head for mark in _PACKED)


async def markdown_of(sandbox: Sandbox, path: str, converters: Converters, user_id: str) -> str:
    """Path of a document's text as Markdown, next to an upload, else in ``/tmp``. It is made when the document is newer.

    Pages are marked ``<!-- page 3 of 9 -->``; a PDF's bookmarks are headings.

    Args:
        user_id: whose document it is.

    Raises:
        SandboxFileError: it is encrypted, damaged or takes too long; says what to do.
        SandboxError: the sandbox cannot work.
    """
    name = PurePosixPath(path).name
    async with sandbox.seen_files.lock(path):
        source = await sandbox.stat(path)
        if source is None or source.kind != "file":
            raise SandboxFileNotFoundError(f"File not found: {path}")
        for target in _places(path):
            made = await sandbox.stat(target)
            if made is None or (await sandbox.read(target, limit=len(TEXT_MARK)))[0] == TEXT_MARK.encode():
                break  # not a file of the person's own
        else:
            raise SandboxFileError(f"{path} cannot be converted: files are in the way.")
        if made is not None and made.modified >= source.modified:
            return target
        data, size = await sandbox.read(path, limit=MOST_BYTES)
        if size > len(data):
            raise SandboxFileError(f"{name} is larger than {MOST_BYTES >> 20} MB. Read parts of it with Python.")
        try:
            text = await converters.document(data, name, user_id)
        except UnreadableError as error:
            advice = (
                " Read parts of it with Python."
                if "takes more than" in str(error) or "needs more" in str(error)
                else ""
            )
            raise SandboxFileError(f"{name} {error}{advice}") from error
        await sandbox.write(target, text)
    return target


def _places(path: str) -> list[str]:
    pure = PurePosixPath(path)
    other = f"{TEXTS}/{hashlib.sha256(path.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}.md"
    is_upload = pure.is_relative_to(UPLOADS) and len(pure.name.encode("utf-8", "surrogateescape")) <= 252
    return [f"{path}.md", other] if is_upload else [other]
