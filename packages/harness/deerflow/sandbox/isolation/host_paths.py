"""Sandboxes whose commands live with the host's paths: virtual ones are replaced in command lines and put back in output.

Every mount gets an alias below one short directory (``<root>/mnt/user-data/workspace`` is a link to the host's), so a
replacement only puts the root in front and never brings in a space or a quote. What this cannot do: see a path that a
program builds or reads from a file. Files, and bodies of here-documents, are never touched: they are data.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from deerflow.sandbox.interface import ExecResult, Isolation, Mount, Policy
from deerflow.sandbox.isolated import IsolatedSandbox, SessionSource
from deerflow.sandbox.isolation.plan import HOME, LaunchRequest, start_message, thread_mounts, writable_directories

UNMAPPED = (
    "This sandbox has no real /mnt paths: they work in command lines, not inside scripts and here-documents. "
    "Use paths relative to the working directory there."
)

# Not inside a longer path, a URL or an expansion, but glued to a one-letter option (-I/mnt/...).
_LEFT = r"(?:(?<![\w./~%+\-\\$)}])|(?<=\s-[A-Za-z]))"
_RIGHT = r"(?=/|[^\w.-]|$)"
_NOTHING_BELOW = r"(?=/?(?:[^\w./-]|$))"
_MASK_RIGHT = r"(?![\w-]|\.\w)"
_HEREDOC = re.compile(r"(?<!<)<<(?P<tabs>-?)\s*(?P<quote>['\"\\]?)(?P<word>[A-Za-z_][\w.-]*)")


class HostPaths:
    """The mapping of one sandbox. ``create`` makes the aliases, ``remove`` takes them away."""

    def __init__(self, mounts: Sequence[Mount], root: Path) -> None:
        """``root``: a directory of ours alone whose path needs no quoting in a shell."""
        self._root = str(root)
        outer = sorted(mounts, key=lambda mount: mount.path.count("/"))
        self._alias: dict[str, str] = {}
        self._hosts: dict[str, str] = {}
        for number, mount in enumerate(outer):
            nested = any(mount.path.startswith(above + "/") for above in self._alias)
            self._alias[mount.path] = f"{root}/nested-{number}" if nested else f"{root}{mount.path}"
            self._hosts[mount.path] = str(mount.host)
        # Directories that only lead to mounts; /home and the like belong to the host.
        ways = {str(way) for path in self._alias for way in Path(path).parents if str(way).startswith("/mnt")}
        self._ways = sorted(ways - self._alias.keys(), key=len, reverse=True)
        self._command = _alternatives(sorted(self._alias, key=len, reverse=True), self._ways)
        self._masks = self._mask_table()
        self._output = re.compile(f"(?:{'|'.join(map(re.escape, self._masks))}){_MASK_RIGHT}")

    def create(self) -> None:
        """Make the aliases. Blocks. Raises OSError."""
        for path, alias in self._alias.items():
            Path(alias).parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                Path(alias).symlink_to(self._hosts[path])

    def host(self, path: str) -> str:
        """``path`` as the shell can open it; a path that is not virtual stays as it is."""
        return self._replace(path) if path.startswith("/") else path

    def to_host(self, command: str) -> str:
        """``command`` with virtual paths replaced, but for the bodies of its here-documents."""
        return "".join(line if is_data else self._replace(line) for line, is_data in _lines(command))

    def in_data(self, command: str) -> bool:
        """Whether a here-document of ``command`` holds virtual paths, which were left alone."""
        return any(is_data and self._replace(line) != line for line, is_data in _lines(command))

    def to_virtual(self, output: str) -> str:
        """``output`` with the host's paths of the mounts turned back."""
        return self._output.sub(lambda found: self._masks[found[0]], output)

    def _replace(self, text: str) -> str:
        def replacement(found: re.Match[str]) -> str:
            return self._alias.get(found[0], self._root + found[0])

        return self._command.sub(replacement, text)

    def _mask_table(self) -> dict[str, str]:
        """Host spellings and what they mean, longest first."""
        table: dict[str, str] = {}
        for path, alias in self._alias.items():
            table[alias] = path
            host = self._hosts[path]
            table.setdefault(host, path)
            table.setdefault(os.path.realpath(host), path)
        table |= {self._root + way: way for way in self._ways}
        table.setdefault(self._root, "/")
        return dict(sorted(table.items(), key=lambda item: len(item[0]), reverse=True))


class HostPathsSandbox(IsolatedSandbox):
    """A sandbox whose commands live with host paths."""

    def __init__(
        self, sandbox_id: str, policy: Policy, isolation: Isolation, uid: int | None, source: SessionSource
    ) -> None:
        super().__init__(sandbox_id, policy, isolation, uid, source)
        self._aliases = _alias_directory()
        # Also when nobody ends the sandbox: it is forgotten, or the interpreter ends.
        self._remove_aliases = weakref.finalize(self, shutil.rmtree, self._aliases, ignore_errors=True)
        self._paths = self._map(policy)

    def adapt(self, policy: Policy, isolation: Isolation) -> None:
        self._paths = self._map(policy)
        super().adapt(policy, isolation)

    async def end(self) -> None:
        await super().end()
        await asyncio.to_thread(self._remove_aliases)

    def _map(self, policy: Policy) -> HostPaths:
        paths = HostPaths(thread_mounts(policy), self._aliases)
        paths.create()
        return paths

    def _outgoing(self, command: str) -> str:
        return self._paths.to_host(command)

    def _shown(self, output: str) -> str:
        return self._paths.to_virtual(output)

    def _incoming(self, command: str, result: ExecResult) -> ExecResult:
        notice = UNMAPPED if result.exit_code and self._paths.in_data(command) else result.notice
        return replace(result, output=self._shown(result.output), cwd=self._shown(result.cwd), notice=notice)

    def _directory(self, cwd: str | None) -> str | None:
        return None if cwd is None else self._paths.host(cwd)


def host_start_message(request: LaunchRequest, *, count_processes: bool) -> dict[str, Any]:
    """The supervisor's first message where the virtual paths do not exist.

    Args:
        count_processes: by the kernel, which counts all processes of the user, sandboxed or not.
    """
    paths = {mount.path: str(mount.host) for mount in thread_mounts(request.policy)}
    first = str(writable_directories(request.policy)[0])
    places = {"HOME": paths.get(HOME, first), "TMPDIR": paths.get("/tmp", "/tmp")}
    start = start_message(request, home=first, overrides=places)
    start["environment"]["PATH"] = start["environment"]["PATH"].replace(HOME, places["HOME"])
    if not count_processes:
        start["limits"].pop("NPROC", None)
    return start


def _alias_directory() -> Path:
    """A new directory that any user may pass through and whose path needs no quoting."""
    parent = tempfile.gettempdir()
    directory = Path(tempfile.mkdtemp(prefix="deerflow-", dir=parent if re.fullmatch(r"[\w./-]+", parent) else "/tmp"))
    directory.chmod(0o711)
    return directory


def _alternatives(mounts: Sequence[str], ways: Sequence[str]) -> re.Pattern[str]:
    parts = [re.escape(path) + _RIGHT for path in mounts] + [re.escape(path) + _NOTHING_BELOW for path in ways]
    return re.compile(f"{_LEFT}(?:{'|'.join(parts)})" if parts else r"(?!)")


def _lines(command: str) -> Iterator[tuple[str, bool]]:
    """The lines of a command, and whether each belongs to the body of a here-document."""
    waiting: list[tuple[str, bool]] = []
    lines = command.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if waiting:
            word, tabs = waiting[0]
            text = line.rstrip("\n")
            if (text.lstrip("\t") if tabs else text) == word:
                waiting.pop(0)
            yield line, True
        else:
            # "<<" is also a shift: without its closing line it opens nothing.
            rest = {text.strip() for text in lines[number + 1 :]}
            waiting = [
                (found["word"], found["tabs"] == "-") for found in _HEREDOC.finditer(line) if found["word"] in rest
            ]
            yield line, False
