"""Drive a running DeerFlow over its HTTP API: chat, upload, fetch files, status. Needs Python alone."""

from __future__ import annotations

import argparse
import json
import mimetypes
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TOKEN_HELP = "Make one with `deerflow token create NAME` or on the page under Settings, and put it into DEERFLOW_TOKEN."


class Failed(Exception):
    """The server or the network refused; says what to do."""


class DeerFlow:
    """One server. ``token``: of the person on whose behalf this runs."""

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        self.url, self.token, self.timeout = url.rstrip("/"), token, timeout

    def open(
        self,
        path: str,
        body: Any = None,
        *,
        method: str | None = None,
        data: bytes | None = None,
        kind: str = "application/json",
    ) -> Any:
        """The open answer of a request."""
        headers = {"Accept": "application/json, text/event-stream, */*"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            data = json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = kind
        request = urllib.request.Request(
            self.url + path, data=data, headers=headers, method=method or ("POST" if data is not None else "GET")
        )
        try:
            return urllib.request.urlopen(request, timeout=self.timeout)
        except urllib.error.HTTPError as error:
            text = error.read().decode("utf-8", "replace")
            try:
                answer = json.loads(text)
                text = str(answer.get("detail") or answer.get("message") or text)
            except (ValueError, AttributeError):
                pass
            more = f" {TOKEN_HELP}" if error.code == 401 else ""
            raise Failed(f"{error.code} from {path}: {text[:500]}{more}") from None
        except (urllib.error.URLError, OSError) as error:
            raise Failed(
                f"{self.url} does not answer ({getattr(error, 'reason', error)}). Is DeerFlow running? Set DEERFLOW_URL."
            ) from None

    def json(self, path: str, body: Any = None, **options: Any) -> Any:
        with self.open(path, body, **options) as answer:
            return json.loads(answer.read() or b"null")

    def events(self, answer: Any) -> Iterator[tuple[str, Any]]:
        """Server-sent events as (name, data)."""
        name, lines = "message", []
        for raw in answer:
            line = raw.decode("utf-8").rstrip("\r\n")
            if not line:
                if lines:
                    yield name, json.loads("\n".join(lines))
                name, lines = "message", []
            elif line.startswith("event:"):
                name = line[6:].strip()
            elif line.startswith("data:"):
                lines.append(line[5:].removeprefix(" "))


def text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(block if isinstance(block, str) else block.get("text", "") for block in content or [])


def quote(path: str) -> str:
    return urllib.parse.quote(path.lstrip("/"))


# actions ------------------------------------------------------------------------------------------------------------


def chat(server: DeerFlow, options: argparse.Namespace) -> int:
    thread = options.thread or str(uuid.uuid4())
    message = sys.stdin.read() if options.message == "-" else options.message
    for file in options.file:
        send(server, thread, file)
    context = {name: value for name, value in (("model_name", options.model), ("mode", options.mode)) if value}
    body = {
        "assistant_id": options.agent,
        "input": {"messages": [{"role": "user", "content": message}]},
        "if_not_exists": "create",
        "stream_mode": ["messages-tuple", "updates"],
        "context": context,
    }
    print(f"thread {thread}", file=sys.stderr)
    end: dict[str, Any] = {}
    with server.open(f"/api/threads/{thread}/runs/stream", body) as answer:
        fresh = True
        for name, data in server.events(answer):
            if name == "messages":
                piece = data[0]
                if piece.get("type") in ("AIMessageChunk", "ai"):
                    if text := text_of(piece.get("content")):
                        print(text, end="", flush=True)
                        fresh = False
                    for call in piece.get("tool_calls") or []:
                        if call.get("name") and not options.quiet:
                            print(f"{'' if fresh else chr(10)}[{call['name']}]", file=sys.stderr)
                            fresh = True
            elif name == "updates" and "__interrupt__" in data:
                print(
                    f"\nDeerFlow waits for a person: {json.dumps(data['__interrupt__'], ensure_ascii=False)[:1500]}\nAnswer on its page, or with: resume {thread} JSON",
                    file=sys.stderr,
                )
            elif name == "error":
                raise Failed(f"the run failed: {data.get('message', data)}")
            elif name == "end":
                end = data
    print()
    delivered = server.json(f"/api/threads/{thread}/artifacts")["artifacts"]
    if delivered:
        print("files: " + ", ".join(entry["path"] for entry in delivered), file=sys.stderr)
    if options.save and delivered:
        for entry in delivered:
            fetch_one(server, thread, entry["path"], options.save)
    return 0 if end.get("status", "success") == "success" else 4


def send(server: DeerFlow, thread: str, file: Path) -> None:
    if not file.is_file():
        raise Failed(f"{file} does not exist")
    mark = uuid.uuid4().hex
    name = file.name.replace('"', "%22")
    head = f'--{mark}\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\nContent-Type: {mimetypes.guess_type(file.name)[0] or "application/octet-stream"}\r\n\r\n'
    data = head.encode() + file.read_bytes() + f"\r\n--{mark}--\r\n".encode()
    server.json(f"/api/threads/{thread}/uploads", data=data, kind=f"multipart/form-data; boundary={mark}")
    print(f"uploaded {file.name}", file=sys.stderr)


def upload(server: DeerFlow, options: argparse.Namespace) -> int:
    for file in options.files:
        send(server, options.thread, file)
    return 0


def files(server: DeerFlow, options: argparse.Namespace) -> int:
    for entry in server.json(f"/api/threads/{options.thread}/artifacts")["artifacts"]:
        print(entry["path"])
    return 0


def fetch_one(server: DeerFlow, thread: str, path: str, into: Path) -> None:
    target = into / Path(path).name
    number = 1
    while target.exists():
        number += 1
        target = into / f"{Path(path).stem}-{number}{Path(path).suffix}"
    into.mkdir(parents=True, exist_ok=True)
    with server.open(f"/api/threads/{thread}/artifacts/{quote(path)}?download=true") as answer:
        target.write_bytes(answer.read())
    print(target)


def fetch(server: DeerFlow, options: argparse.Namespace) -> int:
    paths = options.paths or [
        entry["path"] for entry in server.json(f"/api/threads/{options.thread}/artifacts")["artifacts"]
    ]
    for path in paths:
        fetch_one(server, options.thread, path, options.into)
    return 0


def status(server: DeerFlow, options: argparse.Namespace) -> int:
    if options.thread:
        thread = server.json(f"/api/threads/{options.thread}")
        runs = server.json(f"/api/threads/{options.thread}/runs?limit=3")
        print(
            json.dumps(
                {
                    "thread": options.thread,
                    "status": thread["status"],
                    "title": (thread.get("values") or {}).get("title"),
                    "runs": [
                        {key: run.get(key) for key in ("run_id", "status", "stop_reason", "error")} for run in runs
                    ],
                },
                ensure_ascii=False,
                indent=1,
            )
        )
        return 0
    models = server.json("/api/models")
    models = models.get("models", models) if isinstance(models, dict) else models
    print(f"{server.url} answers. Models: {', '.join(model['name'] for model in models) or 'none'}")
    return 0


def threads(server: DeerFlow, options: argparse.Namespace) -> int:
    for thread in server.json(
        "/api/threads/search", {"limit": options.limit, "select": ["thread_id", "status", "updated_at", "values.title"]}
    ):
        title = (thread.get("values") or {}).get("title") or thread.get("values.title") or ""
        print(f"{thread['thread_id']}  {thread.get('status', '')}  {title}")
    return 0


def history(server: DeerFlow, options: argparse.Namespace) -> int:
    with server.open(f"/api/threads/{options.thread}/export?format=md") as answer:
        print(answer.read().decode("utf-8"))
    return 0


def stop(server: DeerFlow, options: argparse.Namespace) -> int:
    for run in server.json(f"/api/threads/{options.thread}/runs?limit=20"):
        if run["status"] in ("pending", "running"):
            server.open(f"/api/threads/{options.thread}/runs/{run['run_id']}/cancel", {}).close()
            print(f"stopped {run['run_id']}")
    return 0


def resume(server: DeerFlow, options: argparse.Namespace) -> int:
    values = server.json(
        f"/api/threads/{options.thread}/runs/wait",
        {"assistant_id": "lead_agent", "command": {"resume": json.loads(options.answer)}},
    )
    print(text_of(values["messages"][-1]["content"]) if values.get("messages") else json.dumps(values))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default=os.environ.get("DEERFLOW_URL", "http://localhost:2026"))
    parser.add_argument("--timeout", type=float, default=1800, help="seconds without a sign of life (%(default)s)")
    actions = parser.add_subparsers(required=True)

    def action(run: Any, about: str, *names: str) -> argparse.ArgumentParser:
        made = actions.add_parser(run.__name__, help=about, description=about)
        for name in names:
            made.add_argument(name)
        made.set_defaults(run=run)
        return made

    talk = action(chat, "send a message and print the answer as it comes", "message")
    talk.add_argument("--thread", help="go on in this thread; without it a new one")
    talk.add_argument("--file", type=Path, action="append", default=[], help="upload first; may be repeated")
    talk.add_argument("--model")
    talk.add_argument("--mode", choices=["flash", "thinking", "pro", "ultra"])
    talk.add_argument("--agent", default="lead_agent")
    talk.add_argument("--save", type=Path, metavar="FOLDER", help="fetch what was delivered")
    talk.add_argument("--quiet", action="store_true", help="do not name tools")
    action(upload, "upload files", "thread").add_argument("files", nargs="+", type=Path)
    action(files, "list what was delivered", "thread")
    getting = action(fetch, "fetch delivered files", "thread")
    getting.add_argument("paths", nargs="*")
    getting.add_argument("--into", type=Path, default=Path())
    action(status, "whether the server answers, or how a thread is").add_argument("thread", nargs="?")
    action(threads, "list threads").add_argument("--limit", type=int, default=20)
    action(history, "print a conversation as Markdown", "thread")
    action(stop, "stop what runs in a thread", "thread")
    action(resume, "answer what a run waits for", "thread", "answer")
    options = parser.parse_args()
    try:
        return options.run(DeerFlow(options.url, os.environ.get("DEERFLOW_TOKEN"), options.timeout), options)
    except (Failed, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    except (KeyboardInterrupt, BrokenPipeError):
        return 130


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
