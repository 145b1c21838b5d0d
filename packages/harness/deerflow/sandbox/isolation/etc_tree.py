"""The curated /etc of the sandboxes: built once per state of the host's, bound as one read-only directory.

It holds what programs need to run (linker cache, certificates, fonts, time zone) and nothing about the host: accounts,
hosts and resolver are synthetic. Only files that everybody on the host may read are copied.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

PATTERNS = (
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "ssl",
    "ca-certificates",
    "pki",
    "mime.types",
    "localtime",
    "timezone",
    "fonts",
    "terminfo",
    "protocols",
    "services",
    "magic",
    "magic.mime",
    "inputrc",
    "debian_version",
    "os-release",
    "mailcap",
    "java*",
    "chromium*",
    "perl",
    "python3*",
    "ImageMagick*",
)

SYNTHETIC = {
    "passwd": "root:x:0:0:root:/root:/usr/sbin/nologin\n"
    "agent:x:1000:1000:agent:/home/agent:/bin/bash\n"
    "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
    "group": "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nservices: files\n",
    "resolv.conf": "# No name server: names are resolved by the sandbox's proxy.\n",
}

LARGEST_FILE = 16 << 20


def ensure_etc_tree(directory: Path, extra: Sequence[str] = (), *, source: Path = Path("/etc")) -> Path:
    """The curated tree below ``directory``, built if the host's /etc or ``extra`` changed since.

    Args:
        directory: where trees are kept.
        extra: further files or directories below /etc, as absolute paths.

    Raises:
        ValueError: an extra path is not below /etc.
    """
    roots = list(_roots(source, extra))
    tree = directory / f"etc-{_fingerprint(roots)}"
    if tree.is_dir():
        return tree
    directory.mkdir(0o711, parents=True, exist_ok=True)
    building = directory / f".etc-{secrets.token_hex(8)}"
    try:
        building.mkdir()
        for root in roots:
            _copy(root, source, building)
        for name, content in SYNTHETIC.items():
            target = building / name
            target.unlink(missing_ok=True)
            target.write_text(content)
            target.chmod(0o644)
        building.chmod(0o755)
        try:
            building.rename(tree)
        except OSError:
            if not tree.is_dir():  # otherwise another process was faster
                raise
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return tree


def _roots(source: Path, extra: Sequence[str]) -> Iterator[Path]:
    for pattern in PATTERNS:
        yield from sorted(source.glob(pattern))
    for name in extra:
        path = Path(os.path.normpath(name))
        if not path.is_relative_to(source) or path == source:
            raise ValueError(f"sandbox.etc_extra: {name!r} is not a path below {source}.")
        if path.exists():
            yield path


def _fingerprint(roots: Iterable[Path]) -> str:
    facts: list[object] = [SYNTHETIC]
    for root in roots:
        status = root.lstat()
        facts.append([str(root), status.st_mtime_ns, status.st_size, str(root.resolve())])
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _copy(path: Path, source: Path, target_root: Path) -> None:
    """Copy ``path`` to the same place below ``target_root``; what not everybody may read is left out."""
    target = target_root / path.relative_to(source)
    target.parent.mkdir(parents=True, exist_ok=True)
    for parent in target.parents:
        if parent == target_root:
            break
        parent.chmod(0o755)
    if path.is_symlink() and _visible(path, source):
        target.unlink(missing_ok=True)
        target.symlink_to(path.readlink())
        return
    try:
        status = path.stat()
    except OSError:
        return
    if stat.S_ISDIR(status.st_mode) and status.st_mode & 0o005 == 0o005 and not path.is_symlink():
        target.mkdir(exist_ok=True)
        target.chmod(0o755)
        for child in sorted(path.iterdir()):
            _copy(child, source, target_root)
    elif stat.S_ISREG(status.st_mode) and status.st_mode & 0o004 and status.st_size <= LARGEST_FILE:
        target.unlink(missing_ok=True)
        shutil.copyfile(path, target)
        target.chmod(0o644)


def _visible(link: Path, source: Path) -> bool:
    """Whether the link leads to something that exists inside too: below /usr, or the same directory of /etc."""
    destination = link.parent / link.readlink()
    return Path(os.path.normpath(destination)).parent == link.parent or destination.resolve().is_relative_to("/usr")
