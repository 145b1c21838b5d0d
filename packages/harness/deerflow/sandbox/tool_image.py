"""The tool image: a Python environment that every sandbox sees read-only, built once per list of packages.

It lies at ``<tools root>/<hash>`` and appears there complete or not at all. ``bin`` comes before the system's on PATH
inside. It belongs to a Python that exists inside too, so to the system's, never to the one that runs this process.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Timer

from deerflow.sandbox.files import SandboxFiles
from deerflow.sandbox.interface import Mount, SandboxFileError, SandboxRuntimeError
from deerflow.sandbox.isolation.plan import HOME

PACKAGED_REQUIREMENTS = Path(__file__).with_name("tools.txt")
"""Made from ``requirements/tools.in``; it lies in the package so that an installed one has it too."""
PYTHONS = ("/usr/bin/python3", "/usr/local/bin/python3")
"""Both lie in /usr, which every sandbox sees."""
OLDEST = (3, 11)
LAYOUT = 2
"""Raise it when images of the same packages must be built anew."""
BUILD_TIMEOUT = 1800.0
MANIFEST = "tool-image.json"

Progress = Callable[[str], None]

_FONT_CACHE = "share/matplotlib-cache"
_FONT_SCRIPT = "import matplotlib.font_manager"
_PROBE_SCRIPT = "import sys; sys.stdout.write('%d.%d' % sys.version_info[:2])"
OTHER_ENVIRONMENTS = ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "UV_PYTHON", "UV_PROJECT")
_CAUSES = (
    (r"[Hh]ash mismatch", "a package is not the one that the requirements name: its hash differs"),
    (r"No space left|os error 28", "the disk is full"),
    (
        r"UnknownIssuer|certificate",
        "the certificate of the packages' server is of an issuer that is not known here. Where a company issues its own, set "
        "UV_SYSTEM_CERTS=1, so that those of the system count",
    ),
    (
        r"error sending request|dns error|[Cc]onnect|timed out|Failed to fetch|tls|network",
        "the packages could not be downloaded. Check the network, or set UV_DEFAULT_INDEX to a reachable index",
    ),
    (r"no wheels|building|--no-build", "a package has no ready-made build for this machine"),
    (r"hash", "the requirements must name every package with its version and hash"),
)


DECODER = "text_encodings.py"
"""The decision on a text's encoding, as programs in a sandbox import it: scripts of skills, and what an agent writes."""


@cache
def _libc() -> str:
    """Return the name of this Python's C library, which is found by reading its executable."""
    return platform.libc_ver()[0]


def _decoder() -> Path:
    found = find_spec("deerflow.security.encodings")
    assert found is not None and found.origin is not None
    return Path(found.origin)


class ToolImageError(SandboxRuntimeError):
    """The tool image cannot be built here. The message says what is missing."""


@dataclass(frozen=True, slots=True)
class ToolImageStatus:
    """Whether sandboxes have the image, and if not, what stands in the way of building it."""

    ready: bool
    path: Path
    missing: tuple[str, ...] = ()
    """Of ``uv``, ``python``, ``requirements``. Empty and not ready: it only has to be built."""
    reason: str = ""


class ToolImage:
    """One list of packages. Every method blocks; call it in a thread."""

    def __init__(
        self,
        tools_root: Path,
        requirements: Path | None = None,
        *,
        shipped: Path | None = None,
        pythons: Sequence[str] = PYTHONS,
        uv: str | None = None,
    ) -> None:
        """
        Args:
            tools_root: where images lie; any number of processes may share it.
            requirements: a requirements file with hashes; None: the one that comes with DeerFlow.
            shipped: where images lie that came with the program; nothing is written there.
            pythons: interpreters to choose from, the first suitable one is taken.
            uv: the uv executable; None: beside this Python, else on PATH.
        """
        self._root = tools_root.absolute()
        self._shipped = shipped
        self._requirements = requirements or PACKAGED_REQUIREMENTS
        self._pythons = tuple(pythons)
        self._uv = uv
        self._python: tuple[str, str] | None = None

    def path(self) -> Path:
        """Where the image is or will be."""
        python = self._find_python()
        version = python[1] if python else "none"
        with suppress(OSError):
            content = self._requirements.read_bytes() + b"\0" + _decoder().read_bytes()
            facts = f"{LAYOUT} {version} {platform.machine()} {_libc()}".encode()
            name = hashlib.sha256(facts + b"\0" + content).hexdigest()[:16]
            if self._shipped is not None and (self._shipped / name / MANIFEST).is_file():
                return self._shipped / name
            return self._root / name
        return self._root / "none"

    def status(self) -> ToolImageStatus:
        """Look, without building anything."""
        path = self.path()
        if (path / MANIFEST).is_file():
            return ToolImageStatus(True, path)
        lacks: dict[str, str] = {}
        if not self._requirements.is_file():
            lacks["requirements"] = f"the requirements file {self._requirements} does not exist"
        if self._find_python() is None:
            wanted = ".".join(map(str, OLDEST))
            lacks["python"] = f"none of {', '.join(self._pythons)} is Python {wanted} or newer; install python3"
        if self._find_uv() is None:
            lacks["uv"] = "uv was not found beside this Python or on PATH; install it with: pip install uv"
        reason = "; ".join(lacks.values()) or "it has not been built yet"
        return ToolImageStatus(False, path, tuple(lacks), f"The tool image is not there: {reason}.")

    def build(self, progress: Progress | None = None) -> Path:
        """Build the image unless it is there; wait if another process is building it. Takes seconds to minutes.

        Args:
            progress: called with lines of text.

        Raises:
            ToolImageError: it could not be built; nothing half-made is left.
        """
        report = progress or (lambda line: None)
        status = self.status()
        if status.ready:
            return status.path
        if status.missing:
            raise ToolImageError(status.reason)
        try:
            if not self._root.is_dir():
                self._root.parent.mkdir(0o711, parents=True, exist_ok=True)
                self._root.mkdir(exist_ok=True)
                self._root.chmod(0o755)
            with self._locked(status.path.name, report):
                if not (status.path / MANIFEST).is_file():
                    self._build(status.path, report)
        except OSError as error:
            raise ToolImageError(f"The tool image could not be built in {self._root}: {error.strerror}.") from error
        return status.path

    def seed_home(self, home: Path) -> None:
        """Put matplotlib's list of fonts into a thread's home, which saves its first chart a second or more.

        It must be a copy: matplotlib ignores a cache directory that it cannot write to.
        """
        with closing(SandboxFiles([Mount(home, HOME)])) as files:
            for source in (self.path() / _FONT_CACHE).glob("fontlist-*.json"):
                target = f"{HOME}/.cache/matplotlib/{source.name}"
                # The home belongs to the agent: whatever it did there is its own affair.
                with suppress(SandboxFileError):
                    if files.stat(target) is None:
                        files.write(target, source.read_bytes())

    # building -------------------------------------------------------------------------------------------------------

    @contextmanager
    def _locked(self, name: str, report: Progress) -> Iterator[None]:
        # The kernel gives the lock back when its holder dies.
        with (self._root / f".{name}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                report("Another process is building the tool image; waiting for it.")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _build(self, path: Path, report: Progress) -> None:
        prefix = f".{path.name}.building-"
        for abandoned in self._root.glob(prefix + "*"):
            shutil.rmtree(abandoned, ignore_errors=True)
        shutil.rmtree(path, ignore_errors=True)
        staging = Path(tempfile.mkdtemp(prefix=prefix, dir=self._root))
        try:
            staging.chmod(0o755)
            self._install(staging / "image", report)
            # uv made it relocatable: no file in it names the directory it was built in.
            (staging / "image").rename(path)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        report(f"The tool image is ready: {path}")

    def _install(self, image: Path, report: Progress) -> None:
        python, uv = self._find_python(), self._find_uv()
        assert python is not None and uv is not None
        report(f"Building the tool image for Python {python[1]} ({python[0]}).")
        self._run(
            [uv, "venv", "--no-project", "--relocatable", "--python", python[0], str(image)], image.parent, report
        )
        install = [uv, "pip", "install", "--python", str(image / "bin/python"), "--require-hashes", "--no-build"]
        # Copies: a hard link to uv's cache would let whoever can write here change the cache.
        install += ["--link-mode", "copy", "--compile-bytecode", "-r", str(self._requirements.absolute())]
        self._run(install, image.parent, report)
        packages = image / "lib" / f"python{python[1]}" / "site-packages"
        for needless in [path for name in ("tests", "bin") for path in packages.rglob(name) if path.is_dir()]:
            shutil.rmtree(needless, ignore_errors=True)
        for source in packages.rglob("*.c"):
            source.unlink()
        for program in (path for path in image.rglob("*") if path.is_file() and not path.is_symlink()):
            _strip(program)
        shutil.copyfile(_decoder(), packages / DECODER)
        (packages / DECODER).chmod(0o644)
        if (packages / "matplotlib").is_dir():
            report("Collecting fonts.")
            cache = {"MPLCONFIGDIR": str(image / _FONT_CACHE), "MPLBACKEND": "Agg"}
            self._run([str(image / "bin/python"), "-c", _FONT_SCRIPT], image.parent, report, cache)
        manifest = {"python": python[1], "layout": LAYOUT, "requirements": self._requirements.name}
        (image / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
        (image / MANIFEST).chmod(0o644)

    def _run(
        self, command: list[str], directory: Path, report: Progress, extra: Mapping[str, str] | None = None
    ) -> None:
        environment = {name: value for name, value in os.environ.items() if name not in OTHER_ENVIRONMENTS}
        environment |= {"UV_NO_PROGRESS": "1", "NO_COLOR": "1", **_without_cache(environment)} | dict(extra or {})
        lines: list[str] = []
        with subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            umask=0o022,
        ) as run:
            assert run.stdout is not None
            timer = Timer(BUILD_TIMEOUT, run.kill)
            timer.start()
            try:
                for line in run.stdout:
                    lines.append(line.rstrip())
                    report(line.rstrip())
                code = run.wait()
            finally:
                timer.cancel()
                run.kill()
        if code != 0:
            raise ToolImageError(_explained("\n".join(lines[-40:])))

    # what it takes --------------------------------------------------------------------------------------------------

    def _find_python(self) -> tuple[str, str] | None:
        """Executable and version as ``3.11``."""
        if self._python is None:
            self._python = next(filter(None, map(_suitable, self._pythons)), None)
        return self._python

    def _find_uv(self) -> str | None:
        if self._uv is not None:
            return self._uv if Path(self._uv).is_file() else None
        return find_uv()


def find_uv() -> str | None:
    """Return the uv beside this Python, or on PATH."""
    return shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")


def _strip(path: Path) -> None:
    """Cut off what no loader reads from a program or library: its symbols and debugging data, 50 MB in all."""
    with path.open("rb") as file:
        head = file.read(64)
        if head[:6] != b"\x7fELF\x02\x01" or len(head) < 64:
            return
        start, size, count = *struct.unpack_from("<Q", head, 32), *struct.unpack_from("<HH", head, 54)
        file.seek(start)
        table = file.read(size * count)
    segments = [struct.unpack_from("<QQQQ", table, at + 8) for at in range(0, len(table), size)]
    path.chmod(path.stat().st_mode | 0o200)
    with path.open("r+b") as file:
        file.seek(40)
        file.write(bytes(8))  # where the table of sections begins
        file.seek(58)
        file.write(bytes(6))
        file.truncate(max([start + len(table), *(offset + length for offset, _, _, length in segments)]))


def _suitable(python: str) -> tuple[str, str] | None:
    try:
        run = subprocess.run(
            [python, "-I", "-S", "-c", _PROBE_SCRIPT], capture_output=True, text=True, timeout=20, check=True, env={}
        )
        version = tuple(map(int, run.stdout.split(".")))
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return (python, run.stdout) if version >= OLDEST else None


def _without_cache(environ: Mapping[str, str]) -> dict[str, str]:
    """Keeps uv from its cache where that cannot be written, as in a home that is read-only."""
    cache = Path(environ.get("UV_CACHE_DIR") or environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().absolute()
    existing = next(path for path in (cache, *cache.parents) if path.exists())
    return {} if existing.is_dir() and os.access(existing, os.W_OK) else {"UV_NO_CACHE": "1"}


def uv_cause(output: str) -> str:
    """Return why uv could not install something, as far as its output tells."""
    return next((cause for pattern, cause in _CAUSES if re.search(pattern, output)), "uv failed")


def _explained(output: str) -> str:
    return f"The tool image could not be built: {uv_cause(output)}.\n{output.strip()}"
