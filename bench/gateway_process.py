"""The gateway as a process of its own, as ``deerflow serve`` makes it, and what the kernel says about it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
import psutil

from bench.endpoint_process import ROOT

GUARD = 120.0
SERVE = ("serve", "--no-ui", "--port", "0")


@dataclass(frozen=True, slots=True)
class Usage:
    """Since the process began. ``own`` and ``children`` are CPU seconds, ``written`` and ``stored`` bytes.

    ``written`` is what was handed to ``write()`` but for the log: files, pipes, and with uvloop also sockets.
    ``stored`` is what the kernel wrote to the disk or will: in pages, each once however often it changes meanwhile.
    """

    own: float
    children: float
    written: int
    stored: int

    def since(self, earlier: Usage) -> Usage:
        return Usage(
            self.own - earlier.own,
            self.children - earlier.children,
            self.written - earlier.written,
            self.stored - earlier.stored,
        )


class GatewayProcess:
    """``with GatewayProcess(base_url, data) as gateway: ... gateway.url``

    Args:
        base_url: of the scripted endpoint.
        data: an empty directory: home, data directory and working directory of the gateway.
        probe: let :mod:`bench.gateway_probe` watch the event loop from within.
        profile: where the probe writes a cProfile of the event loop's thread.
        calls: where :mod:`bench.call_trace` writes the functions that a message passes.
        config: what stands in its ``config.yaml`` besides.
        auth: ask who is there.
    """

    def __init__(
        self,
        base_url: str,
        data: Path,
        *,
        probe: bool = False,
        profile: str | None = None,
        calls: Path | None = None,
        config: str = "",
        auth: bool = False,
    ) -> None:
        self._base_url = base_url
        self._data = data
        watched = "bench.gateway_probe" if probe or profile else "deerflow_app.cli.main"
        self._module = "bench.call_trace" if calls is not None else watched
        self._calls = calls
        self._profile = profile
        self._config = "sandbox: {tool_image: {enabled: false}}\n" + config
        self._command = SERVE if auth else (*SERVE, "--no-auth")
        self._log = data / "gateway.log"
        self._lags = data / "lags.json"
        self._process: subprocess.Popen[bytes] | None = None
        self._seen: psutil.Process | None = None
        self.url = ""
        self.started_in = 0.0
        """Seconds from the start of the process to its first healthy answer."""

    def __enter__(self) -> Self:
        (self._data / "config.yaml").write_text(self._config)
        environ = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "HOME": str(self._data),
            "DEER_FLOW_HOME": str(self._data / "home"),
            "OPENAI_API_KEY": "bench",
            "OPENAI_BASE_URL": self._base_url,
            "BENCH_LAGS": str(self._lags),
            "BENCH_PROFILE": self._profile or "",
            "BENCH_CALLS": str(self._calls or ""),
        }
        began = time.perf_counter()
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._module, *self._command],
                cwd=self._data,
                env=environ,
                stdout=log,
                stderr=log,
            )
        self._seen = psutil.Process(self._process.pid)
        self._until(lambda: (self._data / "home" / "server.json").exists())
        self.url = json.loads((self._data / "home" / "server.json").read_text())["url"]
        httpx.get(f"{self.url}/health", timeout=GUARD, trust_env=False).raise_for_status()
        self.started_in = time.perf_counter() - began
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(GUARD)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def usage(self) -> Usage:
        process = self._running()
        times = process.cpu_times()
        children = times.children_user + times.children_system
        for child in process.children(recursive=True):
            try:
                found = child.cpu_times()
            except psutil.NoSuchProcess:
                continue
            children += found.user + found.system + found.children_user + found.children_system
        counters = process.io_counters()
        return Usage(
            times.user + times.system,
            children,
            counters.write_chars - self._log.stat().st_size,  # pyright: ignore[reportAttributeAccessIssue]
            counters.write_bytes,
        )

    def resident(self) -> int:
        """Bytes of memory."""
        return self._running().memory_info().rss

    def database_bytes(self) -> int:
        """Size of the database with its journal."""
        return sum(path.stat().st_size for path in self._data.rglob("*.db*"))

    def lags(self) -> dict[str, list[float]]:
        """Seconds since this was last called, only with the probe: by which the event loop was ``late``, and CPU for which
        it was ``held`` by what was ready at one time. Other processes on the machine delay the former only."""
        self._lags.unlink(missing_ok=True)
        self._running().send_signal(signal.SIGUSR1)
        self._until(self._lags.exists)
        return json.loads(self._lags.read_text())

    def toggle_profile(self) -> None:
        """Begin to profile, or stop and write the profile."""
        if self._profile:
            self._running().send_signal(signal.SIGUSR2)

    def trace(self) -> None:
        """Note what the next message passes."""
        self._running().send_signal(signal.SIGUSR2)

    def _running(self) -> psutil.Process:
        assert self._seen is not None
        return self._seen

    def _until(self, condition: object) -> None:
        assert callable(condition) and self._process is not None
        until = time.monotonic() + GUARD
        while not condition():
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"The gateway does not do what it should:\n{self._log.read_text()[-3000:]}")
            time.sleep(0.01)
