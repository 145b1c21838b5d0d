"""What this process holds open."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def open_below(root: Path) -> list[str]:
    """The files and directories at and below ``root`` of which this process has a descriptor, one for each.

    Other threads, such as those that earlier tests have left, open and close sockets and files of their own meanwhile.
    """
    found = list[str]()
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # closed meanwhile
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return [path for path in found if path.startswith(str(root))]
