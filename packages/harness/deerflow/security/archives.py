"""What is looked at before a ZIP of unknown origin is opened."""

from __future__ import annotations

import struct
import zipfile

from deerflow.errors import RequestError, TooLargeError

MAX_DIRECTORY_BYTES = 4 << 20
"""Of an archive's table of contents, which has to be read as a whole."""
READABLE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Other methods let an archive choose how much memory unpacking takes."""
END = struct.Struct("<4s4H2LH")
TAIL_BYTES = END.size + 0xFFFF


def check_directory(tail: bytes) -> None:
    """Refuse an archive, by its last TAIL_BYTES, whose table of contents would fill the memory (PKWARE APPNOTE 4.3.16).

    Raises RequestError: it is no ZIP; TooLargeError.
    """
    record = tail[max(0, tail.rfind(b"PK\x05\x06")) :][: END.size]
    if len(record) < END.size or not record.startswith(b"PK\x05\x06"):
        raise RequestError("This file isn't a ZIP archive.", reason="archive_unknown")
    # 64-bit archives say it elsewhere; nothing that small needs one.
    if END.unpack(record)[5] > MAX_DIRECTORY_BYTES or b"PK\x06\x07" in tail:
        raise TooLargeError("The archive lists too many files.")
