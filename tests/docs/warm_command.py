"""The command ``deerflow`` as shells find it, without the seconds that importing it takes."""

from __future__ import annotations

import json
import os
import socket
import socketserver
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.gateway_process import COMMAND
from tests.support.warm_python import WarmPython

SCRIPT = """#!{python} -IS
import json, os, socket, sys

with socket.socket(socket.AF_UNIX) as starter:
    starter.connect({address!r})
    socket.send_fds(starter, [json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()], [0, 1, 2])
    sys.exit(int(starter.recv(16)))
"""
LONGEST = 1 << 16
"""Bytes of a request: a command line with its environment."""


class _Start(socketserver.BaseRequestHandler):
    """Starts what the script asks for, with the script's own streams, and answers with the exit code."""

    def handle(self) -> None:
        request, streams, _, _ = socket.recv_fds(self.request, LONGEST, 3)
        line, cwd, environment = json.loads(request)
        stdin, stdout, stderr = streams
        process = WarmPython([*COMMAND, *line], cwd=cwd, env=environment, stdin=stdin, stdout=stdout, stderr=stderr)
        for stream in streams:
            os.close(stream)
        code = process.wait()
        self.request.sendall(str(code if code >= 0 else 128 - code).encode())


class _Starter(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


@contextmanager
def warm_command() -> Iterator[Path]:
    """Yield a folder for ``PATH``."""
    with tempfile.TemporaryDirectory() as folder, _Starter(f"{folder}/starter", _Start) as starter:
        script = Path(folder, "deerflow")
        script.write_text(SCRIPT.format(python=sys.executable, address=f"{folder}/starter"))
        script.chmod(0o755)
        threading.Thread(target=starter.serve_forever, daemon=True).start()
        yield Path(folder)
        starter.shutdown()
