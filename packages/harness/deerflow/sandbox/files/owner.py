"""File operations under another user's id, for a gateway that runs as root."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager

_SETGROUPS = {"x86_64": 116, "aarch64": 159}
"""System call numbers. glibc's own ``setgroups`` changes every thread of the process; the call itself only one."""


class FileOwner:
    """Lends a thread the file rights of a user: those, and no others.

    Linux keeps a file-system uid per thread. While it is set, the kernel checks and creates files as that user and
    root's override capabilities are gone, so even a mistake of ours cannot read root's files.
    """

    def __init__(self, user_id: int) -> None:
        """Raises ValueError if this process may not act for ``user_id``."""
        if os.geteuid() != 0 and user_id != os.geteuid():
            raise ValueError(f"Only root can work on files as user {user_id}.")
        self.user_id = user_id
        self._switches = os.geteuid() == 0 and user_id != 0
        self._groups = os.getgroups() if self._switches else []
        self._libc = ctypes.CDLL(None, use_errno=True) if self._switches else None

    @contextmanager
    def acting(self) -> Iterator[None]:
        """Work as the owner within the block. Never await inside: the id belongs to the thread."""
        if self._libc is None:
            yield
            return
        try:
            self._set_groups([])
            self._libc.setfsgid(self.user_id)
            self._libc.setfsuid(self.user_id)
            # These calls report nothing: asking again is the only way to learn whether they worked.
            if (self._libc.setfsuid(-1), self._libc.setfsgid(-1)) != (self.user_id, self.user_id):
                raise PermissionError(f"This process may not work on files as user {self.user_id}.")
            yield
        finally:
            self._libc.setfsuid(os.geteuid())
            self._libc.setfsgid(os.getegid())
            self._set_groups(self._groups)

    def _set_groups(self, groups: list[int]) -> None:
        number = _SETGROUPS.get(platform.machine())
        if self._libc is not None and self._groups and number is not None:
            self._libc.syscall(number, len(groups), (ctypes.c_uint32 * len(groups))(*groups))
