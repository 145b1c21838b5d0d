"""The HTTP contract of sandboxes that are pods: ``GET /v1/sandbox``, ``POST /v1/shell/exec``, on port 8080.

Every request shows ``SANDBOX_API_KEY`` as ``X-AIO-API-Key``. Needs Python 3.9 and bash; what confines it is the pod.
"""

from __future__ import annotations

import hmac
import json
import os
import signal
import subprocess
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PORT = 8080
MAX_BODY, MAX_OUTPUT = 64 << 20, 16 << 20
"""Bytes of a request, and of what a command says that is passed on: its beginning and its end."""


class Handler(BaseHTTPRequestHandler):
    key = b""

    def do_GET(self) -> None:
        if self._admitted():
            self._answer(*((200, {"success": True}) if self.path == "/v1/sandbox" else NOT_FOUND))

    def do_POST(self) -> None:
        if not self._admitted():
            return
        if self.path != "/v1/shell/exec":
            return self._answer(*NOT_FOUND)
        try:
            size = int(self.headers["Content-Length"])
            if not 0 <= size <= MAX_BODY:
                return self._answer(413, {"success": False, "message": f"At most {MAX_BODY} bytes."})
            data = execute(json.loads(self.rfile.read(size)))
        except (KeyError, TypeError, ValueError) as error:
            return self._answer(422, {"success": False, "message": f"The request is not valid: {error!r}"})
        except OSError as error:
            return self._answer(200, {"success": False, "message": str(error)})
        self._answer(200, {"success": True, "message": "", "data": data})

    def _admitted(self) -> bool:
        admitted = hmac.compare_digest(self.headers.get("X-AIO-API-Key", "").encode(), self.key)
        if not admitted:
            self._answer(401, {"success": False, "message": "Show the key: X-AIO-API-Key."})
        return admitted

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: object) -> None:
        pass  # commands may hold secrets


NOT_FOUND = 404, {"success": False, "message": "There is nothing here."}


def execute(body: dict[str, Any]) -> dict[str, Any]:
    """Run a command with bash until it ends, or kill it when its time is over."""
    common = {"session_id": body.get("id") or "", "command": body["command"]}
    # A file and no pipe: what a command leaves behind in the background keeps the answer from no one.
    with tempfile.TemporaryFile() as output:
        run = subprocess.Popen(
            ["bash", "-c", body["command"]],
            cwd=body.get("exec_dir") or "/tmp",
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = run.wait(body.get("timeout") or 120)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()
            return {**common, "status": "hard_timeout", "output": _read(output), "exit_code": None}
        shown = _read(output)
    return {**common, "status": "completed", "output": shown, "exit_code": code if code >= 0 else 128 - code}


def _read(output: Any) -> str:
    size, half = output.seek(0, os.SEEK_END), MAX_OUTPUT // 2
    output.seek(0)
    if size <= MAX_OUTPUT:
        return output.read(MAX_OUTPUT).decode("utf-8", "replace")
    begin = output.read(half).decode("utf-8", "replace")
    output.seek(size - half)
    return f"{begin}\n[... {size - 2 * half} bytes omitted ...]\n{output.read(half).decode('utf-8', 'replace')}"


if __name__ == "__main__":
    # Out of the environment, which commands get.
    Handler.key = os.environ.pop("SANDBOX_API_KEY", "").encode()
    if not Handler.key:
        sys.exit("SANDBOX_API_KEY is not set: this would serve commands to everybody.")
    ThreadingHTTPServer.request_queue_size = 64
    ThreadingHTTPServer((sys.argv[1] if len(sys.argv) > 1 else "0.0.0.0", PORT), Handler).serve_forever()
