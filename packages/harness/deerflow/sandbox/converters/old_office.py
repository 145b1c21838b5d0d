"""Read files of Office 97 (``.doc``, ``.ppt``) by the help of LibreOffice, where it is installed."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from deerflow.sandbox.converters.program import Unreadable

NEW = {"doc": "docx", "ppt": "pptx"}
READERS = {"doc": "MS Word 97", "ppt": "MS PowerPoint 97"}
"""LibreOffice's names of its filters. Without one it reads a damaged file as plain text."""


def renewed(data: bytes, kind: str, until: float) -> bytes:
    """Return the file in today's format. Raises Unreadable and subprocess.TimeoutExpired."""
    new = NEW[kind]
    advice = f"Ask for it as .{new}, or as PDF."
    if (office := shutil.which("soffice") or shutil.which("libreoffice")) is None:
        raise Unreadable(f"has the format of Office 97, for which no program (LibreOffice) is installed here. {advice}")
    with tempfile.TemporaryDirectory() as folder:
        old, made = Path(folder) / f"old.{kind}", Path(folder) / f"old.{new}"
        old.write_bytes(data)
        profile = f"-env:UserInstallation=file://{folder}/profile"
        convert = ["--convert-to", new, "--outdir", folder, str(old)]
        command = [office, "--headless", profile, f"--infilter={READERS[kind]}", *convert]
        left = max(1.0, until - time.monotonic())
        done = subprocess.run(command, capture_output=True, timeout=left)
        if not made.is_file():
            said = " ".join((done.stderr or done.stdout).decode("utf-8", "replace").split())
            reason = said.rpartition("Error: ")[2][-200:].rstrip(".") or f"it ended with {done.returncode}"
            raise Unreadable(f"could not be converted by LibreOffice ({reason}). {advice}")
        return made.read_bytes()
