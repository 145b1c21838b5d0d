"""Chat completions.

Chat interfaces send the whole conversation each time and no id. A thread whose messages are those is gone on with, so that its
files and its sandbox are there again; otherwise a new one begins with all of it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Annotated, Any, Literal

from fastapi import Header, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse

from deerflow.errors import InvalidRequestError, NotFoundError
from deerflow.identity import ID_PATTERN, Principal
from deerflow.storage.threads import LEAD_AGENT, ThreadFilter
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.http.streaming import EventStreamResponse
from deerflow_app.gateway.routes import CurrentPrincipal, CurrentRuntime, Runtime
from deerflow_app.gateway.routes.openai.answer import ANSWERS, PREFIX, Answer, event
from deerflow_app.gateway.routes.openai.content import Content, Said, text_of
from deerflow_app.gateway.routes.openai.model_alone import answered_alone, is_for_model_alone
from deerflow_app.gateway.routes.openai.models import check_model
from deerflow_app.gateway.routes.openai.parameters import check_parameters, schema_of
from deerflow_app.gateway.routes.openai.turn import RunAnswer, RunQuestion, start

router = Router(prefix=PREFIX, tags=["openai"])

HISTORY = "openai_history"
"""Metadata of threads: what their messages were for the client."""
_SPACES = re.compile(r"\s+")


class ChatMessage(BaseModel):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Content = None


class StreamOptions(BaseModel):
    include_usage: bool = False


class ChatRequest(BaseModel):
    """Other parameters of OpenAI's API are refused if they would be missed, else named in the answer's headers."""

    model_config = ConfigDict(extra="allow")

    model: str = Field(examples=[LEAD_AGENT])
    messages: list[ChatMessage] = Field(min_length=1, max_length=10_000)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    reasoning_effort: str | None = None
    response_format: dict[str, Any] | None = None


@router.post("/chat/completions", summary="Say something to an agent", responses=ANSWERS)
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
    headers = check_parameters(asked.model_extra)
    schema = schema_of(asked.response_format, "response_format")
    await check_model(runtime, principal, asked.model)
    said = [(each.role, each.content) for each in asked.messages if each.role not in ("tool", "function")]
    if is_for_model_alone(asked.model, said):
        answer = await answered_alone(runtime, principal, asked.model, said, schema)
        return EventStreamResponse(_chunks(answer, asked), headers=headers) if asked.stream else _whole(answer, headers)
    conversation = [each for each in said if each[0] in ("user", "assistant")]
    if not conversation or conversation[-1][0] != "user":
        raise InvalidRequestError("messages must end with one of the role 'user'.")
    known = thread or await _gone_on_with(runtime, principal, conversation[:-1])
    instructions = [("system", content) for role, content in said if role in ("system", "developer")]
    said = conversation[-1:] if known else [*instructions, *conversation]
    question = RunQuestion(model=asked.model, said=said, thread_id=known, effort=asked.reasoning_effort, schema=schema)
    turn = await start(runtime, principal, request, question)
    headers["X-DeerFlow-Thread"] = turn.run.thread_id
    if asked.stream:
        content = _remembered(turn, conversation, _chunks(turn, asked))
        return EventStreamResponse(content, headers=headers, on_disconnect=turn.cancel)
    await turn.whole(request)
    await _remember(turn, conversation)
    return _whole(turn, headers)


def _head(answer: Answer) -> dict[str, Any]:
    return {"id": f"chatcmpl-{answer.id}", "created": answer.created, "model": answer.model}


def _whole(answer: Answer, headers: Mapping[str, str]) -> Response:
    cited = [{"type": "url_citation", "url_citation": each} for each in answer.annotations]
    message = {"role": "assistant", "content": answer.text, "refusal": None, "annotations": cited}
    body = {
        **_head(answer),
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": answer.tokens("prompt_tokens", "completion_tokens"),
    }
    return JSONResponse(body, headers=dict(headers))


async def _chunks(answer: Answer, asked: ChatRequest) -> AsyncGenerator[bytes, None]:
    def chunk(delta: Mapping[str, Any] | None, reason: str | None = None, **more: Any) -> bytes:
        choices = [] if delta is None else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]
        return event({**_head(answer), "object": "chat.completion.chunk", "choices": choices, **more})

    yield chunk({"role": "assistant", "content": ""})
    async with aclosing(answer.pieces()) as pieces:
        async for kind, text in pieces:
            yield chunk({kind: text})
    if (error := answer.error) is not None:
        shown = {"message": error["message"], "type": "run_failed", "code": error["kind"], "param": None}
        yield event({"error": shown})
        return
    yield chunk({}, "stop")
    if asked.stream_options is not None and asked.stream_options.include_usage:
        yield chunk(None, usage=answer.tokens("prompt_tokens", "completion_tokens"))
    yield b"data: [DONE]\n\n"


async def _gone_on_with(runtime: Runtime, principal: Principal, conversation: Sequence[Said]) -> str | None:
    """The thread whose messages are these, if there is one."""
    if not conversation:
        return None
    wanted = ThreadFilter({HISTORY: _fingerprint(conversation)})
    found, _ = await runtime.threads.repository.search(principal, wanted)
    return next((thread.thread_id for thread in found if thread.status in ("idle", "error")), None)


async def _remembered(
    turn: RunAnswer, conversation: Sequence[Said], chunks: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """Yield the chunks; before the last ones the thread learns what its messages are for the client."""
    is_remembered = False
    async with aclosing(chunks):
        async for chunk in chunks:
            if turn.has_ended and not is_remembered:
                is_remembered = True
                await _remember(turn, conversation)
            yield chunk


async def _remember(turn: RunAnswer, conversation: Sequence[Said]) -> None:
    note = {HISTORY: _fingerprint([*conversation, ("assistant", turn.text)])}
    with suppress(NotFoundError):  # deleted meanwhile
        await turn.runtime.threads.repository.update(turn.principal, turn.run.thread_id, metadata=note)


def _fingerprint(messages: Sequence[Said]) -> str:
    """Of what was said; clients change spaces."""
    plain = [[role, _SPACES.sub(" ", text_of(content)).strip()] for role, content in messages]
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()
