"""A real HTTP server that takes what an OTLP collector, Langfuse and LangSmith take, and keeps it."""

from __future__ import annotations

import copy
import gzip
import json
import threading
import time
from base64 import b64encode
from dataclasses import dataclass, field
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Span:
    name: str
    kind: int
    trace_id: str
    span_id: str
    parent_id: str
    start: int
    end: int
    failed: bool
    attributes: dict[str, Any]
    service: str


@dataclass
class Collector:
    """``hang``: requests get no answer. ``status``: what they get."""

    hang: bool = False
    status: int = 200
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    def __enter__(self) -> Self:
        collector = self
        self._end = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = self.headers.get("content-length")
                body = self.rfile.read(int(length)) if length else _chunks(self.rfile)
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                collector.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                if collector.hang:
                    collector._end.wait()
                self.send_response(collector.status)
                self.send_header("content-length", "0")
                self.end_headers()

            do_PATCH = do_POST

            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._server.shutdown()
        self._server.server_close()

    def spans(self) -> list[Span]:
        return [span for path, _, body in self.requests if path.endswith("/v1/traces") for span in _spans(body)]

    def langsmith_runs(self) -> list[dict[str, Any]]:
        """What LangSmith was sent: each run as it began."""
        found: dict[str, dict[str, Any]] = {}
        for path, headers, body in self.requests:
            if not path.endswith("/runs/multipart"):
                continue
            head = f"content-type: {headers['content-type']}\r\n\r\n".encode()
            for part in message_from_bytes(head + body).get_payload():
                names = str(part.get_param("name", header="content-disposition")).split(".")
                if names[0] not in ("post", "patch"):
                    continue
                value = json.loads(part.get_payload(decode=True))
                run = found.setdefault(names[1], {})
                run.update({names[2]: value} if len(names) > 2 else value)
        return list(found.values())

    def until(self, count: int, seconds: float = 20) -> list[Span]:
        """The spans, as soon as there are so many."""
        until = time.monotonic() + seconds
        while len(self.spans()) < count and time.monotonic() < until:
            time.sleep(0.02)
        return self.spans()


def _chunks(stream: Any) -> bytes:
    body = b""
    while size := int(stream.readline().strip() or b"0", 16):
        body += stream.read(size)
        stream.readline()
    stream.readline()
    return body


def spans_of_json(payload: dict[str, Any]) -> list[Span]:
    """Of OTLP's JSON, whose ids are hexadecimal where JSON of protocol buffers has base64. What no collector takes raises."""
    payload = copy.deepcopy(payload)
    for resource in payload["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name in span.keys() & {"traceId", "spanId", "parentSpanId"}:
                    span[name] = b64encode(bytes.fromhex(span[name])).decode()
    return _spans(ParseDict(payload, ExportTraceServiceRequest()).SerializeToString())


def _spans(body: bytes) -> list[Span]:
    found = []
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = _attributes(resource.resource.attributes).get("service.name", "")
        for scope in resource.scope_spans:
            for span in scope.spans:
                found.append(
                    Span(
                        span.name,
                        span.kind,
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                        span.start_time_unix_nano,
                        span.end_time_unix_nano,
                        span.status.code == 2,
                        _attributes(span.attributes),
                        service,
                    )
                )
    return found


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return [_value(item) for item in value.array_value.values] if kind == "array_value" else getattr(value, kind)
