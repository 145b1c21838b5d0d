"""Chat completion streams as dictionaries: read, put right where servers differ, and known to be whole."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import anyio
import httpx
import httpx2
import openai
import orjson
from langchain_openai import StreamChunkTimeoutError

from deerflow.event_loop import LoopTurns
from deerflow.models.deltas import Deltas, repair_surrogates, text_id
from deerflow.server_events import EventDecoder

DRAIN_SECONDS = 0.1
TEXT = frozenset({"role", "content"})
"""Keys of a delta that holds nothing but text."""
"""How long to wait behind ``[DONE]`` for the end of the body, without which the connection cannot be used again."""

# A user may give the client a transport of either library; OpenAI's client lets the last two through unmapped as well.
TRANSPORT_TIMEOUTS = (httpx2.TimeoutException, httpx.TimeoutException)
TRANSPORT_ERRORS = (httpx2.RequestError, httpx.RequestError, ssl.SSLError, anyio.EndOfStream)

Chunk = dict[str, Any]


class BrokenStreamError(openai.APIConnectionError):
    """The connection was there, and what came is no whole answer."""


class ChunkReader:
    """Turns the bytes of one response into chunks and knows whether the answer is whole."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self.done = False
        self.received = 0
        self._decoder = EventDecoder()
        self._finished = False
        self._usage_sent = False
        self._running_total: Any = None
        self._deltas = Deltas()

    def feed(self, received: bytes) -> list[Chunk]:
        """Chunks that are complete with these bytes.

        Raises:
            openai.APIError: the server reports an error inside the stream.
            BrokenStreamError: an event is no part of an answer, or there is none.
        """
        chunks: list[Chunk] = []
        for name, data, _ in self._decoder.feed(received):
            if data.startswith(b"[DONE]"):
                if not self.received:
                    raise BrokenStreamError(
                        message=f"{self.response.request.url} ended its answer before it began.",
                        request=self.response.request,
                    )
                self.done = True
                return [*chunks, *self._last_chunks()]
            self.received += 1
            chunk, is_broken = self._decode(data)
            if (error := chunk.get("error")) or name == b"error":
                raise stream_error(error or chunk, self.response)
            with readable(self.response.request, data):
                self._repair(chunk, is_broken)
            chunks.append(chunk)
        return chunks

    def end(self) -> list[Chunk]:
        """Chunks still owed when the body has ended without ``[DONE]``.

        Raises:
            BrokenStreamError: it broke off in the middle of the answer.
        """
        self.done = True
        if not self._finished:
            raise BrokenStreamError(
                message=f"The answer from {self.response.request.url} broke off after {self.received} events: "
                "the server or a proxy closed the connection.",
                request=self.response.request,
            )
        return self._last_chunks()

    def whole(self, document: Chunk) -> list[Chunk]:
        """Chunks for an answer that came as one JSON document although a stream was asked for."""
        choices = document.get("choices") or [{}]
        choice = {**choices[0], "delta": choices[0].get("message") or {}}
        chunk = {**document, "choices": [{**choice, "finish_reason": choice.get("finish_reason") or "stop"}]}
        with readable(self.response.request, document):
            self._repair(chunk, False)
        self.done = True
        return [chunk, *self._last_chunks()]

    def _repair(self, chunk: Chunk, is_broken: bool) -> None:
        if "id" in chunk:
            chunk["id"] = text_id(chunk["id"])
        if choices := chunk.get("choices"):
            choice = choices[0]
            delta = choice.get("delta") or choice.setdefault("delta", {})
            if delta:
                is_text = self._deltas.is_settled and type(delta.get("content")) is str and delta.keys() <= TEXT
                if is_broken or not is_text:
                    self._deltas.read(delta, is_broken=is_broken)
            if choice.get("finish_reason"):  # some send "" with each delta
                self._finished = True
                if delta is not None:
                    self._deltas.close(delta)
        if usage := chunk.get("usage"):
            self._count_once(chunk, usage, final=self._finished or not choices)

    def _count_once(self, chunk: Chunk, usage: Any, *, final: bool) -> None:
        """Some servers repeat a running total in every chunk; LangChain would add them up."""
        if final and not self._usage_sent:
            self._usage_sent = True
            return
        self._running_total = usage
        chunk["usage"] = None

    def _last_chunks(self) -> list[Chunk]:
        chunks: list[Chunk] = []
        delta: Chunk = {}
        self._deltas.close(delta)
        if calls := self._deltas.spoilers():
            delta["tool_calls"] = calls
        if delta:
            chunks.append({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        if self._running_total is not None and not self._usage_sent:
            chunks.append({"choices": [], "usage": self._running_total})
        return chunks

    def _decode(self, data: bytes) -> tuple[Chunk, bool]:
        """Return a chunk, and whether its delta holds half of a surrogate pair: JSON for Python, but not for orjson."""
        is_broken = False
        try:
            try:
                chunk = orjson.loads(data)
            except orjson.JSONDecodeError:
                chunk, is_broken = _with_repaired_rest(json.loads(data)), True
        except (ValueError, RecursionError):
            chunk = None
        if not isinstance(chunk, dict):
            raise BrokenStreamError(
                message=f"{self.response.request.url} sent an event that is not a JSON object: {data[:200]!r}",
                request=self.response.request,
            )
        return chunk, is_broken


@contextmanager
def readable(request: httpx2.Request, answer: object) -> Iterator[None]:
    """Turn what an answer of an unknown shape makes of its reader into an error after which the model is asked again.

    Args:
        answer: quoted in its message.
    """
    try:
        yield
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        message = f"{request.url} sent an answer that no chat completion looks like: {answer!r:.200}"
        raise BrokenStreamError(message=message, request=request) from error


def _with_repaired_rest(chunk: Any) -> Any:
    """Return a chunk whose strings are sound, but for those of its delta, which may be half of what comes next."""
    choices = chunk.get("choices") if isinstance(chunk, dict) else None
    delta = choices[0].pop("delta", None) if choices else None
    repaired = orjson.loads(repair_surrogates(json.dumps(chunk, ensure_ascii=False)))
    if delta is not None:
        repaired["choices"][0]["delta"] = delta
    return repaired


async def aread_chunks(
    response: httpx2.Response, turns: LoopTurns, *, timeout: float | None, model_name: str
) -> AsyncGenerator[Chunk, None]:
    """Yield the chunks of a streamed chat completion and close the response, come what may.

    Args:
        turns: one is taken before the answer is read.
        timeout: seconds to wait for the next chunk; comments that keep the connection alive do not count. None or 0:
            for ever.

    Raises:
        StreamChunkTimeoutError: no chunk came for ``timeout`` seconds.
    """
    reader = ChunkReader(response)
    try:
        with _transport_errors(response):
            if _is_whole_document(response):
                for chunk in reader.whole(_answer_in(response, await response.aread())):
                    yield chunk
                return
            await turns.take()
            received = response.aiter_bytes()
            while not reader.done:
                for chunk in await _next_chunks(reader, received, timeout, model_name):
                    yield chunk
            await _drain(received)
    finally:
        await response.aclose()


async def _next_chunks(
    reader: ChunkReader, received: AsyncIterator[bytes], timeout: float | None, model_name: str
) -> list[Chunk]:
    try:
        async with asyncio.timeout(timeout or None):
            while not reader.done:
                data = await anext(received, None)
                if chunks := (reader.end() if data is None else reader.feed(data)):
                    return chunks
    except TimeoutError as error:
        raise StreamChunkTimeoutError(timeout or 0.0, model_name=model_name, chunks_received=reader.received) from error
    return []


async def _drain(received: AsyncIterator[bytes]) -> None:
    with suppress(TimeoutError, *TRANSPORT_ERRORS):
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in received:
                pass


@contextmanager
def _transport_errors(response: httpx2.Response) -> Iterator[None]:
    try:
        yield
    except TRANSPORT_TIMEOUTS as error:
        raise openai.APITimeoutError(request=response.request) from error
    except TRANSPORT_ERRORS as error:
        message = f"The connection to {response.request.url} broke in the middle of an answer: {error!r}"
        raise BrokenStreamError(message=message, request=response.request) from error


def _is_whole_document(response: httpx2.Response) -> bool:
    content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return content_type.endswith(("/json", "+json", "/html"))


def _answer_in(response: httpx2.Response, body: bytes) -> Chunk:
    """Return the whole answer that a server sent in place of a stream.

    Raises:
        openai.APIError: it is none, but an error object with status 200, or a page of something else.
    """
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = None
    if isinstance(document, dict):
        if error := document.get("error"):
            raise stream_error(error, response)
        if any(choice.get("message") for choice in document.get("choices") or ()):
            return document
    content_type = response.headers.get("content-type")
    message = (
        f"{response.request.url} was asked for an event stream and sent {content_type}: {body[:200]!r}. "
        "Check base_url, or set `disable_streaming: true` for a model that cannot stream."
    )
    raise openai.APIResponseValidationError(response, document, message=message)


def stream_error(error: Any, response: httpx2.Response) -> openai.APIError:
    """OpenAI's exception for an error object that came with status 200."""
    message = error.get("message") if isinstance(error, dict) else error
    if not isinstance(message, str) or not message:
        message = "An error occurred during streaming"
    return openai.APIError(message, request=response.request, body=error)
