"""Letters in pictures, where a program that reads them is installed."""

# pyright: reportMissingImports=false

from __future__ import annotations

import io
import shutil
import subprocess
import time
from collections.abc import Iterator
from typing import Any

from deerflow.sandbox.converters.program import Unreadable


def read(data: bytes, until: float) -> Iterator[str]:
    """Yield what is written in a picture."""
    from PIL import Image

    if shutil.which("tesseract") is None:
        raise Unreadable(
            "is a picture, and no program that reads pictures is installed here. Look at it with view_image."
        )
    yield picture_text(Image.open(io.BytesIO(data)), until)


def picture_text(picture: Any, until: float) -> str:
    if (left := until - time.monotonic()) < 1:
        return "[A picture; there was no time left to read it.]"
    stream = io.BytesIO()
    picture.convert("RGB").save(stream, "PNG")
    command = ["tesseract", "stdin", "stdout"]
    done = subprocess.run(command, input=stream.getvalue(), capture_output=True, timeout=left)
    return done.stdout.decode("utf-8", "replace")
