"""A server in raw JSON-RPC that does what real ones do beside the protocol: ``python odd_server.py [http PORT]``."""

from __future__ import annotations

import base64
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ARGUMENTS = ("self", "config", "runtime", "run_manager", "callbacks", "args", "kwargs", "state", "store", "a-b", "$x")
TOOLS: list[dict[str, Any]] = [
    {"name": "say", "inputSchema": {"type": "object", "properties": {name: {"type": "string"} for name in ARGUMENTS}}},
    {"name": "empty", "inputSchema": {}},
    {"name": "none"},
    {"name": "null", "inputSchema": None},
    {"name": "odd", "inputSchema": {"properties": [], "required": "x"}, "annotations": "none", "outputSchema": {}},
    {"description": "has no name"},
    {"name": "half", "inputSchema": {"type": "object"}},
    {"name": "file", "inputSchema": {"type": "object"}},
    {"name": "bare", "inputSchema": {"type": "object"}},
    {"name": "sound", "inputSchema": {"type": "object"}},
    {"name": "roots", "inputSchema": {"type": "object"}},
    {"name": "ask", "inputSchema": {"type": "object", "properties": {"url": {"type": "string"}}}},
]
REFUSALS = {
    "/401": (401, "application/json", '{"error":"invalid_token","error_description":"The API key is expired"}'),
    "/403": (403, "text/plain", "Access is only allowed from the office"),
    "/429": (429, "text/plain", "slow down"),
    "/500": (500, "text/html", "<html><body>the database is down</body></html>"),
    "/html": (200, "text/html", "<html>Login page</html>"),
}
"""Answers over HTTP to every request, by path; ``/calls`` answers only calls so, by 429."""


def result_of(method: str, params: dict[str, Any]) -> Any:
    if method == "initialize":
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "odd", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    name = params["name"]
    if name == "half":
        return {"content": [{"type": "text", "text": "half \ud83d emoji, whole \U0001f600, written \\ud83d"}]}
    if name in ("file", "bare"):
        uri = "report://2026/../Umsatz%20März.pdf" if name == "file" else "x:"
        blob = {"uri": uri, "mimeType": "application/pdf", "blob": base64.b64encode(b"%PDF-1.4 odd").decode()}
        return {"content": [{"type": "resource", "resource": blob}]}
    if name == "sound":
        return {"content": [{"type": "audio", "data": base64.b64encode(b"RIFF").decode(), "mimeType": "audio/wav"}]}
    return {"content": [{"type": "text", "text": json.dumps(params.get("arguments"))}]}


def answer(message: dict[str, Any]) -> str | None:
    if "method" not in message or "id" not in message:
        return None
    method = message["method"]
    if method not in ("initialize", "tools/list", "tools/call"):
        return json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}})
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result_of(method, message.get("params") or {})})


def asked(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the client's answer to a request of ours."""
    request = {"jsonrpc": "2.0", "id": "q1", "method": method, "params": params}
    sys.stdout.buffer.write(json.dumps(request).encode() + b"\n")
    sys.stdout.buffer.flush()
    return json.loads(sys.stdin.readline())["result"]


def stdio() -> None:
    out = sys.stdout.buffer
    for line in sys.stdin:
        message = json.loads(line)
        if (name := (message.get("params") or {}).get("name")) in ("ask", "roots"):
            url = message["params"].get("arguments", {}).get("url")
            params = {"mode": "url", "message": "Sign in", "url": url, "elicitationId": "e1"}
            said = asked("elicitation/create", params)["action"] if name == "ask" else str(asked("roots/list", {}))
            text = {"content": [{"type": "text", "text": said}]}
            out.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": text}).encode() + b"\n")
        elif (text := answer(message)) is not None:
            out.write(b"latin1 noise \xe4\n" + text.encode() + b"\n")
        out.flush()


class Http(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        text = answer(message)
        status, kind, body = REFUSALS.get(self.path) or (200 if text else 202, "application/json", text or "")
        if self.path == "/calls" and message.get("method") == "tools/call":
            status, kind, body = REFUSALS["/429"]
        if self.path == "/events" and text:
            kind, body = "text/event-stream", f"event: message\ndata: {text}\n\n"
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def do_GET(self) -> None:
        status, kind, body = REFUSALS.get(self.path) or (405, "text/plain", "")
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    do_DELETE = do_GET

    def log_message(self, format: str, *args: Any) -> None: ...


if __name__ == "__main__":
    if sys.argv[1:2] == ["http"]:
        ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Http).serve_forever()
    else:
        stdio()
