"""The daemon in a sandbox of OpenSandbox, as far as its session API goes, on the Unix socket that is named: for ``python3``.

Its sessions are shells that wait for input, its output comes line by line without line ends, as that of the real one.
"""

from __future__ import annotations

import base64
import json
import os
import queue
import re
import secrets
import signal
import socketserver
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler
from typing import Any

SESSIONS: dict[str, Session] = {}
ROUTE = re.compile(r"/session(?:/(?P<id>[^/]+)(?P<run>/run)?)?")


class Session:
    def __init__(self) -> None:
        self.shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._lines = queue.Queue[bytes | None]()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.shell.stdout is not None
        for line in self.shell.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def run(self, command: str, timeout: float | None):
        """Yield events."""
        mark, until = secrets.token_hex(8).encode(), time.monotonic() + (timeout or 1e9)
        assert self.shell.stdin is not None
        given = base64.b64encode(command.encode())
        self.shell.stdin.write(b'eval "$(base64 -d <<<%s)"; printf "\\n%s %%s\\n" $?\n' % (given, mark))
        self.shell.stdin.flush()
        yield {"type": "init", "text": mark.decode()}
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                self.end()
                yield {"type": "error", "error": {"ename": "TimeoutError", "evalue": "timeout"}}
                return
            if line is None:
                yield {"type": "error", "error": {"ename": "CommandExecError", "evalue": "137"}}
                return
            if line.startswith(mark):
                code = line.split()[1].decode()
                if code != "0":
                    yield {"type": "error", "error": {"ename": "CommandExecError", "evalue": code}}
                else:
                    yield {"type": "execution_complete", "execution_time": 1}
                return
            yield {"type": "stdout", "text": line.rstrip(b"\n").decode("utf-8", "replace") or "\n"}

    def end(self) -> None:
        try:
            os.killpg(self.shell.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Handler(BaseHTTPRequestHandler):
    def address_string(self) -> str:
        return "unix"

    def _handle(self) -> None:
        found, body = ROUTE.fullmatch(self.path), self.rfile.read(int(self.headers["Content-Length"] or 0))
        session = SESSIONS.get(found["id"] or "") if found else None
        if self.path == "/ping":
            self._answer(200, {})
        elif found is None or (found["id"] and session is None):
            self._answer(404 if self.command == "DELETE" else 400, {"code": "NOT_FOUND", "message": "no such session"})
        elif session is None:
            name = f"session-{secrets.token_hex(4)}"
            SESSIONS[name] = Session()
            self._answer(200, {"session_id": name})
        elif self.command == "DELETE":
            SESSIONS.pop(found["id"]).end()
            self._answer(200, {})
        else:
            self._stream(session, json.loads(body))

    def _stream(self, session: Session, given: dict[str, Any]) -> None:
        assert given.keys() <= {"command", "cwd", "timeout"}, given
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        try:
            for event in session.run(given["command"], given.get("timeout", 0) / 1000):
                self.wfile.write(json.dumps(event).encode() + b"\n\n")
        except OSError:
            pass  # nobody listens any more

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_DELETE = _handle

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    Server(sys.argv[1], Handler).serve_forever()
