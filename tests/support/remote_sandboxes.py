"""A provisioner and the pods that it makes, in one server: each pod is a directory, whose commands run here with bash."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TOKEN, KEY = "provisioner-token", "pod-key"
DIRECTORIES = "/mnt/user-data"


class RemoteSandboxes:
    """What was asked for; ``directories`` is where this machine keeps what a pod sees below /mnt/user-data."""

    def __init__(self, directories: Path, temporary: Path) -> None:
        self.directories, self.temporary = directories, temporary
        self.url = ""
        self.pods: dict[str, str] = {}
        self.removed: list[str] = []
        self.not_ready = 0
        """Answers that say that the pod is not up yet."""

    def inside(self, text: str) -> str:
        places = {DIRECTORIES: str(self.directories), "/tmp/": f"{self.temporary}/"}
        return re.sub("|".join(places), lambda found: places[found[0]], text)

    def outside(self, text: str) -> str:
        return text.replace(str(self.directories), DIRECTORIES).replace(f"{self.temporary}/", "/tmp/")

    def answer(self, method: str, path: str, headers: Any, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path == "/health":
            return 200, {"status": "healthy"}
        if path.startswith("/api/sandboxes"):
            if headers["Authorization"] != f"Bearer {TOKEN}":
                return 401, {"detail": "unauthorized"}
            return self._provision(method, path, body)
        if headers["X-AIO-API-Key"] != KEY:
            return 401, {"success": False, "message": "unauthorized"}
        pod, _, route = path.removeprefix("/pods/").partition("/")
        if pod not in self.pods:
            return 404, {"success": False, "message": "no such pod"}
        return self._route(route, body)

    def _provision(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if method == "DELETE":
            pod = path.rpartition("/")[2]
            self.removed.append(pod)
            return (200, {}) if self.pods.pop(pod, None) else (404, {"detail": "not found"})
        pod = body["sandbox_id"]
        self.pods[pod] = body["thread_id"]
        return 200, {"sandbox_id": pod, "sandbox_url": f"{self.url}/pods/{pod}", "status": "Running", "api_key": KEY}

    def _route(self, route: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if route == "v1/sandbox":
            self.not_ready -= 1
            return (200, {"success": True}) if self.not_ready < 0 else (503, {"success": False})
        if route == "v1/file/write":
            Path(self.inside(body["file"])).write_text(self.inside(body["content"]))
            return 200, {"success": True, "data": {"file": body["file"]}}
        return 200, {"success": True, "message": "Command executed", "data": self._execute(body)}

    def _execute(self, body: dict[str, Any]) -> dict[str, Any]:
        common = {"session_id": body["id"], "command": body["command"]}
        with subprocess.Popen(
            ["bash", "-c", self.inside(body["command"])], cwd=self.temporary, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as run:  # fmt: skip
            try:
                output, _ = run.communicate(timeout=body["timeout"])
            except subprocess.TimeoutExpired:
                os.killpg(run.pid, signal.SIGKILL)
                return common | {"status": "hard_timeout", "output": "", "exit_code": None}
        code = run.returncode if run.returncode >= 0 else 128 - run.returncode
        return common | {"status": "completed", "output": self.outside(output), "exit_code": code}


@contextmanager
def remote_sandboxes(directories: Path, temporary: Path) -> Iterator[RemoteSandboxes]:
    """Serve them on a port of this machine."""
    double = RemoteSandboxes(directories, temporary)

    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or "{}")
            status, value = double.answer(self.command, self.path, self.headers, body)
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = _handle

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        double.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield double
        server.shutdown()
        thread.join()
