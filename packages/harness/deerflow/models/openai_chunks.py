"""Chat completion streams as dictionaries: read, put right where servers differ, and known to be whole."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import anyio
import httpx
import httpx2
import openai
import orjson
from langchain_openai import StreamChunkTimeoutError

from deerflow.event_loop import Turns
from deerflow.models.messages import spoilers
from deerflow.server_events import EventDecoder

DRAIN_SECONDS = 0.1
"""How long to wait behind ``[DONE]`` for the end of the body, without which the connection cannot be used again."""

# A user may give the client a transport of either library; OpenAI's client lets the last two through unmapped as well.
TRANSPORT_TIMEOUTS = (httpx2.TimeoutException, httpx.TimeoutException)
TRANSPORT_ERRORS = (httpx2.RequestError, httpx.RequestError, ssl.SSLError, anyio.EndOfStream)

Chunk = dict[str, Any]


class BrokenStreamError(openai.APIConnectionError):
    """The connection was there, and ended in the middle of an answer."""


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
        self._calls = 0
        self._arguments = defaultdict[int, str](str)

    def feed(self, received: bytes) -> list[Chunk]:
        """Chunks that are complete with these bytes.

        Raises:
            openai.APIError: the server reports an error inside the stream.
            openai.APIConnectionError: an event is not a JSON object.
        """
        chunks: list[Chunk] = []
        for name, data, _ in self._decoder.feed(received):
            if data.startswith(b"[DONE]"):
                self.done = True
                return [*chunks, *self._last_chunks()]
            self.received += 1
            chunk = self._decode(data)
            if (error := chunk.get("error")) or name == b"error":
                raise stream_error(error or chunk, self.response)
            self._repair(chunk)
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

    def _repair(self, chunk: Chunk) -> None:
        if choices := chunk.get("choices"):
            choice = choices[0]
            self._finished = self._finished or choice.get("finish_reason") is not None
            delta = choice.setdefault("delta", {})
            if delta and (calls := delta.get("tool_calls")):
                self._repair_calls(calls)
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
        broken = spoilers(self._arguments).items()
        if calls := [{"index": index, "function": {"arguments": text}} for index, text in broken]:
            chunks.append({"choices": [{"index": 0, "delta": {"tool_calls": calls}, "finish_reason": None}]})
        if self._running_total is not None and not self._usage_sent:
            chunks.append({"choices": [], "usage": self._running_total})
        return chunks

    def _repair_calls(self, calls: list[dict[str, Any]]) -> None:
        """Number the fragments of servers that leave out the index, as LangChain drops calls without one."""
        for call in calls:
            function = call["function"] = call.get("function") or {}
            if isinstance(arguments := function.get("arguments"), dict):
                function["arguments"] = orjson.dumps(arguments).decode()
            if call.get("index") is None:
                self._calls += 1 if call.get("id") or not self._calls else 0
                call["index"] = self._calls - 1
            self._arguments[call["index"]] += function.get("arguments") or ""

    def _decode(self, data: bytes) -> Chunk:
        try:
            try:
                chunk = orjson.loads(data)
            except orjson.JSONDecodeError:
                # Half of a surrogate pair as an escape is JSON for Python, but not for orjson.
                chunk = orjson.loads(repair_surrogates(json.dumps(json.loads(data), ensure_ascii=False)))
        except ValueError:
            chunk = None
        if not isinstance(chunk, dict):
            raise openai.APIConnectionError(
                message=f"{self.response.request.url} sent an event that is not a JSON object: {data[:200]!r}",
                request=self.response.request,
            )
        return chunk


async def aread_chunks(
    response: httpx2.Response, turns: Turns, *, timeout: float | None, model_name: str
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
                raise _document_error(response, await response.aread())
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


def _document_error(response: httpx2.Response, body: bytes) -> openai.APIError:
    """The error for an answer that is no stream: an error object with status 200, or a page of something else."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = None
    if isinstance(document, dict) and (error := document.get("error")):
        return stream_error(error, response)
    content_type = response.headers.get("content-type")
    message = (
        f"{response.request.url} was asked for an event stream and sent {content_type}: {body[:200]!r}. "
        "Check base_url, or set `disable_streaming: true` for a model that cannot stream."
    )
    return openai.APIResponseValidationError(response, document, message=message)


def repair_surrogates(text: str) -> str:
    """Join surrogate pairs to the character they mean, replace single halves by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def stream_error(error: Any, response: httpx2.Response) -> openai.APIError:
    """OpenAI's exception for an error object that came with status 200."""
    message = error.get("message") if isinstance(error, dict) else error
    if not isinstance(message, str) or not message:
        message = "An error occurred during streaming"
    return openai.APIError(message, request=response.request, body=error)
