"""The scripted endpoint as a process of its own, so that its CPU and memory do not count."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

ROOT = Path(__file__).parent.parent


class EndpointProcess:
    """``with EndpointProcess() as endpoint: ... endpoint.base_url``"""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self.base_url = ""

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "bench.scripted_openai", "--port", "0"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if " on " not in line:
            raise RuntimeError("The scripted endpoint did not start; its error stands above.")
        self.base_url = line.split(" on ")[1].split(" pid")[0]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def statistics(self) -> dict[str, Any]:
        """Bytes and prefix stability of the requests so far, by kind."""
        return self._get("stats")["by"]

    def log(self) -> list[dict[str, Any]]:
        return self._get("log")

    def reset(self) -> None:
        httpx.post(self._control("reset"), timeout=60).raise_for_status()

    def _get(self, path: str) -> Any:
        response = httpx.get(self._control(path), timeout=60)
        response.raise_for_status()
        return response.json()

    def _control(self, path: str) -> str:
        return f"{self.base_url.removesuffix('/v1')}/{path}"
