"""Leaving a thread in order when a run of it ends before its time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage
from langgraph.graph import END

from deerflow.threads.checkpoint import is_unfinished

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from deerflow.agents.factory import Agent

MODEL_NODE = "model"
UNFINISHED = "Not finished: the run ended before this call had a result."
PATIENCE = 10.0
"""Seconds that a process which is to end gives to what must not be cut off."""

T = TypeVar("T")


async def settle(
    agent: Agent, config: RunnableConfig, *, why: str, joining: Sequence[BaseMessage] = ()
) -> list[BaseMessage]:
    """Nothing is left to do in the thread, and nothing that was done or said is lost.

    Results of tools that finished are kept, though others of the same step did not; those get ``why`` as their result.

    Args:
        config: names the thread.
        why: one sentence for the model.
        joining: what else joins the transcript: a partial answer, messages of the person that were not taken up.

    Returns:
        Those of ``joining`` that were not part of the transcript already.
    """
    snapshot = await agent.aget_state(config)
    if not is_unfinished(snapshot) and not joining:
        return []
    if is_unfinished(snapshot):
        await agent.aupdate_state(config, None, as_node=END)
        snapshot = await agent.aget_state(config)
    messages: list[AnyMessage] = list((snapshot.values or {}).get("messages") or ())
    known = {message.id for message in messages}
    joining = [message for message in joining if message.id not in known]
    added: list[Any] = [*_answers(messages, why), *joining]
    if not added:
        return []
    await agent.aupdate_state(config, {"messages": added}, as_node=MODEL_NODE)
    if is_unfinished(await agent.aget_state(config)):
        await agent.aupdate_state(config, None, as_node=END)
    return list(joining)


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Do ``work`` to its end, and go on after it, even if this task is cancelled meanwhile because the process is to end.

    Raises:
        CancelledError: it was cancelled, and ``work`` needed more than ``PATIENCE`` seconds after that.
    """
    current, task = asyncio.current_task(), asyncio.create_task(work)
    assert current is not None
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        try:
            _, late = await asyncio.wait([task], timeout=PATIENCE)
        finally:
            task.cancel()
        if late:
            await asyncio.wait([task])
            raise
        current.uncancel()
        return task.result()


def _answers(messages: Iterable[AnyMessage], why: str) -> list[ToolMessage]:
    """Results for the calls at the end of the transcript that have none."""
    messages = list(messages)
    answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    last = next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)
    calls = last.tool_calls if last is not None else []
    return [
        ToolMessage(
            content=why, tool_call_id=call["id"] or "", name=call["name"], status="error", id=f"stopped:{call['id']}"
        )
        for call in calls
        if call["id"] not in answered
    ]
