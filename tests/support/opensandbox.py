"""A service of OpenSandbox for tests: its lifecycle API over real HTTP, and sandboxes in bubblewrap with the daemon of ``execd.py``.

Endpoints lead through it to the daemon's socket, so a sandbox with a closed network has none at all.
"""

from __future__ import annotations

import http.client
import json
import re
import secrets
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

EXECD = Path(__file__).with_name("execd.py")
KEY = "opensandbox-key"
ROUTE = re.compile(r"/v1/sandboxes(?:/(?P<id>[^/]+)(?:/(?P<action>renew-expiration|endpoints/44772))?)?")
ENDPOINT = re.compile(r"/sandboxes/(?P<id>[^/]+)/port/44772(?P<path>/.*)")
FIELDS = {"image", "entrypoint", "timeout", "resourceLimits", "env", "metadata", "networkPolicy", "volumes"}
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class OpenSandboxService:
    """Public attributes are set by tests to make it behave badly."""

    def __init__(self, directory: Path, volumes: dict[str, Path]) -> None:
        self.url = ""
        self.bodies: list[dict[str, Any]] = []
        """Of the sandboxes that were asked for."""
        self.pending = 0
        """Looks at a sandbox before it runs."""
        self.failure = ""
        """Why no sandbox starts."""
        self.renewed: list[str] = []
        self.expires: dict[str, datetime] = {}
        self._directory, self._volumes = directory, volumes
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        # A sandbox dies with the thread that started it, and that of a request ends with its answer.
        self._starter = ThreadPoolExecutor(1)

    @property
    def up(self) -> list[str]:
        return [name for name, process in self._running.items() if process.poll() is None]

    def end(self, name: str) -> None:
        process = self._running.pop(name)
        process.kill()
        process.wait()

    def close(self) -> None:
        for name in [*self._running]:
            self.end(name)
        self._starter.shutdown()

    def socket(self, name: str) -> Path:
        return self._directory / name / "execd.sock"

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any] | None]:
        found = ROUTE.fullmatch(urlsplit(path).path)
        if found is None:
            return 404, refusal("NOT_FOUND")
        name, action = found["id"] or "", found["action"] or ""
        if not name:
            return (202, self._create(body)) if method == "POST" else (200, {"items": [], "pagination": {}})
        if name not in self.up:
            return 404, refusal("NOT_FOUND")
        if method == "DELETE":
            self.end(name)
            return 204, None
        if action == "renew-expiration":
            until = datetime.strptime(body["expiresAt"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
            if until <= datetime.now(UTC):
                return 400, refusal("INVALID_REQUEST")
            self.renewed.append(name)
            self.expires[name] = until
            return 200, {"expiresAt": body["expiresAt"]}
        if action:
            address = f"{urlsplit(self.url).netloc}/sandboxes/{name}/port/44772"
            return 200, {"endpoint": address, "headers": {"X-EXECD-ACCESS-TOKEN": name[::-1]}}
        return 200, self._shown(name)

    def _create(self, body: dict[str, Any]) -> dict[str, Any]:
        assert body.keys() <= FIELDS and {"image", "entrypoint", "resourceLimits"} <= body.keys(), body
        assert body["timeout"] >= 60 and body["entrypoint"], body
        assert all(
            isinstance(value, str) for one in ("env", "resourceLimits", "metadata") for value in body[one].values()
        )
        self.bodies.append(body)
        name = f"sbx-{secrets.token_hex(6)}"
        self.socket(name).parent.mkdir(mode=0o755)
        start = partial(subprocess.Popen, self._command(name, body), stdin=subprocess.DEVNULL)
        self._running[name] = self._starter.submit(start).result()
        return self._shown(name)

    def _shown(self, name: str) -> dict[str, Any]:
        state = "Running"
        if self.failure or self.pending:
            state, self.pending = ("Failed" if self.failure else "Pending"), max(0, self.pending - 1)
        status = {"state": state, "reason": "runtime_error" if self.failure else "", "message": self.failure}
        return {"id": name, "status": status, "createdAt": "2026-01-01T00:00:00Z", "entrypoint": ["tail"]}

    def _command(self, name: str, body: dict[str, Any]) -> list[str]:
        command = "bwrap --die-with-parent --unshare-pid --unshare-ipc --ro-bind / / --dev /dev --proc /proc".split()
        for path in ("/mnt", "/home", "/opt", "/var/tmp"):
            command += ["--tmpfs", path]
        command += ["--ro-bind", str(EXECD), "/opt/execd.py", "--bind", str(self.socket(name).parent), "/opt/run"]
        for volume in body["volumes"]:
            assert volume.keys() <= {"name", "host", "pvc", "mountPath", "readOnly", "subPath"}, volume
            assert LABEL.fullmatch(volume["name"]) and ("host" in volume) != ("pvc" in volume), volume
            source = Path(volume["host"]["path"]) if "host" in volume else self._volumes[volume["pvc"]["claimName"]]
            source = source / volume.get("subPath", "")
            assert source.is_dir() and ".." not in source.parts, source
            command += ["--ro-bind" if volume["readOnly"] else "--bind", str(source), volume["mountPath"]]
        # Without a policy, or with an empty one, everything is allowed.
        policy = body.get("networkPolicy") or {"defaultAction": "allow"}
        if policy.get("defaultAction", "deny") == "deny" and not policy.get("egress"):
            command.append("--unshare-net")
        command += ["--clearenv", "--setenv", "PATH", "/usr/bin:/bin"]
        for variable, value in body["env"].items():
            command += ["--setenv", variable, value]
        return [*command, "--chdir", "/", "python3", "-I", "-S", "/opt/execd.py", "/opt/run/execd.sock"]


def refusal(code: str) -> dict[str, Any]:
    return {"code": code, "message": f"{code}, for a test"}


class ToSocket(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("execd")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))


def _handler(service: OpenSandboxService) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"] or 0))
            if found := ENDPOINT.fullmatch(self.path):
                return self._forward(found["id"], found["path"], data)
            if self.headers["OPEN-SANDBOX-API-KEY"] != KEY:
                return self._answer(401, refusal("UNAUTHORIZED"))
            self._answer(*service.answer(self.command, self.path, json.loads(data or b"{}")))

        def _answer(self, status: int, body: dict[str, Any] | None) -> None:
            data = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _forward(self, name: str, path: str, data: bytes) -> None:
            if self.headers["X-EXECD-ACCESS-TOKEN"] != name[::-1]:
                return self._answer(401, refusal("UNAUTHORIZED"))
            there = ToSocket(service.socket(name))
            with suppress(OSError):  # either side is gone: so is the connection
                try:
                    there.request(self.command, path, data, {"Content-Length": str(len(data))})
                    answer = there.getresponse()
                except (OSError, http.client.HTTPException):
                    if name in service.up:
                        self._answer(502, refusal("BAD_GATEWAY"))
                    return
                self.send_response(answer.status)
                self.end_headers()
                while part := answer.read1(1 << 16):
                    self.wfile.write(part)

        do_GET = do_POST = do_DELETE = _handle

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


@contextmanager
def opensandbox(volumes: dict[str, Path] | None = None) -> Iterator[OpenSandboxService]:
    """Serve on a port of this machine. ``volumes``: directories that are volumes, by their names."""
    directory = Path(tempfile.mkdtemp(prefix="osb-", dir="/var/tmp"))
    service = OpenSandboxService(directory, volumes or {})
    ThreadingHTTPServer.request_queue_size = 64
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(service)) as server:
        service.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield service
        service.close()
        server.shutdown()
        thread.join()
    shutil.rmtree(directory, ignore_errors=True)
