"""From an archive, a folder or a git address to a skill: unpacked apart from the others, checked, and then moved in as a whole.

Folders and repositories are packed first, so that there is one way in.
"""

from __future__ import annotations

import io
import os
import stat
import subprocess
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from deerflow.errors import RequestError, TooLargeError
from deerflow.features.skills.parser import SKILL_FILE, InvalidSkillError, checked, read_skill_file
from deerflow.security.archives import READABLE, TAIL_BYTES, check_directory

MAX_ARCHIVE_BYTES = 30 << 20
MAX_FILES = 5000
MAX_BYTES = 256 << 20
MAX_RATIO, RATIO_FROM = 200, 10 << 20
MAX_PATH_BYTES, MAX_NAME_BYTES = 1000, 200
GIT_SECONDS = 120
GIT_PROTOCOLS = "https"
IGNORED = frozenset({"__MACOSX", ".DS_Store", ".git", "__pycache__"})


@contextmanager
def unpacked(data: bytes, quarantine: Path) -> Iterator[tuple[str, Path]]:
    """Name and folder of the skill in an archive, in a directory below ``quarantine`` that is gone at the end. Blocks.

    Raises RequestError or TooLargeError, which say what is wrong with the archive.
    """
    with tempfile.TemporaryDirectory(prefix=".incoming-", dir=quarantine) as place:
        folder = Path(place, "skill")
        folder.mkdir()
        try:
            _unpack(data, folder)
            root = _root(folder)
            front = checked(read_skill_file(root / SKILL_FILE))
        except InvalidSkillError as error:
            raise RequestError(f"Invalid skill: {error}", code="invalid_skill", why=str(error)) from None
        yield front["name"], root


def pack(folder: Path) -> bytes:
    """A folder as an archive. Blocks. Raises FileNotFoundError, RequestError, TooLargeError."""
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder}.")
    out, size, count = io.BytesIO(), 0, 0
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, names, files in os.walk(folder):
            names[:] = sorted(name for name in names if name not in IGNORED)
            for name in (*names, *files):
                file = Path(path, name)
                status = file.lstat()
                if name in IGNORED or stat.S_ISDIR(status.st_mode):
                    continue
                if not stat.S_ISREG(status.st_mode):
                    raise _invalid(f"{file.relative_to(folder)} is a link or a device.")
                size, count = size + status.st_size, count + 1
                _check_size(size, count)
                archive.write(file, file.relative_to(folder))
    return out.getvalue()


def clone(address: str, quarantine: Path, resolve: str = "") -> bytes:
    """What lies at a git address, ``https://host/repository`` or ``…#folder/in/it``, as an archive. Blocks.

    Args:
        resolve: ``host:port:address`` to connect to, whatever the host's name leads to by now. Redirects are not followed.
    """
    url, _, inner = address.partition("#")
    with tempfile.TemporaryDirectory(prefix=".incoming-", dir=quarantine) as place:
        # The shell limits each file; nothing of this machine's configuration, hooks or credentials takes part.
        settings = ["core.hooksPath=/dev/null", "http.followRedirects=false", f"http.curloptResolve={resolve}"]
        given = [part for setting in settings for part in ("-c", setting)]
        command = ["sh", "-c", 'ulimit -f 524288; exec git "$@"', "git", *given, "clone"]
        options = ["--quiet", "--depth=1", "--single-branch", "--no-tags", "--", url, f"{place}/repository"]
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": place,
            "GIT_ALLOW_PROTOCOL": GIT_PROTOCOLS,
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_LFS_SKIP_SMUDGE": "1",
        }
        try:
            subprocess.run([*command, *options], env=environment, check=True, capture_output=True, timeout=GIT_SECONDS)
        except FileNotFoundError:
            raise RequestError("git is not installed here.") from None
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            raise RequestError(f"{url} cannot be cloned: is it the https address of a git repository?") from None
        repository = Path(place, "repository")
        folder = repository / inner if inner else repository
        if not folder.is_dir() or not folder.resolve().is_relative_to(repository.resolve()):
            raise RequestError(f"The repository has no folder {inner!r}.")
        if not (folder / SKILL_FILE).is_file():
            found = sorted(file.parent.relative_to(repository).as_posix() for file in repository.rglob(SKILL_FILE))
            raise RequestError(f"Name the skill's folder: {url}#FOLDER. There are: {', '.join(found) or 'none'}.")
        return pack(folder)


def _unpack(data: bytes, folder: Path) -> None:
    if len(data) > MAX_ARCHIVE_BYTES:
        raise TooLargeError(f"An archive of a skill may have {MAX_ARCHIVE_BYTES >> 20} MB.")
    check_directory(data[-TAIL_BYTES:])
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            for info in infos:
                info.filename = info.filename.replace("\\", "/")  # as archives made on Windows have it
            _check_names(infos)
            left = min(MAX_BYTES, max(RATIO_FROM, len(data) * MAX_RATIO))
            for info in infos:
                left -= _extract(archive, info, folder, left)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise _invalid(f"the archive is damaged ({error}).") from None
    except OSError as error:
        raise _invalid(f"the archive cannot be unpacked ({error.strerror}).") from None


def _check_names(infos: Iterable[zipfile.ZipInfo]) -> None:
    seen: set[str] = set()
    for count, info in enumerate(infos, 1):
        name, parts = info.filename, PurePosixPath(info.filename).parts
        shown = repr(name[:100])
        _check_size(0, count)
        if not parts or name.startswith("/") or ".." in parts or ":" in parts[0]:
            raise _invalid(f"the path {shown} is unsafe.")
        if any(unicodedata.category(char) in ("Cc", "Cs") for char in name):
            raise _invalid(f"the path {shown} holds control characters.")
        if len(name.encode()) > MAX_PATH_BYTES or max(len(part.encode()) for part in parts) > MAX_NAME_BYTES:
            raise _invalid(f"the path {shown} is too long.")
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise _invalid(f"{shown} is a link or a device.")
        if info.flag_bits & 1 or info.compress_type not in READABLE:
            raise _invalid(f"{shown} is encrypted or packed in an unusual way.")
        key = unicodedata.normalize("NFC", "/".join(parts)).casefold()
        if key in seen:
            raise _invalid(f"{shown} is there twice.")
        seen.add(key)


def _extract(archive: zipfile.ZipFile, info: zipfile.ZipInfo, folder: Path, left: int) -> int:
    """Write one entry of at most ``left`` bytes. Returns its size."""
    path = folder / info.filename
    if IGNORED.intersection(PurePosixPath(info.filename).parts):
        return 0
    if info.is_dir():
        path.mkdir(parents=True, exist_ok=True)
        return 0
    path.parent.mkdir(parents=True, exist_ok=True)
    size = 0
    with archive.open(info) as source, path.open("xb") as target:
        while piece := source.read(1 << 16):
            size += len(piece)
            if size > left:
                raise TooLargeError("The archive unpacks to too much.", code="too_large")
            target.write(piece)
    path.chmod(0o755 if info.external_attr >> 16 & 0o111 else 0o644)
    return size


def _root(folder: Path) -> Path:
    """The archive's only directory, else the archive itself; with exactly one SKILL.md, at its top."""
    entries = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
    if not entries:
        raise InvalidSkillError("the archive is empty.")
    root = entries[0] if len(entries) == 1 and entries[0].is_dir() else folder
    for directory in (root, *root.rglob("*")):
        if directory.is_dir():
            directory.chmod(0o755)
    found = [file for file in folder.rglob("*") if file.name.casefold() == SKILL_FILE.casefold()]
    if root / SKILL_FILE not in found:
        raise InvalidSkillError(f"there is no {SKILL_FILE} at its top.")
    if len(found) > 1:
        other = next(file for file in found if file != root / SKILL_FILE)
        raise InvalidSkillError(f"there is another {SKILL_FILE} in it: {other.relative_to(folder)}.")
    return root


def _check_size(size: int, count: int) -> None:
    if count > MAX_FILES:
        raise TooLargeError(f"A skill may have {MAX_FILES} files.")
    if size > MAX_BYTES:
        raise TooLargeError(f"A skill may have {MAX_BYTES >> 20} MB.")


def _invalid(why: str) -> RequestError:
    return RequestError(f"Invalid skill: {why}", code="invalid_skill", why=why)
