"""For any farm of links and any path through it: bytes come from inside, or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deerflow.sandbox.files import SandboxFiles
from deerflow.sandbox.interface import Mount, SandboxError

NAMES = ["a", "b", "c", "secret"]
part = st.sampled_from([*NAMES, "..", ".", "", "mnt", "one", "two", "proc", "self", "root", "tmp"])
inside = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
target = st.lists(part, min_size=1, max_size=7).map("/".join)
node = st.one_of(
    st.just(("file", "")),
    st.just(("dir", "")),
    st.tuples(st.just("link"), target),
    st.tuples(st.just("absolute"), target),
)
farm = st.lists(st.tuples(st.sampled_from(["one", "two"]), inside, node), max_size=12)
question = st.lists(part, max_size=9).map("/".join)


def build(root: Path, plan: list[tuple[str, str, tuple[str, str]]]) -> None:
    for mount in ("one", "two", "secret"):
        (root / mount).mkdir()
    for path in ("secret/secret", "secret/a", "a", "secret-file"):
        (root / path).write_bytes(b"SECRET")
    for mount, path, (kind, where) in plan:
        place = root / mount / path
        with suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            if kind == "file":
                place.write_bytes(b"inside")
            elif kind == "dir":
                place.mkdir()
            else:
                place.symlink_to(where if kind == "link" else f"/{where}" if len(where) % 2 else f"{root}/{where}")


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(plan=farm, path=question, data=st.binary(max_size=3), append=st.booleans())
def test_no_farm_of_links_leads_outside(
    plan: list[tuple[str, str, tuple[str, str]]], path: str, data: bytes, append: bool
) -> None:
    root = Path(tempfile.mkdtemp())
    files = SandboxFiles([Mount(root / "one", "/mnt/one"), Mount(root / "two", "/mnt/two")])
    try:
        build(root, plan)
        outside = {place: place.read_bytes() for place in (root / "secret").rglob("*")} | {root / "a": b"SECRET"}
        shape = sorted(entry.name for entry in root.iterdir())
        for start in ("/mnt/one/", "/mnt/two/", "/"):
            with suppress(SandboxError):
                assert files.read(start + path)[0] == b"inside"
            with suppress(SandboxError):
                found = files.stat(start + path)
                assert found is None or found.kind in ("file", "directory")
            with suppress(SandboxError):
                assert all(match.startswith("/") for match in files.glob(start + path, "**")[0])
        with suppress(SandboxError):
            files.write("/mnt/one/" + path, data, append=append)
        with suppress(SandboxError):
            files.remove("/mnt/two/" + path)
        assert {place: place.read_bytes() for place in outside} == outside
        assert sorted(entry.name for entry in root.iterdir()) == shape
    finally:
        files.close()
        shutil.rmtree(root)


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(plan=farm, path=question)
def test_paths_mean_what_the_kernel_says_they_mean(plan: list[tuple[str, str, tuple[str, str]]], path: str) -> None:
    """The same tree under a real root: RESOLVE_IN_ROOT of openat2 is the authority."""
    root = Path(tempfile.mkdtemp())
    try:
        (root / "mnt").mkdir()
        build(
            root / "mnt",
            [(mount, place, (kind.replace("absolute", "link"), where)) for mount, place, (kind, where) in plan],
        )
        files = SandboxFiles([Mount(root / "mnt", "/mnt")])
        expected = open_in_root(root, "mnt/" + path)
        try:
            found = files.read("/mnt/" + path)[0]
        except SandboxError:
            found = None
        finally:
            files.close()
        # The kernel insists that "file/." and "file/" name a directory; we are lenient with a model's slash.
        if expected is not None:
            assert found == expected
        elif found is not None:
            assert path.endswith(("/", "/.")) or "/./" in path or "//" in path
    finally:
        shutil.rmtree(root)


def open_in_root(root: Path, path: str) -> bytes | None:
    import ctypes
    import struct

    libc = ctypes.CDLL(None, use_errno=True)
    how = struct.pack("QQQ", os.O_RDONLY | os.O_CLOEXEC, 0, 0x10 | 0x02)  # RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS
    base = os.open(root, os.O_PATH)
    fd = libc.syscall(437, base, path.encode(), how, len(how))
    os.close(base)
    if fd < 0:
        return None
    try:
        return os.read(fd, 100)
    except IsADirectoryError:
        return None
    finally:
        os.close(fd)
