"""Programs of the machine that sandboxes can use. Each has run in a sandbox before an agent reads that it is there."""

from __future__ import annotations

import asyncio
import json
import logging
import shlex
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

from deerflow.config.document import write_text
from deerflow.sandbox.auto import AutoSandboxProvider
from deerflow.sandbox.interface import SandboxError, SandboxProvider
from deerflow.sandbox.local import LocalSandboxProvider
from deerflow.sandbox.provider import IsolatingProvider
from deerflow.sandbox.temporary import temporary_sandbox

CHECKS = {
    "git": "git --version",
    "node": "node --version",
    "npm": "npm --version",
    "gcc": "gcc --version",
    "make": "make --version",
    "java": "java -version",
    "pandoc": "pandoc --version",
    "libreoffice": "soffice --headless --convert-to xlsx try.csv && test -s try.xlsx",
    "chromium": "chromium --headless --no-sandbox --disable-gpu --screenshot=$PWD/try.png file://$PWD/try.html && test -s try.png",
    "poppler (pdftotext, pdftoppm)": "pdftotext -v",
    "tesseract": "tesseract --version",
    "ghostscript (gs)": "gs --version",
    "latex (pdflatex)": "pdflatex --version",
    "R": "R --version",
    "ffmpeg": "ffmpeg -version",
    "sqlite3": "sqlite3 --version",
    "jq": "jq --version",
}
"""Commands that succeed if a program works, by its name in the prompt."""
SYSTEM = "/usr/local/bin:/usr/bin:/bin"
SECONDS = 60
"""For each program: the first start of LibreOffice takes ten on a busy machine."""
ENDS_WITHIN = 5
"""Seconds that a shutdown waits for a trial. Only isolated sandboxes interrupt it; another ends with the process."""
DELAY = 60
"""Seconds that a process has for its start before it tries out programs."""
OWNER = "programs"

logger = logging.getLogger(__name__)


class Programs:
    """The outcome of the checks on this machine, kept in a file until a program or the sandbox's settings change."""

    def __init__(self, provider: SandboxProvider, file: Path, settings: str = "") -> None:
        """
        Args:
            provider: whose sandboxes are meant. One that runs them elsewhere has no programs of this machine.
            file: where outcomes are kept.
            settings: what else they depend on.
        """
        self._provider, self._file, self._settings = provider, file, settings
        self.known: tuple[str, ...] | None = None
        """As :attr:`working`, if that was looked up before."""
        self._trial: Thread | None = None
        self._is_shut_down = Event()

    @property
    def working(self) -> tuple[str, ...]:
        """Return the programs that ran in a sandbox as they are now. Reads a file the first time."""
        if self.known is None:
            present = self._present()
            self.known = tuple(name for name, passed in self._outcomes(present).items() if passed)
        return self.known

    def under(self, provider: SandboxProvider, settings: str) -> Programs:
        """Return the same for another configuration, tried out too if this one was."""
        made = Programs(provider, self._file, settings)
        if self._trial is not None:
            made.try_out_aside()
        return made

    def try_out_aside(self) -> None:
        """Try out what was not tried yet, a little later, on a thread that does not keep the process alive."""

        def run() -> None:
            if not self._is_shut_down.wait(DELAY):
                asyncio.run(self.try_out())

        self._trial = Thread(target=run, name="programs", daemon=True)
        self._trial.start()

    async def shutdown(self) -> None:
        """Await the end of the trial for a while: the provider's shutdown has interrupted it."""
        self._is_shut_down.set()
        if self._trial is not None:
            await asyncio.to_thread(self._trial.join, ENDS_WITHIN)

    async def try_out(self) -> None:
        """Run the check of each program that is new here, in one sandbox."""
        present = await asyncio.to_thread(self._present)
        outcomes = await asyncio.to_thread(self._outcomes, present)
        if new := [name for name in present if name not in outcomes]:
            try:
                passed = await self._passing(new)
            except SandboxError as error:
                logger.info("Programs could not be tried out in a sandbox: %s", error)
                return
            outcomes |= {name: name in passed for name in new}
            await asyncio.to_thread(self._keep, {name: [present[name], outcomes[name]] for name in present})
        self.known = tuple(name for name in present if outcomes[name])

    async def _passing(self, names: list[str]) -> set[str]:
        checks = [
            f"timeout {SECONDS} bash -c {shlex.quote(CHECKS[name])} >/dev/null 2>&1 </dev/null && echo {shlex.quote(name)}"
            for name in names
        ]
        script = "\n".join(["echo 1 | tee try.csv > try.html", *checks, "true"])
        async with temporary_sandbox(self._provider, OWNER) as sandbox:
            return {*(await sandbox.exec(script, timeout=SECONDS * len(names))).output.splitlines()}

    # blocking -------------------------------------------------------------------------------------------------------

    def _present(self) -> dict[str, str]:
        """Return the installed programs, each with what tells this version from another."""
        if not isinstance(self._provider, AutoSandboxProvider | IsolatingProvider | LocalSandboxProvider):
            return {}
        found: dict[str, str] = {}
        for name, check in CHECKS.items():
            if path := shutil.which(check.partition(" ")[0], path=SYSTEM):
                status = Path(path).stat()
                found[name] = f"{path} {status.st_size} {status.st_mtime_ns} {check} {self._settings}"
        return found

    def _outcomes(self, present: dict[str, str]) -> dict[str, bool]:
        with suppress(OSError, ValueError, TypeError, AttributeError):
            kept = json.loads(self._file.read_text("utf-8"))
            return {name: kept[name][1] is True for name in present if kept.get(name, [""])[0] == present[name]}
        return {}

    def _keep(self, outcomes: Mapping[str, Sequence[object]]) -> None:
        with suppress(OSError):  # they are tried out again next time
            self._file.parent.mkdir(0o711, parents=True, exist_ok=True)
            write_text(self._file, json.dumps(outcomes, indent=1), 0o600)
