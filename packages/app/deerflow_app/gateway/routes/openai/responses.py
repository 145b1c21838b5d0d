"""Responses: an answer of an agent, as a thing of its own. Each is a run: its id leads there, from any process and after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal

from fastapi import Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse

from deerflow.errors import ConflictError, InvalidRequestError, NotFoundError
from deerflow.identity import ID_PATTERN, Principal
from deerflow.storage.runs import Run
from deerflow.storage.threads import LEAD_AGENT
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.http.streaming import EventStreamResponse
from deerflow_app.gateway.routes import CurrentPrincipal, CurrentRuntime, Runtime
from deerflow_app.gateway.routes.openai.answer import ANSWERS, PREFIX
from deerflow_app.gateway.routes.openai.content import INSTRUCTIONS, Said, input_item
from deerflow_app.gateway.routes.openai.model_alone import answered_alone, is_for_model_alone
from deerflow_app.gateway.routes.openai.models import check_model
from deerflow_app.gateway.routes.openai.parameters import ParameterError, check_parameters, schema_of
from deerflow_app.gateway.routes.openai.response_shape import response_events, response_json, status_of
from deerflow_app.gateway.routes.openai.turn import RunAnswer, RunQuestion, start

router = Router(prefix=PREFIX, tags=["openai"])

STOP_SECONDS = 10.0
"""Seconds for which a request waits for the end of a run that it stops."""


class Reasoning(BaseModel):
    effort: str | None = None


class Conversation(BaseModel):
    id: str = Field(pattern=rf"^{ID_PATTERN.pattern}$")


class TextSettings(BaseModel):
    format: dict[str, Any] | None = None


class ResponsesRequest(BaseModel):
    """Other parameters of OpenAI's API are refused if they would be missed, else named in the answer's headers."""

    model_config = ConfigDict(extra="allow")

    model: str = Field(examples=[LEAD_AGENT])
    input: str | list[dict[str, Any]]
    instructions: str | None = None
    previous_response_id: str | None = None
    conversation: Conversation | str | None = Field(default=None, description="A thread; made if there is none.")
    stream: bool | None = False
    background: bool | None = Field(default=False, description="Answer at once; the response is read with GET.")
    reasoning: Reasoning | None = None
    text: TextSettings | None = None
    metadata: dict[str, str] | None = Field(default=None, description="Shown with the response.")


@router.post("/responses", summary="Ask an agent for a response", responses=ANSWERS)
async def responses(
    asked: ResponsesRequest, request: Request, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> Response:
    headers = check_parameters(asked.model_extra)
    wanted = asked.text.format if asked.text else None
    schema = schema_of(wanted, "text.format")
    await check_model(runtime, principal, asked.model)
    said: list[Said] = [("user", asked.input)] if isinstance(asked.input, str) else _items(asked.input)
    said = [("system", asked.instructions), *said] if asked.instructions else said
    if is_for_model_alone(asked.model, said):
        _check_alone(asked)
        answer = await answered_alone(runtime, principal, asked.model, said, schema)
        if asked.stream:
            return EventStreamResponse(response_events(answer), headers=headers)
        return JSONResponse(response_json(answer, "completed"), headers=headers)
    if not said or said[-1][0] != "user":
        raise InvalidRequestError("input must end with a message of the role 'user'.")
    known = asked.conversation.id if isinstance(asked.conversation, Conversation) else asked.conversation
    if asked.previous_response_id is not None:
        if known is not None:
            raise ParameterError("conversation", "give it or previous_response_id, not both.")
        known = (await _run(runtime, principal, asked.previous_response_id)).thread_id
    if asked.background and (asked.model_extra or {}).get("store") is False:
        raise ParameterError("store", "a response in the background is kept. Send true, or leave it out.")
    record = {
        "background": bool(asked.background),
        "format": wanted,
        "metadata": asked.metadata or {},
        "previous_response_id": asked.previous_response_id,
    }
    effort = asked.reasoning.effort if asked.reasoning else None
    question = RunQuestion(model=asked.model, said=said, thread_id=known, effort=effort, schema=schema, record=record)
    turn = await start(runtime, principal, request, question)
    if asked.stream:
        on_disconnect = None if asked.background else turn.cancel
        return EventStreamResponse(response_events(turn), headers=headers, on_disconnect=on_disconnect)
    if asked.background:
        return JSONResponse(response_json(turn, status_of(turn), output=False), headers=headers)
    await turn.whole(request)
    return JSONResponse(response_json(turn, "completed"), headers=headers)


@router.get("/responses/{response_id}", summary="A response, as far as it has come", responses=ANSWERS)
async def get_response(
    response_id: str,
    request: Request,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    stream: bool = False,
    starting_after: Annotated[int | None, Query(description="Of a stream: the number of the last event read.")] = None,
) -> Response:
    turn = RunAnswer.of(runtime, principal, request, await _run(runtime, principal, response_id))
    if stream:
        return EventStreamResponse(response_events(turn, after=-1 if starting_after is None else starting_after))
    return await _shown(turn)


@router.get("/responses/{response_id}/input_items", summary="What a response answers", responses=ANSWERS)
async def input_items(
    response_id: str,
    principal: CurrentPrincipal,
    runtime: CurrentRuntime,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    order: Literal["asc", "desc"] = "desc",
    after: Annotated[str | None, Query(description="The id of an item, which the page follows.")] = None,
) -> Response:
    items = _input(await _run(runtime, principal, response_id))
    items = items if order == "asc" else items[::-1]
    if after is not None:
        at = next((at for at, item in enumerate(items, 1) if item["id"] == after), None)
        if at is None:
            raise ParameterError("after", "the response has no such input item.")
        items = items[at:]
    page = items[:limit]
    ends = {"first_id": page[0]["id"] if page else None, "last_id": page[-1]["id"] if page else None}
    return JSONResponse({"object": "list", "data": page, **ends, "has_more": len(items) > limit})


@router.post("/responses/{response_id}/cancel", summary="Stop a response", responses=ANSWERS)
async def cancel_response(
    response_id: str, request: Request, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> Response:
    run = await _stopped(runtime, principal, await _run(runtime, principal, response_id))
    return await _shown(RunAnswer.of(runtime, principal, request, run))


@router.delete("/responses/{response_id}", summary="Delete a response", responses=ANSWERS)
async def delete_response(response_id: str, principal: CurrentPrincipal, runtime: CurrentRuntime) -> Response:
    run = await _stopped(runtime, principal, await _run(runtime, principal, response_id))
    if not run.closed:
        raise ConflictError("The response is being stopped. Delete it again in a moment.", code="run_active")
    await runtime.runs.delete(principal, run.run_id)
    return JSONResponse({"id": response_id, "object": "response", "deleted": True})


async def _run(runtime: Runtime, principal: Principal, response_id: str) -> Run:
    """Return the run of a response. Raises NotFoundError, also for that of someone else."""
    with suppress(NotFoundError):
        return await runtime.runs.get(principal, response_id.removeprefix("resp_"))
    raise NotFoundError(f"There is no response {response_id!r}.")


async def _stopped(runtime: Runtime, principal: Principal, run: Run) -> Run:
    """Return the run when it has ended, if that does not take long."""
    with suppress(NotFoundError, TimeoutError):  # it had ended; it goes on ending
        async with asyncio.timeout(STOP_SECONDS):
            await runtime.runs.cancel(principal, run.run_id, wait=True)
    return await runtime.runs.get(principal, run.run_id)


async def _shown(turn: RunAnswer) -> Response:
    if turn.run.closed:
        await turn.read()
    return JSONResponse(response_json(turn, status_of(turn), output=turn.run.closed))


def _check_alone(asked: ResponsesRequest) -> None:
    """Raise ParameterError: a model alone keeps nothing."""
    for name in ("background", "previous_response_id", "conversation"):
        if getattr(asked, name):
            raise ParameterError(name, "a model alone keeps nothing. Leave it out, or ask the agent.")


def _items(given: Sequence[Mapping[str, Any]]) -> list[Said]:
    """Return the messages among the items of an input."""
    items = [each for each in given if each.get("type", "message") == "message" and "role" in each]
    roles = {"developer": "system"}
    return [(roles.get(str(each["role"]), str(each["role"])), each.get("content")) for each in items]


def _input(run: Run) -> list[dict[str, Any]]:
    """Return the messages that the run began with, without what was added to them, as items."""
    given = run.kwargs["request"].get("input")
    messages = given.get("messages") if isinstance(given, dict) else given
    ids = run.kwargs.get("message_ids") or ()
    shown = [each for each in messages if isinstance(each, dict)] if isinstance(messages, list) else []
    return [
        input_item(message_id, message)
        for message_id, message in zip(ids, shown, strict=False)
        if not str(message.get("content")).startswith(INSTRUCTIONS)
    ]
