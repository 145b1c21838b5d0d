"""``deerflow serve`` and ``deerflow worker`` as processes of their own, for tests that kill, starve or restart them."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx
import yaml
from tests.support.warm_python import WarmPython

COMMAND = [sys.executable, "-m", "deerflow_app.cli.main"]
GUARD = 90.0
"""Seconds after which something that must happen is taken for something that never will."""
PASSWORD = "correct horse battery"
_ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)")
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)

T = TypeVar("T")


def until(condition: Callable[[], T], explain: Callable[[], str] = str) -> T:
    """What ``condition`` returns as soon as that is true; fails with ``explain()`` after GUARD seconds."""
    deadline = time.monotonic() + GUARD
    while not (value := condition()):
        assert time.monotonic() < deadline, f"Waited in vain.\n{explain()}"
        time.sleep(0.05)
    return value


def _without_tool_image(config: str) -> str:
    """Else each new home would download the sandbox's Python packages."""
    values = yaml.safe_load(config) or {}
    values.setdefault("sandbox", {}).setdefault("tool_image", {"enabled": False})
    return yaml.safe_dump(values)


class DeerFlowProcess:
    """One command of DeerFlow, with a home of its own in ``root``. Its output is in ``log``, starts one after the other.

    Args:
        root: working directory; holds ``config.yaml``, ``home`` (the data) and the log.
        model_url: of the only model, e.g. ``ScriptedOpenAI.base_url``.
        config: the text of ``config.yaml``; None leaves the file as it is.
        environment: further variables.
        wrap: goes before the command line, e.g. ``("prlimit", "--fsize=1000000")``.
    """

    def __init__(
        self,
        root: Path,
        *arguments: str,
        model_url: str = "http://127.0.0.1:1/v1",
        config: str | None = "",
        environment: Mapping[str, str] | None = None,
        wrap: Sequence[str] = (),
        name: str = "deerflow",
    ) -> None:
        self.root = root
        self.home = root / "home"
        self.config = root / "config.yaml"
        self.log = root / f"{name}.log"
        self.arguments = list(arguments)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(root),
            "DEER_FLOW_HOME": str(self.home),
            "OPENAI_API_KEY": "secret-of-the-test",
            "OPENAI_BASE_URL": model_url,
            "NO_PROXY": "127.0.0.1",
            **(environment or {}),
        }
        self._wrap = list(wrap)
        self._process: subprocess.Popen[bytes] | None = None
        self._read_from = 0
        if config is not None:
            self.config.write_text(_without_tool_image(config))

    def start(self) -> Self:
        """Does not wait."""
        assert self._process is None
        self._read_from = self.log.stat().st_size if self.log.exists() else 0
        parent = os.getpid()

        def die_with_parent() -> None:
            if sys.platform == "linux":
                _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

        with self.log.open("ab") as log:
            start = subprocess.Popen if self._wrap else WarmPython
            self._process = start(
                [*self._wrap, *COMMAND, *self.arguments, "--config", str(self.config)],
                cwd=self.root,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,
            )
        return self

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    @property
    def output(self) -> str:
        """What it has written since its latest start."""
        with self.log.open("rb") as log:
            log.seek(self._read_from)
            return log.read().decode(errors="replace")

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def wait(self) -> int:
        """The exit code, when it has ended by itself."""
        assert self._process
        code = self._process.wait(GUARD)
        self._process = None
        return code

    def signal(self, number: signal.Signals) -> None:
        assert self._process
        self._process.send_signal(number)

    def terminate(self) -> int:
        """As an operator stops it; returns the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """``kill -9``. Does nothing if it has ended."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


class WorkerProcess(DeerFlowProcess):
    """``deerflow worker``."""

    def __init__(self, root: Path, *arguments: str, name: str = "worker", **options: Any) -> None:
        super().__init__(root, "worker", *arguments, name=name, **options)

    def start(self) -> Self:
        """Waits until it takes runs."""
        super().start()
        until(lambda: "takes runs" in self.output or not self.is_running, lambda: self.output)
        assert self.is_running, self.output
        return self


class GatewayProcess(DeerFlowProcess):
    """``deerflow serve`` on a port of its own, which it keeps over restarts. Without page and sign-in unless told otherwise."""

    def __init__(
        self, root: Path, *arguments: str, auth: bool = False, port: int = 0, name: str = "gateway", **options: Any
    ) -> None:
        self.port = port
        super().__init__(root, *self._line(arguments, auth), name=name, **options)

    def _line(self, arguments: Sequence[str], auth: bool) -> list[str]:
        return ["serve", "--no-ui", *(() if auth else ("--no-auth",)), "--port", str(self.port), *arguments]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Self:
        """Waits until it answers; fails with its output if it does not."""
        return self.launch().started()

    def launch(self) -> Self:
        """Does not wait."""
        return super().start()

    def started(self) -> Self:
        """Waits for what ``launch`` has begun."""
        until(self._listens, lambda: self.output)
        assert self.is_running, self.output
        return self

    def restart(self) -> Self:
        """At the same address, whether it is running or not."""
        self.kill()
        return self.start()

    def is_healthy(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health", timeout=5, trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False

    def client(self, **headers: str) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers=headers, timeout=GUARD, trust_env=False)

    def token(self, *scopes: str) -> str:
        """An API token of the administrator, who is made on the way. For a gateway with sign-in."""
        with self.client() as client:
            account = {"email": "admin@example.org", "password": PASSWORD}
            client.post("/api/v1/auth/initialize", json=account).raise_for_status()
            client.headers["x-csrf-token"] = client.cookies["csrf_token"]
            made = client.post("/api/v1/auth/tokens", json={"name": "test", "scopes": list(scopes)})
            return made.raise_for_status().json()["token"]

    def _listens(self) -> bool:
        if not self.is_running:
            return True
        if not self.port:
            found = _ADDRESS.search(self.output)
            if found is None:
                return False
            self.port = int(found[1])
            self.arguments[self.arguments.index("--port") + 1] = found[1]
        return self.is_healthy()


@contextmanager
def gateway_process(root: Path, *arguments: str, **options: Any) -> Iterator[GatewayProcess]:
    """A running gateway, killed in the end."""
    with GatewayProcess(root, *arguments, **options) as process:
        yield process.start()
