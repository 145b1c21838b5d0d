"""Errors of the file tools: in words, with the virtual path and nothing of the host's."""

from __future__ import annotations

import errno
import os
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager

from deerflow.sandbox.interface import SandboxFileError, SandboxFileNotFoundError, SandboxPermissionError

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Control, format (bidi overrides, zero width), surrogates (bytes that are not UTF-8), line and paragraph separators."""


class SandboxIsADirectoryError(SandboxFileError):
    """A file was expected and a directory is there."""


class SandboxNotADirectoryError(SandboxFileError):
    """A directory was expected and something else is there."""


class SandboxNoSpaceError(SandboxFileError):
    """The disk or the quota is full."""


def shown_path(path: str) -> str:
    """``path`` fit for a line of text: what could break the line or deceive the reader is escaped.

    A byte that is not UTF-8 becomes ``\\xNN``, other hidden characters ``\\n`` or ``\\u202e``.
    """
    if path.isascii() and path.isprintable():
        return path
    return "".join(_shown(char) for char in path)


def _shown(char: str) -> str:
    if "\udc80" <= char <= "\udcff":
        return f"\\x{ord(char) - 0xDC00:02x}"
    if unicodedata.category(char) in _HIDDEN_CATEGORIES:
        return ascii(char)[1:-1]
    return char


@contextmanager
def file_errors(path: str) -> Iterator[None]:
    """Turn any OSError into the sandbox error that names ``path``.

    Raises:
        SandboxFileError: or its kinds, in place of OSError.
    """
    try:
        yield
    except OSError as error:
        raise _translated(error, shown_path(path)) from None


def _translated(error: OSError, path: str) -> SandboxFileError:
    match error.errno:
        case errno.ENOENT:
            return SandboxFileNotFoundError(f"No such file or directory: {path}")
        case errno.EACCES | errno.EPERM:
            return SandboxPermissionError(f"Permission denied: {path}")
        case errno.EROFS:
            return SandboxPermissionError(f"Read-only: {path} cannot be changed.")
        case errno.EISDIR:
            return SandboxIsADirectoryError(f"Path is a directory: {path}")
        case errno.ENOTDIR:
            return SandboxNotADirectoryError(f"Not a directory: {path}")
        case errno.ELOOP:
            return SandboxFileError(f"Too many symbolic links, or the file changed while it was opened: {path}")
        case errno.ENAMETOOLONG:
            return SandboxFileError(f"Path too long: {path[:200]}...")
        case errno.ENOSPC | errno.EDQUOT:
            return SandboxNoSpaceError(f"No space left: {path} was not written.")
        case errno.EINVAL | errno.ENXIO:
            return not_regular(path)
        case None:
            return SandboxFileError(f"The file operation failed: {path}")
        case number:
            return SandboxFileError(f"{os.strerror(number)}: {path}")


def not_regular(path: str) -> SandboxFileError:
    """The error for a FIFO, socket or device, which would hang or act when opened."""
    return SandboxFileError(f"Not a regular file: {shown_path(path)}")
