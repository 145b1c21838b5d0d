"""The half of a sandbox that works on the host: its files, without a shell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

from deerflow.sandbox.files import SandboxFiles
from deerflow.sandbox.files.search import grep_files
from deerflow.sandbox.interface import Entry, GrepMatch, Sandbox

P = ParamSpec("P")
T = TypeVar("T")


class HostFilesSandbox(Sandbox):
    """Base of the sandboxes whose files lie on this machine. A subclass sets ``_files`` and adds the commands."""

    _files: SandboxFiles

    async def _on_files(self, operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a blocking operation of ``_files`` off the event loop."""
        return await asyncio.to_thread(operation, *args, **kwargs)

    async def read(self, path: str, *, offset: int = 0, limit: int = 50 << 20) -> tuple[bytes, int]:
        return await self._on_files(self._files.read, path, offset, limit)

    async def write(self, path: str, data: bytes, *, append: bool = False) -> None:
        await self._on_files(self._files.write, path, data, append)

    async def stat(self, path: str) -> Entry | None:
        return await self._on_files(self._files.stat, path)

    async def list(self, path: str, *, depth: int = 2, cap: int = 1000) -> tuple[list[Entry], bool]:
        return await self._on_files(self._files.list, path, depth, cap)

    async def remove(self, path: str) -> None:
        await self._on_files(self._files.remove, path)

    async def glob(
        self, root: str, pattern: str, *, include_dirs: bool = False, cap: int = 200
    ) -> tuple[list[str], bool]:
        return await self._on_files(self._files.glob, root, pattern, include_dirs=include_dirs, cap=cap)

    async def grep(
        self,
        root: str,
        pattern: str,
        *,
        glob: str | None = None,
        literal: bool = False,
        case_sensitive: bool = False,
        cap: int = 100,
    ) -> tuple[list[GrepMatch], bool]:
        search = partial(
            grep_files, self._files, root, pattern, glob=glob, literal=literal, case_sensitive=case_sensitive, cap=cap
        )
        return await self._on_files(search)
