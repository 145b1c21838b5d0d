"""Responses as OpenAI's API shows them: whole, and as events."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from deerflow.storage.runs import RunStatus
from deerflow_app.gateway.routes.openai.answer import Answer, event
from deerflow_app.gateway.routes.openai.turn import RunAnswer

_STATUSES = {
    RunStatus.PENDING: "queued",
    RunStatus.RUNNING: "in_progress",
    RunStatus.SUCCESS: "completed",
    RunStatus.INTERRUPTED: "completed",
}


def status_of(answer: Answer) -> str:
    """Return how the response stands. One that waits for a decision says so, and is complete with that."""
    run = answer.run if isinstance(answer, RunAnswer) else None
    if run is not None and run.status is RunStatus.INTERRUPTED and run.stop_reason != "interrupt":
        return "cancelled"
    if answer.error is not None:
        return "failed"
    return "completed" if run is None else _STATUSES.get(run.status, "failed")


def response_json(answer: Answer, status: str, *, output: bool = True) -> dict[str, Any]:
    """Return a response. ``output``: with what was said and used."""
    record = answer.record
    return {
        "id": f"resp_{answer.id}",
        "object": "response",
        "created_at": answer.created,
        "status": status,
        "background": record.get("background", False),
        "error": {"code": "server_error", "message": answer.error["message"]} if answer.error else None,
        "incomplete_details": None,
        "instructions": record.get("instructions"),
        "metadata": record.get("metadata") or {},
        "model": answer.model,
        "output": [_item(answer, "completed" if status == "completed" else "incomplete")] if output else [],
        "parallel_tool_calls": True,
        "previous_response_id": record.get("previous_response_id"),
        "text": {"format": record.get("format") or {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "conversation": {"id": answer.thread_id} if answer.thread_id else None,
        "usage": {
            **answer.tokens("input_tokens", "output_tokens"),
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        if output
        else None,
    }


def _item(answer: Answer, status: str) -> dict[str, Any]:
    content = [_part(answer)] if status != "in_progress" else []
    return {
        "type": "message",
        "id": f"msg_{answer.id}",
        "status": status,
        "role": "assistant",
        "content": content,
    }


def _part(answer: Answer) -> dict[str, Any]:
    cited = [{"type": "url_citation", **each} for each in answer.annotations]
    return {"type": "output_text", "text": answer.text, "annotations": cited, "logprobs": []}


async def response_events(answer: Answer, *, after: int = -1) -> AsyncGenerator[bytes, None]:
    """Yield the events of a response.

    Args:
        after: the number of the last one that the client has.
    """
    number = -1
    async with aclosing(_events(answer)) as events:
        async for kind, data in events:
            number += 1
            if number > after:
                yield event({"type": f"response.{kind}", "sequence_number": number, **data}, f"response.{kind}")


async def _events(answer: Answer) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
    here = {"item_id": f"msg_{answer.id}", "output_index": 0, "content_index": 0}
    empty = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    started = response_json(answer, "in_progress", output=False)
    yield "created", {"response": started}
    yield "in_progress", {"response": started}
    yield "output_item.added", {"output_index": 0, "item": _item(answer, "in_progress")}
    yield "content_part.added", {**here, "part": empty}
    async with aclosing(answer.pieces()) as pieces:
        async for kind, text in pieces:
            if kind == "content":
                yield "output_text.delta", {**here, "delta": text, "logprobs": []}
    if (status := status_of(answer)) != "completed":
        kind = "failed" if status == "failed" else "incomplete"
        yield kind, {"response": response_json(answer, status)}
        return
    for index, annotation in enumerate(_part(answer)["annotations"]):
        yield "output_text.annotation.added", {**here, "annotation_index": index, "annotation": annotation}
    yield "output_text.done", {**here, "text": answer.text, "logprobs": []}
    yield "content_part.done", {**here, "part": _part(answer)}
    yield "output_item.done", {"output_index": 0, "item": _item(answer, "completed")}
    yield "completed", {"response": response_json(answer, "completed")}
