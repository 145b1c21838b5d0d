"""The text of documents that are no text: PDF, Office, mail. It is taken from them inside the sandbox and kept as Markdown."""

from __future__ import annotations

import asyncio
import hashlib
import shlex
from functools import cache
from pathlib import Path, PurePosixPath

from deerflow.sandbox.interface import UPLOADS, Sandbox, SandboxFileError, SandboxFileNotFoundError

READ_BY_TEXT = frozenset({".pdf", ".docx", ".xlsx", ".pptx", ".doc", ".xls", ".ppt", ".msg", ".eml", ".epub"})
"""What ``read_file`` shows as text."""
CONVERTED = READ_BY_TEXT | {".html", ".htm", ".png", ".jpg", ".jpeg", ".tif", ".tiff"}
"""What is converted when it is uploaded, if the configuration says so."""
SECONDS = 180.0
TEXT_MARK = "<!-- text of "
"""What the text of a document begins with."""


async def markdown_of(sandbox: Sandbox, path: str) -> str:
    """Path of a document's text as Markdown, next to an upload, else in ``/tmp``. It is made when the document is newer.

    Pages are marked ``<!-- page 3 of 9 -->``; a PDF's bookmarks are headings.

    Raises:
        SandboxFileError: it is encrypted, damaged or takes too long; says what to do.
        SandboxError: the sandbox cannot work.
    """
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
        command = shlex.join(["python3", "-", path, target, f"{SECONDS:g}"])
        program = f"{command} <<'END-OF-PROGRAM'\n{await asyncio.to_thread(_program)}\nEND-OF-PROGRAM"
        # With variables of its own it runs beside the shell of the agent.
        done = await sandbox.exec(program, timeout=SECONDS, env={"PYTHONDONTWRITEBYTECODE": "1"}, max_output=8192)
    if done.exit_code == 0:
        return target
    name = PurePosixPath(path).name
    if done.timed_out:
        raise SandboxFileError(f"{name} takes more than {SECONDS:g} seconds to convert. Read parts of it with Python.")
    if done.exit_code != 3:
        why = f"it needs too much {done.killed_for}" if done.killed_for else done.output.strip()[-300:]
        raise SandboxFileError(f"{name} cannot be converted: {why}")
    raise SandboxFileError(done.output.strip())


def _places(path: str) -> list[str]:
    pure = PurePosixPath(path)
    other = f"/tmp/documents/{hashlib.sha256(path.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}.md"
    is_upload = pure.is_relative_to(UPLOADS) and len(pure.name.encode("utf-8", "surrogateescape")) <= 252
    return [f"{path}.md", other] if is_upload else [other]


@cache
def _program() -> str:
    return Path(__file__).with_name("convert.py").read_text("utf-8")
