"""Checks 40-53: the file tools, against a sandbox that plants and swaps whatever it can.

What the sandbox would plant is made on the host, below the workspace, so that providers without a shell are checked too.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tests.contracts.sandbox.environment import TIGHT, Checks, Environment, Need, NotApplicable

from deerflow.sandbox.interface import UPLOADS, WORKSPACE, SandboxFileError

checks = Checks()

RACE_SECONDS = 1.0
DEPTH = 2500
"""Deeper than Python recurses and longer than a path may be."""
HANG = 10.0
"""Far longer than any of these operations takes, so that only a hanging one meets it."""


async def refused(operation: Awaitable[object]) -> SandboxFileError:
    """The error that a file operation must end with."""
    try:
        async with asyncio.timeout(HANG):
            outcome = await operation
    except SandboxFileError as error:
        return error
    raise AssertionError(f"it was not refused: {str(outcome)[:200]}")


async def plant(environment: Environment, make: Callable[[Path], None]) -> Path:
    """A new directory in the workspace, filled by ``make``; its path on the host."""
    directory = environment.workspace / environment.new_name()

    def fill() -> None:
        directory.mkdir(mode=0o777)
        directory.chmod(0o777)
        make(directory)

    await asyncio.to_thread(fill)
    return directory


def virtual(environment: Environment, path: Path) -> str:
    return f"{WORKSPACE}/{path.relative_to(environment.workspace)}"


@checks("40", "a link out of the sandbox leads nowhere, absolute or relative")
async def links_out(environment: Environment) -> None:
    secret = environment.baits.secret_file

    def make(directory: Path) -> None:
        (directory / "absolute").symlink_to(secret)
        (directory / "shadow").symlink_to("/etc/shadow")
        (directory / "relative").symlink_to(os.path.relpath(secret, directory))
        (directory / "above").symlink_to("../" * 40 + str(secret).lstrip("/"))
        (directory / "directory").symlink_to(secret.parent)

    place = virtual(environment, await plant(environment, make))
    for name in ("absolute", "shadow", "relative", "above", f"directory/{secret.name}"):
        error = await refused(environment.sandbox.read(f"{place}/{name}"))
        assert environment.baits.secret not in str(error)
    listed, _ = await environment.sandbox.list(place, depth=3)
    assert not [entry for entry in listed if entry.path.endswith(secret.name)]


@checks("41", "links inside of the sandbox work, absolute by virtual path and relative")
async def links_inside(environment: Environment) -> None:
    name = environment.new_name()
    await environment.sandbox.write(f"{UPLOADS}/{name}", b"content")

    def make(directory: Path) -> None:
        (directory / "file").write_bytes(b"content")
        (directory / "file").chmod(0o644)
        (directory / "absolute").symlink_to(f"{UPLOADS}/{name}")
        (directory / "relative").symlink_to("./file")
        (directory / "chain").symlink_to("relative")

    place = virtual(environment, await plant(environment, make))
    for link in ("absolute", "relative", "chain"):
        assert (await environment.sandbox.read(f"{place}/{link}"))[0] == b"content"


@checks("42", "magic links of /proc and loops of links are refused")
async def magic_links(environment: Environment) -> None:
    def make(directory: Path) -> None:
        (directory / "root").symlink_to("/proc/self/root/etc/passwd")
        (directory / "cwd").symlink_to("/proc/self/cwd")
        (directory / "a").symlink_to("b")
        (directory / "b").symlink_to("a")

    place = virtual(environment, await plant(environment, make))
    for name in ("root", "cwd/x", "a", "b/x"):
        await refused(environment.sandbox.read(f"{place}/{name}"))
    await refused(environment.sandbox.read("/proc/self/environ"))


@checks("43", "writing through a planted link does not leave the sandbox")
async def write_through_link(environment: Environment) -> None:
    secret = environment.baits.secret_file

    def make(directory: Path) -> None:
        (directory / "file").symlink_to(secret)
        (directory / "directory").symlink_to(secret.parent)

    place = virtual(environment, await plant(environment, make))
    for name in ("file", "directory/new", f"directory/{secret.name}"):
        await refused(environment.sandbox.write(f"{place}/{name}", b"owned"))
        await refused(environment.sandbox.write(f"{place}/{name}", b"owned", append=True))
    await refused(environment.sandbox.remove(f"{place}/directory/{secret.name}"))


@checks("43.1", "the file that the link points to is untouched")
async def untouched(environment: Environment) -> None:
    await write_through_link(environment)
    await environment.assert_bait_untouched()


@checks("44", ".. and absolute paths outside are refused")
async def outside(environment: Environment) -> None:
    paths = (
        "/etc/passwd",
        str(environment.baits.secret_file),
        f"{WORKSPACE}/../../../../../../etc/passwd",
        f"{WORKSPACE}/../../../neighbour/workspace/file",
        "/mnt/user-data/../../etc/passwd",
        "workspace/file",
        "",
    )
    for path in paths:
        await refused(environment.sandbox.read(path))
        await refused(environment.sandbox.write(path, b"x"))


@asynccontextmanager
async def swapping(path: Path, file: Path, target: Path) -> AsyncIterator[None]:
    """``path`` is by turns a link to ``file`` in the sandbox and to ``target`` outside, as fast as can be."""
    stop = threading.Event()

    def swap() -> None:
        turn = path.with_name("turn")
        while not stop.is_set():
            for aim in (file.name, str(target)):
                turn.symlink_to(aim)
                turn.replace(path)

    swapper = asyncio.create_task(asyncio.to_thread(swap))
    try:
        yield
    finally:
        stop.set()
        await swapper


async def race(operation: Callable[[], Awaitable[None]]) -> int:
    """Repeat ``operation`` for a while; how often."""
    loop = asyncio.get_running_loop()
    end, count = loop.time() + RACE_SECONDS, 0
    while loop.time() < end:
        count += 1
        await operation()
    return count


async def racing_place(environment: Environment) -> tuple[Path, str]:
    def make(directory: Path) -> None:
        (directory / "file").write_bytes(b"mine")
        (directory / "file").chmod(0o666)
        (directory / "link").symlink_to("file")

    directory = await plant(environment, make)
    return directory, f"{virtual(environment, directory)}/link"


@checks("45", "a link that is swapped while it is read leaks nothing")
async def read_race(environment: Environment) -> None:
    directory, path = await racing_place(environment)
    secret = environment.baits.secret.encode()

    async def read() -> None:
        try:
            data, _ = await environment.sandbox.read(path)
        except SandboxFileError:
            return
        assert secret not in data

    async with swapping(directory / "link", directory / "file", environment.baits.secret_file):
        assert await race(read) > 20


@checks("46", "a link that is swapped while it is written lets nothing out")
async def write_race(environment: Environment) -> None:
    directory, path = await racing_place(environment)

    async def write() -> None:
        try:
            await environment.sandbox.write(path, b"owned", append=True)
        except SandboxFileError:
            return

    async with swapping(directory / "link", directory / "file", environment.baits.secret_file):
        assert await race(write) > 20
    await environment.assert_bait_untouched()


@checks("47", "FIFOs, sockets and devices are refused at once")
async def special_files(environment: Environment) -> None:
    kept: list[socket.socket] = []

    def make(directory: Path) -> None:
        os.mkfifo(directory / "fifo")
        (directory / "fifo").chmod(0o666)
        listener = socket.socket(socket.AF_UNIX)
        kept.append(listener)
        # By descriptor: a socket's path may have 107 bytes only.
        handle = os.open(directory, os.O_PATH)
        listener.bind(f"/proc/self/fd/{handle}/socket")
        os.close(handle)
        (directory / "zero").symlink_to("/dev/zero")

    place = virtual(environment, await plant(environment, make))
    try:
        for name in ("fifo", "socket", "zero"):
            await refused(environment.sandbox.read(f"{place}/{name}"))
            await refused(environment.sandbox.write(f"{place}/{name}", b"x", append=True))
    finally:
        for listener in kept:
            listener.close()


@checks("48", "a sparse file inside cannot exceed the limit of one file", Need.FILE_LIMIT)
async def sparse_inside(environment: Environment) -> None:
    name = environment.new_name()
    await environment.sh(f"truncate -s 1T {name} || : >>{name}")
    data, size = await environment.sandbox.read(f"{WORKSPACE}/{name}", limit=1000)
    assert size <= TIGHT.file_size_mb << 20
    assert len(data) <= 1000


@checks("48.1", "a sparse file of a terabyte is read only as far as asked")
async def sparse_outside(environment: Environment) -> None:
    def make(directory: Path) -> None:
        file = directory / "sparse"
        file.touch(mode=0o644)
        try:
            os.truncate(file, 1 << 40)
        except OSError as error:
            raise NotApplicable(f"this file system has no files of a terabyte: {error}") from None

    place = virtual(environment, await plant(environment, make))
    data, size = await environment.sandbox.read(f"{place}/sparse", offset=1 << 30, limit=1000)
    assert (len(data), size) == (1000, 1 << 40)


@checks("49", "any name that a file can have is listed and can be read by that name")
async def strange_names(environment: Environment) -> None:
    names = [
        b"new\nline",
        "ünïcödé".encode(),
        b"not \xff\xfe utf-8",
        b"-rf",
        "bidi \u202etxt.exe".encode(),
        b" spaces ",
        b"'\"$(id)`",
    ]

    def make(directory: Path) -> None:
        for name in names:
            (directory / os.fsdecode(name)).write_bytes(name)

    place = virtual(environment, await plant(environment, make))
    listed, cut = await environment.sandbox.list(place, depth=1)
    assert not cut
    assert sorted(os.fsencode(entry.path.removeprefix(place + "/")) for entry in listed) == sorted(names)
    for entry in listed:
        data, _ = await environment.sandbox.read(entry.path)
        assert data == os.fsencode(entry.path.removeprefix(place + "/"))


def make_deep(directory: Path, levels: int = DEPTH) -> None:
    current = os.open(directory, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", 0o777, dir_fd=current)
        below = os.open("d", os.O_RDONLY, dir_fd=current)
        os.close(current)
        current = below
    os.close(os.open("bottom", os.O_CREAT | os.O_WRONLY, 0o666, dir_fd=current))
    os.close(current)


async def deep_tree(environment: Environment) -> str:
    """One for all checks that need it, since making and removing it takes seconds."""
    directory = environment.workspace / "deep"
    if not await asyncio.to_thread(directory.exists):
        planted = await plant(environment, make_deep)
        await asyncio.to_thread(hand_over_deep, planted)
        await asyncio.to_thread(planted.rename, directory)
    return virtual(environment, directory)


@checks("50", "a tree 2500 levels deep is listed")
async def deep_list(environment: Environment) -> None:
    place = await deep_tree(environment)
    listed, _ = await environment.sandbox.list(place, depth=3)
    assert [entry.path for entry in listed] == [f"{place}/d", f"{place}/d/d", f"{place}/d/d/d"]
    await environment.sandbox.list(place, depth=10_000, cap=500)
    await environment.sandbox.glob(place, "**/bottom")


@checks("51", "a path that is too long is an error, not a crash")
async def deep_read(environment: Environment) -> None:
    place = await deep_tree(environment)
    try:
        data, _ = await environment.sandbox.read(place + "/d" * DEPTH + "/bottom")
    except SandboxFileError:
        return
    assert data == b""


@checks("52", "a tree 2500 levels deep is removed")
async def deep_remove(environment: Environment) -> None:
    place = await deep_tree(environment)
    await environment.sandbox.remove(place)
    assert await environment.sandbox.stat(place) is None


def hand_over_deep(directory: Path) -> None:
    """As if the sandbox had made it: as root, what lies in a thread's directories belongs to its uid."""
    if os.geteuid() != 0:
        return
    uid = directory.parent.stat().st_uid
    os.chown(directory, uid, uid)
    current = os.open(directory, os.O_RDONLY)
    while True:
        names = os.listdir(current)
        for name in names:
            os.chown(name, uid, uid, dir_fd=current)
        if "d" not in names:
            break
        below = os.open("d", os.O_RDONLY, dir_fd=current)
        os.close(current)
        current = below
    os.close(current)


@checks("53", "a directory of 5,000 entries is listed up to the cap")
async def wide_list(environment: Environment) -> None:
    def make(directory: Path) -> None:
        handle = os.open(directory, os.O_RDONLY)
        for number in range(5_000):
            os.close(os.open(f"{number:05}", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=handle))
        os.close(handle)

    directory = await plant(environment, make)
    listed, cut = await environment.sandbox.list(virtual(environment, directory), depth=1, cap=1000)
    assert (len(listed), cut) == (1000, True)
    await asyncio.to_thread(shutil.rmtree, directory)
