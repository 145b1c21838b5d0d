"""Feedback: a thumb up or down for a run."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from deerflow.threads.feedback import Feedback
from deerflow_app.gateway.http.router import Router
from deerflow_app.gateway.routes import CurrentPrincipal, CurrentRuntime, Deleted, RequestBody

router = Router(tags=["feedback"])

RUN = "/api/threads/{thread_id}/runs/{run_id}/feedback"


class Rating(RequestBody):
    rating: Literal[1, -1]
    comment: str | None = Field(default=None, max_length=10_000)
    message_id: str | None = Field(default=None, max_length=128, description="The message that it is about.")


class FeedbackStats(BaseModel):
    run_id: str
    total: int
    positive: int
    negative: int


@router.put(RUN, summary="Give feedback, or change it")
@router.post(RUN, summary="Give feedback, or change it", name="post_feedback")
async def give_feedback(
    thread_id: str, run_id: str, body: Rating, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> Feedback:
    return await runtime.feedback.put(principal, thread_id, run_id, **body.model_dump())


@router.get(RUN, summary="One's feedback on a run")
async def list_feedback(
    thread_id: str, run_id: str, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> list[Feedback]:
    return await runtime.feedback.list(principal, run_id, thread_id=thread_id)


@router.get(RUN + "/stats", summary="How a run of one's own was rated")
async def feedback_stats(
    thread_id: str, run_id: str, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> FeedbackStats:
    ratings = [one.rating for one in await runtime.feedback.list(principal, run_id, thread_id=thread_id)]
    return FeedbackStats(run_id=run_id, total=len(ratings), positive=ratings.count(1), negative=ratings.count(-1))


@router.delete(RUN, summary="Withdraw one's feedback on a run")
async def withdraw_feedback(
    thread_id: str, run_id: str, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> Deleted:
    await runtime.feedback.delete(principal, thread_id, run_id)
    return {"success": True}


@router.delete(RUN + "/{feedback_id}", summary="Withdraw feedback, by its id")
async def delete_feedback(
    thread_id: str, run_id: str, feedback_id: str, principal: CurrentPrincipal, runtime: CurrentRuntime
) -> Deleted:
    await runtime.feedback.delete(principal, thread_id, run_id, feedback_id=feedback_id)
    return {"success": True}


@router.get(
    "/api/runs/{run_id}/feedback",
    summary="One's feedback on a run, whatever its thread",
)
async def list_run_feedback(run_id: str, principal: CurrentPrincipal, runtime: CurrentRuntime) -> list[Feedback]:
    return await runtime.feedback.list(principal, run_id)
