"""OpenAI's API, for chat interfaces and scripts that speak it: agents are its models, and a conversation is a thread.

Chat interfaces send the whole conversation each time and no id. A thread whose messages are those is gone on with, so that its
files and its sandbox are there again; otherwise a new one begins with all of it.
"""

from __future__ import annotations

import asyncio
import binascii
import hashlib
import json
import re
from base64 import b64decode
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal
from uuid import uuid4

import orjson
from fastapi import APIRouter, Header, Request, Response
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse

from deerflow.errors import InvalidRequestError, NotFoundError
from deerflow.events.graph_stream import LLM_RETRY
from deerflow.events.streams.client_events import TurnEvents
from deerflow.files.uploads import UploadService
from deerflow.identity import ID_PATTERN, Principal
from deerflow.models.failures import ErrorKind
from deerflow.runs.request import RunRequest
from deerflow.storage.runs import MultitaskStrategy, Run, RunStatus
from deerflow.storage.threads import LEAD_AGENT, ThreadFilter
from deerflow.tools.clarification import NAME as QUESTION
from deerflow_app.gateway.http.streaming import EventStreamResponse, canceller
from deerflow_app.gateway.routes import CurrentPrincipal, CurrentRuntime, Runtime

router = APIRouter(prefix="/api/openai/v1", tags=["openai"])

HISTORY = "openai_history"
"""Metadata of threads: what their messages were for the client."""
BROKE_OFF = "\n\n[The answer broke off here. The model was asked again:]"
_DISCONNECT_SECONDS = 2.0
_SPACES = re.compile(r"\s+")
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {}, "text/event-stream": {}}, "description": "As OpenAI documents it."}
}
Content = str | list[dict[str, Any]] | None
Said = tuple[str, Content]
"""Role and content."""


class ChatMessage(BaseModel):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Content = None


class StreamOptions(BaseModel):
    include_usage: bool = False


class ChatRequest(BaseModel):
    """Whatever else OpenAI's API knows is ignored: the agent has its own tools and settings."""

    model: str = Field(examples=[LEAD_AGENT])
    messages: list[ChatMessage] = Field(min_length=1, max_length=10_000)
    stream: bool = False
    stream_options: StreamOptions | None = None
    reasoning_effort: str | None = None


class Reasoning(BaseModel):
    effort: str | None = None


class Conversation(BaseModel):
    id: str = Field(pattern=rf"^{ID_PATTERN.pattern}$")


class ResponsesRequest(BaseModel):
    """Whatever else OpenAI's API knows is ignored."""

    model: str = Field(examples=[LEAD_AGENT])
    input: str | list[dict[str, Any]]
    instructions: str | None = None
    previous_response_id: str | None = None
    conversation: Conversation | str | None = Field(default=None, description="A thread; made if there is none.")
    stream: bool = False
    reasoning: Reasoning | None = None


@dataclass
class Turn:
    """A run, and what it says."""

    runtime: Runtime
    principal: Principal
    run: Run
    model: str
    base_url: str
    text: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)
    error: Mapping[str, Any] | None = None
    annotations: list[dict[str, Any]] = field(default_factory=list)
    streams: bool = True
    """The client has read what was said; else an answer that broke off can give way to the next attempt."""

    @property
    def created(self) -> int:
        return int(self.run.created_at.timestamp())

    async def pieces(self) -> AsyncGenerator[tuple[str, str], None]:
        """``content`` and ``reasoning_content`` as they are generated; links to delivered files last."""
        events, speaking, before = TurnEvents(lambda: None), "", ""
        async with aclosing(self.runtime.runs.events(self.run)) as batches:
            async for batch in batches:
                for event in events.of(batch):
                    data = event.data
                    if event.type == "end":
                        self.usage, self.error = data["usage"], data["error"]
                    elif event.type == "custom":
                        if _is_of_a_half(data) and self.text != before:
                            self.text = before = self.text + BROKE_OFF if self.streams else before
                            yield "content", BROKE_OFF
                        continue
                    elif event.type != "messages-tuple" or not (data["type"] == "ai" or data.get("name") == QUESTION):
                        continue
                    if reasoning := data.get("reasoning_content"):
                        yield "reasoning_content", reasoning
                    if content := data.get("content"):
                        before = self.text if data["id"] != speaking else before
                        content = "\n\n" + content if self.text and data["id"] != speaking else content
                        speaking, self.text = data["id"], self.text + content
                        yield "content", content
        self.run = await self.runtime.runs.get(self.principal, self.run.run_id)
        for path in (self.run.receipts or {}).get("delivered", ()):
            name, url = path.rpartition("/")[2], f"{self.base_url}api/threads/{self.run.thread_id}/artifacts{path}"
            link = f"[{name}]({url}?download=true)"
            between = "\n\n" if self.text and not self.annotations else "\n" if self.text else ""
            place = {"start_index": len(self.text + between), "end_index": len(self.text + between + link)}
            self.annotations.append({"url": f"{url}?download=true", "title": name, **place})
            self.text += between + link
            yield "content", between + link
        if self.run.status is RunStatus.INTERRUPTED and self.run.stop_reason == "interrupt":
            waits = f"A call needs your decision before I go on: {self.base_url}chats/{self.run.thread_id}"
            waits = f"\n\n{waits}" if self.text else waits
            self.text += waits
            yield "content", waits

    async def whole(self, request: Request) -> None:
        """Read it to its end. Raises InvalidRequestError: the run failed."""
        self.streams = False

        async def read() -> None:
            async with aclosing(self.pieces()) as pieces:
                async for _ in pieces:
                    pass

        reading = asyncio.create_task(read())
        try:
            while not (await asyncio.wait({reading}, timeout=_DISCONNECT_SECONDS))[0]:
                if await request.is_disconnected():
                    await self.cancel()
            reading.result()
        finally:
            reading.cancel()
        if self.error is not None:  # not a status of 500, after which clients would begin the task again
            raise InvalidRequestError(str(self.error["message"]), code=str(self.error["kind"]))

    async def cancel(self) -> None:
        await canceller(self.runtime, self.principal, self.run)()

    def tokens(self, sent: str, received: str) -> dict[str, int]:
        """The usage, by the names that the API has for it."""
        used = {key: self.usage.get(key, 0) for key in ("input_tokens", "output_tokens", "total_tokens")}
        return {sent: used["input_tokens"], received: used["output_tokens"], "total_tokens": used["total_tokens"]}


def _is_of_a_half(data: Any) -> bool:
    """Return whether an event says that an answer broke off in the middle, and that the model is asked again."""
    notice = data if isinstance(data, Mapping) else {}
    return notice.get("type") == LLM_RETRY and notice.get("reason") == ErrorKind.BROKEN_OFF


# models ---------------------------------------------------------------------------------------------------------------


@router.get("/models", summary="Agents, as models", responses=_ANSWERS)
async def list_models(principal: CurrentPrincipal, runtime: CurrentRuntime) -> Response:
    names = [LEAD_AGENT, *(agent.name for agent in await runtime.agents.list(principal))]
    return JSONResponse({"object": "list", "data": [_model(name) for name in names]})


@router.get("/models/{model}", summary="One agent, as a model", responses=_ANSWERS)
async def get_model(model: str, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Response:
    if model != LEAD_AGENT:
        await runtime.agents.get(principal, model)
    return JSONResponse(_model(model))


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "deerflow"}


# chat completions -----------------------------------------------------------------------------------------------------


@router.post("/chat/completions", summary="Say something to an agent", responses=_ANSWERS)
async def chat_completions(
    asked: ChatRequest,
    request: Request,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    thread: Annotated[
        str | None,
        Header(alias="X-DeerFlow-Thread", pattern=rf"^{ID_PATTERN.pattern}$", description="Made if there is none."),
    ] = None,
) -> Response:
    conversation = [(each.role, each.content) for each in asked.messages if each.role in ("user", "assistant")]
    if not conversation or conversation[-1][0] != "user":
        raise InvalidRequestError("messages must end with one of the role 'user'.")
    known = thread or await _gone_on_with(runtime, principal, conversation[:-1])
    instructions = [("system", each.content) for each in asked.messages if each.role in ("system", "developer")]
    said = conversation[-1:] if known else [*instructions, *conversation]
    turn = await _begun(runtime, principal, request, asked.model, known, said, asked.reasoning_effort)
    head = {"id": f"chatcmpl-{turn.run.run_id}", "created": turn.created, "model": asked.model}
    headers = {"X-DeerFlow-Thread": turn.run.thread_id}
    if asked.stream:
        include_usage = asked.stream_options is not None and asked.stream_options.include_usage
        content = _chat_chunks(turn, head, conversation, include_usage=include_usage)
        return EventStreamResponse(content, headers=headers, on_disconnect=turn.cancel)
    await turn.whole(request)
    await _remember(turn, conversation)
    cited = [{"type": "url_citation", "url_citation": each} for each in turn.annotations]
    message = {"role": "assistant", "content": turn.text, "refusal": None, "annotations": cited}
    answer = {
        **head,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": turn.tokens("prompt_tokens", "completion_tokens"),
    }
    return JSONResponse(answer, headers=headers)


async def _chat_chunks(
    turn: Turn, head: Mapping[str, Any], conversation: Sequence[Said], *, include_usage: bool
) -> AsyncGenerator[bytes, None]:
    def chunk(delta: Mapping[str, Any] | None, reason: str | None = None, **more: Any) -> bytes:
        choices = [] if delta is None else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]
        return _event({**head, "object": "chat.completion.chunk", "choices": choices, **more})

    yield chunk({"role": "assistant", "content": ""})
    async with aclosing(turn.pieces()) as pieces:
        async for kind, text in pieces:
            yield chunk({kind: text})
    if (error := turn.error) is not None:
        shown = {"message": error["message"], "type": "run_failed", "code": error["kind"], "param": None}
        await _remember(turn, conversation)
        yield _event({"error": shown})
        return
    await _remember(turn, conversation)
    yield chunk({}, "stop")
    if include_usage:
        yield chunk(None, usage=turn.tokens("prompt_tokens", "completion_tokens"))
    yield b"data: [DONE]\n\n"


async def _gone_on_with(runtime: Runtime, principal: Principal, conversation: Sequence[Said]) -> str | None:
    """The thread whose messages are these, if there is one."""
    if not conversation:
        return None
    wanted = ThreadFilter({HISTORY: _fingerprint(conversation)})
    found, _ = await runtime.threads.repository.search(principal, wanted, limit=10)
    return next((thread.thread_id for thread in found if thread.status in ("idle", "error")), None)


async def _remember(turn: Turn, conversation: Sequence[Said]) -> None:
    note = {HISTORY: _fingerprint([*conversation, ("assistant", turn.text)])}
    with suppress(NotFoundError):  # deleted meanwhile
        await turn.runtime.threads.repository.update(turn.principal, turn.run.thread_id, metadata=note)


def _fingerprint(messages: Sequence[Said]) -> str:
    """Of what was said; clients change spaces."""
    plain = [[role, _SPACES.sub(" ", _text(content)).strip()] for role, content in messages]
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()


# responses ------------------------------------------------------------------------------------------------------------


@router.post("/responses", summary="Ask an agent for a response", responses=_ANSWERS)
async def responses(
    asked: ResponsesRequest, request: Request, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> Response:
    said: list[Said] = [("user", asked.input)] if isinstance(asked.input, str) else _items(asked.input)
    if not said or said[-1][0] != "user":
        raise InvalidRequestError("input must end with a message of the role 'user'.")
    known = asked.conversation.id if isinstance(asked.conversation, Conversation) else asked.conversation
    if asked.previous_response_id is not None:
        earlier = await runtime.runs.get(principal, asked.previous_response_id.removeprefix("resp_"))
        known = earlier.thread_id
    effort = asked.reasoning.effort if asked.reasoning else None
    turn = await _begun(
        runtime, principal, request, asked.model, known, [("system", asked.instructions), *said], effort
    )
    if asked.stream:
        return EventStreamResponse(_response_events(turn), on_disconnect=turn.cancel)
    await turn.whole(request)
    return JSONResponse(_response(turn, "completed"))


def _response(turn: Turn, status: str, *, output: bool = True) -> dict[str, Any]:
    return {
        "id": f"resp_{turn.run.run_id}",
        "object": "response",
        "created_at": turn.created,
        "status": status,
        "error": {"code": "server_error", "message": turn.error["message"]} if turn.error else None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": turn.model,
        "output": [_item(turn, "completed" if status == "completed" else "incomplete")] if output else [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "conversation": {"id": turn.run.thread_id},
        "usage": {
            **turn.tokens("input_tokens", "output_tokens"),
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        if output
        else None,
    }


def _item(turn: Turn, status: str) -> dict[str, Any]:
    content = [_part(turn)] if status != "in_progress" else []
    return {
        "type": "message",
        "id": f"msg_{turn.run.run_id}",
        "status": status,
        "role": "assistant",
        "content": content,
    }


def _part(turn: Turn) -> dict[str, Any]:
    cited = [{"type": "url_citation", **each} for each in turn.annotations]
    return {"type": "output_text", "text": turn.text, "annotations": cited, "logprobs": []}


async def _response_events(turn: Turn) -> AsyncGenerator[bytes, None]:
    number = -1

    def event(kind: str, **data: Any) -> bytes:
        nonlocal number
        number += 1
        return _event({"type": f"response.{kind}", "sequence_number": number, **data}, f"response.{kind}")

    here = {"item_id": f"msg_{turn.run.run_id}", "output_index": 0, "content_index": 0}
    started = _response(turn, "in_progress", output=False)
    yield event("created", response=started)
    yield event("in_progress", response=started)
    yield event("output_item.added", output_index=0, item=_item(turn, "in_progress"))
    yield event("content_part.added", **here, part=_part(turn))
    async with aclosing(turn.pieces()) as pieces:
        async for kind, text in pieces:
            if kind == "content":
                yield event("output_text.delta", **here, delta=text, logprobs=[])
    if turn.error is not None:
        yield event("failed", response=_response(turn, "failed"))
        return
    for index, annotation in enumerate(_part(turn)["annotations"]):
        yield event("output_text.annotation.added", **here, annotation_index=index, annotation=annotation)
    yield event("output_text.done", **here, text=turn.text, logprobs=[])
    yield event("content_part.done", **here, part=_part(turn))
    yield event("output_item.done", output_index=0, item=_item(turn, "completed"))
    yield event("completed", response=_response(turn, "completed"))


def _items(given: Sequence[Mapping[str, Any]]) -> list[Said]:
    """The messages among the items of an input."""
    items = [each for each in given if each.get("type", "message") == "message" and "role" in each]
    roles = {"developer": "system"}
    return [(roles.get(str(each["role"]), str(each["role"])), each.get("content")) for each in items]


# what both have in common ---------------------------------------------------------------------------------------------


async def _begun(
    runtime: Runtime,
    principal: Principal,
    request: Request,
    model: str,
    thread_id: str | None,
    said: Sequence[Said],
    effort: str | None,
) -> Turn:
    """The run that answers. Raises InvalidRequestError, ConflictError: the thread is at work."""
    thread_id = thread_id or str(uuid4())
    messages: list[dict[str, Any]] = []
    instructions = ""
    for role, content in said:
        if role == "system":
            instructions = f"{instructions}\n\n{_text(content)}".strip()
        else:
            messages.append(await _message(runtime, principal, thread_id, role, content))
    if instructions:
        words = {"role": "user", "content": f"Instructions for this conversation:\n\n{instructions}"}
        messages.insert(len(messages) - 1, words)
    run = await runtime.runs.start(
        principal,
        RunRequest(
            assistant_id=model,
            input={"messages": messages},
            context={"unattended": True, "can_wait": True} | ({"reasoning_effort": effort} if effort else {}),
            multitask_strategy=MultitaskStrategy.REJECT,
            if_not_exists="create",
        ),
        thread_id=thread_id,
    )
    return Turn(runtime, principal, run, model, str(request.base_url))


async def _message(
    runtime: Runtime, principal: Principal, thread_id: str, role: str, content: Content
) -> dict[str, Any]:
    """A message as a run takes it: pictures stay in it, files become uploads of the thread."""
    if not isinstance(content, list):
        return {"role": role, "content": content or ""}
    parts: list[dict[str, Any]] = []
    files: list[_File] = []
    for part in content:
        kind = part.get("type")
        if kind in ("text", "input_text", "output_text"):
            parts.append({"type": "text", "text": str(part.get("text") or "")})
        elif kind in ("image_url", "input_image"):
            given = part.get("image_url")
            parts.append({"type": "image_url", "image_url": given if isinstance(given, dict) else {"url": given}})
        elif kind in ("file", "input_file"):
            files.append(_file(part.get("file") or part))
        else:
            raise InvalidRequestError(f"Content of type {kind!r} is not supported: use text, images and files.")
    message: dict[str, Any] = {"role": role, "content": parts}
    if files:
        saved = await UploadService(runtime.paths, runtime.threads.repository).save(principal, thread_id, _each(files))
        await runtime.documents.begin(principal, thread_id, [one.upload for one in saved])
        uploaded = [
            {"filename": one.upload.filename, "size": one.upload.size, "path": one.upload.path} for one in saved
        ]
        message["additional_kwargs"] = {"files": [{**each, "status": "uploaded"} for each in uploaded]}
    return message


@dataclass
class _File:
    filename: str
    data: bytes

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self.data


async def _each(files: Sequence[_File]) -> AsyncIterator[_File]:
    for file in files:
        yield file


def _file(given: Mapping[str, Any]) -> _File:
    data = str(given.get("file_data") or "")
    try:
        return _File(str(given.get("filename") or "file"), b64decode(data.rpartition(",")[2], validate=True))
    except (binascii.Error, ValueError) as error:
        raise InvalidRequestError(
            "file_data must be base64, as a data URL or alone; file ids are not known."
        ) from error


def _text(content: Content) -> str:
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if part.get("text"))
    return content or ""


def _event(data: Mapping[str, Any], name: str = "") -> bytes:
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + orjson.dumps(data) + b"\n\n"
