"""A real HTTP server in a thread that answers each request with the next scripted reply, as server-sent events."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Event = Mapping[str, Any]


@dataclass(frozen=True)
class HttpError:
    """A refusal before any stream begins."""

    status: int
    body: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Events:
    """Events as they are; a string is sent as one raw line. ``cut`` closes the socket without ending the response."""

    events: tuple[Event | str, ...]
    cut: bool = False


@dataclass(frozen=True)
class Body:
    """A plain JSON answer."""

    body: Mapping[str, Any]


class ScriptedServer:
    """Scripted replies over real HTTP. ``requests``, ``headers`` and ``paths`` hold what came in."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.raw_requests: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self._replies: deque[Any] = deque()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def script(self, *replies: Any) -> None:
        self._replies.extend(replies)

    @property
    def pending(self) -> int:
        """Scripted replies that nobody asked for yet."""
        return len(self._replies)

    def next_reply(self, body: dict[str, Any]) -> HttpError | Events | Body:
        if not self._replies:
            return HttpError(418, {"error": {"type": "test", "message": "no reply was scripted for this request"}})
        return self.render(self._replies.popleft(), body)

    def render(self, reply: Any, body: dict[str, Any]) -> HttpError | Events | Body:
        return reply

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)


def _handler(server: ScriptedServer) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
            body = json.loads(raw or b"{}")
            server.raw_requests.append(raw)
            server.requests.append(body)
            server.headers.append({name.lower(): value for name, value in self.headers.items()})
            server.paths.append(self.path)
            reply = server.next_reply(body)
            if isinstance(reply, Events):
                self._send_events(reply)
            elif isinstance(reply, HttpError):
                self._send_json(reply.status, reply.body, reply.headers)
            else:
                self._send_json(200, reply.body, {})

        def _send_json(self, status: int, body: Mapping[str, Any], headers: Mapping[str, str]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"content-type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _send_events(self, reply: Events) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for line in _encode(reply.events):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                self.wfile.flush()
            if not reply.cut:
                self.wfile.write(b"0\r\n\r\n")
            self.close_connection = reply.cut

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def _encode(events: Iterable[Event | str]) -> Iterable[bytes]:
    for event in events:
        if isinstance(event, str):
            yield f"{event}\n\n".encode()
        else:
            yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
