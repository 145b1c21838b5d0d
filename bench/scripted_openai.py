"""A real HTTP server that speaks OpenAI's chat completions and answers from a script.

In tests it runs in a thread::

    with ScriptedOpenAI() as endpoint:
        endpoint.script(ToolCalls(("bash", {"command": "ls"})), Text("done"))
        ...  # any client with base_url=endpoint.base_url
        assert len(endpoint.requests) == 2

For benchmarks it is a process of its own: ``python -m bench.scripted_openai --port 9100 [--log FILE]``.

==============================  ==================================================================
``POST /v1/chat/completions``   streaming and not; queued replies first, then scenario markers
``POST /v1/audio/transcriptions`` what :attr:`ScriptedOpenAI.speech` holds, for a form with a file and a model
``GET /v1/models``              the models' list
``GET /stats``                  bytes and prefix stability by kind, the server's own CPU seconds
``GET /log?since=N``            a summary per request
``GET /dump?kind=main&n=N``     the raw body of request N, or of the last one of that kind
``POST /config``                ``{"delay_ms": 0, "first_ms": 0}``: between events, before the first
``POST /script``                ``{"replies": [{"kind": "text", "text": "hi"}], "key": null}``
``POST /reset``                 forget requests, queued replies and statistics
==============================  ==================================================================
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import resource
import secrets
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from email.parser import BytesParser
from email.policy import HTTP
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from bench import wire
from bench.connection import Connection, Exchange
from bench.replies import (
    Cut,
    Delay,
    Empty,
    HttpError,
    RawChunks,
    RawToolCall,
    Reply,
    Scripted,
    Text,
    ToolCalls,
    reply_from_json,
)
from bench.request_log import Record, statistics
from bench.rule_books import RuleBook
from bench.scenarios import KEY, Place, answer, locate, text_of

__all__ = [
    "Cut",
    "Delay",
    "Empty",
    "HttpError",
    "RawChunks",
    "RawToolCall",
    "Record",
    "Scripted",
    "ScriptedOpenAI",
    "Text",
    "ToolCalls",
]

LOG_INTERVAL = 1.0
"""Seconds between two flushes of the log file."""


class ScriptedOpenAI:
    """The endpoint: script and log, and the server that uses them.

    Args:
        models: ids for ``GET /v1/models``; a request may name any model.
        api_key: if given, other keys get a 401.
        port: 0 takes a free one.
    """

    def __init__(
        self,
        *,
        models: Sequence[str] = ("scripted-model",),
        api_key: str | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.models = tuple(models)
        self.api_key = api_key
        self.host = host
        self.port = port
        self.records: list[Record] = []
        self.answers_as: str | None = None
        """The model's name in answers; None: as it was asked for."""
        self.counts = True
        """Whether answers say what they took."""
        self.rule_books: Mapping[str, RuleBook] = {}
        """By host: what the vendor there refuses is refused. Clients reach a vendor's host with the endpoint as their proxy."""
        self.refusals: list[HttpError] = []
        self.speech: str | HttpError = "Hello from the microphone."
        """The text that transcriptions hear, or the refusal that they get."""
        self.sounds: list[dict[str, bytes]] = []
        """Forms of transcriptions: `file`, `filename`, `model` and the like."""
        self.delay = 0.0
        self.first_delay = 0.0
        self._queues: dict[str | None, deque[Scripted]] = defaultdict(deque)
        self.unscripted = {"memory"}
        """Kinds of background prompts that take no queued reply: they come when they are due, whatever a test does just then."""
        self._numbers = itertools.count(1)
        self._nonce = secrets.token_hex(4)
        self._cpu_start = _cpu_seconds()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._connections: set[asyncio.Transport] = set()

    # --- what tests use -------------------------------------------------------------------------------------------

    @property
    def base_url(self) -> str:
        return f"http://{self.host}:{self.port}/v1"

    @property
    def requests(self) -> list[dict[str, Any]]:
        """Decoded bodies of all chat completion requests, in order of arrival."""
        return [record.body for record in list(self.records)]

    @property
    def raw_requests(self) -> list[bytes]:
        return [record.raw for record in list(self.records)]

    @property
    def headers(self) -> list[dict[str, str]]:
        """Headers of these requests, names in lower case."""
        return [dict(record.headers) for record in list(self.records)]

    def script(self, *replies: Scripted, key: str | None = None) -> None:
        """Queue replies; with ``key`` only for conversations in which a user message holds ``key:KEY``."""
        self._queues[key].extend(replies)

    @property
    def unused(self) -> int:
        """How many queued replies nobody has asked for yet."""
        return sum(len(queue) for queue in list(self._queues.values()))

    def reset(self) -> None:
        """Forget requests and queued replies."""
        self.records = []
        self._queues.clear()
        self._cpu_start = _cpu_seconds()

    def __enter__(self) -> Self:
        ready: threading.Event = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="scripted-openai", daemon=True)
        self._thread.start()
        if not ready.wait(10) or self._loop is None:
            raise RuntimeError(f"The scripted endpoint did not start on {self.host}:{self.port}.")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)

    # --- serving --------------------------------------------------------------------------------------------------

    async def serve(self) -> asyncio.Server:
        """Listen on the running loop; :attr:`port` becomes the real one."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: Connection(self, loop, self._connections), self.host, self.port, backlog=1024
        )
        self.port = server.sockets[0].getsockname()[1]
        return server

    def statistics(self) -> dict[str, Any]:
        cpu = round(_cpu_seconds() - self._cpu_start, 3)
        return {"cpu_s": cpu, "total": len(self.records), "by": statistics(list(self.records))}

    def exchange(self, raw: bytes, headers: dict[str, str]) -> Exchange:
        """Log a chat completion request and choose its response."""
        record = Record(next(self._numbers), raw, headers, Place("main", None, None, 0), time.monotonic())
        record.place = locate(record.body)
        self.records.append(record)
        reply = self.reply_to(record)
        first, between = self.first_delay, self.delay
        while isinstance(reply, Delay):
            first, between, reply = first + reply.seconds, max(between, reply.between), reply.reply
        record.status = reply.status if isinstance(reply, HttpError) else 200
        encode = wire.stream_response if record.body.get("stream") else wire.whole_response
        return Exchange(record, encode(reply, self.envelope(record)), first, between)

    def reply_to(self, record: Record) -> Reply:
        """Take the next queued reply, or play the marked scenario."""
        if not self.admits(record.headers):
            return HttpError(401)
        book = self.rule_books.get(record.headers.get("host", ""))
        if book is not None and (refusal := book.refusal(record.body)):
            self.refusals.append(refusal)
            return refusal
        if record.place.kind in self.unscripted:
            return answer(record.body, record.place)
        for key in [key for key in list(self._queues) if key is not None] + [None]:
            queue = self._queues[key]
            if queue and (key is None or _holds_key(record.body, key)):
                scripted = queue.popleft()
                return scripted(record.body) if callable(scripted) else scripted
        return answer(record.body, record.place)

    def admits(self, headers: Mapping[str, str]) -> bool:
        return self.api_key is None or headers.get("authorization") == f"Bearer {self.api_key}"

    def envelope(self, record: Record) -> wire.Envelope:
        prompt = len(record.raw) // 4
        usage = {"prompt_tokens": prompt, "completion_tokens": 40, "total_tokens": prompt + 40}
        options = record.body.get("stream_options") or {}
        identifier = f"chatcmpl-{self._nonce}{record.number:08d}"
        model = self.answers_as or str(record.body.get("model", self.models[0]))
        return wire.Envelope(identifier, model, usage, bool(options.get("include_usage")) and self.counts)

    def control(
        self, method: str, path: str, query: dict[str, list[str]], body: bytes, headers: dict[str, str]
    ) -> wire.Response:
        """Answer everything that is not a chat completion."""
        match method, path:
            case "GET", "/v1/models" | "/models" if not self.admits(headers):
                return wire.error_response(HttpError(401))
            case "GET", "/v1/models" | "/models":
                entries = [{"id": id_, "object": "model", "created": 1, "owned_by": "scripted"} for id_ in self.models]
                return wire.json_response({"object": "list", "data": entries})
            case "POST", "/v1/audio/transcriptions":
                return self.transcribe(body, headers)
            case "GET", "/stats":
                return wire.json_response(self.statistics())
            case "GET", "/log":
                since = int(query.get("since", ["0"])[0])
                return wire.json_response([record.summary() for record in self.records if record.number > since])
            case "GET", "/dump":
                return wire.json_response(self._dump(query))
            case "POST", "/reset":
                self.reset()
                return wire.json_response({"ok": True})
            case "POST", "/config":
                values = orjson.loads(body or b"{}")
                self.delay = float(values.get("delay_ms", self.delay * 1000)) / 1000
                self.first_delay = float(values.get("first_ms", self.first_delay * 1000)) / 1000
                return wire.json_response({"delay_ms": self.delay * 1000, "first_ms": self.first_delay * 1000})
            case "POST", "/script":
                value = orjson.loads(body)
                self.script(*[reply_from_json(reply) for reply in value["replies"]], key=value.get("key"))
                return wire.json_response({"ok": True, "unused": self.unused})
            case "GET", "/" | "/health":
                return wire.json_response({"ok": True, "pid": os.getpid()})
        return wire.error_response(HttpError(404, f"{method} {path} is not served by the scripted endpoint."))

    def transcribe(self, body: bytes, headers: Mapping[str, str]) -> wire.Response:
        """Answer a form (multipart) with what was heard in its file, as OpenAI does."""
        if not self.admits(headers):
            return wire.error_response(HttpError(401))
        form = _form(body, headers.get("content-type", ""))
        if not form.get("file") or form.get("model", b"").decode() not in self.models:
            return wire.error_response(HttpError(404 if form.get("file") else 400))
        self.sounds.append(form)
        if isinstance(self.speech, HttpError):
            return wire.error_response(self.speech)
        return wire.json_response({"text": self.speech})

    def _dump(self, query: dict[str, list[str]]) -> bytes:
        number = int(query.get("n", ["0"])[0])
        kind = query.get("kind", ["main"])[0]
        for record in reversed(self.records):
            if record.number == number or (not number and record.place.kind == kind):
                return record.raw
        return b"null"

    def _run(self, ready: threading.Event) -> None:
        loop = asyncio.new_event_loop()
        try:
            server = loop.run_until_complete(self.serve())
        except OSError:
            loop.close()
            ready.set()
            raise
        self._loop = loop
        ready.set()
        loop.run_forever()
        server.close()
        for transport in list(self._connections):
            transport.abort()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


def _form(body: bytes, content_type: str) -> dict[str, bytes]:
    """The fields of a multipart form; the name of a file is ``filename``."""
    message = BytesParser(policy=HTTP).parsebytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + body)
    form: dict[str, bytes] = {}
    for part in message.iter_parts() if message.is_multipart() else ():
        name = str(part.get_param("name", "", header="content-disposition"))
        content = part.get_payload(decode=True)
        form[name] = content if isinstance(content, bytes) else b""
        if filename := part.get_filename():
            form["filename"] = filename.encode()
    return form


def _holds_key(request: dict[str, Any], key: str) -> bool:
    users = (message for message in request.get("messages") or () if message.get("role") == "user")
    return any(key in KEY.findall(text_of(message)) for message in users)


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def _serve_forever(endpoint: ScriptedOpenAI, log: Path | None) -> None:
    await endpoint.serve()
    print(f"scripted OpenAI endpoint on {endpoint.base_url} pid {os.getpid()}", flush=True)
    written = 0
    while True:
        await asyncio.sleep(LOG_INTERVAL)
        if log is not None:
            fresh = [record for record in endpoint.records if record.number > written]
            if fresh:
                lines = b"".join(orjson.dumps(record.summary()) + b"\n" for record in fresh)
                await asyncio.to_thread(_append, log, lines)
                written = fresh[-1].number


def _append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def _event_loop() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.scripted_openai", description="A scripted OpenAI-compatible endpoint."
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9100, help="0 takes a free one; it is printed")
    parser.add_argument("--log", type=Path, help="append a JSON line per request to this file")
    parser.add_argument("--api-key", help="answer 401 to any other key")
    parser.add_argument("--model", action="append", dest="models", help="a model id to list; may be repeated")
    parser.add_argument("--delay-ms", type=float, default=0.0, help="between two events of a stream")
    parser.add_argument("--first-ms", type=float, default=0.0, help="before the first byte of an answer")
    options = parser.parse_args(arguments)
    endpoint = ScriptedOpenAI(
        models=options.models or ("scripted-model",), api_key=options.api_key, host=options.host, port=options.port
    )
    endpoint.delay, endpoint.first_delay = options.delay_ms / 1000, options.first_ms / 1000
    with asyncio.Runner(loop_factory=_event_loop()) as runner:
        runner.run(_serve_forever(endpoint, options.log))


if __name__ == "__main__":
    main()
